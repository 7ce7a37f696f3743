//! On small random clusters the jobs that go are the cheapest set there is, found
//! by trying all of them.
#![allow(missing_docs)]

mod common;

use common::{Bench, job, node, request};
use crater_engine::fit::fits;
use crater_engine::{Job, mix};
use crater_model::{ClaimState, JobSpec, JobUid, Kind, Priority, QueueSpec, RoomRules, Time};
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::Arc;

struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = mix(self.0.wrapping_add(0x9E37_79B9_7F4A_7C15));
        self.0 % n
    }
}

/// What a job costs by the host's own prices: priority, then card-seconds that
/// would be lost, then age, then number.
fn price(bench: &Bench, job: &Job) -> (u16, u64, Reverse<Time>, Reverse<JobUid>) {
    let claims = job.claims.iter().filter_map(|c| bench.ledger.state().claim(*c));
    let milli: u64 = claims.map(|c| c.held.milli().0).sum();
    let lost = bench.now.secs_since(job.since) * milli.max(1) / 1000;
    (job.spec.priority.0, lost, Reverse(job.since), Reverse(job.uid))
}

/// The cheapest set by trying all of them: compared by its dearest job, then the
/// next, the shorter before the longer.
fn exhaustive(bench: &Bench, preemptor: &Job, candidates: &[Arc<Job>]) -> Option<BTreeSet<JobUid>> {
    let state = bench.ledger.state();
    let mut best: Option<(Vec<_>, BTreeSet<JobUid>)> = None;
    for set in 0..1_u32 << candidates.len() {
        let chosen: Vec<&Arc<Job>> = candidates
            .iter()
            .enumerate()
            .filter(|(i, _)| set >> i & 1 == 1)
            .map(|(_, j)| j)
            .collect();
        // How many members fit without them.
        let mut room = 0;
        for node in state.nodes() {
            let mut node = crater_engine::node::NodeState::clone(node);
            for job in &chosen {
                for claim in job.claims.iter().filter_map(|c| state.claim(*c)) {
                    if claim.node == node.uid {
                        node.release(job.uid, &claim.held);
                    }
                }
            }
            while room < preemptor.spec.min_members && fits(&node, &preemptor.spec.request).is_ok()
            {
                let choice = crater_engine::fit::Choice::Roomiest;
                let held = crater_engine::fit::choose(&node, &preemptor.spec.request, choice);
                node.charge(preemptor.uid, preemptor.owner, &held.unwrap()).unwrap();
                room += 1;
            }
        }
        if room < preemptor.spec.min_members {
            continue;
        }
        let mut prices: Vec<_> = chosen.iter().map(|j| price(bench, j)).collect();
        prices.sort_unstable_by_key(|p| Reverse(*p));
        if best.as_ref().is_none_or(|(least, _)| prices < *least) {
            best = Some((prices, chosen.iter().map(|j| j.uid).collect()));
        }
    }
    best.map(|(_, set)| set)
}

fn one(seed: u64) -> (bool, usize) {
    let mut random = Random(seed);
    let nodes = 1 + random.below(4);
    let cards = 1 + random.below(3) as usize;
    let mut bench =
        Bench::new((0..nodes).map(|i| node(&format!("n{i}"), 16_000, 65_536, cards, 16_384)));
    // Filled with what may go and what may not; nobody goes while it fills.
    let protect = |bench: &mut Bench, minimum_run| {
        let room = RoomRules { minimum_run, ..RoomRules::default() };
        let queue = QueueSpec { room, ..QueueSpec::new("q", Kind::Training) };
        bench.ledger.set_queue(bench.now, queue).unwrap();
    };
    protect(&mut bench, u32::MAX);
    let mut candidates = vec![];
    for i in 0..8 + random.below(5) {
        let asks = [(1000, 0), (500, 0), (300, 0), (0, 8192), (2000, 0), (0, 0)];
        let (gpu, mib) = asks[random.below(6) as usize];
        let request = request(gpu, mib, 500 + 1000 * random.below(4), 1024);
        let members = if random.below(4) == 0 { 2 } else { 1 };
        let spec = JobSpec {
            priority: Priority([10, 10, 20, 50, 200][random.below(5) as usize]),
            preemptible: random.below(5) > 0,
            members,
            min_members: members,
            kind: [Kind::Training, Kind::Offline][random.below(2) as usize],
            ..job(&format!("j{i}"), request)
        };
        let uid = bench.submit(spec);
        if !bench.round().placed(uid) {
            bench.ledger.end_job(bench.now, uid, crater_model::JobState::Cancelled, "").unwrap();
            continue;
        }
        for claim in bench.ledger.state().job(uid).unwrap().claims.clone() {
            bench.ledger.move_claim(bench.now, claim, ClaimState::Held).unwrap();
        }
        bench.now = Time(bench.now.0 + 1000 * (1 + random.below(30)));
        candidates.push(uid);
    }
    bench.now = Time(bench.now.0 + 100_000);
    protect(&mut bench, 60);
    let members = 1 + random.below(3) as u32;
    let request =
        [request(1000, 0, 1000, 1024), request(2000, 0, 4000, 1024), request(700, 0, 1, 1)];
    let spec = JobSpec {
        priority: Priority(100),
        members,
        min_members: 1 + random.below(u64::from(members)) as u32,
        ..job("urgent", request[random.below(3) as usize].clone())
    };
    let urgent = bench.submit(spec);
    let state = bench.ledger.state();
    let preemptor = state.job(urgent).unwrap().clone();
    let may = |j: &Arc<Job>| j.spec.preemptible && preemptor.rank() > j.rank();
    let candidates: Vec<Arc<Job>> =
        candidates.iter().filter_map(|j| state.job(*j)).filter(|j| may(j)).cloned().collect();
    let expected = exhaustive(&bench, &preemptor, &candidates);
    let plan = bench.round();
    let chosen: Option<BTreeSet<JobUid>> = if plan.placed(urgent) {
        Some(BTreeSet::new())
    } else {
        plan.rooms.first().map(|r| r.evictions.iter().map(|e| e.job).collect())
    };
    assert_eq!(chosen, expected, "seed {seed}: {}", bench.lines(&plan));
    (plan.placed(urgent), expected.map_or(0, |set| set.len()))
}

#[test]
fn the_jobs_that_go_are_the_cheapest_set_there_is() {
    let (mut placed, mut evicted, mut several) = (0, 0, 0);
    for seed in 0..400 {
        let (at_once, victims) = one(seed);
        placed += u64::from(at_once);
        evicted += u64::from(victims > 0);
        several += u64::from(victims > 1);
    }
    assert!(evicted > 100 && several > 30, "{placed} placed, {evicted} evicted, {several} several");
}
