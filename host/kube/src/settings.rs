//! What a scheduler is given.

use crate::mirror::NodeFigures;
use crate::want;
use crater_engine::{Policies, Strings};
use crater_model::{QueueName, QueueSpec};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// How an older leader is kept from promising what a newer one promises too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fence {
    /// Promises are written to one object a node, by compare-and-swap, before
    /// they are bound. No order of events promises a card twice.
    #[default]
    Claims,
    /// The API server refuses Bindings of an older epoch at admission. One
    /// write less a batch, but what an API server has admitted may land after
    /// the new leader's list.
    Admission,
}

/// Times of the lease. `renew` < `lasts`, `retry` < `renew`.
#[derive(Clone, Copy, Debug)]
pub struct LeaseTimes {
    /// How long others wait after they last saw it renewed.
    pub lasts: Duration,
    /// How long its holder goes on after it last renewed it.
    pub renew: Duration,
    /// How often it is renewed, and tried for.
    pub retry: Duration,
}

impl Default for LeaseTimes {
    fn default() -> Self {
        let secs = Duration::from_secs;
        Self { lasts: secs(15), renew: secs(10), retry: secs(2) }
    }
}

/// What a scheduler is given.
#[derive(Clone)]
pub struct Settings {
    /// Where the API server is; `None`: as kubectl finds it, or the pod's own
    /// account.
    pub kubeconfig: Option<PathBuf>,
    /// The `schedulerName` of pods that are ours.
    pub scheduler_name: Arc<str>,
    /// Who this process is, among those that contend for the lease.
    pub identity: String,
    /// Namespace of the lease and the epoch.
    pub namespace: String,
    /// The lease's times.
    pub lease: LeaseTimes,
    /// Whether a leader that knows its lease to be over stops writing. Always,
    /// but for tests of what the fence does by itself.
    pub heed_lease: bool,
    /// The fence.
    pub fence: Fence,
    /// Queues.
    pub queues: Vec<QueueSpec>,
    /// The queue of pods that name none.
    pub default_queue: QueueName,
    /// Policies by queue.
    pub policies: Policies,
    /// Texts behind numbers, which policies share.
    pub strings: Arc<Strings>,
    /// Most requests a second, watches and leases aside.
    pub qps: f64,
    /// Requests that may be sent at once beyond that.
    pub burst: u32,
    /// Most requests under way.
    pub in_flight: usize,
    /// Most promises under way; deciding waits for room below it.
    pub outstanding: usize,
    /// Most placements a round.
    pub round: usize,
    /// How often everything is listed again, whatever the watches said.
    pub resync: Duration,
    /// How long an answer may take before it counts as unknown.
    pub timeout: Duration,
    /// Whether SIGTERM and SIGINT end it.
    pub stop_on_signals: bool,
    /// Gets what a leader's books hold when its time ends, for comparisons.
    pub books: Option<TakeBooks>,
    /// Where lines for people go.
    pub log: Log,
}

/// Takes what books hold, node by node.
pub type TakeBooks = Arc<dyn Fn(&[NodeFigures]) + Send + Sync>;
/// Takes a line.
pub type Log = Arc<dyn Fn(&str) + Send + Sync>;

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Settings");
        out.field("identity", &self.identity).field("queues", &self.queues);
        out.field("fence", &self.fence).finish_non_exhaustive()
    }
}

impl Settings {
    /// Defaults for these queues; the first is that of pods that name none.
    pub fn new(identity: String, queues: Vec<QueueSpec>) -> Self {
        Self {
            kubeconfig: None,
            scheduler_name: "crater".into(),
            identity,
            namespace: "kube-system".into(),
            lease: LeaseTimes::default(),
            heed_lease: true,
            fence: Fence::default(),
            default_queue: queues.first().map_or_else(|| "default".into(), |q| q.name.clone()),
            queues,
            policies: Policies::new(),
            strings: Arc::default(),
            qps: 500.0,
            burst: 1000,
            in_flight: 64,
            outstanding: 1024,
            round: 256,
            resync: Duration::from_mins(5),
            timeout: Duration::from_secs(10),
            stop_on_signals: false,
            books: None,
            log: Arc::new(|_| {}),
        }
    }

    /// What is taken where a pod does not say.
    pub fn defaults(&self) -> want::Defaults {
        want::Defaults {
            scheduler_name: self.scheduler_name.clone(),
            queue: self.default_queue.clone(),
            kinds: self.queues.iter().map(|q| (q.name.clone(), q.kind)).collect(),
        }
    }
}
