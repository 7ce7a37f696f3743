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
//! this model, and are content with n cards and c CPU. The second term is the
//! *usable* share.

use crate::mix::{Mix, Shape, ascending};

/// Sums for nodes of one model.
#[derive(Clone, Debug)]
pub struct Table {
    /// Different asks of a card, in milli-cards.
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
    /// For each ask n(a) and s(a) in one word, the number above.
    cards: Vec<u64>,
    /// For each ask V with the CPU that will be left, and its sum from this ask
    /// on.
    after: Vec<(u64, u64)>,
    /// Free shares as they will be, for several cards.
    pub free: Vec<i32>,
}

/// The usable share of a node, times the sum of weights.
#[derive(Clone, Copy, Debug)]
pub struct Usable {
    /// As it is.
    pub before: i64,
    /// With the CPU taken.
    pub after: i64,
    /// Where the weights for the CPU that will be left begin.
    left: usize,
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

/// A card with a free share, as a word of `Scratch::cards`.
const fn word(free: i32) -> u64 {
    1 << 32 | free as u64
}

/// The number and the free share in such a word.
const fn parts(word: u64) -> (usize, u64) {
    ((word >> 32) as usize, word & 0xffff_ffff)
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
        let sorted = |all: &mut dyn Iterator<Item = i32>| -> Vec<i32> {
            ascending(all.map(|n| n.max(0) as u64)).into_iter().map(|n| n as i32).collect()
        };
        let asks = sorted(&mut fitting.iter().map(|(_, milli)| *milli));
        let cpus = sorted(&mut fitting.iter().map(|(s, _)| s.cpu));
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

    /// The weights from `cpu` on, one slice an ask.
    #[inline]
    fn rows(&self, cpu: usize) -> std::slice::ChunksExact<'_, u32> {
        self.weights
            .get(cpu..cpu + self.asks * self.counts)
            .unwrap_or(&[])
            .chunks_exact(self.counts)
    }

    /// The usable share with these free shares, this much free CPU, and this
    /// much CPU left once the job runs. Leaves its sums in the scratch space.
    #[inline]
    pub fn usable(&self, free: &[i32], cpu: i32, left: i32, scratch: &mut Scratch) -> Usable {
        scratch.cards.clear();
        scratch.cards.resize(self.asks, 0);
        // Asks that any card satisfies; beyond them there is nothing to sum.
        let mut most = 0;
        for &free in free {
            // Counted at the greatest ask that it satisfies, summed up below.
            let satisfied = self.satisfied(free);
            most = most.max(satisfied);
            if let Some(cards) = scratch.cards.get_mut(satisfied.wrapping_sub(1)) {
                *cards += word(free);
            }
        }
        let left = self.cpu(left);
        scratch.after.clear();
        scratch.after.resize(self.asks + 1, (0, 0));
        let (mut before, mut after, mut all, mut sum) = (0, 0, 0, 0);
        let weights = self.rows(self.cpu(cpu)).zip(self.rows(left)).take(most);
        let sums = scratch.cards.iter_mut().zip(&mut scratch.after);
        for ((cards, after_word), (now, then)) in sums.zip(weights).rev() {
            all += *cards;
            *cards = all;
            let (count, share) = parts(all);
            let (now, then) = (at_most(now, count), at_most(then, count));
            before += share * now;
            after += share * then;
            sum += then;
            *after_word = (then, sum);
        }
        Usable { before: before as i64, after: after as i64, left }
    }

    /// The usable share once a card with `free` has given up `share`.
    #[inline]
    pub fn usable_with(&self, usable: &Usable, free: i32, share: i32, scratch: &Scratch) -> i64 {
        let (still, before) = (self.satisfied(free - share), self.satisfied(free));
        // Asks that the card still satisfies: their sums lose the share.
        let suffix = |ask| scratch.after.get(ask).map_or(0, |(_, sum)| *sum as i64);
        let mut after = usable.after - i64::from(share) * (suffix(0) - suffix(still));
        // Asks that it no longer satisfies: their sums lose the card.
        let (Some(cards), Some(now)) =
            (scratch.cards.get(still..before), scratch.after.get(still..before))
        else {
            return after;
        };
        for ((word, (weight, _)), then) in
            cards.iter().zip(now).zip(self.rows(usable.left).skip(still))
        {
            let (count, sum) = parts(*word);
            let lost = at_most(then, count.wrapping_sub(1).min(count));
            after += (sum as i64 - i64::from(free)) * lost as i64 - (sum * weight) as i64;
        }
        after
    }
}

/// The weight for a number of cards; the last one for more.
#[inline]
fn at_most(weights: &[u32], cards: usize) -> u64 {
    u64::from(weights[cards.min(weights.len() - 1)])
}
