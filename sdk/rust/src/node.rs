//! The nodes of a call and the cards on them.

use crate::batch::{Family, Table, absent};
use crate::card::{Ask, Card, Room};
use crate::columns::{
    CARD_OFFSETS, FIRST_LABEL, LINK_BANDWIDTH, LINK_OFFSETS, NODE_GPU_MEMORY_TOTAL, NODE_GPU_TOTAL,
};

/// The nodes of a call. Columns are found once here; rows are views.
#[derive(Clone, Debug)]
pub struct Nodes<'a> {
    rows: usize,
    node: Family<'a, 200, 48>,
    pub(crate) card: Family<'a, 300, 24>,
    link: Family<'a, 400, 4>,
    /// Label columns by their position, and ids of a newer contract.
    labels: Vec<&'a [i32]>,
}

impl<'a> Nodes<'a> {
    /// The nodes of a call.
    pub fn new(table: &Table<'a>) -> Self {
        let mut nodes = Self {
            rows: table.rows as usize,
            node: Family::EMPTY,
            card: Family::EMPTY,
            link: Family::EMPTY,
            labels: Vec::new(),
        };
        for &(id, values) in table.columns {
            let known = nodes.node.put(id, values)
                || nodes.card.put(id, values)
                || nodes.link.put(id, values);
            if !known && (FIRST_LABEL..FIRST_LABEL + 1000).contains(&id) {
                let at = (id - FIRST_LABEL) as usize;
                if nodes.labels.len() <= at {
                    nodes.labels.resize(at + 1, &[]);
                }
                nodes.labels[at] = values;
            }
        }
        nodes
    }

    /// Number of nodes.
    #[inline]
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// One of them.
    #[inline]
    pub fn row(&'a self, row: usize) -> Node<'a> {
        Node { nodes: self, row }
    }

    /// All of them, in order.
    #[inline]
    pub fn iter(&'a self) -> impl ExactSizeIterator<Item = Node<'a>> {
        (0..self.rows).map(|row| self.row(row))
    }

    /// A column as it is: one value a row, or, for cards and links, all values
    /// end to end; empty if absent. For policies that work on whole columns.
    #[inline]
    pub fn column(&self, id: u32) -> &'a [i32] {
        match id {
            300..400 => self.card.column(id),
            400..500 => self.link.column(id),
            FIRST_LABEL.. => self.labels.get((id - FIRST_LABEL) as usize).copied().unwrap_or(&[]),
            _ => self.node.column(id),
        }
    }

    /// Where a row's values of a ragged family lie.
    #[inline]
    fn range(offsets: &[i32], row: usize) -> (usize, usize) {
        let (Some(&from), Some(&to)) = (offsets.get(row), offsets.get(row + 1)) else {
            return (0, 0);
        };
        let from = from.max(0) as usize;
        (from, (to.max(0) as usize).max(from))
    }
}

/// A node.
#[derive(Clone, Copy, Debug)]
pub struct Node<'a> {
    nodes: &'a Nodes<'a>,
    row: usize,
}

impl<'a> Node<'a> {
    /// A value by its id, such as `node.get(NODE_CPU_FREE)`.
    #[inline]
    pub fn get(&self, id: u32) -> i32 {
        self.nodes.node.get(id, self.row)
    }

    /// Whether a column was handed over.
    #[inline]
    pub fn has(&self, id: u32) -> bool {
        !self.nodes.column(id).is_empty()
    }

    /// Its row among the nodes of the call.
    pub fn row(&self) -> usize {
        self.row
    }

    /// String id of the value of the manifest's `label`-th label, 0 if it has
    /// none.
    pub fn label(&self, label: u32) -> i32 {
        let column = self.nodes.column(FIRST_LABEL.saturating_add(label));
        column.get(self.row).copied().unwrap_or(0)
    }

    /// Its cards, in order; the position is the bit of the card mask. Needs
    /// any card column.
    #[inline]
    pub fn cards(&self) -> impl ExactSizeIterator<Item = Card<'a>> + use<'a> {
        let (from, to) = Nodes::range(self.nodes.card.column(CARD_OFFSETS), self.row);
        let nodes = self.nodes;
        (0..to - from).map(move |index| Card { nodes, at: from + index, index })
    }

    /// One column of its cards, a value a card; empty if absent. The quick way
    /// in a hot loop.
    #[inline]
    pub fn card_column(&self, id: u32) -> &'a [i32] {
        let (from, to) = Nodes::range(self.nodes.card.column(CARD_OFFSETS), self.row);
        self.nodes.card.column(id).get(from..to).unwrap_or(&[])
    }

    /// Bandwidth between two of its cards in GB/s, 0 where unknown. Needs
    /// `LINK_BANDWIDTH`.
    #[inline]
    pub fn link(&self, a: usize, b: usize) -> i32 {
        let (from, to) = Nodes::range(self.nodes.link.column(LINK_OFFSETS), self.row);
        let cards = (to - from).isqrt();
        if a >= cards || b >= cards {
            return absent(LINK_BANDWIDTH);
        }
        self.nodes.link.get(LINK_BANDWIDTH, from + a * cards + b)
    }

    /// GPU share in milli-cards that the job would take here over all its
    /// cards, by the mean size of the node's cards where memory decides. Needs,
    /// for those jobs, `NODE_GPU_TOTAL` and `NODE_GPU_MEMORY_TOTAL`.
    #[inline]
    pub fn milli(&self, ask: &Ask) -> i32 {
        let each = if ask.takes_all() || ask.milli > 0 || ask.mib == 0 {
            i64::from(if ask.whole { 1000 } else { ask.milli })
        } else {
            let share = i64::from(ask.mib) * i64::from(self.get(NODE_GPU_TOTAL));
            let memory = i64::from(self.get(NODE_GPU_MEMORY_TOTAL)).max(1);
            ((share + memory - 1) / memory).min(1000)
        };
        (each * ask.cards as i64).min(i64::from(i32::MAX)) as i32
    }

    /// Cards for the job as a mask: those with the least free share that it
    /// fits on, the lowest index among equals, so for whole cards the
    /// lowest-numbered idle ones. 0, which leaves the choice to the host, if
    /// too few fit, if the choice is the host's ([`Ask::by_host`]), or for work
    /// without a GPU. Needs `CARD_FREE`, `CARD_MEMORY_FREE`,
    /// `CARD_MEMORY_TOTAL` and, where nodes mix models, `CARD_MODEL`.
    #[inline]
    pub fn tightest(&self, ask: &Ask) -> u32 {
        // All that fit whole are idle alike.
        if ask.takes_all() { ask.first(self) } else { ask.choose(self, 1) }
    }

    /// As [`tightest`](Self::tightest), but the cards with the most free share.
    #[inline]
    pub fn loosest(&self, ask: &Ask) -> u32 {
        if ask.takes_all() { ask.first(self) } else { ask.choose(self, -1) }
    }

    /// Positions of the cards that take their part of what is asked, as
    /// [`Ask::fits`] says, in order.
    #[inline]
    pub fn fitting(&self, ask: &Ask<'a>) -> impl Iterator<Item = usize> + use<'a> {
        let (room, ask) = (Room::new(|id| self.card_column(id)), *ask);
        (0..room.free.len()).filter(move |card| room.takes(&ask, *card))
    }

    /// The cards that a mask names.
    #[inline]
    pub fn chosen(&self, mask: u32) -> impl Iterator<Item = Card<'a>> + use<'a> {
        self.cards().filter(move |card| mask & card.bit() != 0)
    }
}
