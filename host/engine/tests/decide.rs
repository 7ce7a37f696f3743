//! Decisions on small clusters, read as text.
#![allow(missing_docs)]

mod common;

use common::{Bench, job, node, request};
use crater_engine::{ApplyError, Ledger, MemoryJournal, Strings};
use crater_model::event::Entry;
use crater_model::{
    ClaimState, Digest, Event, JobSpec, JobState, Priority, QueueSpec, Request, Time,
};
use expect_test::{Expect, expect};
use std::sync::Arc;

fn check(mut bench: Bench, jobs: Vec<JobSpec>, expected: &Expect) {
    for job in jobs {
        bench.submit(job);
    }
    let plan = bench.round();
    expected.assert_eq(&bench.lines(&plan));
}

#[test]
fn shares_are_packed_card_by_card_and_the_one_too_many_waits_with_figures() {
    let jobs = (1..=5).map(|i| job(&format!("j{i}"), request(400, 0, 1000, 1024))).collect();
    check(
        Bench::new([node("n1", 64_000, 65_536, 2, 81_920)]),
        jobs,
        &expect![[r"
            j1 → n1 [0:0.4/32Gi]
            j2 → n1 [0:0.4/32Gi]
            j3 → n1 [1:0.4/32Gi]
            j4 → n1 [1:0.4/32Gi]
            j5 waits: 0/1 nodes are available: 1 no card with room for the request (freest card: 0.2 and 16Gi; most idle cards on a node: 0)
        "]],
    );
}

#[test]
fn an_impossible_job_stops_nobody_and_says_so() {
    let jobs = vec![
        job("eight", request(8000, 0, 1000, 1024)),
        job("large", request(0, 90_000, 1000, 1024)),
        job("one", request(1000, 0, 1000, 1024)),
        job("much", request(0, 0, 100_000, 1024)),
    ];
    check(
        Bench::new([node("n1", 64_000, 65_536, 2, 81_920), node("n2", 8000, 65_536, 0, 1)]),
        jobs,
        &expect![[r"
            eight waits: 0/2 nodes are available: 2 too few cards on the node (most on a node: 2); no node can ever hold it
            large waits: 0/2 nodes are available: 1 too few cards on the node (most on a node: 2), 1 cards too small even when idle; no node can ever hold it
            one → n1 [0:1/80Gi]
            much waits: 0/2 nodes are available: 2 insufficient cpu (most free: 63)
        "]],
    );
}

#[test]
fn greater_priority_goes_first_then_the_earlier() {
    let mut jobs: Vec<JobSpec> =
        ["a", "b", "c"].map(|n| job(n, request(1000, 0, 1000, 1024))).into();
    jobs[2].priority = Priority(100);
    check(
        Bench::new([node("n1", 64_000, 65_536, 2, 81_920)]),
        jobs,
        &expect![[r"
            c → n1 [0:1/80Gi]
            a → n1 [1:1/80Gi]
            b waits: 0/1 nodes are available: 1 no card with room for the request (freest card: 0 and 0Mi; most idle cards on a node: 0)
        "]],
    );
}

#[test]
fn a_gang_starts_whole_or_not_at_all() {
    let mut gang = job("gang", request(1000, 0, 1000, 1024));
    (gang.members, gang.min_members) = (5, 5);
    let mut elastic = gang.clone();
    (elastic.name, elastic.min_members) = ("elastic".into(), 2);
    check(
        Bench::new(["n1", "n2"].map(|n| node(n, 64_000, 65_536, 2, 81_920))),
        vec![gang, elastic],
        &expect![[r"
            gang waits: room for 4 of 5 members, at least 5 must start together; 0/2 nodes are available: 2 no card with room for the request (freest card: 0 and 0Mi; most idle cards on a node: 0)
            elastic → n1 [0:1/80Gi]
            elastic → n1 [1:1/80Gi]
            elastic → n2 [0:1/80Gi]
            elastic → n2 [1:1/80Gi]
        "]],
    );
}

#[test]
fn terminating_is_not_gone() {
    let mut bench = Bench::new([node("n1", 64_000, 65_536, 1, 81_920)]);
    let first = bench.submit(job("first", request(1000, 0, 1000, 1024)));
    bench.round();
    let claim = bench.ledger.state().job(first).unwrap().claims[0];
    bench.ledger.move_claim(bench.now, claim, ClaimState::Held).unwrap();
    bench.submit(job("second", request(1000, 0, 1000, 1024)));
    bench.ledger.end_job(bench.now, first, JobState::Cancelled, "by its owner").unwrap();
    assert!(bench.round().placements.is_empty(), "the card is held until the process is gone");
    bench.ledger.member_ended(bench.now, claim, false).unwrap();
    assert_eq!(bench.round().placements.len(), 1);
    let state = bench.ledger.state().job(first).unwrap().state;
    assert_eq!(state, JobState::Cancelled, "how it ended does not change");
}

#[test]
fn a_node_that_goes_away_sends_the_whole_job_back_with_its_age() {
    let mut bench = Bench::new(["n1", "n2"].map(|n| node(n, 64_000, 65_536, 1, 81_920)));
    let mut gang = job("gang", request(1000, 0, 1000, 1024));
    (gang.members, gang.min_members) = (2, 2);
    let gang = bench.submit(gang);
    let plan = bench.round();
    let lost = plan.placements[0].members[0].node;
    bench.ledger.remove_node(bench.now, lost).unwrap();
    bench.ledger.state().audit().unwrap();
    let state = bench.ledger.state().job(gang).unwrap().clone();
    assert_eq!((state.state, state.claims.len()), (JobState::Preempting, 1));
    bench.ledger.member_ended(bench.now, state.claims[0], false).unwrap();
    let state = bench.ledger.state().job(gang).unwrap().clone();
    assert_eq!((state.state, state.preemptions, state.claims.len()), (JobState::Pending, 0, 0));
    assert_eq!(state.evicted, Some(crater_model::Cause::LostNode));
    bench.ledger.state().audit().unwrap();
}

#[test]
fn a_stale_plan_is_refused_placement_by_placement() {
    let mut bench = Bench::new([node("n1", 64_000, 65_536, 1, 81_920)]);
    bench.submit(job("a", request(1000, 0, 1000, 1024)));
    let round = crater_engine::Round::new(bench.now, 1);
    let plan = bench.decider.decide(bench.ledger.state(), &bench.policies, round);
    let first = bench.ledger.commit(bench.now, &plan).unwrap();
    let again = bench.ledger.commit(bench.now, &plan).unwrap();
    assert_eq!((first.claims.len(), again.claims.len(), again.stale.len()), (1, 0, 1));
    bench.ledger.state().audit().unwrap();
}

#[test]
fn the_journal_makes_the_same_books_and_refuses_what_does_not_follow() {
    let mut bench = Bench::new([node("n1", 64_000, 65_536, 2, 81_920)]);
    for i in 0..3 {
        bench.submit(job(&format!("j{i}"), request(600, 0, 1000, 1024)));
    }
    bench.round();
    let entries = &bench.ledger.journal().entries;
    let lines: Vec<String> = entries.iter().map(|e| serde_json::to_string(e).unwrap()).collect();
    let read: Vec<Entry> = lines.iter().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert_eq!(&read, entries, "an entry reads back as it was written");
    let again =
        Ledger::recover(MemoryJournal::default(), Arc::new(Strings::default()), &read).unwrap();
    let books = |s: &crater_engine::State| {
        let nodes: Vec<_> = s.nodes().map(|n| (**n).clone()).collect();
        let jobs: Vec<_> = s.jobs().map(|j| (**j).clone()).collect();
        (s.seq, nodes, jobs, s.queues().clone())
    };
    assert_eq!(books(again.state()), books(bench.ledger.state()));

    let refused = |entries: &[Entry]| {
        Ledger::recover(MemoryJournal::default(), Arc::new(Strings::default()), entries)
            .map(|_| ())
            .unwrap_err()
    };
    let mut gap = read.clone();
    gap.remove(1);
    assert!(matches!(refused(&gap), ApplyError::Gap { last: 1, found: 3 }));
    let mut twice = read.clone();
    let mut more = read.last().unwrap().clone();
    more.seq += 1;
    if let Event::PlanCommitted { claims } = &mut more.event {
        for claim in claims {
            claim.uid.0 += 2;
        }
    }
    twice.push(more);
    assert!(matches!(refused(&twice), ApplyError::Oversold { .. }));
}

#[test]
fn bad_commands_change_nothing() {
    let mut bench = Bench::new([node("n1", 64_000, 65_536, 1, 81_920)]);
    let before = bench.ledger.state().seq;
    let now = bench.now;
    let ledger = &mut bench.ledger;
    assert!(
        ledger
            .submit(now, JobSpec { queue: "nowhere".into(), ..job("a", Request::default()) })
            .is_err()
    );
    assert!(ledger.submit(now, job("A", Request::default())).is_err());
    assert!(ledger.submit(now, job("a", request(1000, 0, 0, 1))).is_err());
    assert!(ledger.set_policy(now, "nowhere", Digest::default()).is_err());
    assert!(ledger.remove_node(now, crater_model::NodeUid(9)).is_err());
    assert!(ledger.end_job(now, crater_model::JobUid(9), JobState::Cancelled, "").is_err());
    assert!(
        ledger.set_queue(now, QueueSpec::new("Bad Name", crater_model::Kind::Training)).is_err()
    );
    assert!(!ledger.move_claim(now, crater_model::ClaimUid(3), ClaimState::Held).unwrap());
    assert_eq!(ledger.state().seq, before);
    ledger.set_queue(Time(0), QueueSpec::new("late", crater_model::Kind::Training)).unwrap();
    assert_eq!(ledger.state().at, now, "a clock that jumps back does not take the journal along");
}

#[test]
fn policies_cannot_look_up_whose_work_there_is() {
    let mut bench = Bench::new([node("n1", 64_000, 65_536, 1, 81_920)]);
    bench.submit(job("secret", request(1000, 0, 1000, 1024)));
    let strings = &bench.ledger.state().strings;
    let texts: Vec<String> = (1..=strings.len() as i32)
        .filter_map(|id| strings.text(id))
        .map(|t| t.to_string())
        .collect();
    assert_eq!(texts, ["A100"], "models, domains, zones and labels, but no tenant, job or queue");
}
