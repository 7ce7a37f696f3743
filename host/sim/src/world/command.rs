//! What people and machines do to the simulated cluster.

use super::executor::Behaviour;
use super::wire::WireSettings;
use crater_engine::{Policy, Refusal};
use crater_model::{
    Fallback, JobChanges, JobSpec, NodeSpec, PlatformSpec, QueueSpec, TenantPath, TenantSpec,
};
use std::fmt;
use std::sync::Arc;
use thiserror::Error;

/// One thing done. Names mean the youngest node or job of that name at the
/// moment it is done.
#[derive(Clone)]
pub enum Command {
    /// A machine appears.
    AddNode(NodeSpec),
    /// The machine of that name is described anew.
    ChangeNode(NodeSpec),
    /// A machine is gone for good, with all that ran on it.
    RemoveNode(Arc<str>),
    /// Whether a card may be used.
    CardHealth {
        /// The machine.
        node: Arc<str>,
        /// The card's index.
        card: usize,
        /// Whether it is well.
        healthy: bool,
    },
    /// Whether new work may start on a machine.
    Cordon {
        /// The machine.
        node: Arc<str>,
        /// Whether not.
        cordoned: bool,
    },
    /// A queue is made or changed.
    SetQueue(QueueSpec),
    /// Whether a queue's jobs may start.
    PauseQueue {
        /// The queue.
        queue: Arc<str>,
        /// Whether not.
        paused: bool,
    },
    /// A queue decides by another policy from here on.
    SetPolicy {
        /// The queue.
        queue: Arc<str>,
        /// The policy, or the built-in order.
        policy: Decides,
    },
    /// A tenant is made or changed.
    SetTenant(TenantSpec),
    /// A tenant has no limits of its own any more.
    RemoveTenant(TenantPath),
    /// What holds for all tenants changes.
    SetPlatform(PlatformSpec),
    /// A job is submitted.
    Submit {
        /// The job.
        spec: JobSpec,
        /// How its members behave.
        behaviour: Behaviour,
    },
    /// A job's owner changes it.
    Update {
        /// The job.
        job: Arc<str>,
        /// How.
        changes: JobChanges,
    },
    /// A job's owner ends it.
    Cancel(Arc<str>),
    /// All members of a job end by themselves, well.
    Finish(Arc<str>),
    /// One member of a job ends by itself, badly.
    Fail(Arc<str>),
    /// A job saves its progress.
    Checkpoint(Arc<str>),
    /// A person evicts a job, which goes back to its queue.
    Requeue(Arc<str>),
    /// The wire gets better or worse.
    SetWire(WireSettings),
    /// Books and machines compare notes.
    Resync,
}

/// What decides for a queue.
#[derive(Clone)]
pub enum Decides {
    /// A policy.
    Policy(Arc<dyn Policy>),
    /// A built-in order, which becomes the queue's fallback too.
    Builtin(Fallback),
}

impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AddNode(spec) => write!(f, "add node {}", spec.name),
            Self::ChangeNode(spec) => write!(f, "change node {}", spec.name),
            Self::RemoveNode(name) => write!(f, "remove node {name}"),
            Self::CardHealth { node, card, healthy } => {
                write!(f, "card {node}:{card} {}", if *healthy { "well" } else { "sick" })
            }
            Self::Cordon { node, cordoned } => {
                write!(f, "{} node {node}", if *cordoned { "cordon" } else { "uncordon" })
            }
            Self::SetQueue(spec) => write!(f, "set queue {}", spec.name),
            Self::PauseQueue { queue, paused } => {
                write!(f, "{} queue {queue}", if *paused { "pause" } else { "resume" })
            }
            Self::SetPolicy { queue, .. } => write!(f, "set the policy of queue {queue}"),
            Self::Submit { spec, .. } => write!(f, "submit job {}", spec.name),
            Self::SetTenant(spec) => write!(f, "set tenant {}", spec.path),
            Self::RemoveTenant(path) => write!(f, "remove tenant {path}"),
            Self::SetPlatform(_) => f.write_str("set what holds for all tenants"),
            Self::Update { job, .. } => write!(f, "update job {job}"),
            Self::Cancel(name) => write!(f, "cancel job {name}"),
            Self::Finish(name) => write!(f, "finish job {name}"),
            Self::Fail(name) => write!(f, "fail job {name}"),
            Self::Checkpoint(name) => write!(f, "checkpoint job {name}"),
            Self::Requeue(name) => write!(f, "requeue job {name}"),
            Self::SetWire(_) => f.write_str("set the wire"),
            Self::Resync => f.write_str("resync"),
        }
    }
}

/// Why nothing was done.
#[derive(Debug, Error)]
pub enum CommandError {
    /// The ledger refused.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The queue's policy refused the job.
    #[error("the queue's policy refused the job: {0}")]
    Policy(
        /// Its words.
        String,
    ),
    /// Nothing of that name.
    #[error("there is no {what} {name}")]
    Unknown {
        /// Sort of thing.
        what: &'static str,
        /// Which.
        name: String,
    },
    /// The job has no members that could end.
    #[error("job {0} has no member that runs")]
    NothingRuns(
        /// Which.
        Arc<str>,
    ),
}
