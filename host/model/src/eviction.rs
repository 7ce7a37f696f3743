//! Evictions by the scheduler, and room that is kept for a job.

use crate::claim::Held;
use crate::id::{ClaimUid, JobUid, NodeUid};
use crate::time::Time;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// Why a job was made to go. Each cause has its own precondition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// A job of higher priority starts in its place.
    Preempt,
    /// A tenant below its hard limit gets back what it had lent.
    Reclaim,
    /// Jobs held what the others waited for.
    Deadlock,
    /// A waiting job starts because what runs was moved together.
    Defragment,
    /// It did not use what it held.
    Idle,
    /// Its machine is gone.
    LostNode,
    /// A person with the right to did it.
    Manual,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Preempt => "preempted by a job of higher priority",
            Self::Reclaim => "reclaimed: it used what another tenant had lent",
            Self::Deadlock => "ended a deadlock",
            Self::Defragment => "moved to make room in one place",
            Self::Idle => "idle",
            Self::LostNode => "lost its machine",
            Self::Manual => "evicted by a person",
        })
    }
}

/// A running job that goes back to its queue, or an elastic one that gives up
/// members.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Eviction {
    /// The job.
    pub job: JobUid,
    /// What it gives up.
    pub claims: Vec<ClaimUid>,
    /// All of it goes; else it runs on with at least its minimum.
    pub whole: bool,
    /// Why.
    pub cause: Cause,
    /// The words of the person who did it; nothing where no person did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Arc<str>>,
}

/// Where one member of a waiting job will go.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HoldMember {
    /// Which member, from 0.
    pub member: u32,
    /// The node.
    pub node: NodeUid,
    /// What it will hold there.
    pub held: Held,
}

/// Room that is kept for a waiting job while others leave it. It is not charged
/// yet: it may still be held by those who are going.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hold {
    /// The job.
    pub job: JobUid,
    /// All members that will start together.
    pub members: Vec<HoldMember>,
    /// When it is planned to start, where those who are there end by
    /// themselves: others may use the room until then. [`Hold::UNKNOWN`] where
    /// nobody said how long they run. Without, they are being evicted and the
    /// room is the job's alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub starts: Option<Time>,
}

impl Hold {
    /// When others end is not known.
    pub const UNKNOWN: Time = Time(u64::MAX);
}
