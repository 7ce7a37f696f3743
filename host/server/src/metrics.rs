//! What the server counts and times while it runs, for Prometheus.
//!
//! Names begin with `crater_`, units are base units. Buckets have the shapes
//! of kube-scheduler's, so that its dashboards and alerts fit: 1 ms doubling
//! 15 times for attempts, 10 ms doubling 20 times for a job's way to its
//! place, 10 µs by 1.5 for a policy's calls. What is so at a moment (jobs that
//! wait, amounts promised) is read from the books when it is asked for and is
//! not kept here.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

/// Labels of a metric: names with values.
pub type Labels<const N: usize> = [(&'static str, String); N];
/// Histograms by labels.
pub type Histograms<const N: usize> = Family<Labels<N>, Histogram, fn() -> Histogram>;

/// All of them. Cheap to update from any thread.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    /// A queue's rounds: `queue`, `result` (scheduled, unschedulable, stale).
    pub attempts: Histograms<2>,
    /// From when a job began to wait until it was placed, by `queue`.
    pub waits: Histograms<1>,
    /// From when a job was submitted until its last member ran, by `queue`.
    pub starts: Histograms<1>,
    /// Calls of a policy: `queue`, `digest`, `call`.
    pub policy_calls: Histograms<3>,
    /// Decisions: `queue`, `by`, `result`.
    pub decisions: Family<Labels<3>, Counter>,
    /// Placements that no longer fitted when they were committed, by `queue`.
    pub stale: Family<Labels<1>, Counter>,
    /// Faults of policies: `queue`, `digest`, `cause`.
    pub faults: Family<Labels<3>, Counter>,
    /// Jobs that lost their place before they were over, by `cause`.
    pub evictions: Family<Labels<1>, Counter>,
    /// Members that elastic jobs gave up and ran on, by `cause`.
    pub given_up: Family<Labels<1>, Counter>,
    /// Starts that an executor refused, by `queue`.
    pub refused: Family<Labels<1>, Counter>,
    /// Jobs that are over: `queue`, `result`.
    pub ended: Family<Labels<2>, Counter>,
    /// Commands in one durable step of the ledger.
    pub batch: Histogram,
    /// Seconds that a durable step took, from its first command to the disk.
    pub commit: Histogram,
    /// Requests: `method`, `route`, `status`.
    pub requests: Histograms<3>,
    /// Deliveries to webhooks, by `result`.
    pub webhooks: Family<Labels<1>, Counter>,
}

fn attempt() -> Histogram {
    Histogram::new(exponential_buckets(0.001, 2.0, 15))
}

fn way() -> Histogram {
    Histogram::new(exponential_buckets(0.01, 2.0, 20))
}

fn call() -> Histogram {
    Histogram::new(exponential_buckets(0.000_01, 1.5, 20))
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("crater");
        let metrics = Self {
            attempts: Family::new_with_constructor(attempt),
            waits: Family::new_with_constructor(way),
            starts: Family::new_with_constructor(way),
            policy_calls: Family::new_with_constructor(call),
            decisions: Family::default(),
            stale: Family::default(),
            faults: Family::default(),
            evictions: Family::default(),
            given_up: Family::default(),
            refused: Family::default(),
            ended: Family::default(),
            batch: Histogram::new(exponential_buckets(1.0, 2.0, 11)),
            commit: Histogram::new(exponential_buckets(0.000_1, 2.0, 15)),
            requests: Family::new_with_constructor(attempt),
            webhooks: Family::default(),
            registry: Registry::default(),
        };
        let r = &mut registry;
        r.register(
            "scheduling_attempt_duration_seconds",
            "Time of a queue's round of decisions with its commit, by queue and result",
            metrics.attempts.clone(),
        );
        r.register(
            "job_queue_wait_duration_seconds",
            "Time from when a job began to wait until it was placed, by queue",
            metrics.waits.clone(),
        );
        r.register(
            "job_start_duration_seconds",
            "Time from a job's submission until it first ran, by queue",
            metrics.starts.clone(),
        );
        r.register(
            "policy_call_duration_seconds",
            "Time of a policy's calls, by queue, digest and call",
            metrics.policy_calls.clone(),
        );
        r.register(
            "decisions",
            "Decisions on jobs, by queue, who decided, and result",
            metrics.decisions.clone(),
        );
        r.register(
            "stale_placements",
            "Placements that no longer fitted when they were committed, by queue",
            metrics.stale.clone(),
        );
        r.register(
            "policy_faults",
            "Calls of policies that gave no usable answer, by queue, digest and cause",
            metrics.faults.clone(),
        );
        r.register(
            "evictions",
            "Jobs that lost their place before they were over, by cause",
            metrics.evictions.clone(),
        );
        r.register(
            "members_given_up",
            "Members that elastic jobs gave up while they ran on, by cause",
            metrics.given_up.clone(),
        );
        r.register(
            "starts_refused",
            "Starts that an executor refused, by queue",
            metrics.refused.clone(),
        );
        r.register("jobs_ended", "Jobs that are over, by queue and how", metrics.ended.clone());
        r.register(
            "ledger_batch_commands",
            "Commands that were made durable by one commit",
            metrics.batch.clone(),
        );
        r.register(
            "ledger_commit_duration_seconds",
            "Time of a durable step of the ledger: its commands and the disk",
            metrics.commit.clone(),
        );
        r.register(
            "api_request_duration_seconds",
            "Time until a request's answer began, by method, route and status",
            metrics.requests.clone(),
        );
        r.register(
            "webhook_deliveries",
            "Deliveries to webhooks, by result: delivered, failed, given-up",
            metrics.webhooks.clone(),
        );
        Self { registry, ..metrics }
    }
}

impl Metrics {
    /// What they are registered in.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }
}
