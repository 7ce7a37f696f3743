//! What a machine with cards is, for the stand-in.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A machine's driver and cards.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Machine {
    /// The driver's version.
    pub driver: String,
    /// The library's version.
    pub nvml: String,
    /// The CUDA version: 1000 times the major and 10 times the minor.
    pub cuda: i32,
    /// Cards, by index.
    pub cards: Vec<Card>,
    /// Functions that fail, with the code that they return.
    pub fail: BTreeMap<String, u32>,
}

impl Default for Machine {
    fn default() -> Self {
        Self {
            driver: "550.54.15".into(),
            nvml: "12.550.54.15".into(),
            cuda: 12_040,
            cards: vec![],
            fail: BTreeMap::new(),
        }
    }
}

/// A card.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Card {
    /// `GPU-` and 36 characters.
    pub uuid: String,
    /// The model's name.
    pub name: String,
    /// Memory, in MiB.
    pub memory_mib: u64,
    /// Memory in use, in MiB.
    pub used_mib: u64,
    /// Percent of the last moment in which the card computed.
    pub busy_percent: u32,
    /// Where it is: `0000:1b:00.0`.
    pub pci: String,
    /// The number of its file below `/dev`.
    pub minor: u32,
    /// Whether it is cut into MIG instances; nothing for a model without MIG.
    pub mig: Option<bool>,
    /// Links to other cards and to switches, by number.
    pub links: Vec<Link>,
    /// Functions that fail for this card, with the code that they return.
    pub fail: BTreeMap<String, u32>,
}

impl Card {
    /// A card of which only the place, the model and the memory matter: the
    /// UUID ends with the index, and the bus number is one more than it.
    pub fn new(index: u32, name: &str, memory_mib: u64) -> Self {
        Self {
            uuid: format!("GPU-00000000-0000-4000-8000-{index:012}"),
            name: name.into(),
            memory_mib,
            pci: format!("0000:{:02x}:00.0", index + 1),
            minor: index,
            ..Self::default()
        }
    }
}

/// A link of a card.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// What is at the far end.
    pub to: Far,
    /// Where that is on the PCI bus.
    pub pci: String,
    /// Whether the link is up.
    #[serde(default = "yes")]
    pub up: bool,
}

fn yes() -> bool {
    true
}

/// What may be at the far end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Far {
    /// Another card.
    Card,
    /// A switch.
    Switch,
}

impl Card {
    /// Whether two cards reach each other by `NVLink`: by a link, or by a
    /// switch that both have a link to.
    pub(crate) fn linked(&self, other: &Self) -> bool {
        let up = |card: &Self| card.links.clone().into_iter().filter(|link| link.up);
        let to = |card: &Self, far: Far, pci: &str| {
            up(card).any(|link| link.to == far && link.pci == pci)
        };
        let switches = || up(self).filter(|link| link.to == Far::Switch);
        to(self, Far::Card, &other.pci) || switches().any(|s| to(other, Far::Switch, &s.pci))
    }
}
