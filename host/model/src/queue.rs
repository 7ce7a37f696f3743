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
}

impl QueueSpec {
    /// A queue with defaults.
    pub fn new(name: &str, kind: Kind) -> Self {
        let fallback = Fallback::default();
        Self { name: name.into(), kind, priority: 0, fallback, paused: false }
    }

    /// Refuses a bad name.
    pub fn check(&self) -> Result<(), FieldError> {
        check_name("queue", &self.name)
    }
}
