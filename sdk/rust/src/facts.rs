//! Slow knowledge for `prepare`.

use crate::batch::{Column, Family};
use crate::columns::{
    CLASS_CARD_MIB, CLASS_CARDS, CLASS_CPU, CLASS_MEMORY, CLASS_MODEL, CLASS_NODES, MIX_CARD_MIB,
    MIX_CARD_MILLI, MIX_CARDS, MIX_CPU, MIX_MEMORY, MIX_MODELS, MIX_MODELS_OFFSETS, MIX_WEIGHT,
};

/// The facts that a policy wanted.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a>(Family<'a, 700, 48>);

/// A shape of job in the workload's mix. What was not wanted is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape<'a> {
    /// How often it was asked for.
    pub weight: i32,
    /// CPU in milli-cores.
    pub cpu: i32,
    /// Memory in MiB.
    pub memory: i32,
    /// Cards.
    pub cards: i32,
    /// Asked of each card, in milli-cards.
    pub card_milli: i32,
    /// Memory asked of each card in MiB; 0 in proportion to the share.
    pub card_mib: i32,
    /// String ids of the card models that it may use; empty means any.
    pub models: &'a [i32],
}

/// A sort of node in the cluster. What was not wanted is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Class {
    /// How many such nodes there are.
    pub nodes: i32,
    /// CPU in milli-cores.
    pub cpu: i32,
    /// Memory in MiB.
    pub memory: i32,
    /// Cards.
    pub cards: i32,
    /// String id of their model, 0 without.
    pub model: i32,
    /// Memory of a card in MiB.
    pub card_mib: i32,
}

impl<'a> Facts<'a> {
    /// The facts of a call.
    pub fn new(columns: &[Column<'a>]) -> Self {
        Self(Family::new(columns))
    }

    /// A fact's list by its id, empty if absent.
    pub fn column(&self, id: u32) -> &'a [i32] {
        self.0.column(id)
    }

    /// The workload's mix, in the host's order. Needs `MIX_WEIGHT`.
    pub fn shapes(&self) -> impl ExactSizeIterator<Item = Shape<'a>> + '_ {
        (0..self.column(MIX_WEIGHT).len()).map(|i| {
            let bound = |at| self.0.get(MIX_MODELS_OFFSETS, at).max(0) as usize;
            let models = self.column(MIX_MODELS).get(bound(i)..bound(i + 1)).unwrap_or(&[]);
            Shape {
                weight: self.0.get(MIX_WEIGHT, i),
                cpu: self.0.get(MIX_CPU, i),
                memory: self.0.get(MIX_MEMORY, i),
                cards: self.0.get(MIX_CARDS, i),
                card_milli: self.0.get(MIX_CARD_MILLI, i),
                card_mib: self.0.get(MIX_CARD_MIB, i),
                models,
            }
        })
    }

    /// The sorts of node. Needs `CLASS_NODES`.
    pub fn classes(&self) -> impl ExactSizeIterator<Item = Class> + '_ {
        (0..self.column(CLASS_NODES).len()).map(|i| Class {
            nodes: self.0.get(CLASS_NODES, i),
            cpu: self.0.get(CLASS_CPU, i),
            memory: self.0.get(CLASS_MEMORY, i),
            cards: self.0.get(CLASS_CARDS, i),
            model: self.0.get(CLASS_MODEL, i),
            card_mib: self.0.get(CLASS_CARD_MIB, i),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_shape_has_its_models() {
        let columns: [Column; 3] =
            [(MIX_WEIGHT, &[5, 3]), (MIX_MODELS_OFFSETS, &[0, 0, 2]), (MIX_MODELS, &[7, 8])];
        let facts = Facts::new(&columns);
        let models: Vec<_> = facts.shapes().map(|s| (s.weight, s.models)).collect();
        assert_eq!(models, [(5, &[][..]), (3, &[7, 8][..])]);
        assert_eq!(facts.classes().len(), 0);
    }
}
