//! Nodes with cards from plain values.

use super::Owned;
use crate::columns::{
    CARD_FREE, CARD_HEALTHY, CARD_LINK_GROUP, CARD_MEMORY_FREE, CARD_MEMORY_TOTAL, CARD_MIG,
    CARD_MODEL, CARD_NUMA, CARD_OFFSETS, CARD_SHARES, FIRST_LABEL, LINK_BANDWIDTH, LINK_OFFSETS,
    NODE_CARDS, NODE_CARDS_IDLE, NODE_CPU_FREE, NODE_CPU_TOTAL, NODE_DOMAIN, NODE_GPU_FREE,
    NODE_GPU_MEMORY_FREE, NODE_GPU_MEMORY_TOTAL, NODE_GPU_TOTAL, NODE_ID, NODE_MEMORY_FREE,
    NODE_MEMORY_TOTAL, NODE_MODEL, NODE_ZONE,
};
use crate::strings;
use std::collections::BTreeMap;

/// A card: idle, healthy, 81,920 MiB, unless said otherwise.
#[derive(Clone, Debug)]
pub struct CardSpec(BTreeMap<u32, i32>);

/// A card to set values on.
#[must_use]
pub fn card() -> CardSpec {
    let values =
        [(CARD_FREE, 1000), (CARD_MEMORY_TOTAL, 81_920), (CARD_HEALTHY, 1), (CARD_NUMA, -1)];
    CardSpec(values.into())
}

impl CardSpec {
    /// Any card column, by its id.
    #[must_use]
    pub fn set(mut self, id: u32, value: i32) -> Self {
        self.0.insert(id, value);
        self
    }

    /// Free share in milli-cards; the free memory is in proportion unless set.
    #[must_use]
    pub fn free(self, milli: i32) -> Self {
        self.set(CARD_FREE, milli)
    }

    /// Memory and free memory in MiB.
    #[must_use]
    pub fn memory(self, total: i32, free: i32) -> Self {
        self.set(CARD_MEMORY_TOTAL, total).set(CARD_MEMORY_FREE, free)
    }

    /// Whether it may be used.
    #[must_use]
    pub fn healthy(self, healthy: bool) -> Self {
        self.set(CARD_HEALTHY, i32::from(healthy))
    }

    /// Cards with the same group have direct links.
    #[must_use]
    pub fn link_group(self, group: i32) -> Self {
        self.set(CARD_LINK_GROUP, group)
    }

    fn get(&self, id: u32) -> i32 {
        self.0.get(&id).copied().unwrap_or(0)
    }

    fn model(&self, node: &NodeSpec) -> i32 {
        self.0.get(&CARD_MODEL).copied().unwrap_or_else(|| node.value(NODE_MODEL))
    }

    fn memory_free(&self) -> i32 {
        let share = i64::from(self.get(CARD_MEMORY_TOTAL)) * i64::from(self.get(CARD_FREE)) / 1000;
        self.0.get(&CARD_MEMORY_FREE).copied().unwrap_or(share as i32)
    }
}

/// A node: its sums over cards follow from the cards, unless set.
#[derive(Clone, Debug, Default)]
pub struct NodeSpec {
    values: BTreeMap<u32, i32>,
    cards: Vec<CardSpec>,
    links: Vec<i32>,
}

/// A node without cards, to set values on.
#[must_use]
pub fn node() -> NodeSpec {
    NodeSpec::default()
}

impl NodeSpec {
    /// Any node column or label, by its id.
    #[must_use]
    pub fn set(mut self, id: u32, value: i32) -> Self {
        self.values.insert(id, value);
        self
    }

    /// Its id.
    #[must_use]
    pub fn id(self, id: i32) -> Self {
        self.set(NODE_ID, id)
    }

    /// CPU and free CPU in milli-cores.
    #[must_use]
    pub fn cpu(self, total: i32, free: i32) -> Self {
        self.set(NODE_CPU_TOTAL, total).set(NODE_CPU_FREE, free)
    }

    /// Memory and free memory in MiB.
    #[must_use]
    pub fn memory(self, total: i32, free: i32) -> Self {
        self.set(NODE_MEMORY_TOTAL, total).set(NODE_MEMORY_FREE, free)
    }

    /// Model of its cards, save those that say their own.
    #[must_use]
    pub fn model(self, model: &str) -> Self {
        self.set(NODE_MODEL, strings::id(model))
    }

    /// Interconnect domain.
    #[must_use]
    pub fn domain(self, domain: &str) -> Self {
        self.set(NODE_DOMAIN, strings::id(domain))
    }

    /// Zone.
    #[must_use]
    pub fn zone(self, zone: &str) -> Self {
        self.set(NODE_ZONE, strings::id(zone))
    }

    /// The value of the manifest's `label`-th label.
    #[must_use]
    pub fn label(self, label: u32, value: &str) -> Self {
        self.set(FIRST_LABEL + label, strings::id(value))
    }

    /// One more card.
    #[must_use]
    pub fn card(mut self, card: CardSpec) -> Self {
        self.cards.push(card);
        self
    }

    /// More cards with these free shares in milli-cards.
    #[must_use]
    pub fn cards<const N: usize>(mut self, free: [i32; N]) -> Self {
        self.cards.extend(free.map(|milli| card().free(milli)));
        self
    }

    /// Bandwidth between each two cards in GB/s: a matrix, row by row.
    #[must_use]
    pub fn links(mut self, matrix: &[&[i32]]) -> Self {
        self.links = matrix.concat();
        self
    }

    fn value(&self, id: u32) -> i32 {
        if let Some(value) = self.values.get(&id) {
            return *value;
        }
        let healthy = || self.cards.iter().filter(|c| c.get(CARD_HEALTHY) != 0);
        match id {
            NODE_CARDS => healthy().count() as i32,
            NODE_CARDS_IDLE => healthy().filter(|c| c.get(CARD_FREE) == 1000).count() as i32,
            NODE_GPU_FREE => healthy().map(|c| c.get(CARD_FREE)).sum(),
            NODE_GPU_TOTAL => 1000 * healthy().count() as i32,
            NODE_GPU_MEMORY_FREE => healthy().map(CardSpec::memory_free).sum(),
            NODE_GPU_MEMORY_TOTAL => healthy().map(|c| c.get(CARD_MEMORY_TOTAL)).sum(),
            _ => 0,
        }
    }
}

const SUMS: [u32; 6] = [
    NODE_CARDS,
    NODE_CARDS_IDLE,
    NODE_GPU_FREE,
    NODE_GPU_TOTAL,
    NODE_GPU_MEMORY_FREE,
    NODE_GPU_MEMORY_TOTAL,
];
const CARDS: [u32; 9] = [
    CARD_FREE,
    CARD_MEMORY_FREE,
    CARD_MEMORY_TOTAL,
    CARD_MODEL,
    CARD_NUMA,
    CARD_HEALTHY,
    CARD_SHARES,
    CARD_MIG,
    CARD_LINK_GROUP,
];

/// The table of a call.
pub(super) fn table(nodes: &[NodeSpec]) -> Owned {
    let given = nodes.iter().flat_map(|node| node.values.keys().copied());
    let mut table: Owned = given.chain(SUMS).chain(CARDS).map(|id| (id, Vec::new())).collect();
    let (mut offsets, mut link_offsets, mut links) = (vec![0], vec![0], Vec::new());
    for node in nodes {
        for (id, column) in &mut table {
            match *id {
                CARD_MEMORY_FREE => column.extend(node.cards.iter().map(CardSpec::memory_free)),
                CARD_MODEL => column.extend(node.cards.iter().map(|card| card.model(node))),
                300..400 => column.extend(node.cards.iter().map(|card| card.get(*id))),
                _ => column.push(node.value(*id)),
            }
        }
        offsets.push(offsets.last().unwrap_or(&0) + node.cards.len() as i32);
        let pairs = node.cards.len() * node.cards.len();
        assert!(node.links.is_empty() || node.links.len() == pairs, "links are cards × cards");
        links.extend(node.links.iter().copied().chain(std::iter::repeat(0)).take(pairs));
        link_offsets.push(links.len() as i32);
    }
    table.insert(CARD_OFFSETS, offsets);
    table.insert(LINK_OFFSETS, link_offsets);
    table.insert(LINK_BANDWIDTH, links);
    table
}
