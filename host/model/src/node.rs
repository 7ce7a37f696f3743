//! Machines and their cards, as described from outside.

use crate::amount::{Iops, MbPerSec, Mib, MilliCores};
use crate::id::check_name;
use crate::mig::{Geometry, Instance};
use crate::parse::{FieldError, integer};
use crate::select::{Labels, Taint};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// How a card is cut.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MigMode {
    /// Not at all: shares and memory are promised.
    #[default]
    Off,
    /// Crater cuts instances as they are asked for, by this geometry.
    Free(Arc<Geometry>),
    /// These instances and no others.
    Fixed {
        /// The geometry that they belong to.
        geometry: Arc<Geometry>,
        /// What is cut.
        instances: Vec<Instance>,
    },
}

/// A GPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CardSpec {
    /// Model.
    pub model: Arc<str>,
    /// Memory as the driver reports it.
    pub memory: Mib,
    /// NUMA node that it hangs on.
    #[serde(default)]
    pub numa: Option<u16>,
    /// Whether it may be used.
    pub healthy: bool,
    /// Memory is promised in multiples of this.
    #[serde(default)]
    pub slice: Option<Mib>,
    /// How it is cut.
    #[serde(default)]
    pub mig: MigMode,
}

impl CardSpec {
    /// A healthy card that is not cut.
    pub fn new(model: &str, memory: Mib) -> Self {
        let mig = MigMode::Off;
        Self { model: model.into(), memory, numa: None, healthy: true, slice: None, mig }
    }

    /// The memory that the card is sold with: what it reports, rounded up to
    /// whole GiB (an "80 GB" card reports 81,559 or 81,920 MiB).
    pub fn nominal(&self) -> Mib {
        Mib(self.memory.0.div_ceil(1024).saturating_mul(1024))
    }

    /// How MIG cuts a card of this model and size: into these instances, each
    /// `PROFILE@START`, or as instances are asked for.
    pub fn cut<'a>(
        &self,
        instances: Option<impl IntoIterator<Item = &'a str>>,
    ) -> Result<MigMode, FieldError> {
        // As NVML names cards: the size is part of the name.
        let name = format!("{} {}GB", self.model, self.nominal().0 / 1024);
        let unknown = || FieldError::new("mig", &self.model, "a card model that MIG can cut");
        let geometry = Geometry::of_model(&name).map(Arc::new).ok_or_else(unknown)?;
        let Some(list) = instances else { return Ok(MigMode::Free(geometry)) };
        let instance = |text: &str| {
            let refused = || FieldError::new("mig", text, "an instance, such as 2g.20gb@0");
            let (profile, start) = text.split_once('@').ok_or_else(refused)?;
            let start = integer("mig", start, 0, 7)? as u8;
            Ok(Instance { profile: profile.into(), start })
        };
        let instances = list.into_iter().map(instance).collect::<Result<_, FieldError>>()?;
        Ok(MigMode::Fixed { geometry, instances })
    }

    /// Memory charged for `asked` MiB on this card: rounded up to slices, and
    /// the card's own memory for a request up to 2 % above it that is within
    /// its nominal size. More than that stays more than the card has.
    pub fn charged(&self, asked: Mib) -> Mib {
        let near = asked <= self.nominal()
            && asked.0.saturating_mul(100) <= self.memory.0.saturating_mul(102);
        if asked > self.memory {
            return if near { self.memory } else { asked };
        }
        match self.slice {
            Some(slice) if !slice.is_zero() => {
                Mib(asked.0.div_ceil(slice.0).saturating_mul(slice.0)).min(self.memory)
            }
            _ => asked,
        }
    }
}

/// Bandwidth between a node's cards.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Links {
    /// Cards with the same number reach each other by NVLink, directly or
    /// through a switch. Empty: no NVLink.
    #[serde(default)]
    pub groups: Vec<u16>,
    /// GB/s in one direction, n × n, row by row; empty where unknown.
    #[serde(default)]
    pub bandwidth: Vec<u16>,
}

impl Links {
    /// The NVLink group of a card; `None` for one without NVLink.
    pub fn group(&self, card: usize) -> Option<u16> {
        let group = *self.groups.get(card)?;
        let shared = self.groups.iter().filter(|g| **g == group).count() > 1;
        shared.then_some(group)
    }
}

/// A machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeSpec {
    /// Name, for people; may come back on another machine.
    pub name: Arc<str>,
    /// CPU that may be promised.
    pub cpu: MilliCores,
    /// Memory that may be promised.
    pub memory: Mib,
    /// Disk bandwidth that may be reserved.
    #[serde(default)]
    pub disk: MbPerSec,
    /// Disk operations that may be reserved.
    #[serde(default)]
    pub iops: Iops,
    /// Most members at once.
    #[serde(default = "NodeSpec::default_members")]
    pub members: u32,
    /// Cards, in the order of their index.
    #[serde(default)]
    pub cards: Vec<CardSpec>,
    /// Links between them.
    #[serde(default)]
    pub links: Links,
    /// Labels.
    #[serde(default)]
    pub labels: Labels,
    /// Taints.
    #[serde(default)]
    pub taints: Vec<Taint>,
    /// Interconnect domain, empty for none.
    #[serde(default)]
    pub domain: Arc<str>,
    /// Zone, empty for none.
    #[serde(default)]
    pub zone: Arc<str>,
    /// Nothing new starts here.
    #[serde(default)]
    pub cordoned: bool,
    /// More than 90 % of what its disk can do is in use, as measured: nothing
    /// new starts until there is less.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub disk_full: bool,
}

impl NodeSpec {
    /// The node's place at a topology level: `domain`, `zone`, or a label's key.
    /// `None` where it has none.
    pub fn place(&self, level: &str) -> Option<&str> {
        let place = match level {
            "domain" => &*self.domain,
            "zone" => &*self.zone,
            key => self.labels.get(key).map_or("", |value| value.as_ref()),
        };
        (!place.is_empty()).then_some(place)
    }

    /// Members a node takes unless it says otherwise (a kubelet's 110 is of
    /// pods that share its network; Crater's own limit is higher).
    pub const fn default_members() -> u32 {
        1000
    }

    /// A machine without cards.
    pub fn new(name: &str, cpu: MilliCores, memory: Mib) -> Self {
        Self {
            name: name.into(),
            cpu,
            memory,
            disk: MbPerSec::ZERO,
            iops: Iops::ZERO,
            members: Self::default_members(),
            cards: vec![],
            links: Links::default(),
            labels: Labels::new(),
            taints: vec![],
            domain: "".into(),
            zone: "".into(),
            cordoned: false,
            disk_full: false,
        }
    }

    /// The same machine with `count` equal cards.
    #[must_use]
    pub fn with_cards(mut self, count: usize, card: &CardSpec) -> Self {
        self.cards.extend(std::iter::repeat_n(card.clone(), count));
        self
    }

    /// Refuses a description that contradicts itself.
    pub fn check(&self) -> Result<(), FieldError> {
        check_name("node name", &self.name)?;
        let n = self.cards.len();
        if n > 255 {
            return Err(FieldError::new("node cards", &n.to_string(), "at most 255 cards"));
        }
        if !self.links.groups.is_empty() && self.links.groups.len() != n {
            let value = self.links.groups.len().to_string();
            return Err(FieldError::new("node link groups", &value, format!("{n}, one a card")));
        }
        if !self.links.bandwidth.is_empty() && self.links.bandwidth.len() != n * n {
            let value = self.links.bandwidth.len().to_string();
            return Err(FieldError::new(
                "node link bandwidth",
                &value,
                format!("{n} × {n} values"),
            ));
        }
        for card in &self.cards {
            if card.memory.is_zero() {
                return Err(FieldError::new("card memory", "0", "a positive amount"));
            }
            if let MigMode::Fixed { geometry, instances } = &card.mig
                && !geometry.legal(instances)
            {
                let list: Vec<_> =
                    instances.iter().map(|i| format!("{}@{}", i.profile, i.start)).collect();
                let expected = "instances that the card's geometry allows together";
                return Err(FieldError::new("card mig", &list.join(" "), expected));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_for_the_nominal_size_means_the_whole_memory() {
        let card = CardSpec::new("H100", Mib(81_559));
        assert_eq!(card.charged(Mib(81_920)), Mib(81_559));
        assert_eq!(card.charged(Mib(81_559)), Mib(81_559));
        assert_eq!(card.charged(Mib(40_960)), Mib(40_960));
        assert_eq!(card.charged(Mib(81_921)), Mib(81_921), "beyond the nominal size");
        let odd = CardSpec::new("odd", Mib(1000));
        assert_eq!(odd.charged(Mib(1024)), Mib(1024), "2.4 % above");
    }

    #[test]
    fn memory_is_rounded_up_to_slices() {
        let card = CardSpec { slice: Some(Mib(8192)), ..CardSpec::new("A100", Mib(81_920)) };
        assert_eq!(card.charged(Mib(1)), Mib(8192));
        assert_eq!(card.charged(Mib(8192)), Mib(8192));
        assert_eq!(card.charged(Mib(81_000)), Mib(81_920));
    }
}
