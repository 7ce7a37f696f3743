//! Sets of a node's cards by the links between them.

use crater_sdk::prelude::*;

/// The cards of a node that a job fits on.
#[derive(Debug)]
pub struct Links<'a> {
    node: &'a Node<'a>,
    cards: Vec<Card<'a>>,
    one_group: bool,
    one_numa: bool,
}

/// A set of cards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Set {
    /// Bandwidth of its slowest link in GB/s.
    pub slowest: i32,
    /// Cards that fit and are left behind in its link groups.
    pub left: i32,
    /// Bandwidth over all its links.
    pub sum: i32,
    /// The cards as a mask.
    pub mask: u32,
}

impl Set {
    /// What makes one set better than another.
    fn worth(&self) -> (i32, i32, i32, std::cmp::Reverse<u32>) {
        (self.slowest, -self.left, self.sum, std::cmp::Reverse(self.mask))
    }
}

impl<'a> Links<'a> {
    /// The cards with room, and whether the set must lie in one link group or
    /// on one NUMA node.
    pub fn new(node: &'a Node<'a>, ask: &Ask, one_group: bool, one_numa: bool) -> Self {
        let cards = node.cards().filter(|card| card.bit() != 0 && ask.fits(card)).collect();
        Self { node, cards, one_group, one_numa }
    }

    /// Bandwidth between two cards; none if they may not go together.
    fn between(&self, a: &Card, b: &Card) -> Option<i32> {
        let same = |id, none| a.get(id) == b.get(id) && a.get(id) != none;
        let group = same(CARD_LINK_GROUP, -1);
        if self.one_group && !group || self.one_numa && !same(CARD_NUMA, -1) {
            return None;
        }
        let bandwidth = self.node.link(a.index(), b.index());
        Some(if bandwidth > 0 { bandwidth } else { i32::from(group) })
    }

    /// What a card would add to a set: its slowest link and all of them.
    fn adds(&self, mask: u32, card: &Card) -> Option<(i32, i32)> {
        let (mut slowest, mut sum) = (i32::MAX, 0_i32);
        for other in self.cards.iter().filter(|other| mask & other.bit() != 0) {
            let bandwidth = self.between(card, other)?;
            slowest = slowest.min(bandwidth);
            sum = sum.saturating_add(bandwidth);
        }
        Some((slowest, sum))
    }

    /// Cards left behind in the groups that a set touches.
    fn left(&self, mask: u32) -> i32 {
        let taken = |card: &&Card| mask & card.bit() != 0;
        let touched = |card: &&Card| {
            let group = card.get(CARD_LINK_GROUP);
            self.cards.iter().filter(taken).any(|c| c.get(CARD_LINK_GROUP) == group)
        };
        self.cards.iter().filter(|card| !taken(card) && touched(card)).count() as i32
    }

    /// The best set of so many cards.
    pub fn best(&self, cards: usize) -> Option<Set> {
        let sets = self.cards.iter().filter_map(|seed| self.grow(seed, cards));
        sets.max_by_key(Set::worth)
    }

    fn grow(&self, seed: &Card, cards: usize) -> Option<Set> {
        let mut set = Set { slowest: i32::MAX, left: 0, sum: 0, mask: seed.bit() };
        for _ in 1..cards {
            let others = self.cards.iter().filter(|card| set.mask & card.bit() == 0);
            let best = others
                .filter_map(|card| Some((self.adds(set.mask, card)?, card)))
                .max_by_key(|((slowest, sum), card)| {
                    let left = -self.left(set.mask | card.bit());
                    (*slowest, left, *sum, std::cmp::Reverse(card.index()))
                });
            let ((slowest, sum), card) = best?;
            set.slowest = set.slowest.min(slowest);
            set.sum = set.sum.saturating_add(sum);
            set.mask |= card.bit();
        }
        set.left = self.left(set.mask);
        Some(set)
    }
}
