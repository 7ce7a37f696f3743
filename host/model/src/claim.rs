//! What a member of a job holds on a node.

use crate::amount::{Iops, MbPerSec, Mib, MilliCards, MilliCores};
use crate::id::{ClaimUid, JobUid, NodeUid};
use crate::mig::Instance;
use crate::quota::Usage;
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;
use std::sync::Arc;

/// What is held on one card.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CardShare {
    /// Index of the card on its node.
    pub card: u8,
    /// Share of it; of a card cut by MIG the share that the instance stands
    /// for (compute slices of seven, rounded up).
    pub milli: MilliCards,
    /// Memory of it.
    pub memory: Mib,
    /// The MIG instance, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<Instance>,
}

/// Amounts held on one node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// CPU.
    pub cpu: MilliCores,
    /// Memory.
    pub memory: Mib,
    /// Disk bandwidth.
    #[serde(default)]
    pub disk: MbPerSec,
    /// Disk operations.
    #[serde(default)]
    pub iops: Iops,
    /// Cards, in ascending order of index.
    #[serde(default)]
    pub cards: SmallVec<[CardShare; 1]>,
    /// The cards are whole ones, shared with nobody.
    #[serde(default)]
    pub whole: bool,
}

impl Held {
    /// Share of all its cards together.
    pub fn milli(&self) -> MilliCards {
        self.cards.iter().map(|c| c.milli).sum()
    }

    /// Memory on all its cards together.
    pub fn gpu_memory(&self) -> Mib {
        self.cards.iter().map(|c| c.memory).sum()
    }
}

/// Where a claim stands. All but `Gone` hold their amounts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClaimState {
    /// Promised; nothing was started.
    Reserved,
    /// The executor was asked to start it.
    Starting,
    /// It runs.
    Held,
    /// It was asked to end and has not ended yet.
    Releasing,
    /// Its last process is known to have stopped.
    Gone,
}

impl ClaimState {
    /// Whether a claim may go from here to `next`. Order only moves forward;
    /// any state may end.
    pub fn may_become(self, next: Self) -> bool {
        next > self && self != Self::Gone
    }
}

/// What one member holds, and where it stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// Its identity.
    pub uid: ClaimUid,
    /// The job.
    pub job: JobUid,
    /// Which member of the job, from 0.
    pub member: u32,
    /// The node.
    pub node: NodeUid,
    /// The amounts.
    pub held: Held,
    /// Where it stands.
    pub state: ClaimState,
    /// What of it is borrowed, as written when it was admitted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub loans: Vec<Loan>,
}

/// What a claim takes of a tenant beyond the tenant's hard limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loan {
    /// The level: a department, a project or a person.
    pub tenant: Arc<str>,
    /// How much of what.
    pub amounts: Usage,
}
