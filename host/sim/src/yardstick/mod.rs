//! The published experiment: arrivals only, nobody leaves, what does not fit
//! is dropped, and how much GPU stays unallocated on the way.
//!
//! Weng, Yang et al., "Beware of Fragmentation: Scheduling GPU-Sharing
//! Workloads with Fragmentation Gradient Descent", USENIX ATC'23.

mod fragment;
mod published;

pub use fragment::{Fragments, TypicalPod, typical_pods};
pub use published::{POLICIES, published};

use crate::trace::{MEMBERS_PER_NODE, Pod, Trace, node_order, workload_mix, yardstick_arrivals};
use crater_engine::facts::MixShape;
use crater_engine::{
    By, Decider, Ledger, MemoryJournal, Policies, Policy, Refusal, Round, State, Strings,
};
use crater_model::{
    Digest, Fallback, JobSpec, JobState, JobUid, Kind, Mib, MilliCards, NodeUid, QueueSpec,
    TenantPath, Time,
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use thiserror::Error;

/// The experiment could not be run.
#[derive(Debug, Error)]
pub enum YardstickError {
    /// The books refused something of the trace.
    #[error("{what} of trace {trace} is refused")]
    Refused {
        /// The trace.
        trace: String,
        /// What of it.
        what: String,
        /// Why.
        #[source]
        source: Refusal,
    },
    /// The trace has no cards.
    #[error("trace {0} has no cards")]
    NoCards(String),
}

/// One whole percent of arrivals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Arrived GPU share in percent of the cluster's cards, rounded.
    pub arrived_pct: u32,
    /// GPU that is not allocated, in percent of the cluster's cards.
    pub unallocated_pct: f64,
    /// GPU that is a fragment for the typical pods, in percent of the
    /// cluster's cards.
    pub fragmented_pct: f64,
}

/// One run of the experiment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Run {
    /// Means over the events of each percent.
    pub points: Vec<Point>,
    /// Decisions made.
    pub decisions: u64,
    /// Decisions that a fallback made because the policy failed.
    pub faults: u64,
    /// Each decision in order.
    pub decided: Vec<Decided>,
}

/// One decision of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decided {
    /// The job.
    pub job: JobUid,
    /// Where it went; nowhere if it was dropped.
    pub node: Option<NodeUid>,
    /// The policy that was asked.
    pub policy: Option<Digest>,
    /// Who decided.
    pub by: By,
}

/// What is known before an arrival.
pub struct Moment<'a> {
    /// The books.
    pub state: &'a State,
    /// The time.
    pub now: Time,
    /// Arrived GPU share in percent of the cluster's cards, the pod that comes
    /// not included.
    pub arrived_pct: f64,
    /// The pods that arrived so far, in order.
    pub arrived: &'a [Pod],
    /// Whoever decides, to be warmed for a new policy.
    pub decider: &'a mut Decider,
}

/// Conducts a run: is asked before each arrival which policy decides from here
/// on; `None` leaves it as it is.
pub type Conductor<'a> = &'a mut dyn FnMut(Moment<'_>) -> Option<Arc<dyn Policy>>;

/// The experiment on one trace.
pub struct Yardstick<'a> {
    trace: &'a Trace,
    strings: Arc<Strings>,
    typical: Vec<TypicalPod>,
}

impl<'a> Yardstick<'a> {
    /// Prepares the experiment. Texts are numbered in `strings`, which the
    /// policies must share.
    pub fn new(trace: &'a Trace, strings: Arc<Strings>) -> Result<Self, YardstickError> {
        if trace.gpus() == 0 {
            return Err(YardstickError::NoCards(trace.name.clone()));
        }
        let typical = typical_pods(&workload_mix(&trace.pods));
        Ok(Self { trace, strings, typical })
    }

    /// The empty cluster in the order of a seed.
    pub fn cluster(&self, seed: u64) -> Result<Ledger<MemoryJournal>, YardstickError> {
        let mut ledger = Ledger::new(MemoryJournal::default(), self.strings.clone());
        let refused = |what: &str, source| YardstickError::Refused {
            trace: self.trace.name.clone(),
            what: what.to_owned(),
            source,
        };
        let mut queue = QueueSpec::new("trace", Kind::Training);
        queue.fallback = Fallback::Binpack;
        ledger.set_queue(Time(0), queue).map_err(|e| refused("the queue", e))?;
        let mut order: Vec<_> =
            node_order(&self.trace.nodes, seed).into_iter().zip(&self.trace.nodes).collect();
        order.sort_by_key(|(place, _)| *place);
        for (_, node) in order {
            let mut node = node.clone();
            node.members = MEMBERS_PER_NODE;
            let name = node.name.clone();
            ledger.add_node(Time(0), node).map_err(|e| refused(&name, e))?;
        }
        Ok(ledger)
    }

    /// The trace's mix, for policies that prepare.
    pub fn mix(&self) -> Vec<MixShape> {
        mix(&self.trace.pods)
    }

    /// Runs one seed under one policy, or under the built-in order. `tick` is
    /// told before each arrival.
    pub fn run(
        &self,
        seed: u64,
        policy: Option<Arc<dyn Policy>>,
        decider: Decider,
        tick: &mut dyn FnMut(),
    ) -> Result<Run, YardstickError> {
        let mut first = policy;
        self.conduct(seed, decider, &mut |_| {
            tick();
            first.take()
        })
    }

    /// Runs one seed under policies that may change on the way.
    pub fn conduct(
        &self,
        seed: u64,
        mut decider: Decider,
        conductor: Conductor<'_>,
    ) -> Result<Run, YardstickError> {
        let mut ledger = self.cluster(seed)?;
        let queue = crater_model::QueueName::from("trace");
        let mut policies = Policies::new();
        let arrivals = yardstick_arrivals(&self.trace.pods, self.trace.gpus(), seed);
        let total = 1000 * self.trace.gpus();
        let mut fragments = Fragments::new(&self.typical, ledger.state());
        let mut sums: Vec<(u64, f64, f64)> = vec![];
        let (mut arrived, mut allocated) = (0, 0);
        let mut run = Run::default();
        for (i, pod) in arrivals.iter().enumerate() {
            let now = Time::from_secs(i as u64 + 1);
            let percent = |part: u64| part as f64 * 100.0 / total as f64;
            let (state, arrived_pct) = (ledger.state(), percent(arrived));
            let moment =
                Moment { state, now, arrived_pct, arrived: &arrivals[..i], decider: &mut decider };
            if let Some(policy) = conductor(moment) {
                policies.insert(queue.clone(), policy);
            }
            let refused = |source| YardstickError::Refused {
                trace: self.trace.name.clone(),
                what: pod.name.to_string(),
                source,
            };
            let job = ledger.submit(now, job(pod)).map_err(refused)?;
            let plan = decider.decide(ledger.state(), &policies, Round::new(now, seed));
            ledger.commit(now, &plan).map_err(refused)?;
            run.decisions += 1;
            run.faults += plan.records.iter().filter(|r| r.fault.is_some()).count() as u64;
            arrived += pod.gpu().0;
            let node = plan.placements.first().map(|p| p.members[0].node);
            if let Some(record) = plan.record(job) {
                run.decided.push(Decided { job, node, policy: record.policy, by: record.by });
            }
            if let Some(node) = node {
                allocated += pod.gpu().0;
                fragments.update(ledger.state(), node);
            } else {
                ledger.end_job(now, job, JobState::Failed, "no room").map_err(refused)?;
            }
            let bin = percent(arrived).round() as usize;
            if sums.len() <= bin {
                sums.resize(bin + 1, (0, 0.0, 0.0));
            }
            let sum = &mut sums[bin];
            sum.0 += 1;
            sum.1 += 100.0 - percent(allocated);
            sum.2 += fragments.milli() * 100.0 / total as f64;
        }
        let point = |(bin, (n, unallocated, fragmented)): (usize, (u64, f64, f64))| Point {
            arrived_pct: bin as u32,
            unallocated_pct: unallocated / n as f64,
            fragmented_pct: fragmented / n as f64,
        };
        run.points = sums.into_iter().enumerate().filter(|(_, sum)| sum.0 > 0).map(point).collect();
        Ok(run)
    }
}

/// What a pod of a trace submits.
pub fn job(pod: &Pod) -> JobSpec {
    let name = pod.name.replace(|c: char| !c.is_ascii_alphanumeric() && c != '.', "-");
    let mut job = JobSpec::new(&name, "trace", TenantPath::default(), pod.request());
    job.kind = Kind::Training;
    job
}

/// The mix of a workload as a fact for policies.
pub fn mix(pods: &[Pod]) -> Vec<MixShape> {
    let shape = |s: crate::trace::Shape| MixShape {
        weight: s.count,
        cpu: s.cpu,
        memory: s.memory,
        cards: s.cards,
        milli: if s.cards == 0 { MilliCards::ZERO } else { s.milli },
        card_memory: Mib::ZERO,
        models: s.models,
    };
    workload_mix(pods).into_iter().map(shape).collect()
}

/// The mean of several runs, percent by percent.
pub fn mean(runs: &[Run]) -> Vec<Point> {
    let mut sums: std::collections::BTreeMap<u32, (f64, f64, f64)> =
        std::collections::BTreeMap::new();
    for point in runs.iter().flat_map(|r| &r.points) {
        let sum = sums.entry(point.arrived_pct).or_default();
        sum.0 += 1.0;
        sum.1 += point.unallocated_pct;
        sum.2 += point.fragmented_pct;
    }
    sums.into_iter()
        .map(|(arrived_pct, (n, unallocated, fragmented))| Point {
            arrived_pct,
            unallocated_pct: unallocated / n,
            fragmented_pct: fragmented / n,
        })
        .collect()
}
