//! A policy that makes every decision and uses every setting.

use crater_sdk::prelude::*;
use crater_sdk::testing::{Tester, group, job, node, unit};
use crater_sdk::{Interface, Manifest};

struct Everything {
    prepared: i32,
}

impl Policy for Everything {
    fn configure(config: &str, prepared: &[u8]) -> Result<Self, String> {
        Settings::none(config)?;
        Ok(Self { prepared: prepared.len() as i32 })
    }

    fn prepare(_: &str, facts: &Facts) -> Result<Vec<u8>, String> {
        Ok(vec![0; facts.shapes().len()])
    }

    fn filter(&self, context: &Context, _: &Job, node: &Node) -> Verdict {
        match (context.weekday(), node.label(1) == crater_sdk::strings::id("b")) {
            (6, _) => Verdict::Defer(3600),
            (_, false) => Verdict::Refuse(1),
            _ => Verdict::Keep,
        }
    }

    fn score(&self, _: &Context, _: &Job, _: &Node) -> Score {
        Score::from(self.prepared)
    }

    fn score_group(&self, _: &Context, job: &Job, group: &Group) -> i32 {
        group.get(GROUP_CARDS_IDLE) - job.get(JOB_CARDS)
    }

    fn price(&self, _: &Context, preemptor: &Job, unit: &Unit) -> Price {
        if unit.is_shrink() {
            return Price::SPARE;
        }
        Price { tier: unit.get(UNIT_PRIORITY), cost: preemptor.get(JOB_PRIORITY) }
    }

    fn rank(&self, _: &Context, job: &Job) -> Rank {
        Rank { tier: 1, class: job.get(JOB_ORDER), weight: job.get(JOB_PRIORITY) }
    }

    fn admit(&self, _: &Context, job: &Job) -> Result<Vec<(u32, i32)>, String> {
        match job.get(JOB_CARDS) {
            0..=8 => Ok(vec![(JOB_RUN_LIMIT, 3600)]),
            n => Err(format!("{n} cards, this queue takes 8 at most")),
        }
    }
}

crater_sdk::export!(Everything {
    name: "every-thing-1",
    version: "9.1",
    exports: [prepare, filter, score, score_groups, preempt, rank, admit],
    wants: [
        MIX_WEIGHT,
        WEEKDAY,
        JOB_CARDS,
        JOB_PRIORITY,
        JOB_ORDER,
        GROUP_CARDS_IDLE,
        UNIT_PRIORITY,
        UNIT_SHRINK,
        JOB_CARDS
    ],
    labels: ["a", "b"],
    reasons: [(1, "no b")],
    schema: "{}",
    whole_table: true,
    time_step: 60,
    normalise: true,
    group_by: Manifest::BY_DOMAIN + Manifest::BY_ZONE,
    rank_step: 30,
});

fn tester() -> Tester {
    let facts: [crater_sdk::Column; 1] = [(MIX_WEIGHT, &[4, 5, 6])];
    Tester::with_facts(&native(), "", &facts).unwrap()
}

#[test]
fn the_manifest_says_what_the_macro_was_told() {
    let manifest = native().manifest;
    assert_eq!(
        (manifest.name, manifest.version, manifest.labels),
        ("every-thing-1", "9.1", &["a", "b"][..])
    );
    let options = [
        (OPTION_SCOPE, 1),
        (OPTION_TIME_STEP, 60),
        (OPTION_NORMALISE, 1),
        (OPTION_GROUP_BY, 6),
        (OPTION_RANK_STEP, 30),
    ];
    assert_eq!(manifest.options(), options);
    assert!(manifest.exports(Interface::Admit) && manifest.exports.len() == 7);
    // Ascending, each once.
    let wants = [7, 105, 114, 120, 504, 601, 603, 700];
    assert_eq!(native().wants()[1..], wants[1..]);
    assert_eq!(native().wants().len(), wants.len());
}

#[test]
fn every_decision_reaches_its_function() {
    let nodes = [node().label(1, "b"), node().label(0, "b")];
    let tester = tester().at(0);
    assert_eq!(tester.codes(&job(), &nodes), [0, 1]);
    assert_eq!(tester.scores(&job(), &nodes), [3, 3]);
    let groups = [group("x").set(GROUP_CARDS_IDLE, 9)];
    assert_eq!(tester.group_scores(&job().whole(2), &groups), [7]);
    let units = [unit(1), unit(2).set(UNIT_SHRINK, 1)];
    assert_eq!(tester.prices(&job(), &units), [(50, 50), (i32::MAX, 0)]);
    assert_eq!(tester.ranks(&[job(), job()]), [(1, 0, 50), (1, 1, 50)]);
    assert_eq!(tester.admission(&job()), Ok(vec![(JOB_RUN_LIMIT, vec![3600])]));
    assert_eq!(
        tester.admission(&job().whole(9)).unwrap_err(),
        "9 cards, this queue takes 8 at most"
    );
    // The fourth of January 1970 was a Sunday.
    assert_eq!(tester.at(3 * 1440).codes(&job(), &nodes), [-3600, -3600]);
}
