//! The port through which the engine asks a policy. host/policy implements it
//! over WebAssembly; natively compiled policies and the built-in orders
//! implement it too, so the engine compiles and tests without a Wasm runtime.

use crater_model::Digest;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;
use thiserror::Error;

/// Values of one column.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Column {
    /// Id in wit/columns.toml.
    pub id: u32,
    /// One a row, or one thing's list.
    pub values: Vec<i32>,
}

/// Many things, one row each; see the contract's `table`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// Number of rows.
    pub rows: u32,
    /// The wanted columns that the host knows, in the order they were wanted.
    pub columns: Vec<Column>,
}

impl Table {
    /// The values of a column, if it is there.
    pub fn column(&self, id: u32) -> Option<&[i32]> {
        self.columns.iter().find(|c| c.id == id).map(|c| c.values.as_slice())
    }
}

/// One thing; see the contract's `values`.
pub type Values = Vec<Column>;

/// An optional interface of the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Interface {
    /// Heavy work off the round.
    Prepare,
    /// Which nodes may take a job.
    Filter,
    /// Which is best.
    Score,
    /// What groups of nodes add.
    ScoreGroups,
    /// Prices of evictions.
    Preempt,
    /// Order of the waiting jobs.
    Rank,
    /// A word at submission.
    Admit,
}

impl Interface {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Prepare,
        Self::Filter,
        Self::Score,
        Self::ScoreGroups,
        Self::Preempt,
        Self::Rank,
        Self::Admit,
    ];

    /// The name in the contract.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Prepare => "prepare",
            Self::Filter => "filter",
            Self::Score => "score",
            Self::ScoreGroups => "score-groups",
            Self::Preempt => "preempt",
            Self::Rank => "rank",
            Self::Admit => "admit",
        }
    }
}

impl fmt::Display for Interface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What a policy says of itself; see the contract's `manifest`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// Its name.
    pub name: String,
    /// Its author's version.
    pub version: String,
    /// Ids of the columns and facts that it wants, ascending, each once.
    pub wants: Vec<u32>,
    /// Node labels that it wants.
    pub labels: Vec<String>,
    /// Options, by id.
    pub options: Vec<(u32, i32)>,
    /// Texts of its filter codes.
    pub reasons: Vec<(i32, Arc<str>)>,
    /// JSON Schema of its configuration.
    pub schema: String,
    /// The optional interfaces that it exports, ascending.
    pub exports: Vec<Interface>,
}

impl Manifest {
    /// The value of an option, 0 when it was not given.
    pub fn option(&self, id: u32) -> i32 {
        self.options.iter().find(|(i, _)| *i == id).map_or(0, |(_, v)| *v)
    }

    /// Whether it makes this decision.
    pub fn exports(&self, interface: Interface) -> bool {
        self.exports.binary_search(&interface).is_ok()
    }

    /// Whether it wants a column or fact.
    pub fn wants(&self, id: u32) -> bool {
        self.wants.binary_search(&id).is_ok()
    }
}

/// Why a policy's answer is not there. The queue's fallback decides instead;
/// the fault is counted and shown.
#[derive(Clone, Debug, PartialEq, Eq, Error, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    /// The guest trapped.
    #[error("trap in {interface}: {message}")]
    Trap {
        /// Where.
        interface: Interface,
        /// The runtime's words, cut to 500 characters.
        message: String,
    },
    /// The call took longer than it may.
    #[error("{interface} took longer than {limit_ms} ms")]
    Deadline {
        /// Where.
        interface: Interface,
        /// The limit.
        limit_ms: u64,
    },
    /// The guest asked for more memory or table space than it may have.
    #[error("{interface} wanted more than {limit_bytes} bytes of memory")]
    Memory {
        /// Where.
        interface: Interface,
        /// The limit.
        limit_bytes: u64,
    },
    /// The answer breaks the contract.
    #[error("bad answer from {interface}: {detail}")]
    BadAnswer {
        /// Where.
        interface: Interface,
        /// What is wrong with it.
        detail: String,
    },
    /// No instance could be had.
    #[error("no instance for {interface}: {detail}")]
    Unavailable {
        /// Where.
        interface: Interface,
        /// Why.
        detail: String,
    },
}

impl Fault {
    /// What was asked when it came.
    pub const fn interface(&self) -> Interface {
        match self {
            Self::Trap { interface, .. }
            | Self::Deadline { interface, .. }
            | Self::Memory { interface, .. }
            | Self::BadAnswer { interface, .. }
            | Self::Unavailable { interface, .. } => *interface,
        }
    }
}

/// Answer of `score`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scores {
    /// One a row.
    pub scores: Vec<i32>,
    /// Empty, or a card mask a row.
    pub cards: Vec<i32>,
}

/// A policy as configured for one queue: the same digest always means the same
/// code, configuration and prepared data.
///
/// Answers are outside input. The implementation checks that a list has one
/// entry a row; the engine checks codes, masks and ids.
pub trait Policy: Send + Sync {
    /// What it says of itself.
    fn manifest(&self) -> &Manifest;

    /// Names code, configuration and prepared data.
    fn digest(&self) -> Digest;

    /// One code a row.
    fn filter(&self, context: &Values, job: &Values, nodes: &Table) -> Result<Vec<i32>, Fault>;

    /// One score a row.
    fn score(&self, context: &Values, job: &Values, nodes: &Table) -> Result<Scores, Fault>;

    /// One number a group.
    fn score_groups(
        &self,
        context: &Values,
        job: &Values,
        groups: &Table,
    ) -> Result<Vec<i32>, Fault>;

    /// (tier, cost) of each unit.
    fn price(
        &self,
        context: &Values,
        preemptor: &Values,
        units: &Table,
    ) -> Result<Vec<(i32, i32)>, Fault>;

    /// (tier, class, weight) of each job.
    fn rank(&self, context: &Values, jobs: &Table) -> Result<Vec<(i32, i32, i32)>, Fault>;

    /// Defaults to fill in, or a refusal.
    fn admit(&self, context: &Values, job: &Values) -> Result<Result<Values, String>, Fault>;
}
