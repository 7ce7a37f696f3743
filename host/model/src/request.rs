//! What one member of a job asks for.

use crate::amount::{Iops, MbPerSec, Mib, MilliCards, MilliCores};
use crate::parse::FieldError;
use crate::select::{Selector, Toleration};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What is asked of each card.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Share {
    /// The whole card, shared with nobody.
    Whole,
    /// A share, with its own amount of memory or the memory in proportion.
    Part {
        /// Share, 1–999.
        milli: MilliCards,
        /// Memory, if it was said.
        memory: Option<Mib>,
    },
    /// Memory alone; the share follows from the card's size, rounded up.
    Memory {
        /// Memory of each card.
        memory: Mib,
    },
    /// A MIG instance of this profile.
    Mig {
        /// NVIDIA's name, such as `1g.10gb`.
        profile: Arc<str>,
    },
}

/// Cards that a member asks for, each distinct.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct GpuAsk {
    /// How many.
    pub cards: u64,
    /// What of each.
    pub share: Share,
}

impl GpuAsk {
    /// The ask behind `gpu`, `gpu-memory` (the member's total) and
    /// `gpu-exclusive` as people write them; `None` without a GPU.
    pub fn new(
        gpu: Option<MilliCards>,
        memory: Option<Mib>,
        exclusive: bool,
    ) -> Result<Option<Self>, FieldError> {
        let refuse = |field: &str, value: String, expected: &str| {
            Err(FieldError::new(field, &value, expected))
        };
        if memory == Some(Mib::ZERO) {
            return refuse("gpu-memory", "0".into(), "a positive amount, or none");
        }
        let whole = |n: MilliCards| n.0.is_multiple_of(1000) && n.0 > 0;
        match (gpu, memory) {
            (None | Some(MilliCards::ZERO), None) | (None, Some(_)) if exclusive => {
                refuse("gpu-exclusive", "true".into(), "a whole number of cards in gpu beside it")
            }
            (None | Some(MilliCards::ZERO), None) => Ok(None),
            (Some(MilliCards::ZERO), Some(_)) => {
                refuse("gpu", "0".into(), "no gpu-memory beside it, or leave gpu out")
            }
            (Some(n), _) if exclusive && !whole(n) => {
                refuse("gpu", n.to_string(), "a whole number of cards with gpu-exclusive")
            }
            (None, Some(memory)) => Ok(Some(Self { cards: 1, share: Share::Memory { memory } })),
            (Some(n), memory) if n < MilliCards::CARD => {
                Ok(Some(Self { cards: 1, share: Share::Part { milli: n, memory } }))
            }
            (Some(n), _) if !whole(n) => refuse(
                "gpu",
                n.to_string(),
                "a share of one card below 1, or a whole number of cards",
            ),
            (Some(n), Some(total)) if !exclusive => {
                let cards = n.0 / 1000;
                if total.0 % cards != 0 {
                    let expected =
                        format!("a multiple of gpu ({cards}): it is the total over its cards");
                    return refuse("gpu-memory", total.0.to_string(), &expected);
                }
                let memory = Mib(total.0 / cards);
                Ok(Some(Self { cards, share: Share::Memory { memory } }))
            }
            (Some(n), _) => Ok(Some(Self { cards: n.0 / 1000, share: Share::Whole })),
        }
    }

    /// One MIG instance of a profile on each of `cards` cards.
    pub fn mig(cards: u64, profile: &str) -> Self {
        Self { cards, share: Share::Mig { profile: profile.into() } }
    }
}

/// How much something is needed.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Need {
    /// Not at all.
    #[default]
    None,
    /// If it can be had.
    Preferred,
    /// Or else the job waits.
    Required,
}

/// Disk IO of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct DiskAsk {
    /// Weight when the disk is busy, 1–10000.
    pub weight: u16,
    /// Bandwidth set aside.
    pub bandwidth: MbPerSec,
    /// Operations set aside.
    pub iops: Iops,
}

impl Default for DiskAsk {
    fn default() -> Self {
        Self { weight: 100, bandwidth: MbPerSec::ZERO, iops: Iops::ZERO }
    }
}

/// What one member asks for. Two members with equal requests are placed alike.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Request {
    /// GPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<GpuAsk>,
    /// CPU.
    pub cpu: MilliCores,
    /// Memory.
    pub memory: Mib,
    /// Disk IO.
    #[serde(default)]
    pub disk: DiskAsk,
    /// Card models it may use; empty means any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<Arc<str>>,
    /// Node labels it needs: any of these selectors; empty means any node.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub selectors: Vec<Selector>,
    /// Taints it bears.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tolerations: Vec<Toleration>,
    /// NVLink between all of its cards.
    #[serde(default)]
    pub nvlink: Need,
    /// All of its cards and cores on one NUMA node.
    #[serde(default)]
    pub numa: Need,
    /// Only nodes of one group: while the members of a job that wants to be
    /// together are placed. Never submitted.
    #[serde(skip)]
    pub within: Option<Within>,
}

/// A group of nodes: those with one value of a topology level.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Within {
    /// `domain`, `zone`, or a node label's key.
    pub level: Arc<str>,
    /// The value there.
    pub value: Arc<str>,
}

impl Request {
    /// Refuses what no one can have meant. A GPU must come with CPU and memory.
    pub fn check(&self) -> Result<(), FieldError> {
        if self.gpu.is_some() && (self.cpu.is_zero() || self.memory.is_zero()) {
            let field = if self.cpu.is_zero() { "cpu" } else { "memory" };
            let expected =
                "an amount beside gpu; see the node's own ratio of CPU and memory to cards";
            return Err(FieldError::new(field, "0", expected));
        }
        if !(1..=10_000).contains(&self.disk.weight) {
            let value = self.disk.weight.to_string();
            return Err(FieldError::new("disk-io", &value, "a weight from 1 to 10000"));
        }
        if let Some(GpuAsk { share: Share::Part { milli, .. }, .. }) = &self.gpu
            && !(1..1000).contains(&milli.0)
        {
            return Err(FieldError::new("gpu", &milli.to_string(), "a share between 0 and 1"));
        }
        for selector in &self.selectors {
            selector.check()?;
        }
        Ok(())
    }

    /// Number of cards, 0 without a GPU.
    pub fn cards(&self) -> u64 {
        self.gpu.as_ref().map_or(0, |g| g.cards)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(gpu: u64, mib: u64, exclusive: bool) -> Result<Option<GpuAsk>, String> {
        let some = |n| (n != 0).then_some(n);
        GpuAsk::new(some(gpu).map(MilliCards), some(mib).map(Mib), exclusive)
            .map_err(|e| e.to_string())
    }

    #[allow(clippy::unnecessary_wraps)] // To stand beside what `ask` gives.
    fn share(cards: u64, share: Share) -> Result<Option<GpuAsk>, String> {
        Ok(Some(GpuAsk { cards, share }))
    }

    #[test]
    fn the_table_of_what_is_charged() {
        let part = |milli, memory| Share::Part { milli: MilliCards(milli), memory };
        assert_eq!(ask(500, 0, false), share(1, part(500, None)));
        assert_eq!(ask(500, 8000, false), share(1, part(500, Some(Mib(8000)))));
        assert_eq!(ask(0, 8000, false), share(1, Share::Memory { memory: Mib(8000) }));
        assert_eq!(ask(4000, 0, false), share(4, Share::Whole));
        assert_eq!(ask(4000, 327_680, false), share(4, Share::Memory { memory: Mib(81_920) }));
        assert_eq!(ask(1000, 40_960, true), share(1, Share::Whole));
        assert_eq!(ask(0, 0, false), Ok(None));
    }

    #[test]
    fn ambiguous_asks_are_refused_by_field() {
        for (got, field) in [
            (ask(1500, 0, false), "gpu: \"1.5\""),
            (ask(3000, 1000, false), "gpu-memory: \"1000\""),
            (ask(500, 0, true), "gpu: \"0.5\""),
            (ask(0, 0, true), "gpu-exclusive"),
        ] {
            let error = got.unwrap_err();
            assert!(error.starts_with(field), "{error}");
        }
        assert!(GpuAsk::new(Some(MilliCards(0)), Some(Mib(5)), false).is_err());
    }

    #[test]
    fn a_gpu_comes_with_cpu_and_memory() {
        let gpu = ask(1000, 0, false).unwrap();
        let request = Request { gpu, cpu: MilliCores(1000), ..Request::default() };
        assert!(request.check().unwrap_err().to_string().starts_with("memory: "));
    }
}
