//! What happens. The ledger is a fold over these and nothing else changes it.

use crate::claim::{Claim, ClaimState};
use crate::eviction::{Eviction, Hold};
use crate::id::{ClaimUid, Digest, JobUid, NodeUid, QueueName, TenantPath};
use crate::job::{JobChanges, JobSpec, JobState};
use crate::node::NodeSpec;
use crate::queue::QueueSpec;
use crate::tenant::{PlatformSpec, TenantSpec};
use crate::time::Time;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// One event of the journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    /// A machine appeared.
    NodeAdded {
        /// Its identity, given by the ledger.
        node: NodeUid,
        /// Its description.
        spec: Arc<NodeSpec>,
    },
    /// A machine is described anew: other labels, taints, health, amounts.
    NodeChanged {
        /// The machine.
        node: NodeUid,
        /// Its description.
        spec: Arc<NodeSpec>,
    },
    /// A machine is gone for good, and with it all that it held.
    NodeRemoved {
        /// The machine.
        node: NodeUid,
    },
    /// A queue was made or changed.
    QueueSet {
        /// Its description.
        spec: Arc<QueueSpec>,
    },
    /// A queue decides by this policy from here on.
    PolicySet {
        /// The queue.
        queue: QueueName,
        /// Policy, configuration and prepared data.
        digest: Digest,
    },
    /// A tenant was made, or its quota or ceiling changed. What is held stays.
    TenantSet {
        /// Its description.
        spec: Arc<TenantSpec>,
    },
    /// A tenant has no quota and no ceiling of its own from here on.
    TenantRemoved {
        /// Which.
        path: TenantPath,
    },
    /// What holds for all tenants changed.
    PlatformSet {
        /// All of it.
        spec: PlatformSpec,
    },
    /// A job was submitted and accepted.
    JobSubmitted {
        /// Its identity, given by the ledger.
        job: JobUid,
        /// What was submitted.
        spec: Arc<JobSpec>,
    },
    /// A job was changed by its owner: a waiting one may change its place.
    JobUpdated {
        /// The job.
        job: JobUid,
        /// What changed.
        changes: JobChanges,
    },
    /// A waiting job ended, or a running one is being ended: its claims are
    /// releasing until each is gone.
    JobEnded {
        /// The job.
        job: JobUid,
        /// How.
        state: JobState,
        /// Why, for people.
        reason: Arc<str>,
    },
    /// A decision took effect: these claims are charged from here on.
    PlanCommitted {
        /// New claims, whole gangs or whole additions to one.
        claims: Vec<Claim>,
    },
    /// A claim moved on.
    ClaimMoved {
        /// The claim.
        claim: ClaimUid,
        /// Where it stands now.
        state: ClaimState,
    },
    /// A member's last process stopped by itself.
    MemberEnded {
        /// The claim, gone from here on.
        claim: ClaimUid,
        /// Whether it ended well.
        success: bool,
        /// How, in words, where the executor knows.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        how: Option<Arc<str>>,
    },
    /// Jobs give up what they hold, for others or at somebody's word: their
    /// claims are releasing until each is gone. The room may be kept for a job.
    RoomMade {
        /// Who gives up what.
        evictions: Vec<Eviction>,
        /// Who it is for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hold: Option<Hold>,
    },
    /// Room that was kept is free for all again.
    RoomGivenUp {
        /// For whom it was kept.
        job: JobUid,
        /// Why, for people.
        reason: Arc<str>,
    },
    /// An executor refused to start a member: its job waits a while and is
    /// tried again.
    StartRefused {
        /// The claim, gone from here on.
        claim: ClaimUid,
        /// The executor's words.
        reason: Arc<str>,
    },
    /// A job saved its progress.
    Checkpointed {
        /// The job.
        job: JobUid,
    },
    /// Tenants may borrow from here on, or no more.
    LendingSet {
        /// Whether they may.
        open: bool,
    },
    /// Jobs that are over leave the books; history knows them.
    JobsForgotten {
        /// The jobs.
        jobs: Vec<JobUid>,
    },
}

/// An event with its place in the journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Counts from 1 without gaps.
    pub seq: u64,
    /// When it was journalled.
    pub at: Time,
    /// What happened.
    #[serde(flatten)]
    pub event: Event,
}
