//! A live queue: pods come and go, wait while there is no room, and we measure
//! for how long.

use crate::trace::{Class, Trace};
use crate::world::{Behaviour, Command, Decides, Observer, Settings, World};
use crate::yardstick::job;
use crater_engine::{Committed, Plan, Policy, State};
use crater_model::{Fallback, JobUid, Kind, QueueSpec, Time};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// How a class of pods fared.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Waits {
    /// Seconds from submission to placement of those that were placed, sorted.
    pub seconds: Vec<u64>,
    /// Pods that still waited at the end.
    pub waiting: u64,
}

impl Waits {
    /// Mean wait in seconds.
    pub fn mean(&self) -> f64 {
        let sum: u64 = self.seconds.iter().sum();
        sum as f64 / self.seconds.len().max(1) as f64
    }

    /// The wait that 99 of 100 do not exceed, in seconds.
    pub fn p99(&self) -> u64 {
        let at = (self.seconds.len() * 99).div_ceil(100).saturating_sub(1);
        self.seconds.get(at).copied().unwrap_or(0)
    }
}

/// A moment of a live run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sample {
    /// Hours since the beginning.
    pub hours: f64,
    /// GPU share that is allocated, in percent of the cluster.
    pub allocated_pct: f64,
    /// Pods that wait.
    pub waiting: u64,
}

/// One live run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Live {
    /// By class.
    pub waits: BTreeMap<Class, Waits>,
    /// The whole, an even number of samples over time.
    pub samples: Vec<Sample>,
    /// Rounds decided.
    pub rounds: u64,
}

/// Runs a trace with its arrivals and life times until the last arrival. Pods
/// without times are left out.
pub fn run(
    trace: &Trace,
    policy: Arc<dyn Policy>,
    strings: &Arc<crater_engine::Strings>,
    tick: &mut dyn FnMut(),
) -> Live {
    let settings =
        Settings { keep_journal: false, strings: strings.clone(), ..Settings::default() };
    let start = settings.start;
    let mut world = World::new(settings);
    let mut queue = QueueSpec::new("trace", Kind::Training);
    queue.fallback = Fallback::Binpack;
    world.schedule(start, Command::SetQueue(queue));
    let policy = Decides::Policy(policy);
    world.schedule(start, Command::SetPolicy { queue: "trace".into(), policy });
    for node in &trace.nodes {
        world.schedule(start, Command::AddNode(node.clone()));
    }
    let mut classes = BTreeMap::new();
    let mut last = 0;
    for pod in &trace.pods {
        let (Some(arrive), Some(seconds)) = (pod.arrive, pod.seconds()) else { continue };
        last = last.max(arrive);
        let spec = job(pod);
        classes.insert(spec.name.clone(), pod.class());
        let run = Some(Duration::from_secs(seconds.max(1)));
        let behaviour = Behaviour { run, ..Behaviour::default() };
        world.schedule(start + Duration::from_secs(arrive), Command::Submit { spec, behaviour });
    }
    let end = start + Duration::from_secs(last);
    let mut meter = Meter {
        start,
        every: (last / 200).max(1),
        gpus: trace.gpus(),
        classes,
        live: Live::default(),
        tick,
    };
    world.run_until(end, &mut meter);
    let mut live = meter.live;
    for job in world.state().jobs().filter(|j| j.attempts == 0) {
        if let Some(class) = meter.classes.get(&job.spec.name) {
            live.waits.entry(*class).or_default().waiting += 1;
        }
    }
    for waits in live.waits.values_mut() {
        waits.seconds.sort_unstable();
    }
    live
}

struct Meter<'a> {
    start: Time,
    every: u64,
    gpus: u64,
    classes: BTreeMap<Arc<str>, Class>,
    live: Live,
    tick: &'a mut dyn FnMut(),
}

impl Meter<'_> {
    fn placed(&mut self, state: &State, job: JobUid, now: Time) {
        let Some(job) = state.job(job) else { return };
        let Some(class) = self.classes.get(&job.spec.name) else { return };
        let waits = self.live.waits.entry(*class).or_default();
        waits.seconds.push(now.secs_since(job.submitted));
    }
}

impl Observer for Meter<'_> {
    fn committed(&mut self, state: &State, plan: &Plan, _: &Committed) {
        for placement in &plan.placements {
            self.placed(state, placement.job, plan.now);
            (self.tick)();
        }
    }

    fn settled(&mut self, state: &State, _: &crater_engine::Policies, plan: &Plan) {
        self.live.rounds += 1;
        let secs = plan.now.secs_since(self.start);
        if secs < self.every * self.live.samples.len() as u64 {
            return;
        }
        let used: u64 = state.nodes().flat_map(|n| &n.cards).map(|c| c.milli.0).sum();
        self.live.samples.push(Sample {
            hours: secs as f64 / 3600.0,
            allocated_pct: used as f64 / (10 * self.gpus.max(1)) as f64,
            waiting: state.queues().values().map(|q| q.waiting.len() as u64).sum(),
        });
    }
}
