//! What making room costs: on a full cluster the decision who goes, and a gang's
//! placement where there is room.

use crate::grid::policy;
use crater_engine::{Decider, Ledger, MemoryJournal, Policies, Round, Strings};
use crater_model::{
    CardSpec, ClaimState, GpuAsk, JobSpec, JobState, JobUid, Kind, Mib, MilliCards, MilliCores,
    NodeSpec, Priority, QueueSpec, Request, TenantPath, Time,
};
use crater_policy::Runtime;
use std::sync::Arc;
use std::time::{Duration, Instant};

struct Pool {
    ledger: Ledger<MemoryJournal>,
    decider: Decider,
    policies: Policies,
    now: Time,
}

fn ask(gpu: u64) -> Request {
    Request {
        gpu: GpuAsk::new(Some(MilliCards(gpu)), None, false).ok().flatten(),
        cpu: MilliCores(1000),
        memory: Mib(1024),
        ..Request::default()
    }
}

impl Pool {
    fn new(nodes: usize, runtime: &Runtime, strings: &Arc<Strings>) -> Self {
        let mut ledger = Ledger::new(MemoryJournal::default(), strings.clone());
        let now = Time::from_secs(1);
        ledger.set_queue(now, QueueSpec::new("q", Kind::Training)).expect("a queue");
        let card = CardSpec::new("H100", Mib(81_559));
        for i in 0..nodes {
            let node = NodeSpec::new(&format!("n{i}"), MilliCores(128_000), Mib(1 << 20));
            ledger.add_node(now, node.with_cards(8, &card)).expect("a node");
        }
        // Its `preempt` prices what runs.
        let policies = Policies::from([(Arc::from("q"), policy(runtime, strings, "priority"))]);
        Self { ledger, decider: Decider::default(), policies, now }
    }

    fn submit(&mut self, request: Request, spec: impl FnOnce(&mut JobSpec)) -> JobUid {
        let mut job = JobSpec::new("j", "q", TenantPath::default(), request);
        spec(&mut job);
        self.ledger.submit(self.now, job).expect("a job")
    }

    /// A round; how long the decision took, and whether room is made.
    fn round(&mut self) -> (Duration, usize) {
        let start = Instant::now();
        let plan =
            self.decider.decide(self.ledger.state(), &self.policies, Round::new(self.now, 1));
        let took = start.elapsed();
        let done = self.ledger.commit(self.now, &plan).expect("a plan");
        for claim in done.claims {
            self.ledger.move_claim(self.now, claim, ClaimState::Held).expect("it starts");
        }
        (took, done.evicted.len())
    }
}

/// Runs the measurements.
pub fn run(runtime: &Runtime, strings: &Arc<Strings>) {
    println!("\nmaking room on full nodes of 8 cards, priced by `priority` in WebAssembly");
    println!("{:>8} {:>10} {:>12} {:>10} {:>10}", "nodes", "victims", "p50 ms", "p99 ms", "rounds");
    for (nodes, gpu) in [(1000, 1000), (1000, 8000)] {
        preemptions(nodes, gpu, runtime, strings);
    }
    println!("\na gang of 64 members of one shape, warm");
    println!("{:>8} {:>12} {:>10}", "nodes", "p50 ms", "p99 ms");
    for nodes in [1000, 5000] {
        gangs(nodes, runtime, strings);
    }
}

/// A full cluster of one-card jobs; a job of so many cards comes, room is made,
/// and what went comes back elsewhere.
fn preemptions(nodes: usize, gpu: u64, runtime: &Runtime, strings: &Arc<Strings>) {
    let mut pool = Pool::new(nodes, runtime, strings);
    for i in 0..8 * nodes {
        pool.submit(ask(1000), |job| {
            job.preemptible = true;
            job.priority = Priority(10 + (i % 7) as u16);
        });
    }
    pool.round();
    pool.now = Time::from_secs(10_000);
    let (mut times, mut victims) = (vec![], 0);
    for _ in 0..200 {
        let job = pool.submit(ask(gpu), |job| {
            job.priority = Priority(100);
            job.kind = Kind::Inference;
        });
        let (took, evicted) = pool.round();
        assert!(evicted > 0, "the cluster is full, and all of it may go");
        times.push(took.as_secs_f64() * 1e3);
        victims += evicted;
        pool.ledger.end_job(pool.now, job, JobState::Cancelled, "").expect("it waits");
        let going: Vec<_> = pool
            .ledger
            .state()
            .claims()
            .filter(|c| c.state == ClaimState::Releasing)
            .map(|c| c.uid)
            .collect();
        for claim in going {
            pool.ledger.move_claim(pool.now, claim, ClaimState::Gone).expect("it goes");
        }
        pool.round();
        pool.now = Time(pool.now.0 + 100_000);
    }
    times.sort_by(f64::total_cmp);
    let (p50, p99) = (times[times.len() / 2], times[times.len() * 99 / 100]);
    let each = victims as f64 / times.len() as f64;
    println!("{nodes:>8} {each:>10.1} {p50:>12.2} {p99:>10.2} {:>10}", times.len());
}

fn gangs(nodes: usize, runtime: &Runtime, strings: &Arc<Strings>) {
    let mut pool = Pool::new(nodes, runtime, strings);
    let mut times = vec![];
    for i in 0..60 {
        let job = pool.submit(ask(1000), |job| (job.members, job.min_members) = (64, 64));
        let (took, _) = pool.round();
        if i >= 10 {
            times.push(took.as_secs_f64() * 1e3);
        }
        let claims = pool.ledger.state().job(job).expect("it runs").claims.clone();
        assert_eq!(claims.len(), 64, "there is room");
        for claim in claims {
            pool.ledger.member_ended(pool.now, claim, true).expect("it ran");
        }
    }
    times.sort_by(f64::total_cmp);
    println!("{nodes:>8} {:>12.2} {:>10.2}", times[times.len() / 2], times[times.len() * 99 / 100]);
}
