//! Fragmentation of a node from its free shares and its free CPU, by sums of
//! weights that were made beforehand.
//!
//! With G the node's free share, W the sum of all weights and, for each ask of
//! a card a that some shape makes, n(a) the number of cards with at least a
//! free and s(a) their free share together:
//!
//! W · F = W · G − Σ over a of s(a) · V(a, n(a), c)
//!
//! where V(a, n, c) is the weight of the shapes that ask a of each card, run on
//! this model, and are content with n cards and c CPU. The second term, the
//! *usable* share, is what [`Table::usable`] gives.

use crate::mix::{Mix, Shape};

/// Sums for nodes of one model.
#[derive(Clone, Debug)]
pub struct Table {
    /// The different asks of a card in milli-cards, ascending.
    asks: usize,
    /// By free share from 0 to 1000: how many asks it satisfies.
    satisfied: Vec<u16>,
    /// The different CPU asks, ascending.
    cpus: Vec<i32>,
    /// Most cards that a shape asks for, plus one for none.
    counts: usize,
    /// V by CPU asks satisfied, then ask, then number of cards.
    weights: Vec<u32>,
}

/// Sums over one node's cards. Kept from row to row for its memory only.
#[derive(Clone, Debug, Default)]
pub struct Scratch {
    /// n(a) and s(a).
    at: Vec<(u32, i64)>,
    /// For each ask, with the CPU that will be left: V with all cards, and the
    /// sum of those of the asks below it.
    after: Vec<(i64, i64)>,
    /// The usable share as it will be, the card aside.
    base: i64,
    /// Weights with the CPU that will be left.
    cpu: usize,
    /// Free shares as they will be, for several cards.
    pub free: Vec<i32>,
}

/// The share that a shape takes of a card of `mib` memory; none if such a card
/// is too small.
fn share(shape: &Shape, mib: i32) -> Option<i32> {
    let milli = if shape.milli > 0 || shape.mib <= 0 {
        i64::from(shape.milli)
    } else {
        let mib = i64::from(mib);
        (1000 * i64::from(shape.mib) + mib - 1).checked_div(mib)?
    };
    (1..=1000).contains(&milli).then_some(milli as i32)
}

impl Table {
    /// The sums for a model; an empty one for shapes that take any.
    pub fn new(mix: &Mix, model: &str) -> Self {
        let mib = mix.sizes.iter().find(|(m, _)| m == model).map_or(0, |(_, mib)| *mib);
        let fitting: Vec<(&Shape, i32)> = mix
            .shapes
            .iter()
            .filter(|s| s.cards > 0 && (s.models.is_empty() || s.models.iter().any(|m| m == model)))
            .filter_map(|s| share(s, mib).map(|milli| (s, milli)))
            .collect();
        let sorted = |mut all: Vec<i32>| {
            all.sort_unstable();
            all.dedup();
            all
        };
        let asks = sorted(fitting.iter().map(|(_, milli)| *milli).collect());
        let cpus = sorted(fitting.iter().map(|(s, _)| s.cpu).collect());
        let counts = fitting.iter().map(|(s, _)| s.cards).max().unwrap_or(0).min(64) as usize + 1;
        let satisfied =
            (0..=1000).map(|free| asks.partition_point(|ask| *ask <= free) as u16).collect();
        let mut weights = vec![0; (cpus.len() + 1) * asks.len() * counts];
        for (i, weight) in weights.iter_mut().enumerate() {
            let (n, a, c) = (i % counts, i / counts % asks.len(), i / counts / asks.len());
            let content = fitting.iter().filter(|(s, milli)| {
                *milli == asks[a] && s.cards as usize <= n && cpus[..c].contains(&s.cpu)
            });
            *weight = content.map(|(s, _)| s.weight).sum::<i64>() as u32;
        }
        Self { asks: asks.len(), satisfied, cpus, counts, weights }
    }

    /// How many asks a free share satisfies.
    #[inline]
    fn satisfied(&self, free: i32) -> usize {
        let last = self.satisfied.len() - 1;
        usize::from(self.satisfied[(free.max(0) as usize).min(last)])
    }

    /// Where the weights for this much free CPU begin.
    #[inline]
    fn cpu(&self, free: i32) -> usize {
        self.cpus.partition_point(|ask| *ask <= free) * self.asks * self.counts
    }

    /// The weights of one ask by number of cards.
    #[inline]
    fn weight(&self, cpu: usize, ask: usize, cards: u32) -> i64 {
        let at = cpu + ask * self.counts + (cards as usize).min(self.counts - 1);
        i64::from(self.weights.get(at).copied().unwrap_or(0))
    }

    /// The usable share, times the sum of weights, of a node with these free
    /// shares and this much free CPU. Leaves the sums in the scratch space.
    #[inline]
    pub fn usable(&self, free: &[i32], cpu: i32, scratch: &mut Scratch) -> i64 {
        scratch.at.clear();
        scratch.at.resize(self.asks, (0, 0));
        for &free in free {
            // Counted at the greatest ask that it satisfies, summed up below.
            if let Some(at) = self.satisfied(free).checked_sub(1)
                && let Some((cards, sum)) = scratch.at.get_mut(at)
            {
                *cards += 1;
                *sum += i64::from(free);
            }
        }
        let (mut cards, mut sum) = (0, 0);
        for at in scratch.at.iter_mut().rev() {
            cards += at.0;
            sum += at.1;
            *at = (cards, sum);
        }
        self.usable_now(cpu, scratch)
    }

    /// The same for the cards of the last `usable` and other CPU.
    #[inline]
    pub fn usable_now(&self, cpu: i32, scratch: &Scratch) -> i64 {
        let cpu = self.cpu(cpu);
        let each = scratch.at.iter().enumerate();
        each.map(|(ask, (cards, sum))| sum * self.weight(cpu, ask, *cards)).sum()
    }

    /// Makes ready for `usable_with` and this much CPU left.
    #[inline]
    pub fn prepare_card(&self, cpu: i32, scratch: &mut Scratch) {
        scratch.cpu = self.cpu(cpu);
        scratch.base = 0;
        scratch.after.clear();
        let mut below = 0;
        for (ask, (cards, sum)) in scratch.at.iter().enumerate() {
            let weight = self.weight(scratch.cpu, ask, *cards);
            scratch.base += sum * weight;
            scratch.after.push((weight, below));
            below += weight;
        }
        scratch.after.push((0, below));
    }

    /// The usable share once a card with `free` has given up `share`.
    #[inline]
    pub fn usable_with(&self, free: i32, share: i32, scratch: &Scratch) -> i64 {
        let (still, before) = (self.satisfied(free - share), self.satisfied(free));
        // Asks that the card still satisfies: their sums lose the share.
        let below = scratch.after.get(still).map_or(0, |(_, below)| *below);
        let mut usable = scratch.base - i64::from(share) * below;
        // Asks that it no longer satisfies: their sums lose the card.
        for ask in still..before {
            if let (Some((cards, sum)), Some((weight, _))) =
                (scratch.at.get(ask), scratch.after.get(ask))
            {
                let left = self.weight(scratch.cpu, ask, cards.saturating_sub(1));
                usable += (sum - i64::from(free)) * left - sum * weight;
            }
        }
        usable
    }
}
