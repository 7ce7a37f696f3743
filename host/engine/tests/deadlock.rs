//! Parts of gangs that came from outside: the detector sees hold and wait, and
//! nothing else.
#![allow(missing_docs)]

mod common;

use common::{Bench, job, node, request};
use crater_engine::Plan;
use crater_engine::plan::{Member, Placement};
use crater_model::{Cause, ClaimState, JobSpec, JobState, JobUid, Priority, Time};

fn gang(name: &str, priority: u16, preemptible: bool) -> JobSpec {
    JobSpec {
        members: 4,
        min_members: 4,
        preemptible,
        priority: Priority(priority),
        ..job(name, request(1000, 0, 1000, 1024))
    }
}

/// Places members on nodes as somebody else would.
fn place(bench: &mut Bench, job: JobUid, nodes: &[usize]) {
    let state = bench.ledger.state();
    let request = state.job(job).unwrap().spec.request.clone();
    let all: Vec<_> = state.nodes().cloned().collect();
    let members = nodes
        .iter()
        .enumerate()
        .map(|(member, node)| {
            let choice = crater_engine::fit::Choice::Roomiest;
            let held = crater_engine::fit::choose(&all[*node], &request, choice).unwrap();
            Member { member: member as u32, node: all[*node].uid, held }
        })
        .collect();
    let plan = Plan { placements: vec![Placement { job, members }], ..Plan::default() };
    let committed = bench.ledger.commit(bench.now, &plan).unwrap();
    assert_eq!(committed.stale, []);
}

fn bench() -> Bench {
    Bench::new((0..4).map(|i| node(&format!("n{i}"), 8000, 65_536, 1, 81_920)))
}

#[test]
fn c52_each_gang_holds_half_and_one_of_them_goes() {
    let mut bench = bench();
    let first = bench.submit(gang("g1", 50, true));
    let second = bench.submit(gang("g2", 40, true));
    place(&mut bench, first, &[0, 1]);
    place(&mut bench, second, &[2, 3]);
    assert_eq!(bench.ledger.break_deadlock(bench.now).unwrap(), None, "not before its time");
    bench.now = Time(bench.now.0 + 30_000);
    assert!(bench.round().is_idle(), "neither can be completed");
    assert_eq!(bench.ledger.break_deadlock(bench.now).unwrap(), Some(second));
    assert_eq!(bench.ledger.state().job(second).unwrap().evicted, Some(Cause::Deadlock));
    assert_eq!(bench.ledger.break_deadlock(bench.now).unwrap(), None, "one is enough");
    for claim in bench.ledger.state().job(second).unwrap().claims.clone() {
        bench.ledger.move_claim(bench.now, claim, ClaimState::Gone).unwrap();
    }
    assert_eq!(bench.round().placements.len(), 1);
    let state = bench.ledger.state();
    assert_eq!(state.job(first).unwrap().claims.len(), 4);
    assert_eq!(state.job(second).unwrap().state, JobState::Pending);
    assert_eq!(state.job(second).unwrap().claims.len(), 0);
}

#[test]
fn nobody_goes_where_that_helps_nobody() {
    // Nobody lets himself be preempted.
    let mut fixed = bench();
    let jobs = ["a", "b"].map(|name| fixed.submit(gang(name, 50, false)));
    place(&mut fixed, jobs[0], &[0, 1]);
    place(&mut fixed, jobs[1], &[2, 3]);
    fixed.now = Time(fixed.now.0 + 60_000);
    assert_eq!(fixed.ledger.break_deadlock(fixed.now).unwrap(), None);

    // There is room: the part is completed, nothing is stuck.
    let mut roomy = bench();
    let jobs = ["a", "b"].map(|name| roomy.submit(gang(name, 50, true)));
    place(&mut roomy, jobs[0], &[0]);
    place(&mut roomy, jobs[1], &[1]);
    for i in 4..12 {
        roomy.ledger.add_node(roomy.now, node(&format!("n{i}"), 8000, 65_536, 1, 81_920)).unwrap();
    }
    roomy.now = Time(roomy.now.0 + 60_000);
    assert_eq!(roomy.ledger.break_deadlock(roomy.now).unwrap(), None);
    assert_eq!(roomy.round().placements.len(), 2);

    // Both together are not enough for either.
    let mut small = bench();
    let jobs = ["a", "b"]
        .map(|name| small.submit(JobSpec { members: 9, min_members: 9, ..gang(name, 50, true) }));
    place(&mut small, jobs[0], &[0, 1]);
    place(&mut small, jobs[1], &[2, 3]);
    small.now = Time(small.now.0 + 60_000);
    assert_eq!(small.ledger.break_deadlock(small.now).unwrap(), None);
}
