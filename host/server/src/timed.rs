//! A policy whose calls are timed and whose faults are counted.

use crate::metrics::Metrics;
use crater_engine::policy::{Fault, Manifest, Policy, Scores, Table, Values};
use crater_model::Digest;
use prometheus_client::metrics::histogram::Histogram;
use std::sync::Arc;
use std::time::Instant;

/// The decisions that a round may ask for.
const CALLS: [&str; 6] = ["filter", "score", "score-groups", "preempt", "rank", "admit"];

/// Answers as the policy in it does.
pub struct Timed {
    policy: Arc<dyn Policy>,
    metrics: Arc<Metrics>,
    queue: String,
    digest: String,
    calls: [Histogram; 6],
}

impl Timed {
    /// Around the policy of a queue.
    pub fn new(policy: Arc<dyn Policy>, queue: &str, metrics: Arc<Metrics>) -> Self {
        let (queue, digest) = (queue.to_owned(), policy.digest().short());
        let labels = |call: &str| {
            [("queue", queue.clone()), ("digest", digest.clone()), ("call", call.to_owned())]
        };
        let calls = CALLS.map(|call| metrics.policy_calls.get_or_create_owned(&labels(call)));
        Self { policy, metrics, queue, digest, calls }
    }

    /// Whether it is around this very policy.
    pub fn is(&self, policy: &Arc<crater_policy::Configured>) -> bool {
        std::ptr::addr_eq(Arc::as_ptr(&self.policy), Arc::as_ptr(policy))
    }

    /// Takes its series away: another version decides from here on.
    pub fn retire(&self) {
        for call in CALLS {
            self.metrics.policy_calls.remove(&[
                ("queue", self.queue.clone()),
                ("digest", self.digest.clone()),
                ("call", call.to_owned()),
            ]);
        }
    }

    fn time<T>(
        &self,
        call: usize,
        ask: impl FnOnce(&dyn Policy) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let start = Instant::now();
        let answer = ask(&*self.policy);
        self.calls[call].observe(start.elapsed().as_secs_f64());
        if let Err(fault) = &answer {
            let labels = [
                ("queue", self.queue.clone()),
                ("digest", self.digest.clone()),
                ("cause", cause(fault).to_owned()),
            ];
            self.metrics.faults.get_or_create(&labels).inc();
        }
        answer
    }
}

/// A fault's cause in one word.
pub const fn cause(fault: &Fault) -> &'static str {
    match fault {
        Fault::Trap { .. } => "trap",
        Fault::Deadline { .. } => "deadline",
        Fault::Memory { .. } => "memory",
        Fault::BadAnswer { .. } => "bad-answer",
        Fault::Unavailable { .. } => "unavailable",
    }
}

impl Policy for Timed {
    fn manifest(&self) -> &Manifest {
        self.policy.manifest()
    }

    fn digest(&self) -> Digest {
        self.policy.digest()
    }

    fn filter(&self, context: &Values, job: &Values, nodes: &Table) -> Result<Vec<i32>, Fault> {
        self.time(0, |policy| policy.filter(context, job, nodes))
    }

    fn score(&self, context: &Values, job: &Values, nodes: &Table) -> Result<Scores, Fault> {
        self.time(1, |policy| policy.score(context, job, nodes))
    }

    fn score_groups(
        &self,
        context: &Values,
        job: &Values,
        groups: &Table,
    ) -> Result<Vec<i32>, Fault> {
        self.time(2, |policy| policy.score_groups(context, job, groups))
    }

    fn price(
        &self,
        context: &Values,
        preemptor: &Values,
        units: &Table,
    ) -> Result<Vec<(i32, i32)>, Fault> {
        self.time(3, |policy| policy.price(context, preemptor, units))
    }

    fn rank(&self, context: &Values, jobs: &Table) -> Result<Vec<(i32, i32, i32)>, Fault> {
        self.time(4, |policy| policy.rank(context, jobs))
    }

    fn admit(&self, context: &Values, job: &Values) -> Result<Result<Values, String>, Fault> {
        self.time(5, |policy| policy.admit(context, job))
    }
}
