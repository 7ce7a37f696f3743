//! Warm and cold decisions on clusters of 8-card nodes, from 100 nodes to
//! 100,000, and the pause of a swap.

use crate::pairs::median;
use crater_bench::{component, patient};
use crater_engine::facts::facts;
use crater_engine::{Decider, Ledger, MemoryJournal, Policies, Policy, Round, Strings};
use crater_model::{
    CardSpec, ClaimUid, GpuAsk, JobSpec, JobUid, Kind, Mib, MilliCards, MilliCores, NodeSpec,
    QueueSpec, Request, TenantPath, Time,
};
use crater_policy::{Candidate, Runtime, Setting, Slot};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Shapes of jobs that take turns.
fn shapes() -> Vec<Request> {
    let ask = |gpu: u64, cpu: u64| Request {
        gpu: GpuAsk::new(Some(MilliCards(gpu)), None, false).ok().flatten(),
        cpu: MilliCores(cpu),
        memory: Mib(cpu),
        ..Request::default()
    };
    let mut all = vec![];
    for gpu in [100, 200, 300, 500, 700, 1000, 2000, 4000] {
        for cpu in [1000, 2000, 4000] {
            all.push(ask(gpu, cpu));
        }
    }
    all
}

/// A cluster that holds as many members as there are nodes, and takes one
/// more for each that leaves.
struct Cluster {
    ledger: Ledger<MemoryJournal>,
    decider: Decider,
    policies: Policies,
    running: VecDeque<(JobUid, ClaimUid)>,
    shapes: Vec<Request>,
    next: usize,
    now: Time,
}

impl Cluster {
    fn new(nodes: usize, policy: Arc<dyn Policy>, strings: &Arc<Strings>) -> Self {
        let mut ledger = Ledger::new(MemoryJournal::default(), strings.clone());
        let now = Time::from_secs(1);
        ledger.set_queue(now, QueueSpec::new("q", Kind::Training)).expect("a queue");
        let card = CardSpec::new("H100", Mib(81_559));
        for i in 0..nodes {
            let node = NodeSpec::new(&format!("n{i}"), MilliCores(128_000), Mib(1 << 20));
            ledger.add_node(now, node.with_cards(8, &card)).expect("a node");
        }
        let policies = Policies::from([(Arc::from("q"), policy)]);
        Self {
            ledger,
            decider: Decider::default(),
            policies,
            running: VecDeque::new(),
            shapes: shapes(),
            next: 0,
            now,
        }
    }

    /// Submits, decides and commits one job; how long the decision and the
    /// commit took.
    fn place(&mut self, request: Request) -> Duration {
        let tenant = TenantPath::default();
        let spec = JobSpec::new("j", "q", tenant, request);
        let job = self.ledger.submit(self.now, spec).expect("a job");
        let start = Instant::now();
        let plan =
            self.decider.decide(self.ledger.state(), &self.policies, Round::new(self.now, 1));
        let done = self.ledger.commit(self.now, &plan).expect("a plan");
        let took = start.elapsed();
        assert_eq!(done.claims.len(), 1, "there is room: {:?}", plan.records);
        self.running.push_back((job, done.claims[0]));
        took
    }

    fn step(&mut self) -> Duration {
        let request = self.shapes[self.next % self.shapes.len()].clone();
        self.next += 1;
        self.place(request)
    }

    fn leave(&mut self) {
        if let Some((_, claim)) = self.running.pop_front() {
            self.ledger.member_ended(self.now, claim, true).expect("it ran");
        }
    }
}

/// A component with its defaults.
pub fn policy(runtime: &Runtime, strings: &Arc<Strings>, name: &str) -> Arc<dyn Policy> {
    let state = crater_engine::State::new(strings.clone());
    let facts = facts(&[], &state);
    let setting =
        Setting { config: "{}", facts: &facts, strings: strings.clone(), limits: Some(patient()) };
    let loaded = runtime.load(&component(name)).expect("a component");
    Arc::new(loaded.configure(&setting).expect("it takes no settings"))
}

/// Runs the measurements.
pub fn run(runtime: &Runtime, strings: &Arc<Strings>) {
    println!();
    println!("binpack on nodes of 8 cards, 24 shapes, one job in and one out");
    println!(
        "{:>8} {:>12} {:>10} {:>10} {:>12} {:>14} {:>10}",
        "nodes", "warm 1/s", "p50 µs", "p99 µs", "cold shape", "after a swap", "resident"
    );
    for nodes in [100, 1000, 5000, 20_000, 100_000] {
        measure(runtime, strings, nodes);
    }
    println!();
    swap_pause(runtime, strings);
}

fn measure(runtime: &Runtime, strings: &Arc<Strings>, nodes: usize) {
    let mut cluster = Cluster::new(nodes, policy(runtime, strings, "binpack"), strings);
    let cold = micros(cluster.step());
    for _ in 0..nodes.min(5000) {
        cluster.step();
    }
    let mut times = vec![];
    let start = Instant::now();
    for _ in 0..20_000 {
        cluster.leave();
        times.push(micros(cluster.step()));
    }
    let rate = times.len() as f64 / start.elapsed().as_secs_f64();
    times.sort_by(f64::total_cmp);
    cluster.policies.insert(Arc::from("q"), policy(runtime, strings, "spread"));
    let swapped = micros(cluster.step());
    println!(
        "{nodes:>8} {rate:>12.0} {:>10.1} {:>10.1} {:>9.0} µs {:>11.0} µs {:>6} MiB",
        times[times.len() / 2],
        times[times.len() * 99 / 100],
        cold,
        swapped,
        resident()
    );
}

/// What a swap costs the deciding thread: from the last decision by the old
/// version to the new one being live, compiling and warming off the round.
fn swap_pause(runtime: &Runtime, strings: &Arc<Strings>) {
    let state = crater_engine::State::new(strings.clone());
    let facts = facts(&[], &state);
    let slot = Slot::new(runtime.clone());
    let mut pauses = vec![];
    for i in 0..20 {
        let name = if i % 2 == 0 { "binpack" } else { "spread" };
        let wasm = component(name);
        let setting = Setting {
            config: "{}",
            facts: &facts,
            strings: strings.clone(),
            limits: Some(patient()),
        };
        // Deciders do not wait for what the old version leaves behind.
        let before = slot.live();
        let mut warmed = Instant::now();
        let candidate = Candidate { wasm: &wasm, setting, at: Time(0) };
        slot.swap(&candidate, |_| warmed = Instant::now()).expect("a good policy");
        pauses.push(micros(warmed.elapsed()));
        drop(before);
    }
    let worst = pauses.iter().copied().fold(0.0, f64::max);
    println!("swap pause: median {:.0} µs, longest {worst:.0} µs over {}", median(&mut pauses), 20);
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

/// Resident memory of this process in MiB.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|l| l.starts_with("VmRSS:")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kb| kb.parse::<u64>().ok()).unwrap_or(0) / 1024
}
