//! What a decider remembers, and what is replayed, changes no decision.
#![allow(missing_docs)]

mod common;

use common::{Bench, job, node, request};
use crater_engine::policy::{Scores, Table, Values};
use crater_engine::{Decider, Fault, Interface, Ledger, Manifest, MemoryJournal, Policy, Round};
use crater_model::columns as c;
use crater_model::select::Selector;
use crater_model::{Digest, Fallback, Kind, NodeUid, QueueSpec, Request};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

/// Keeps every node, and notes what it is asked.
#[derive(Default)]
struct Note {
    manifest: Manifest,
    groups: Mutex<Vec<Vec<i32>>>,
    ranks: AtomicU32,
    ranking_fails: bool,
    pricing_fails: bool,
    scoring_fails: bool,
}

impl Note {
    fn new(exports: Vec<Interface>, wants: Vec<u32>, options: Vec<(u32, i32)>) -> Self {
        Self {
            manifest: Manifest { exports, wants, options, ..Manifest::default() },
            ..Self::default()
        }
    }
}

impl Policy for Note {
    fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    fn digest(&self) -> Digest {
        Digest([7; 32])
    }

    fn filter(&self, _: &Values, _: &Values, nodes: &Table) -> Result<Vec<i32>, Fault> {
        Ok(vec![0; nodes.rows as usize])
    }

    fn score(&self, _: &Values, _: &Values, nodes: &Table) -> Result<Scores, Fault> {
        if self.scoring_fails {
            return Err(Fault::Deadline { interface: Interface::Score, limit_ms: 50 });
        }
        Ok(Scores { scores: vec![0; nodes.rows as usize], cards: vec![] })
    }

    fn score_groups(&self, _: &Values, _: &Values, groups: &Table) -> Result<Vec<i32>, Fault> {
        self.groups.lock().unwrap().push(groups.column(c::GROUP_NODES).unwrap().to_vec());
        Ok(vec![0; groups.rows as usize])
    }

    fn price(&self, _: &Values, _: &Values, units: &Table) -> Result<Vec<(i32, i32)>, Fault> {
        if self.pricing_fails {
            return Err(Fault::Deadline { interface: Interface::Preempt, limit_ms: 50 });
        }
        // The most important first.
        let priorities = units.column(c::UNIT_PRIORITY).unwrap();
        Ok(priorities.iter().map(|priority| (-priority, 0)).collect())
    }

    fn rank(&self, _: &Values, jobs: &Table) -> Result<Vec<(i32, i32, i32)>, Fault> {
        self.ranks.fetch_add(1, Ordering::Relaxed);
        if self.ranking_fails {
            return Err(Fault::Deadline { interface: Interface::Rank, limit_ms: 50 });
        }
        // The youngest first.
        Ok((0..jobs.rows as i32).map(|i| (0, 0, i)).collect())
    }

    fn admit(&self, _: &Values, _: &Values) -> Result<Result<Values, String>, Fault> {
        Ok(Ok(vec![]))
    }
}

#[test]
fn groups_are_those_that_have_nodes_and_are_asked_for_when_it_matters() {
    let mut bench = Bench::new([]);
    for (name, zone) in [("n1", "a"), ("n2", "b"), ("n3", "b")] {
        let mut spec = node(name, 1000, 65_536, 0, 1);
        spec.zone = zone.into();
        bench.ledger.add_node(bench.now, spec).unwrap();
    }
    let wants = vec![c::GROUP_NODES];
    let policy =
        Arc::new(Note::new(vec![Interface::ScoreGroups], wants, vec![(c::OPTION_GROUP_BY, 4)]));
    bench.policies.insert("q".into(), policy.clone());
    bench.submit(job("j1", request(0, 0, 1000, 1024)));
    bench.round();
    bench.ledger.remove_node(bench.now, NodeUid(0)).unwrap();
    bench.submit(job("j2", request(0, 0, 1000, 1024)));
    bench.round();
    bench.submit(job("j3", request(0, 0, 9000, 1024)));
    bench.round();
    let seen = policy.groups.lock().unwrap();
    assert_eq!(seen[0], [1, 2]);
    assert!(seen[1..].iter().all(|rows| *rows == [2]), "zone a is gone: {seen:?}");
    let asked = seen.len();
    drop(seen);
    bench.submit(job("j4", request(0, 0, 9000, 1024)));
    bench.round();
    assert_eq!(policy.groups.lock().unwrap().len(), asked, "no node could take it");
}

#[test]
fn two_queues_with_one_policy_keep_their_own_orders() {
    let nodes = [node("n1", 8000, 65_536, 0, 1), node("n2", 8000, 65_536, 0, 1)];
    let mut bench = Bench::new(nodes);
    let spread = QueueSpec { fallback: Fallback::Spread, ..QueueSpec::new("s", Kind::Training) };
    bench.ledger.set_queue(bench.now, spread).unwrap();
    let policy: Arc<dyn Policy> = Arc::new(Note::new(vec![Interface::Filter], vec![], vec![]));
    bench.policies.insert("q".into(), policy.clone());
    bench.policies.insert("s".into(), policy);
    for (i, queue) in ["q", "s", "q"].iter().enumerate() {
        let mut spec = job(&format!("j{i}"), request(0, 0, 1000, 1024));
        spec.queue = (*queue).into();
        bench.submit(spec);
        bench.round();
    }
    let on = |n| bench.ledger.state().node(NodeUid(n)).unwrap().members;
    assert_eq!((on(0), on(1)), (2, 1));
}

#[test]
fn an_order_that_failed_fails_again_on_replay() {
    let mut bench = Bench::new([node("n1", 1000, 65_536, 0, 1)]);
    let mut slow = Note::new(vec![Interface::Rank], vec![], vec![]);
    slow.ranking_fails = true;
    bench.policies.insert("q".into(), Arc::new(slow));
    bench.submit(job("j1", request(0, 0, 1000, 1024)));
    bench.submit(job("j2", request(0, 0, 1000, 1024)));
    let books = bench.ledger.state().clone();
    let plan = bench.round();
    // Today the deadline is met; the plan of then is made all the same.
    let quick = Arc::new(Note::new(vec![Interface::Rank], vec![], vec![]));
    bench.policies.insert("q".into(), quick.clone());
    let round = Round { replay: Some(&plan), ..Round::new(plan.now, plan.seed) };
    assert_eq!(Decider::default().decide(&books, &bench.policies, round), plan);
    assert_eq!(quick.ranks.load(Ordering::Relaxed), 0);
}

#[test]
fn texts_have_the_same_numbers_in_books_that_were_read_back() {
    let mut bench = Bench::new([]);
    let mut spec = node("n1", 8000, 65_536, 0, 1);
    spec.labels.insert("tier".into(), "fast".into());
    bench.ledger.add_node(bench.now, spec).unwrap();
    let mut policy = Note::new(vec![Interface::Filter], vec![], vec![]);
    policy.manifest.labels = vec!["tier".to_owned()];
    bench.policies.insert("q".into(), Arc::new(policy));
    let wants = Request { selectors: vec![Selector::label("tier", "fast")], ..request(0, 0, 1, 1) };
    bench.submit(job("j1", wants));
    bench.round();
    // A text that comes after the label was shown to a policy.
    let mut spec = node("n2", 8000, 65_536, 0, 1);
    spec.zone = "late".into();
    bench.ledger.add_node(bench.now, spec).unwrap();
    let entries = &bench.ledger.journal().entries;
    let again = Ledger::recover(MemoryJournal::default(), Arc::default(), entries).unwrap();
    let (then, now) = (&bench.ledger.state().strings, &again.state().strings);
    assert_eq!(then.len(), now.len());
    for id in 1..=then.len() as i32 {
        assert_eq!(then.text(id), now.text(id));
    }
}

/// A full machine of two jobs that may be preempted, the second the more
/// important, and one that waits and stands above both.
fn full() -> (Bench, [crater_model::JobUid; 2]) {
    let mut bench = Bench::new([node("n", 64_000, 65_536, 2, 81_920)]);
    let training = |name, priority| crater_model::JobSpec {
        preemptible: true,
        priority: crater_model::Priority(priority),
        ..job(name, request(1000, 0, 1000, 1024))
    };
    let jobs =
        [("a", 10), ("b", 20)].map(|(name, priority)| bench.submit(training(name, priority)));
    bench.round();
    bench.now = crater_model::Time(bench.now.0 + 100_000);
    let urgent = crater_model::JobSpec { preemptible: false, ..training("urgent", 90) };
    bench.submit(urgent);
    (bench, jobs)
}

#[test]
fn prices_that_failed_fail_again_when_decided_again() {
    let (mut bench, [low, high]) = full();
    let policy = |pricing_fails| -> Arc<dyn Policy> {
        let wants = vec![c::UNIT_PRIORITY];
        Arc::new(Note { pricing_fails, ..Note::new(vec![Interface::Preempt], wants, vec![]) })
    };
    let evicted = |plan: &crater_engine::Plan| plan.rooms[0].evictions[0].job;
    let round = Round::new(bench.now, 7);
    let mut decide = |pricing_fails, round| {
        bench.policies.insert("q".into(), policy(pricing_fails));
        Decider::default().decide(bench.ledger.state(), &bench.policies, round)
    };
    let plan = decide(true, round);
    assert_eq!((evicted(&plan), plan.unpriced.len()), (low, 1), "the host's own prices");
    assert_eq!(evicted(&decide(false, round)), high, "the policy's");
    assert_eq!(decide(false, Round { replay: Some(&plan), ..round }), plan);
}

#[test]
fn a_policy_that_failed_while_room_was_sought_fails_again_when_decided_again() {
    let (mut bench, _) = full();
    let policy = |scoring_fails| -> Arc<dyn Policy> {
        Arc::new(Note { scoring_fails, ..Note::new(vec![Interface::Score], vec![], vec![]) })
    };
    let round = Round::new(bench.now, 7);
    let mut decide = |scoring_fails, round| {
        bench.policies.insert("q".into(), policy(scoring_fails));
        Decider::default().decide(bench.ledger.state(), &bench.policies, round)
    };
    let plan = decide(true, round);
    assert_eq!((plan.rooms.len(), plan.failed.len()), (0, 1));
    assert_eq!(decide(false, round).rooms.len(), 1, "it would have made room");
    assert_eq!(decide(false, Round { replay: Some(&plan), ..round }), plan);
}
