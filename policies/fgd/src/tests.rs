//! Against the definition of fragmentation, written out plainly.

use super::*;
use crater_sdk::Column;
use crater_sdk::testing::{JobSpec, NodeSpec, Tester, card, job, node};

/// A shape of the mix: weight, CPU, cards, milli of each, models.
type Plain<'a> = (i32, i32, i32, i32, &'a [&'a str]);

fn tester(mix: &[Plain]) -> Tester {
    let column = |f: &dyn Fn(&Plain) -> i32| mix.iter().map(f).collect::<Vec<i32>>();
    let models: Vec<i32> = mix.iter().flat_map(|s| s.4).map(|model| strings::id(model)).collect();
    let mut offsets = vec![0];
    offsets.extend(mix.iter().scan(0, |at, s| {
        *at += s.4.len() as i32;
        Some(*at)
    }));
    let owned = [
        (MIX_WEIGHT, column(&|s| s.0)),
        (MIX_CPU, column(&|s| s.1)),
        (MIX_CARDS, column(&|s| s.2)),
        (MIX_CARD_MILLI, column(&|s| s.3)),
        (MIX_MODELS_OFFSETS, offsets),
        (MIX_MODELS, models),
    ];
    let facts: Vec<Column> = owned.iter().map(|(id, v)| (*id, v.as_slice())).collect();
    Tester::with_facts(&native(), r#"{"cover": 100}"#, &facts).unwrap()
}

/// W · F as the paper defines it.
fn fragments(mix: &[Plain], model: &str, free: &[i32], cpu: i32) -> i64 {
    let total: i32 = free.iter().sum();
    let fragment = |s: &Plain| {
        let (_, ask_cpu, cards, milli, models) = *s;
        let room = free.iter().filter(|f| **f >= milli).count();
        let model_fits = models.is_empty() || models.contains(&model);
        if cards == 0 || !model_fits || cpu < ask_cpu || room < cards as usize {
            return total;
        }
        free.iter().filter(|f| **f < milli).sum()
    };
    mix.iter().map(|s| i64::from(s.0) * i64::from(fragment(s))).sum()
}

/// Score and mask as the yardstick defines them.
fn expected(
    mix: &[Plain],
    model: &str,
    free: &[i32],
    cpu: i32,
    ask: (i32, i32, i32),
) -> (i32, i32) {
    let (ask_cpu, cards, milli) = ask;
    let weight: i64 = mix.iter().map(|s| i64::from(s.0)).sum();
    let score = |on: &[usize]| {
        let mut after = free.to_vec();
        for i in on {
            after[*i] -= milli;
        }
        let gain = fragments(mix, model, free, cpu) - fragments(mix, model, &after, cpu - ask_cpu);
        let x = gain as f64 / weight as f64 / 1000.0;
        // The rounding of this quotient may not cross a floor at 0.
        if gain == 0 { 50 } else { (100.0 / (1.0 + (-x).exp())).floor() as i32 }
    };
    if cards == 0 {
        return (score(&[]), 0);
    }
    if cards > 1 {
        let idle: Vec<usize> =
            (0..free.len()).filter(|i| free[*i] == 1000).take(cards as usize).collect();
        return (score(&idle), idle.iter().map(|i| 1 << i).sum());
    }
    let fits = (0..free.len()).filter(|i| free[*i] >= milli);
    let best =
        fits.rev().map(|i| (score(&[i]), i)).max_by_key(|(s, i)| (*s, std::cmp::Reverse(*i)));
    best.map_or((0, 0), |(s, i)| (s, 1 << i))
}

fn ask(cpu: i32, cards: i32, milli: i32) -> JobSpec {
    let job = job().cpu(cpu);
    match (cards, milli) {
        (0, _) => job,
        (n, 1000) => job.whole(n),
        (_, milli) => job.share(milli),
    }
}

fn server(model: &str, free: &[i32], cpu: i32) -> NodeSpec {
    free.iter().fold(node().model(model).cpu(96_000, cpu), |n, f| n.card(card().free(*f)))
}

const MIX: [Plain; 7] = [
    (40, 4_000, 1, 1000, &[]),
    (25, 8_000, 1, 500, &["T4"]),
    (20, 3_000, 1, 300, &[]),
    (9, 12_000, 0, 0, &[]),
    (5, 32_000, 8, 1000, &["A100", "T4"]),
    (4, 16_000, 2, 1000, &[]),
    (3, 0, 1, 700, &["A100"]),
];

#[test]
fn it_is_the_papers_score_and_choice_of_card() {
    let tester = tester(&MIX);
    let mut seed = 1;
    let mut random = |end: u32| {
        seed += 1;
        crater_sdk::chance::below(crater_sdk::chance::mix(7, seed), end) as i32
    };
    for _ in 0..3000 {
        let model = ["T4", "A100", "V100"][random(3) as usize];
        let cards = random(9);
        let free: Vec<i32> = (0..cards)
            .map(|_| [1000, 1000, 0, random(11) * 100, random(1001)][random(5) as usize])
            .collect();
        let cpu = 12_000 + random(40_000);
        let idle = free.iter().filter(|f| **f == 1000).count() as i32;
        let wanted = match random(4) {
            0 => (random(12_000), 0, 0),
            1 if idle > 1 => (random(12_000), 2 + random(idle as u32 - 1), 1000),
            2 if idle > 0 => (random(12_000), 1, 1000),
            _ => (random(12_000), 1, 1 + random(900)),
        };
        let answer =
            tester.answer(&ask(wanted.0, wanted.1, wanted.2), &[server(model, &free, cpu)]);
        let got = (answer.values[0], answer.cards.first().copied().unwrap_or(0));
        assert_eq!(
            got,
            expected(&MIX, model, &free, cpu, wanted),
            "{model} {free:?} {cpu} {wanted:?}"
        );
    }
}

#[test]
fn rows_together_answer_as_rows_alone() {
    let tester = tester(&MIX);
    let nodes = [
        server("T4", &[1000, 300, 700], 20_000),
        server("A100", &[1000; 8], 90_000),
        server("", &[], 64_000),
        server("T4", &[500, 500], 9_000),
    ];
    for job in [ask(8_000, 1, 300), ask(4_000, 1, 1000), ask(2_000, 0, 0)] {
        let alone: Vec<i32> =
            nodes.iter().flat_map(|n| tester.scores(&job, std::slice::from_ref(n))).collect();
        assert_eq!(tester.scores(&job, &nodes), alone);
    }
}

#[test]
fn without_a_mix_whole_cards_are_kept_whole() {
    let tester = Tester::new(&native(), "{}").unwrap();
    let nodes = [server("T4", &[1000], 8_000), server("T4", &[600], 8_000)];
    assert_eq!(tester.best(&job().share(500), &nodes), Some(1));
}

#[test]
fn the_mix_covers_what_was_asked_and_survives_as_text() {
    let columns: [Column; 2] = [(MIX_WEIGHT, &[5, 80, 5, 10]), (MIX_CPU, &[1, 2, 3, 4])];
    let facts = Facts::new(&columns);
    let cpus = |cover| Mix::typical(&facts, cover).shapes.iter().map(|s| s.cpu).collect::<Vec<_>>();
    assert_eq!((cpus(80), cpus(90), cpus(95)), (vec![2], vec![2, 4], vec![2, 4, 1]));
    let mut mix = Mix::typical(&facts, 100);
    mix.shapes[0].models = vec!["A100 80GB".into(), "T4".into()];
    mix.sizes = vec![("A100 80GB".into(), 81_920)];
    assert_eq!(Mix::from_text(&mix.to_text()), Ok(mix));
    assert!(Mix::from_text("something else").is_err());
    assert!(Mix::from_text("crater fgd 1\nshape 1 2 3").is_err());
}

#[test]
fn memory_that_decides_means_a_share_of_each_model() {
    let models = [strings::id("T4"), strings::id("A100")];
    let facts: [Column; 7] = [
        (MIX_WEIGHT, &[1]),
        (MIX_CARDS, &[1]),
        (MIX_CARD_MILLI, &[0]),
        (MIX_CARD_MIB, &[16_000]),
        (CLASS_NODES, &[1, 1]),
        (CLASS_MODEL, &models),
        (CLASS_CARD_MIB, &[16_000, 80_000]),
    ];
    let tester = Tester::with_facts(&native(), "{}", &facts).unwrap();
    let t4 = node().model("T4").cpu(8_000, 8_000).card(card().memory(16_000, 16_000));
    let a100 = node().model("A100").cpu(8_000, 8_000).card(card().memory(80_000, 80_000));
    // On a T4 the job leaves 900 of 1000 that the shape cannot use; an A100
    // still takes it.
    let scores = tester.scores(&job().share(100), &[t4, a100]);
    assert!(scores[0] < 50 && scores[1] == 50, "{scores:?}");
}
