//! Against the rule, written out plainly, and by what it is for.

use super::*;
use crater_sdk::Column;
use crater_sdk::testing::{JobSpec, NodeSpec, RowSpec, Tester, card, group, job, node};

/// A shape of the mix: weight, CPU, cards, milli of each, memory, models.
type Shape<'a> = (i32, i32, i32, i32, i32, &'a [&'a str]);

/// Free shares and CPU, and CPU, cards and share that are asked for.
type Case<'a> = (&'a [i32], i32, (i32, i32, i32));

/// Facts of a mix and of 100 nodes of 8 cards for each model.
fn facts(mix: &[Shape], models: &[&str]) -> Vec<(u32, Vec<i32>)> {
    let column = |f: &dyn Fn(&Shape) -> i32| mix.iter().map(f).collect::<Vec<i32>>();
    let of_class = |value: i32| models.iter().map(|_| value).collect::<Vec<i32>>();
    let mut offsets = vec![0];
    for shape in mix {
        offsets.push(offsets[offsets.len() - 1] + shape.5.len() as i32);
    }
    vec![
        (MIX_WEIGHT, column(&|s| s.0)),
        (MIX_CPU, column(&|s| s.1)),
        (MIX_CARDS, column(&|s| s.2)),
        (MIX_CARD_MILLI, column(&|s| s.3)),
        (MIX_CARD_MIB, column(&|s| s.4)),
        (MIX_MODELS_OFFSETS, offsets),
        (MIX_MODELS, mix.iter().flat_map(|s| s.5).map(|m| strings::id(m)).collect()),
        (CLASS_NODES, of_class(100)),
        (CLASS_CPU, of_class(96_000)),
        (CLASS_CARDS, of_class(8)),
        (CLASS_MODEL, models.iter().map(|m| strings::id(m)).collect()),
        (CLASS_CARD_MIB, of_class(16_000)),
    ]
}

fn tester(config: &str, mix: &[Shape]) -> Tester {
    let owned = facts(mix, &["T4", "A100"]);
    let facts: Vec<Column> = owned.iter().map(|(id, v)| (*id, v.as_slice())).collect();
    Tester::with_facts(&native(), config, &facts).unwrap()
}

fn server(model: &str, free: &[i32], cpu: i32) -> NodeSpec {
    free.iter().fold(node().model(model).cpu(96_000, cpu), |n, f| {
        n.card(card().free(*f).memory(16_000, 16 * f))
    })
}

/// 700 pairs with 300, 500 with itself; eight whole cards now and then.
const MIX: [Shape; 6] = [
    (400, 4_000, 1, 700, 0, &[]),
    (200, 4_000, 1, 300, 0, &[]),
    (200, 6_000, 1, 500, 0, &[]),
    (300, 8_000, 1, 1000, 0, &[]),
    (20, 64_000, 8, 1000, 0, &[]),
    (300, 8_000, 0, 0, 0, &[]),
];

const FILL: &str = r#"{"profile": "fill"}"#;

/// `fill` with the curve of the mix's cores.
const CURVE: &str = r#"{"profile": "fill", "cores-usual": 0, "cores-least": 0, "cores-curve": 650,
    "drain-share": 250, "drain-cpu": 400, "several-for-all": true}"#;

#[test]
fn the_score_is_the_rule() {
    let owned = facts(&MIX, &["T4", "A100"]);
    let columns: Vec<Column> = owned.iter().map(|(id, v)| (*id, v.as_slice())).collect();
    let prepared = Prepared::new(&Facts::new(&columns), 1);
    let known = Prepared::from_text(&prepared.to_text()).unwrap();
    assert_eq!(known, prepared);
    let at = |table: &[i32], milli: i32| f64::from(table[milli as usize / 10]) / 1e6;
    let rho = prepared.cores as f64;
    let gpu: i64 = MIX.iter().map(|s| i64::from(s.0 * s.2 * s.3)).sum();
    let cpu: i64 = MIX.iter().map(|s| i64::from(s.0) * i64::from(s.1)).sum();
    assert_eq!(prepared.cores, cpu * 1000 / gpu);
    // The jobs of eight cards ask for a part of the GPU; with 64 of 96 cores
    // one fits on a node, so that all cards could be theirs.
    let worth = 20.0 * 8000.0 / gpu as f64;
    // Cores a GPU of the jobs with GPU, and of all work with 1.75 of the rest.
    let of_gpu: i64 = MIX.iter().filter(|s| s.2 > 0).map(|s| i64::from(s.0) * i64::from(s.1)).sum();
    assert_eq!(prepared.own_cores, (of_gpu as f64 * 1000.0 / gpu as f64).round() as i64);
    let own = prepared.own_cores as f64;
    let needed = own + 1.75 * (rho - own);
    let lacking = |g: f64, c: f64| {
        let part = if g > 0.0 { 256.0 * c / g / needed } else { 256.0 };
        let (low, high) = (part.floor().min(256.0) as usize, part.ceil().min(256.0) as usize);
        let (low, high) = (f64::from(prepared.lack[low]), f64::from(prepared.lack[high]));
        g * (low + (high - low) * part.fract()) / 1e6
    };
    for (config, open, several, cores, drain) in [
        ("{}", 0.06, 0.4, [0.2, 0.3, 0.0], [0.2, 0.2, 0.8]),
        (FILL, 0.03, 0.07, [0.2, 0.3, 0.0], [0.0; 3]),
        (CURVE, 0.03, 0.07, [0.0, 0.0, 0.65], [0.0, 0.25, 0.4]),
    ] {
        let (waste, all) = (0.2, config != FILL);
        let tester = tester(config, &MIX);
        let stranded = |f: i32| {
            let tables = &prepared.tables[0];
            waste * at(&tables.waste, f)
                + (1.0 - waste) * (f64::from(f) / 1000.0 - at(&tables.prices, f))
        };
        let value = |free: &[i32], cpu: i32, pays: bool| {
            let (g, c) = (f64::from(free.iter().sum::<i32>()) / 1000.0, f64::from(cpu));
            let idle = free.iter().filter(|f| **f == 1000).count();
            let room = if idle >= 8 && cpu >= 64_000 { 8.0 * worth } else { 0.0 };
            free.iter().map(|f| stranded(*f)).sum::<f64>()
                + cores[0] * (g - c / (0.82 * rho)).max(0.0)
                + cores[1] * (g - c / (0.4 * rho)).max(0.0)
                + cores[2] * lacking(g, c)
                - if pays { several * room } else { 0.0 }
        };
        let cases: [Case; 7] = [
            (&[1000, 1000, 650], 40_000, (4_000, 1, 300)),
            (&[1000, 350], 9_000, (4_000, 1, 700)),
            (&[1000; 8], 96_000, (4_000, 1, 500)),
            (&[1000; 8], 70_000, (8_000, 0, 0)),
            (&[1000; 8], 96_000, (8_000, 1, 1000)),
            (&[1000; 8], 96_000, (64_000, 8, 1000)),
            (&[200, 100], 3_000, (2_000, 0, 0)),
        ];
        for (free, cpu, (ask_cpu, cards, milli)) in cases {
            let gain = |on: &usize| {
                let charge = if free[*on] == 1000 { open } else { 0.0 };
                stranded(free[*on]) - stranded(free[*on] - milli) - charge
            };
            let fitting = (0..free.len()).filter(|i| free[*i] >= milli);
            let on = fitting.rev().max_by(|a, b| gain(a).total_cmp(&gain(b))).unwrap_or(0);
            let mut after = free.to_vec();
            let taken = if milli == 1000 { 0..cards as usize } else { on..on + cards as usize };
            after[taken].iter_mut().for_each(|f| *f -= milli);
            let opens = cards == 1 && milli < 1000 && free[on] == 1000;
            let pays = all || cards > 0;
            let mut expected = value(free, cpu, pays) - value(&after, cpu - ask_cpu, pays);
            if opens {
                expected -= open;
            }
            let (requested, left) = (f64::from(cards * milli), after.iter().sum::<i32>());
            let idle = after.iter().filter(|f| **f == 1000).count() as f64;
            expected -= match (cards, milli) {
                (0, _) => drain[2] * f64::from(left) / 8000.0,
                (_, 1000) => drain[0] * requested / 1000.0 * f64::from(left) / 8000.0,
                _ => drain[1] * requested / 1000.0 * idle / 8.0,
            };
            let job = match (cards, milli) {
                (0, _) => job().cpu(ask_cpu),
                (n, 1000) => job().cpu(ask_cpu).whole(n),
                _ => job().cpu(ask_cpu).share(milli),
            };
            let answer = tester.answer(&job, &[server("T4", free, cpu)]);
            let score = f64::from(answer.values[0]) / 1e6;
            assert!((score - expected).abs() < 2e-5, "{config} {free:?}: {score} for {expected}");
            if cards == 1 && milli < 1000 {
                assert_eq!(answer.cards, [1 << on], "{config} {free:?}");
            }
        }
    }
}

#[test]
fn rows_together_answer_as_rows_alone() {
    let tester = tester("{}", &MIX);
    let nodes = [
        server("T4", &[1000, 300, 700], 20_000),
        server("A100", &[1000; 8], 90_000),
        server("", &[], 64_000),
        server("T4", &[500, 500], 9_000),
    ];
    for job in [job().share(300), job().whole(1), job().cpu(8_000), job().card_memory(1, 5_000)] {
        let alone: Vec<i32> =
            nodes.iter().flat_map(|n| tester.scores(&job, std::slice::from_ref(n))).collect();
        assert_eq!(tester.scores(&job, &nodes), alone);
    }
}

#[test]
fn a_share_goes_where_what_is_left_fits_the_mix() {
    let tester = tester(FILL, &MIX);
    // 300 leaves nothing of 300 and 700 of a whole card, which is well used,
    // and of 500 it leaves 200, which nobody asks for.
    let nodes = [server("T4", &[500], 9_000), server("T4", &[300], 9_000)];
    assert_eq!(tester.best(&job().share(300), &nodes), Some(1));
    let open = [server("T4", &[500], 9_000), server("T4", &[1000], 9_000)];
    assert_eq!(tester.best(&job().share(300), &open), Some(1));
}

#[test]
fn memory_that_binds_counts_as_the_share_that_is_left() {
    let tester = tester(FILL, &MIX);
    let of = |free, memory| {
        node().model("T4").cpu(96_000, 40_000).card(card().free(free).memory(16_000, memory))
    };
    // Half of the share is free and 300 milli of the memory: as 300 free.
    let job = job().share(300);
    assert_eq!(tester.scores(&job, &[of(500, 4_800)]), tester.scores(&job, &[of(300, 4_800)]));
    // Of 200 milli with 11,200 MiB a card keeps 300, not 800.
    let heavy = crater_sdk::testing::job().share(200).set(JOB_CARD_MIB, 11_200);
    let light = crater_sdk::testing::job().share(700);
    let idle = [of(1000, 16_000)];
    let gain = |job: &JobSpec| tester.scores(job, &idle)[0];
    assert_eq!(gain(&heavy), gain(&light));
    // Memory alone is the same as its share.
    let alone = crater_sdk::testing::job().card_memory(1, 4_800);
    assert_eq!(gain(&alone), gain(&crater_sdk::testing::job().share(300)));
}

#[test]
fn shapes_whose_memory_binds_are_their_share_of_each_model() {
    let mix: [Shape; 2] = [(600, 0, 1, 100, 8_000, &[]), (300, 0, 1, 0, 4_000, &[])];
    let owned = facts(&mix, &["T4"]);
    let columns: Vec<Column> = owned.iter().map(|(id, v)| (*id, v.as_slice())).collect();
    let prices = &Prepared::new(&Facts::new(&columns), 1).tables[0].prices;
    // Of 16,000 MiB they take a half and a quarter, whatever they say of share.
    assert_eq!((prices[24], prices[100]), (0, 1_000_000));
    assert!(prices[25] > 0 && prices[25] <= 250_000 && prices[50] == 500_000, "{prices:?}");
}

#[test]
fn what_lies_between_two_steps_is_stranded() {
    let owned = facts(&MIX, &["T4"]);
    let columns: Vec<Column> = owned.iter().map(|(id, v)| (*id, v.as_slice())).collect();
    let prepared = Prepared::new(&Facts::new(&columns), 1);
    let of = Of::new(&prepared.tables[0], Room::default(), 0.6);
    for milli in 0..=1000 {
        let between = f64::from(milli % 10) / 1000.0;
        let expected = of.stranded(milli - milli % 10) + between;
        assert!((of.stranded(milli) - expected).abs() < 1e-9, "{milli}");
    }
    // A request counts as its size rounded up.
    let mix = |milli| {
        let owned = facts(&[(600, 0, 1, milli, 0, &[])], &["T4"]);
        let columns: Vec<Column> = owned.iter().map(|(id, v)| (*id, v.as_slice())).collect();
        Prepared::new(&Facts::new(&columns), 1).tables
    };
    assert_eq!(mix(331), mix(340));
    assert_ne!(mix(331), mix(330));
}

#[test]
fn cards_that_bound_jobs_need_are_left_to_them() {
    let mut mix = MIX.to_vec();
    mix.push((300, 4_000, 1, 1000, 0, &["A100"]));
    let tester = tester(FILL, &mix);
    let free = |model: &str, milli: i32| -> RowSpec { group(model).set(GROUP_GPU_FREE, milli) };
    let rows = [free("A100", 10_000), free("T4", 90_000)];
    let scores = tester.group_scores(&job().whole(1), &rows);
    assert!(scores[0] < -1_000_000 && scores[1] == 0, "{scores:?}");
    // Twice the cards, twice the cost; without a GPU none.
    assert_eq!(tester.group_scores(&job().whole(2), &rows)[0], 2 * scores[0]);
    assert_eq!(tester.group_scores(&job().cpu(4_000), &rows), [0, 0]);
    // With as much free as they ask for, nothing is scarce.
    let plenty = [free("A100", 90_000), free("T4", 10_000)];
    assert_eq!(tester.group_scores(&job().whole(1), &plenty), [0, 0]);
    // Nothing free at all is no reason to fail.
    assert_eq!(tester.group_scores(&job().share(300), &[free("A100", 0)])[0], 0);
}

#[test]
fn with_too_few_jobs_a_neutral_mix_stands_in() {
    let few: [Shape; 1] = [(249, 4_000, 1, 700, 0, &["T4"])];
    for tester in [tester("{}", &few), Tester::new(&native(), "{}").unwrap()] {
        // Of 750, three quarters, 300 would leave 450, a quarter and a rest.
        let nodes = [750, 300].map(|free| server("T4", &[free], 90_000));
        assert_eq!(tester.best(&job().share(300).cpu(4_000), &nodes), Some(1));
        assert_eq!(tester.group_scores(&job().whole(1), &[group("T4")]), [0]);
    }
    let scores = |config: &str| {
        tester(config, &few).scores(&job().share(500), &[server("T4", &[1000], 90_000)])
    };
    assert_ne!(scores(r#"{"minimum": 249}"#), scores("{}"));
}

#[test]
fn what_was_prepared_is_checked() {
    let of = |text: &str| native().configure("{}", text.as_bytes()).map(|_| ()).unwrap_err();
    assert_eq!(of("crater fgd 1"), "the prepared tables are not this policy's");
    assert!(of("crater shadow-price 2\ntable 1 2 3").contains("bad line: table 1 2 3"));
    assert!(of("crater shadow-price 2\nmodel 16000 7\tT4").contains("lack one"));
    assert!(of("crater shadow-price 2\nseveral 1 0 1").contains("bad line"));
}
