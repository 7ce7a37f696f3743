//! What a round of decisions proposes, and the record of each decision.

use crate::policy::Fault;
use crater_model::{Digest, Eviction, Held, Hold, JobUid, NodeUid, QueueName, Reasons, Time};
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;
use std::sync::Arc;

/// Where one member goes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// Which member of the job, from 0.
    pub member: u32,
    /// The node.
    pub node: NodeUid,
    /// What it holds there.
    pub held: Held,
}

/// Where a job's members go: all of them or none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placement {
    /// The job.
    pub job: JobUid,
    /// Its members.
    pub members: SmallVec<[Member; 1]>,
}

/// Who made a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum By {
    /// The queue's policy.
    Policy,
    /// The queue's fallback, after a fault.
    Fallback,
    /// The queue's built-in order: it has no policy.
    Builtin,
}

/// One decision, in enough detail to be made again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The job.
    pub job: JobUid,
    /// Its queue.
    pub queue: QueueName,
    /// Who decided.
    pub by: By,
    /// The policy, configuration and prepared data that were asked.
    pub policy: Option<Digest>,
    /// Why the policy's answer was not used.
    pub fault: Option<Fault>,
    /// Sum over the asked rows of a hash of (node, code, score, cards): two
    /// decisions with one sum were given the same answers.
    pub answers: u64,
    /// Nodes that could take the (first) member.
    pub candidates: u32,
    /// Score of the chosen node of the first member, with its groups'.
    pub score: i64,
    /// What came of it.
    pub outcome: Outcome,
}

/// What a decision came to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Placed.
    Placed(Placement),
    /// Waits on.
    Waits(Arc<Reasons>),
}

/// Room that is made for a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Room {
    /// Who gives up what; nobody if others are leaving already.
    pub evictions: Vec<Eviction>,
    /// Where the job will start.
    pub hold: Hold,
}

/// A round's proposals with all that it needs to be decided again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// The books that it was decided on: the sequence of their last entry.
    pub seq: u64,
    /// The time that was given.
    pub now: Time,
    /// The seed that was given.
    pub seed: u64,
    /// Version of the engine.
    pub engine: String,
    /// What to start.
    pub placements: Vec<Placement>,
    /// Who goes so that a job can start, and the room that is kept for it.
    #[serde(default)]
    pub rooms: Vec<Room>,
    /// Jobs whose room is kept for nothing, with the reason.
    #[serde(default)]
    pub given_up: Vec<(JobUid, Arc<str>)>,
    /// Queues whose policy could not price its jobs for a job: from there on the
    /// host's own prices stood in.
    #[serde(default)]
    pub unpriced: Vec<(QueueName, JobUid, Fault)>,
    /// Jobs whose policy failed while room was sought for them, or more members:
    /// nothing more was tried.
    #[serde(default)]
    pub failed: Vec<(JobUid, Fault)>,
    /// Every decision in the order it was made.
    pub records: Vec<Record>,
    /// When to decide again even if nothing happens, because a policy deferred
    /// something or an order changes with time.
    pub wake: Option<Time>,
}

impl Plan {
    /// Whether nothing is to be done.
    pub fn is_idle(&self) -> bool {
        self.placements.is_empty() && self.rooms.is_empty() && self.given_up.is_empty()
    }

    /// Whether a job is to start.
    pub fn placed(&self, job: JobUid) -> bool {
        self.placements.iter().any(|placement| placement.job == job)
    }

    /// The decision on a job, if it was looked at.
    pub fn record(&self, job: JobUid) -> Option<&Record> {
        self.records.iter().find(|r| r.job == job)
    }
}
