//! The same books give the same decision, whoever decides, whatever he
//! remembers, and however often.
#![allow(missing_docs)]

use crater_engine::{
    By, Committed, Decider, Ledger, MemoryJournal, Outcome, Placement, Plan, Policies, Record,
    Round, State,
};
use crater_model::event::Entry;
use crater_model::{Digest, JobUid};
use crater_sim::random::{Spice, check, world};
use crater_sim::world::scripted::Scripted;
use crater_sim::world::{Nobody, Observer};
use std::collections::BTreeMap;
use std::env;
use std::sync::Arc;

/// `CRATER_SEEDS` and `CRATER_SEED` as for random worlds.
fn seeds(default: u64) -> std::ops::Range<u64> {
    let setting = |name: &str| env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let first = setting("CRATER_SEED").unwrap_or(0);
    first..first + setting("CRATER_SEEDS").unwrap_or(default)
}

const PLAIN: Spice = Spice { counted_faults: false };
const COUNTED: Spice = Spice { counted_faults: true };

/// The limit of a round is in the header of the world.
fn limit(lines: &[String]) -> usize {
    let word = lines[0].split(' ').find_map(|word| word.strip_prefix("limit="));
    word.map_or(usize::MAX, |n| n.parse().unwrap())
}

fn run(lines: &[String], extra: &mut dyn Observer) -> Vec<Entry> {
    let (outcome, _) = check(lines, extra).unwrap_or_else(|e| panic!("{e}\n{}", lines.join("\n")));
    outcome.journal
}

/// What two decisions must have in common, whether or not answers were kept:
/// all but the figures of a reason and the words of a fault.
#[derive(Debug, PartialEq)]
struct Essence<'a> {
    job: JobUid,
    by: By,
    fault: bool,
    placed: Option<&'a Placement>,
    answers: u64,
    candidates: u32,
    score: i64,
}

fn essence(plan: &Plan) -> Vec<Essence<'_>> {
    plan.records
        .iter()
        .map(|r| {
            let (job, by, fault) = (r.job, r.by, r.fault.is_some());
            let placed = match &r.outcome {
                Outcome::Placed(placement) => Some(placement),
                Outcome::Waits(_) => None,
            };
            let (answers, candidates, score) = (r.answers, r.candidates, r.score);
            Essence { job, by, fault, placed, answers, candidates, score }
        })
        .collect()
}

/// Decides each round again with other deciders.
struct Others {
    limit: usize,
    forgetful: Decider,
    difference: Option<String>,
    rounds: u64,
}

impl Others {
    fn differ<T: PartialEq + std::fmt::Debug>(&mut self, who: &str, ours: &[T], theirs: &[T]) {
        if ours == theirs || self.difference.is_some() {
            return;
        }
        let first = ours.iter().zip(theirs).find(|(a, b)| a != b);
        let text = first.map_or("another number".to_owned(), |(a, b)| format!("{a:?}\n  {b:?}"));
        self.difference = Some(format!("{who}, round {}:\n  {text}", self.rounds));
    }
}

impl Observer for Others {
    fn decided(&mut self, state: &State, policies: &Policies, plan: &Plan) {
        self.rounds += 1;
        let round = Round { limit: self.limit, ..Round::new(plan.now, plan.seed) };
        let forgetful = self.forgetful.decide(state, policies, round);
        self.differ("one that forgets", &essence(plan), &essence(&forgetful));
        self.differ("one that forgets, waking", &[plan.wake], &[forgetful.wake]);
        let fresh = Decider::default().decide(state, policies, round);
        self.differ("one that begins now", &essence(plan), &essence(&fresh));
        self.differ("one that begins now, waking", &[plan.wake], &[fresh.wake]);
        // Which of two bad answers is met first depends on what is asked again.
        let sound = |p: &Plan| {
            let sound = p.records.iter().filter(|r| r.fault.is_none());
            sound.cloned().collect::<Vec<Record>>()
        };
        self.differ("one that begins now", &sound(plan), &sound(&fresh));
    }

    fn stop(&self) -> bool {
        self.difference.is_some()
    }
}

#[test]
fn what_a_decider_remembers_changes_no_decision() {
    let mut rounds = 0;
    for seed in seeds(200) {
        let lines = world(seed, PLAIN);
        let differs = |lines: &[String]| {
            let forgetful = Decider::forgetful();
            let limit = limit(lines);
            let mut others = Others { limit, forgetful, difference: None, rounds: 0 };
            let broken = check(lines, &mut others).err();
            (others.difference.or(broken), others.rounds)
        };
        let (difference, looked) = differs(&lines);
        rounds += looked;
        if let Some(difference) = difference {
            let cut = crater_sim::random::shrink(&lines, &|l| {
                l[0].starts_with("set") && differs(l).0.is_some_and(|d| d.starts_with("one that"))
            });
            let why = differs(&cut).0.unwrap_or_default();
            panic!(
                "seed {seed}: {difference}\ncut down to:\n{}\nwhich gives: {why}",
                cut.join("\n")
            );
        }
    }
    println!("{rounds} rounds");
}

#[test]
fn deciders_that_take_turns_decide_as_one() {
    for seed in seeds(200) {
        let lines = world(seed, PLAIN);
        let one = run(&lines, &mut Nobody);
        let mut turns = lines.clone();
        turns[0] = turns[0].replace("deciders=1", "deciders=3");
        assert_ne!(turns[0], lines[0]);
        assert!(one == run(&turns, &mut Nobody), "seed {seed}:\n{}", lines.join("\n"));
    }
}

#[test]
fn a_world_runs_twice_to_the_same_journal() {
    for seed in seeds(200) {
        let lines = world(seed, COUNTED);
        assert_eq!(lines, world(seed, COUNTED));
        let one = run(&lines, &mut Nobody);
        assert!(one == run(&lines, &mut Nobody), "seed {seed}");
    }
}

/// Keeps plans with the policies that made them.
#[derive(Default)]
struct Keep {
    plans: Vec<(Plan, Deciding)>,
}

/// Policies by queue.
type Deciding = Vec<(Arc<str>, Digest)>;

impl Observer for Keep {
    fn decided(&mut self, _state: &State, policies: &Policies, plan: &Plan) {
        // Every third one: enough of all sorts.
        if plan.seed.is_multiple_of(3) && !plan.records.is_empty() {
            let digests = policies.iter().map(|(q, p)| (q.clone(), p.digest())).collect();
            self.plans.push((plan.clone(), digests));
        }
    }
}

/// The scripts of a world by digest, on a day without counted faults.
fn calm_policies(lines: &[String]) -> BTreeMap<Digest, Arc<Scripted>> {
    let configs = lines.iter().filter_map(|l| l.split_once("config='")?.1.split_once('\''));
    let calm = configs.map(|(config, _)| Arc::new(Scripted::new(config).unwrap().calm()));
    calm.map(|p| (crater_engine::Policy::digest(&*p), p)).collect()
}

#[test]
fn a_recorded_round_is_decided_again_from_the_journal() {
    let mut replayed = 0;
    for seed in seeds(150) {
        let lines = world(seed, COUNTED);
        let mut keep = Keep::default();
        let journal = run(&lines, &mut keep);
        let scripts = calm_policies(&lines);
        for (plan, digests) in &keep.plans {
            let memory = MemoryJournal::default();
            let entries = journal.iter().take_while(|e| e.seq <= plan.seq);
            let ledger = Ledger::recover(memory, Arc::default(), entries).unwrap();
            let policies: Policies = digests
                .iter()
                .map(|(q, d)| (q.clone(), scripts[d].clone() as Arc<dyn crater_engine::Policy>))
                .collect();
            let round = Round {
                limit: limit(&lines),
                replay: Some(plan),
                ..Round::new(plan.now, plan.seed)
            };
            let again = Decider::default().decide(ledger.state(), &policies, round);
            if again != *plan {
                let (ours, theirs) = (format!("{plan:#?}"), format!("{again:#?}"));
                let first: Vec<_> =
                    ours.lines().zip(theirs.lines()).filter(|(a, b)| a != b).take(3).collect();
                panic!("seed {seed}, plan on entry {}: {first:#?}\n{}", plan.seq, lines.join("\n"));
            }
            replayed += 1;
        }
    }
    println!("{replayed} rounds");
}

/// Takes snapshots and what they say.
#[derive(Default)]
struct Snapshots {
    taken: Vec<(State, String)>,
    seen: u64,
}

fn everything(state: &State) -> String {
    let nodes: Vec<_> = state.nodes().collect();
    let jobs: Vec<_> = state.jobs().collect();
    let claims: Vec<_> = state.claims().collect();
    format!("{} {:?} {nodes:?} {jobs:?} {claims:?} {:?}", state.seq, state.at, state.queues())
}

impl Observer for Snapshots {
    fn committed(&mut self, state: &State, _plan: &Plan, _committed: &Committed) {
        self.seen += 1;
        if self.seen.is_multiple_of(7) {
            self.taken.push((state.clone(), everything(state)));
        }
    }
}

#[test]
fn a_snapshot_does_not_change() {
    let mut taken = 0;
    for seed in seeds(100) {
        let mut snapshots = Snapshots::default();
        run(&world(seed, PLAIN), &mut snapshots);
        for (state, then) in &snapshots.taken {
            assert_eq!(&everything(state), then, "seed {seed}");
            state.audit().unwrap();
            taken += 1;
        }
    }
    assert!(taken > 100, "only {taken} snapshots");
}
