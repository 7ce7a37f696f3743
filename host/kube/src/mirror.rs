//! What the API server says, as commands to the ledger. The API server is the
//! truth: the books are made anew from a full list whenever a leader begins,
//! and follow what is watched from there.
//!
//! **Architecture Invariant**: nothing here does IO or reads a clock, so that
//! every order of events can be tried in a test. Pods and nodes are keyed by
//! uid; a name only says where a pod is bound.
//!
//! Here stands what the books are; `nodes.rs` follows machines, `pods.rs` pods,
//! `promises.rs` what is promised and not yet bound, `adopt.rs` charges what is
//! taken already.

use crate::cards::Assigned;
use crate::machine::{InventorySeen, NodeSeen};
use crate::pod::PodSeen;
use crater_engine::{Ledger, MemoryJournal, Refusal, State, Strings};
use crater_model::{ClaimUid, JobUid, Kind, NodeSpec, NodeUid, QueueSpec, Time};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The queue under which pods of other schedulers stand in the books. Nothing
/// is ever decided in it.
pub const FOREIGN: &str = "foreign.crater.io";

/// So many jobs that are over are kept at least: forgetting walks over all.
const FORGET_FROM: usize = 1024;

/// A machine in the books.
#[derive(Debug)]
pub(crate) struct Machine {
    pub seen: NodeSeen,
    pub node: NodeUid,
    pub spec: NodeSpec,
    pub uuids: Vec<Arc<str>>,
}

/// Where a pod stands in the books.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Nowhere: gated, ending before it began, over.
    Nowhere,
    /// Refused as it is; the text says why.
    Refused(Arc<str>),
    /// Waits for room.
    Waiting(JobUid),
    /// It has room, and is being bound.
    Promised(JobUid, ClaimUid),
    /// It is bound and holds its room.
    Bound(JobUid, ClaimUid),
    /// It is bound to a node that is not there (yet).
    Afar,
}

/// A pod in the books.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The pod.
    pub seen: Arc<PodSeen>,
    /// Where it stands.
    pub standing: Standing,
    /// The node that it is promised or bound to.
    pub node: Option<Arc<str>>,
}

/// A decision that took effect and must be carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Promised {
    /// The pod.
    pub pod: Arc<PodSeen>,
    /// The node's name.
    pub node: Arc<str>,
    /// The node's uid.
    pub node_uid: Arc<str>,
    /// The cards.
    pub cards: Vec<Assigned>,
}

/// What went otherwise than it should, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Troubles {
    /// Pods found on cards that were full: a card was promised twice, by
    /// whomever.
    pub overpromised: u64,
    /// Commands that the ledger refused and that it should not have.
    pub defects: u64,
    /// Inventories that contradict themselves.
    pub inventories: u64,
    /// Cards of pods that were bound by others, beyond what the node had idle.
    pub unplaced_cards: u64,
    /// Pods whose annotation of assigned cards was not taken as it is.
    pub doubted: u64,
}

/// What the books hold on a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NodeFigures {
    /// Its name.
    pub node: Arc<str>,
    /// Thousandths of cores.
    pub cpu: u64,
    /// MiB.
    pub memory: u64,
    /// Pods.
    pub pods: u32,
    /// Thousandths and MiB, card by card.
    pub cards: Vec<(u64, u64)>,
}

/// The books of a cluster.
#[derive(Debug)]
pub struct Mirror {
    pub(crate) ledger: Ledger<MemoryJournal>,
    pub(crate) machines: BTreeMap<Arc<str>, Machine>,
    pub(crate) inventories: BTreeMap<Arc<str>, InventorySeen>,
    pub(crate) pods: BTreeMap<Arc<str>, Entry>,
    /// Pods that are bound to a node, by its name.
    pub(crate) bound: BTreeMap<Arc<str>, BTreeSet<Arc<str>>>,
    /// Pods that are promised room on a node, by its name.
    pub(crate) promised: BTreeMap<Arc<str>, BTreeSet<Arc<str>>>,
    pub(crate) jobs: BTreeMap<JobUid, Arc<str>>,
    /// Nodes with a pod that was charged fewer cards than it has, since others
    /// held them: it is charged again when something leaves.
    pub(crate) short: BTreeSet<Arc<str>>,
    /// Pods whose words about their cards were not taken as they are, and why.
    pub(crate) doubts: BTreeMap<Arc<str>, Arc<str>>,
    /// Those of them that nobody was told of yet.
    pub(crate) untold: Vec<(Arc<PodSeen>, Arc<str>)>,
    /// Jobs that ended since the books last forgot any.
    pub(crate) ended: usize,
    /// What went wrong.
    pub troubles: Troubles,
}

impl Mirror {
    /// Books with these queues and nothing in them.
    pub fn new(now: Time, queues: &[QueueSpec], strings: Arc<Strings>) -> Result<Self, Refusal> {
        let mut ledger = Ledger::new(MemoryJournal::default(), strings);
        let foreign = QueueSpec { paused: true, ..QueueSpec::new(FOREIGN, Kind::Offline) };
        for queue in queues.iter().cloned().chain([foreign]) {
            ledger.set_queue(now, queue)?;
        }
        Ok(Self {
            ledger,
            machines: BTreeMap::new(),
            inventories: BTreeMap::new(),
            pods: BTreeMap::new(),
            bound: BTreeMap::new(),
            promised: BTreeMap::new(),
            jobs: BTreeMap::new(),
            short: BTreeSet::new(),
            doubts: BTreeMap::new(),
            untold: vec![],
            ended: 0,
            troubles: Troubles::default(),
        })
    }

    /// The books.
    pub fn state(&self) -> &State {
        self.ledger.state()
    }

    /// A pod, by uid.
    pub fn pod(&self, uid: &str) -> Option<&Entry> {
        self.pods.get(uid)
    }

    /// The pod behind a job.
    pub fn pod_of(&self, job: JobUid) -> Option<&Entry> {
        self.pods.get(self.jobs.get(&job)?)
    }

    /// All pods.
    pub fn pods(&self) -> impl Iterator<Item = &Entry> {
        self.pods.values()
    }

    /// Number of pods that are promised room and not yet bound.
    pub fn outstanding(&self) -> usize {
        self.promised.values().map(BTreeSet::len).sum()
    }

    /// A node's uid, by name.
    pub fn node_uid(&self, name: &str) -> Option<&Arc<str>> {
        self.machines.get(name).map(|m| &m.seen.uid)
    }

    /// The node that a name means in the books.
    pub fn node(&self, name: &str) -> Option<NodeUid> {
        self.machines.get(name).map(|m| m.node)
    }

    /// Pods whose words about their cards were not taken as they are since this
    /// was last asked, each once, and why.
    pub fn doubted(&mut self) -> Vec<(Arc<PodSeen>, Arc<str>)> {
        std::mem::take(&mut self.untold)
    }

    pub(crate) fn defect<T>(&mut self, done: Result<T, Refusal>) -> Option<T> {
        done.inspect_err(|_| self.troubles.defects += 1).ok()
    }

    /// Number of jobs in the books, those that are over and not yet forgotten
    /// included.
    pub fn jobs_kept(&self) -> usize {
        self.jobs.len() + self.ended
    }

    /// Takes jobs that are over off the books once they are as many as those
    /// that are not: each costs its share of a walk, and books of a cluster in
    /// which pods come and go stay as small as the cluster.
    pub(crate) fn forget_ended(&mut self, now: Time) {
        self.ended += 1;
        if self.ended < FORGET_FROM.max(self.jobs.len()) {
            return;
        }
        self.ended = 0;
        let done = self.ledger.forget(now, Time(u64::MAX));
        self.defect(done);
    }

    /// What the books hold, node by node.
    pub fn figures(&self) -> Vec<NodeFigures> {
        let of = |(name, machine): (&Arc<str>, &Machine)| {
            let state = self.state().node(machine.node)?;
            Some(NodeFigures {
                node: name.clone(),
                cpu: state.cpu.0,
                memory: state.memory.0,
                pods: state.members,
                // Not those that are gone: who held them is read without.
                cards: state.cards[..machine.uuids.len().min(state.cards.len())]
                    .iter()
                    .map(|c| (c.milli.0, c.memory.0))
                    .collect(),
            })
        };
        self.machines.iter().filter_map(of).collect()
    }

    /// Compares the ledger's sums with a recount.
    pub fn audit(&self) -> Result<(), String> {
        self.state().audit()
    }
}

#[cfg(test)]
#[path = "mirror_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "churn_tests.rs"]
mod churn_tests;
