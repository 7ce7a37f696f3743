//! Amounts that a tenant may use and does use, resource by resource.

use crate::amount::{MbPerSec, Mib, MilliCards, MilliCores};
use crate::parse::{self, FieldError};
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// CPU quotas are set in steps of 0.1 core.
const CPU_STEP: u64 = 100;
/// Memory quotas are set in steps of 128 MiB.
const MEMORY_STEP: u64 = 128;
/// More card models than any pool has.
const MODELS: usize = 64;

/// What a quota limits, as its field is written: `gpu`, `gpu-memory`, `cpu`,
/// `memory`, `disk-mbps`, or `gpu.MODEL` for the cards of one model.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Resource {
    /// Share of cards, in milli-cards.
    Gpu,
    /// Memory of cards, in MiB.
    GpuMemory,
    /// CPU, in milli-cores.
    Cpu,
    /// Memory, in MiB.
    Memory,
    /// Reserved disk bandwidth, in MB/s.
    Disk,
    /// Share of the cards of one model, in milli-cards.
    Model(Arc<str>),
}

impl Resource {
    /// Those that every quota has, in the order in which they are checked.
    pub const COMMON: [Self; 5] = [Self::Gpu, Self::GpuMemory, Self::Cpu, Self::Memory, Self::Disk];

    /// Parses a field's name.
    pub fn parse(field: &str) -> Option<Self> {
        Some(match field {
            "gpu" => Self::Gpu,
            "gpu-memory" => Self::GpuMemory,
            "cpu" => Self::Cpu,
            "memory" => Self::Memory,
            "disk-mbps" => Self::Disk,
            other => Self::Model(other.strip_prefix("gpu.").filter(|m| !m.is_empty())?.into()),
        })
    }

    /// Parses an amount of it, in the resource's own unit.
    pub fn amount(&self, field: &str, text: &str) -> Result<u64, FieldError> {
        match self {
            Self::Gpu | Self::Model(_) => parse::gpu(field, text, MilliCards(1)).map(|n| n.0),
            Self::GpuMemory | Self::Memory => parse::memory(field, text).map(|n| n.0),
            Self::Cpu => parse::cpu(field, text).map(|n| n.0),
            Self::Disk => parse::bandwidth(field, text).map(|n| n.0),
        }
    }

    /// An amount of it for people.
    pub fn spell(&self, n: u64) -> String {
        match self {
            Self::Gpu | Self::Model(_) => MilliCards(n).to_string(),
            Self::GpuMemory | Self::Memory => Mib(n).to_string(),
            Self::Cpu => MilliCores(n).to_string(),
            Self::Disk => MbPerSec(n).to_string(),
        }
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gpu => "gpu",
            Self::GpuMemory => "gpu-memory",
            Self::Cpu => "cpu",
            Self::Memory => "memory",
            Self::Disk => "disk-mbps",
            Self::Model(model) => return write!(f, "gpu.{model}"),
        })
    }
}

impl TryFrom<String> for Resource {
    type Error = FieldError;
    fn try_from(text: String) -> Result<Self, FieldError> {
        let expected = "gpu, gpu-memory, cpu, memory, disk-mbps or gpu.MODEL";
        Self::parse(&text).ok_or_else(|| FieldError::new("resource", &text, expected))
    }
}

impl From<Resource> for String {
    fn from(resource: Resource) -> Self {
        resource.to_string()
    }
}

/// Amounts of a quota. What is not set has no limit at its level.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Amounts {
    /// Share of cards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<MilliCards>,
    /// Memory of cards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_memory: Option<Mib>,
    /// CPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<MilliCores>,
    /// Memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Mib>,
    /// Reserved disk bandwidth.
    #[serde(default, rename = "disk-mbps", skip_serializing_if = "Option::is_none")]
    pub disk: Option<MbPerSec>,
    /// Share of the cards of a model, by its name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub models: BTreeMap<Arc<str>, MilliCards>,
}

impl Amounts {
    /// The amount that is set for a resource, in its own unit.
    pub fn get(&self, resource: &Resource) -> Option<u64> {
        match resource {
            Resource::Gpu => self.gpu.map(|n| n.0),
            Resource::GpuMemory => self.gpu_memory.map(|n| n.0),
            Resource::Cpu => self.cpu.map(|n| n.0),
            Resource::Memory => self.memory.map(|n| n.0),
            Resource::Disk => self.disk.map(|n| n.0),
            Resource::Model(model) => self.models.get(model).map(|n| n.0),
        }
    }

    /// Sets or takes off the amount of a resource.
    pub fn set(&mut self, resource: &Resource, amount: Option<u64>) {
        match resource {
            Resource::Gpu => self.gpu = amount.map(MilliCards),
            Resource::GpuMemory => self.gpu_memory = amount.map(Mib),
            Resource::Cpu => self.cpu = amount.map(MilliCores),
            Resource::Memory => self.memory = amount.map(Mib),
            Resource::Disk => self.disk = amount.map(MbPerSec),
            Resource::Model(model) => {
                match amount {
                    Some(n) => self.models.insert(model.clone(), MilliCards(n)),
                    None => self.models.remove(model),
                };
            }
        }
    }

    /// Takes one field as people write it, such as `gpu` and `8`, or
    /// `gpu.A100` and `4`; `none` takes the limit off.
    pub fn field(&mut self, field: &str, text: &str) -> Result<(), FieldError> {
        let expected = "gpu, gpu-memory, cpu, memory, disk-mbps or gpu.MODEL";
        let resource =
            Resource::parse(field).ok_or_else(|| FieldError::new(field, text, expected))?;
        let amount = match text {
            "none" => None,
            text => Some(resource.amount(field, text)?),
        };
        self.set(&resource, amount);
        Ok(())
    }

    /// Every amount that is set, with its resource.
    pub fn iter(&self) -> impl Iterator<Item = (Resource, u64)> {
        let common = Resource::COMMON.into_iter().filter_map(|r| self.get(&r).map(|n| (r, n)));
        common.chain(self.models.iter().map(|(m, n)| (Resource::Model(m.clone()), n.0)))
    }

    /// Whether nothing is set.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Refuses what cannot have been meant; `of` is put before the fields'
    /// names.
    pub fn check(&self, of: &str) -> Result<(), FieldError> {
        if self.models.len() > MODELS {
            let expected = format!("at most {MODELS} card models");
            return Err(FieldError::new(of, &self.models.len().to_string(), expected));
        }
        let bad = |m: &&Arc<str>| m.is_empty() || m.len() > 128 || m.chars().any(char::is_control);
        if let Some(model) = self.models.keys().find(bad) {
            let expected = "a card model's name of 1 to 128 characters";
            return Err(FieldError::new(&format!("{of} gpu.MODEL"), model, expected));
        }
        Ok(())
    }

    /// The same in the steps that quotas are set in: 0.1 core and 128 MiB of
    /// memory, rounded up.
    #[must_use]
    pub fn rounded(mut self) -> Self {
        let up = |n: u64, step: u64| n.div_ceil(step).saturating_mul(step);
        self.cpu = self.cpu.map(|n| MilliCores(up(n.0, CPU_STEP)));
        self.memory = self.memory.map(|n| Mib(up(n.0, MEMORY_STEP)));
        self
    }
}

/// Amounts in use, as charged on the cards.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Usage {
    /// Share of cards.
    pub gpu: MilliCards,
    /// Memory of cards.
    pub gpu_memory: Mib,
    /// CPU.
    pub cpu: MilliCores,
    /// Memory.
    pub memory: Mib,
    /// Reserved disk bandwidth.
    #[serde(rename = "disk-mbps")]
    pub disk: MbPerSec,
    /// Share of the cards of each model in use, by name.
    #[serde(default, with = "map", skip_serializing_if = "SmallVec::is_empty")]
    pub models: SmallVec<[(Arc<str>, MilliCards); 2]>,
}

impl Usage {
    /// The amount of a resource, in its own unit.
    pub fn get(&self, resource: &Resource) -> u64 {
        match resource {
            Resource::Gpu => self.gpu.0,
            Resource::GpuMemory => self.gpu_memory.0,
            Resource::Cpu => self.cpu.0,
            Resource::Memory => self.memory.0,
            Resource::Disk => self.disk.0,
            Resource::Model(model) => self.model(model).0,
        }
    }

    /// Share of the cards of one model.
    pub fn model(&self, model: &str) -> MilliCards {
        let found = self.models.iter().find(|(m, _)| **m == *model);
        found.map_or(MilliCards::ZERO, |(_, n)| *n)
    }

    /// Whether there is none of anything.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Adds share and memory of one card.
    pub fn add_card(&mut self, model: &Arc<str>, milli: MilliCards, memory: Mib) {
        self.gpu += milli;
        self.gpu_memory += memory;
        self.add_model(model, milli);
    }

    fn add_model(&mut self, model: &Arc<str>, milli: MilliCards) {
        match self.models.binary_search_by(|(m, _)| m.cmp(model)) {
            Ok(at) => self.models[at].1 += milli,
            Err(at) => self.models.insert(at, (model.clone(), milli)),
        }
    }

    /// Adds what another one has.
    pub fn add(&mut self, other: &Self) {
        self.gpu += other.gpu;
        self.gpu_memory += other.gpu_memory;
        self.cpu += other.cpu;
        self.memory += other.memory;
        self.disk += other.disk;
        other.models.iter().for_each(|(model, milli)| self.add_model(model, *milli));
    }

    /// Sets the amount of a resource.
    pub fn set(&mut self, resource: &Resource, amount: u64) {
        match resource {
            Resource::Gpu => self.gpu = MilliCards(amount),
            Resource::GpuMemory => self.gpu_memory = Mib(amount),
            Resource::Cpu => self.cpu = MilliCores(amount),
            Resource::Memory => self.memory = Mib(amount),
            Resource::Disk => self.disk = MbPerSec(amount),
            Resource::Model(model) => {
                self.models.retain(|(m, _)| m != model);
                self.add_model(model, MilliCards(amount));
                self.models.retain(|(_, n)| !n.is_zero());
            }
        }
    }

    /// Every amount that is not zero, with its resource.
    pub fn iter(&self) -> impl Iterator<Item = (Resource, u64)> {
        let common = Resource::COMMON.into_iter().map(|r| (self.get(&r), r));
        let models = self.models.iter().map(|(m, n)| (n.0, Resource::Model(m.clone())));
        common.chain(models).filter(|(n, _)| *n > 0).map(|(n, r)| (r, n))
    }

    /// Takes back what was added.
    pub fn take(&mut self, other: &Self) {
        self.gpu -= other.gpu;
        self.gpu_memory -= other.gpu_memory;
        self.cpu -= other.cpu;
        self.memory -= other.memory;
        self.disk -= other.disk;
        for (model, milli) in &other.models {
            if let Ok(at) = self.models.binary_search_by(|(m, _)| m.cmp(model)) {
                self.models[at].1 -= *milli;
            }
        }
        self.models.retain(|(_, milli)| !milli.is_zero());
    }
}

/// A level's quota that is too small for what is asked.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct OverQuota {
    /// The level: a department, a project or a person.
    pub tenant: Arc<str>,
    /// What is short there.
    pub resource: Resource,
    /// What it may use, in the resource's own unit.
    pub hard: u64,
    /// What it uses, with what was placed before in the same round.
    pub used: u64,
    /// What is asked for besides, by all the members that must start together.
    pub asked: u64,
    /// Why the difference is not borrowed.
    #[serde(default, skip_serializing_if = "Borrow::is_off")]
    pub borrow: Borrow,
}

/// Whether a job may use more than its tenant's hard limit.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Borrow {
    /// Nobody may.
    #[default]
    Off,
    /// It is not preemptible, so what it borrowed could not be had back.
    NotPreemptible,
    /// Too much of the cluster is in use, or it is not known how much.
    Closed,
    /// It may, up to the soft limit.
    Open,
}

impl Borrow {
    #[allow(clippy::trivially_copy_pass_by_ref, reason = "as serde asks for it")]
    fn is_off(&self) -> bool {
        *self == Self::Off
    }
}

impl OverQuota {
    /// What is used above the limit; 0 usually. Not borrowed from anyone: the
    /// limit was lowered.
    pub fn excess(&self) -> u64 {
        self.used.saturating_sub(self.hard)
    }
}

impl fmt::Display for OverQuota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tenant, resource, hard, used, asked, borrow } = self;
        let spell = |n: u64| resource.spell(n);
        let (hard_text, used, asked_text) = (spell(*hard), spell(*used), spell(*asked));
        write!(f, "quota of {tenant}: {resource} {used} of {hard_text} used, {asked_text} asked")?;
        if asked > hard {
            f.write_str(", more than the whole quota")?;
        }
        match borrow {
            Borrow::Off => Ok(()),
            Borrow::NotPreemptible => f.write_str("; only preemptible jobs borrow"),
            Borrow::Closed => f.write_str("; borrowing is closed while the cluster is busy"),
            Borrow::Open => f.write_str(" with what may be borrowed"),
        }
    }
}

/// JSON reads better with the models as names of a map.
mod map {
    use super::{Arc, BTreeMap, MilliCards, SmallVec};
    use serde::{Deserialize, Deserializer, Serializer};

    type Models = SmallVec<[(Arc<str>, MilliCards); 2]>;

    pub fn serialize<S: Serializer>(models: &Models, s: S) -> Result<S::Ok, S::Error> {
        s.collect_map(models.iter().map(|(model, milli)| (model, milli)))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Models, D::Error> {
        Ok(BTreeMap::<Arc<str>, MilliCards>::deserialize(d)?.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_by_name_and_rounded_up_to_steps() {
        let mut amounts = Amounts::default();
        for (field, text) in [
            ("gpu", "7.5"),
            ("cpu", "0.25"),
            ("memory", "1000"),
            ("gpu.A100", "4"),
            ("disk-mbps", "9"),
        ] {
            amounts.field(field, text).unwrap();
        }
        let amounts = amounts.rounded();
        let set: Vec<_> = amounts.iter().map(|(r, n)| format!("{r}={}", r.spell(n))).collect();
        assert_eq!(set, ["gpu=7.5", "cpu=0.3", "memory=1Gi", "disk-mbps=9 MB/s", "gpu.A100=4"]);
        let mut amounts = amounts;
        amounts.field("gpu.A100", "none").unwrap();
        assert_eq!(amounts.get(&Resource::Model("A100".into())), None);
        for (field, text) in [("gpus", "8"), ("gpu.", "8"), ("gpu", "-1"), ("memory", "8GB")] {
            assert_eq!(amounts.field(field, text).unwrap_err().field, field);
        }
    }

    #[test]
    fn usage_adds_up_and_comes_back() {
        let mut used = Usage::default();
        let mut one = Usage { cpu: MilliCores(500), ..Usage::default() };
        one.add_card(&"T4".into(), MilliCards(250), Mib(4096));
        one.add_card(&"A100".into(), MilliCards(1000), Mib(81_920));
        used.add(&one);
        used.add(&one);
        assert_eq!(
            (used.gpu, used.model("T4"), used.model("V100").0),
            (MilliCards(2500), MilliCards(500), 0)
        );
        let json = serde_json::to_string(&used).unwrap();
        assert!(json.contains(r#""models":{"A100":2000,"T4":500}"#), "{json}");
        assert_eq!(serde_json::from_str::<Usage>(&json).unwrap(), used);
        used.take(&one);
        used.take(&one);
        assert!(used.is_empty(), "{used:?}");
    }

    #[test]
    fn what_is_over_says_its_figures() {
        let over = |used, asked| OverQuota {
            tenant: "ai/nlp".into(),
            resource: Resource::Gpu,
            hard: 8000,
            used,
            asked,
            borrow: Borrow::Off,
        };
        let text = over(7500, 1000).to_string();
        assert_eq!(text, "quota of ai/nlp: gpu 7.5 of 8 used, 1 asked");
        assert!(over(0, 9000).to_string().ends_with("9 asked, more than the whole quota"));
        assert_eq!((over(7500, 1).excess(), over(9000, 1).excess()), (0, 1000));
    }
}
