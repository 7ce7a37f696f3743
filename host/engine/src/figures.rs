//! The most that any node has of each resource, kept as nodes change: the
//! figures in a waiting job's reasons.

use crate::node::NodeState;
use crater_model::reason::Best;
use crater_model::{Iops, MbPerSec, Mib, MilliCards, MilliCores};

const WIDTH: usize = 8;
type Row = [u64; WIDTH];

/// A tournament over nodes, in all resources at once.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    rows: Vec<Row>,
    width: usize,
}

impl Figures {
    /// Counts a slot anew.
    pub fn update(&mut self, slot: u32, node: Option<&NodeState>) {
        let slot = slot as usize;
        if slot >= self.width {
            let mut leaves = self.rows.split_off(self.width.min(self.rows.len()));
            leaves.resize((slot + 1).max(16).next_power_of_two(), Row::default());
            self.width = leaves.len();
            self.rows = vec![Row::default(); self.width];
            self.rows.extend(leaves);
            for at in (1..self.width).rev() {
                self.rows[at] = max(&self.rows[2 * at], &self.rows[2 * at + 1]);
            }
        }
        let mut at = self.width + slot;
        self.rows[at] = node.map_or_else(Row::default, row);
        while at > 1 {
            at /= 2;
            let best = max(&self.rows[2 * at], &self.rows[2 * at + 1]);
            if best == self.rows[at] {
                return;
            }
            self.rows[at] = best;
        }
    }

    /// The most of each.
    pub fn best(&self) -> Best {
        let [cpu, memory, disk, iops, card, card_memory, idle_cards, cards] =
            self.rows.get(1).copied().unwrap_or_default();
        Best {
            cpu: MilliCores(cpu),
            memory: Mib(memory),
            disk: MbPerSec(disk),
            iops: Iops(iops),
            card: MilliCards(card),
            card_memory: Mib(card_memory),
            idle_cards,
            cards,
        }
    }
}

fn row(node: &NodeState) -> Row {
    let cards = || (0..node.cards.len()).map(|c| node.card_free(c));
    [
        node.cpu_free().0,
        node.memory_free().0,
        node.disk_free().0,
        node.iops_free().0,
        cards().map(|c| c.0.0).max().unwrap_or(0),
        cards().map(|c| c.1.0).max().unwrap_or(0),
        node.cards_idle() as u64,
        node.cards.len() as u64,
    ]
}

fn max(a: &Row, b: &Row) -> Row {
    std::array::from_fn(|i| a[i].max(b[i]))
}
