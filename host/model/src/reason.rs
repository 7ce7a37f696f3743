//! Why a job waits: data with counts and figures, made into text at the edge.

use crate::amount::{Iops, MbPerSec, Mib, MilliCards, MilliCores};
use crate::quota::OverQuota;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Why one node cannot take a member now. Figures say what is short.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// The node takes nothing new.
    Cordoned,
    /// A taint that the job does not bear.
    Taint(Arc<str>),
    /// Labels do not match.
    Selector,
    /// It is not where the job's members are to be together.
    Elsewhere,
    /// None of its cards is of a model that the job may use.
    Model,
    /// It has no more places for members.
    Members,
    /// CPU is short.
    Cpu,
    /// Memory is short.
    Memory,
    /// Disk bandwidth is short.
    Disk,
    /// Disk operations are short.
    Iops,
    /// Its disk has nearly nothing left to do, as measured.
    DiskFull,
    /// It never has as many cards as are asked for.
    TooFewCards,
    /// No card has room, or too few have: share and memory count together,
    /// card by card.
    Cards,
    /// Its cards have too little memory even when they are idle.
    CardTooSmall,
    /// Cards that would do are sick.
    SickCards,
    /// No place for such a MIG instance.
    Mig,
    /// No card of it is cut for MIG, or not with such a profile.
    NoMig,
    /// Too few cards with room are linked by NVLink.
    Nvlink,
    /// Too few cards with room on one NUMA node.
    Numa,
    /// The policy said no: its text.
    Policy(Arc<str>),
    /// The policy said not yet.
    Deferred,
    /// A quota does not allow it: of no node, but of the whole job.
    Quota(Arc<OverQuota>),
    /// The tenants' limits were not read yet.
    QuotasUnknown,
}

impl Reason {
    /// Whether waiting alone can never help on this node: something must be
    /// changed by people.
    pub const fn lasting(&self) -> bool {
        matches!(
            self,
            Self::Selector | Self::Model | Self::TooFewCards | Self::CardTooSmall | Self::NoMig
        )
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::Cordoned => "cordoned",
            Self::Taint(taint) => return write!(f, "taint {taint} not tolerated"),
            Self::Selector => "node selector not matched",
            Self::Elsewhere => "not in the group where the members are to be together",
            Self::Model => "no card of the asked model",
            Self::Members => "no place for another member",
            Self::Cpu => "insufficient cpu",
            Self::Memory => "insufficient memory",
            Self::Disk => "insufficient disk bandwidth",
            Self::Iops => "insufficient disk operations",
            Self::DiskFull => "disk IO full (> 90 % in use)",
            Self::TooFewCards => "too few cards on the node",
            Self::Cards => "no card with room for the request",
            Self::CardTooSmall => "cards too small even when idle",
            Self::SickCards => "unhealthy cards",
            Self::Mig => "no free place for the MIG profile",
            Self::NoMig => "no card with the MIG profile",
            Self::Nvlink => "too few linked cards with room",
            Self::Numa => "too few cards with room on one NUMA node",
            Self::Policy(text) => return write!(f, "policy: {text}"),
            Self::Deferred => "deferred by the policy",
            Self::Quota(over) => return over.fmt(f),
            Self::QuotasUnknown => QUOTAS_UNKNOWN,
        };
        f.write_str(text)
    }
}

const QUOTAS_UNKNOWN: &str = "limits not available: the tenants' quotas were not read yet";

/// The most that any node had of something that was short.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Best {
    /// CPU on the node with most of it free.
    pub cpu: MilliCores,
    /// Memory.
    pub memory: Mib,
    /// Disk bandwidth.
    pub disk: MbPerSec,
    /// Disk operations.
    pub iops: Iops,
    /// Share of the freest card.
    pub card: MilliCards,
    /// Memory of the freest card.
    pub card_memory: Mib,
    /// Idle cards on one node.
    pub idle_cards: u64,
    /// Cards of the largest node.
    pub cards: u64,
}

/// Why a job waits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reasons {
    /// Nodes looked at.
    pub nodes: u64,
    /// Nodes by the reason that each gave first.
    #[serde(with = "pairs")]
    pub counts: BTreeMap<Reason, u64>,
    /// What there was at best.
    pub best: Best,
    /// Something that holds for the job as a whole, before any node is asked:
    /// the queue is paused, its gang does not fit together, …
    pub job: Option<Arc<str>>,
    /// The quota that does not allow it; `job` says the same in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota: Option<Arc<OverQuota>>,
}

impl Reasons {
    /// A reason that is not of any node.
    pub fn of_job(text: &str) -> Self {
        Self { job: Some(text.into()), ..Self::default() }
    }

    /// A quota that does not allow the job.
    pub fn of_quota(over: Arc<OverQuota>) -> Self {
        Self { job: Some(over.to_string().into()), quota: Some(over), ..Self::default() }
    }

    /// The tenants' limits are not known, so nothing starts.
    pub fn quotas_unknown() -> Self {
        Self::of_job(QUOTAS_UNKNOWN)
    }

    /// Counts one more node.
    pub fn count(&mut self, reason: Reason) {
        *self.counts.entry(reason).or_default() += 1;
    }

    /// Whether no node as it is described could ever hold a member.
    pub fn impossible(&self) -> bool {
        self.job.is_none() && self.counts.keys().all(Reason::lasting)
    }
}

impl fmt::Display for Reasons {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(job) = &self.job {
            f.write_str(job)?;
            if self.counts.is_empty() {
                return Ok(());
            }
            f.write_str("; ")?;
        }
        if self.nodes == 0 {
            return f.write_str("there are no nodes");
        }
        let refused: u64 = self.counts.values().sum();
        write!(f, "{}/{} nodes are available: ", self.nodes.saturating_sub(refused), self.nodes)?;
        let mut first = true;
        for (reason, count) in &self.counts {
            if !first {
                f.write_str(", ")?;
            }
            first = false;
            write!(f, "{count} {reason}")?;
            let best = &self.best;
            match reason {
                Reason::Cpu => write!(f, " (most free: {})", best.cpu)?,
                Reason::Memory => write!(f, " (most free: {})", best.memory)?,
                Reason::Disk => write!(f, " (most free: {})", best.disk)?,
                Reason::Iops => write!(f, " (most free: {})", best.iops)?,
                Reason::Cards => write!(
                    f,
                    " (freest card: {} and {}; most idle cards on a node: {})",
                    best.card, best.card_memory, best.idle_cards
                )?,
                Reason::TooFewCards => write!(f, " (most on a node: {})", best.cards)?,
                _ => {}
            }
        }
        if self.impossible() {
            f.write_str("; no node can ever hold it")?;
        }
        Ok(())
    }
}

/// JSON has only text for keys, so the counts are written as pairs.
mod pairs {
    use super::Reason;
    use serde::{Deserialize, Deserializer, Serializer};
    use std::collections::BTreeMap;

    pub fn serialize<S: Serializer>(
        counts: &BTreeMap<Reason, u64>,
        s: S,
    ) -> Result<S::Ok, S::Error> {
        s.collect_seq(counts)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<BTreeMap<Reason, u64>, D::Error> {
        Ok(Vec::<(Reason, u64)>::deserialize(d)?.into_iter().collect())
    }
}
