//! Queues.

use crate::id::{QueueName, check_name};
use crate::job::Kind;
use crate::parse::FieldError;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Who decides when a queue's policy cannot: one of the built-in orders.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fallback {
    /// The fullest node that fits, and its fullest card.
    #[default]
    Binpack,
    /// The emptiest node that fits, and its emptiest card.
    Spread,
    /// Nobody: the job waits until the policy answers.
    Hold,
}

impl Fallback {
    /// Parses a fallback's name.
    pub fn parse(field: &str, text: &str) -> Result<Self, FieldError> {
        match text {
            "binpack" => Ok(Self::Binpack),
            "spread" => Ok(Self::Spread),
            "hold" => Ok(Self::Hold),
            _ => Err(FieldError::new(field, text, "binpack, spread or hold")),
        }
    }
}

impl fmt::Display for Fallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Binpack => "binpack",
            Self::Spread => "spread",
            Self::Hold => "hold",
        })
    }
}

/// A queue. Its policy is named where policies are loaded; the ledger knows it
/// by digest only.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueSpec {
    /// Name.
    pub name: QueueName,
    /// Kind of the jobs that do not say theirs.
    pub kind: Kind,
    /// Queues are served in this order, greater first; equal ones by name.
    pub priority: u16,
    /// Who decides when the policy cannot.
    pub fallback: Fallback,
    /// Nothing of it starts.
    #[serde(default)]
    pub paused: bool,
    /// How its jobs are preempted, and how it keeps room.
    #[serde(default)]
    pub room: RoomRules,
}

/// How a queue's jobs make room for others, and have room kept for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct RoomRules {
    /// A job that has run for less than this, in seconds, is not preempted.
    pub minimum_run: u32,
    /// Most preemptions of the queue's jobs in any hour; 0: any number.
    pub preemptions_per_hour: u32,
    /// A job that was preempted this often is not preempted again; 0: any
    /// number.
    pub preemptions_per_job: u32,
    /// The first job that finds no room has room kept for it after it has
    /// waited so long, in seconds; others may use that room only if that does
    /// not delay it. 0: never.
    pub reserve_after: u32,
}

impl Default for RoomRules {
    fn default() -> Self {
        Self { minimum_run: 60, preemptions_per_hour: 0, preemptions_per_job: 0, reserve_after: 0 }
    }
}

impl QueueSpec {
    /// A queue with defaults.
    pub fn new(name: &str, kind: Kind) -> Self {
        let fallback = Fallback::default();
        let room = RoomRules::default();
        Self { name: name.into(), kind, priority: 0, fallback, paused: false, room }
    }

    /// Refuses a bad name.
    pub fn check(&self) -> Result<(), FieldError> {
        check_name("queue", &self.name)
    }
}
