//! Fragmentation of a node from its free shares and its free CPU, by sums of
//! weights that were made beforehand.
//!
//! With G the node's free share and W the sum of all weights,
//!
//! W · F = W · G − Σ over shapes of w · (share on cards with room for it),
//!
//! where only shapes count that run on this model, are content with the free
//! CPU and find as many cards with room as they want. That sum is the *usable*
//! share. A shape of one card finds it wherever there is any room, so all of
//! those together are a sum over cards:
//!
//! Σ over cards of free · V(free), V(free) = Σ of w over the asks up to free.
//!
//! Shapes of several cards are looked at by their ask, of which there are few:
//! mostly whole cards.

use crate::mix::{Mix, Shape, ascending};

/// Sums for nodes of one model.
#[derive(Clone, Debug)]
pub struct Table {
    /// By free share from 0 to 1000: how many asks of one-card shapes it
    /// satisfies.
    satisfied: Vec<u16>,
    cpus: Cpus,
    /// V by CPU asks satisfied, then asks satisfied.
    weights: Vec<u32>,
    /// Asks satisfied by an idle card, plus one for none.
    width: usize,
    several: Vec<Several>,
}

/// The different CPU asks.
#[derive(Clone, Debug)]
struct Cpus {
    /// Ascending.
    asks: Vec<i32>,
    /// By CPU in steps of `1 << STEP`: how many asks less is enough for.
    below: Vec<u16>,
}

const STEP: u32 = 9;

/// The shapes of several cards with one ask of each.
#[derive(Clone, Debug)]
struct Several {
    /// The ask in milli-cards.
    ask: i32,
    /// Most cards that one of them wants, plus one for none.
    width: usize,
    /// Weights by CPU asks satisfied, then by number of cards with room.
    weights: Vec<u32>,
}

/// For each ask of several cards: how many have room, and their free share.
pub type Rooms = Vec<(usize, i64)>;

/// The usable share of a node, times the sum of weights.
#[derive(Clone, Copy, Debug)]
pub struct Usable {
    /// As it is.
    pub before: i64,
    /// With the job's CPU taken.
    pub after: i64,
    /// CPU asks that will be satisfied then.
    cpu: usize,
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

/// The weight of those shapes that a test lets through.
fn weigh(shapes: &[(&Shape, i32)], test: impl Fn(&Shape, i32) -> bool) -> u32 {
    let through = shapes.iter().filter(|(shape, milli)| test(shape, *milli));
    through.map(|(shape, _)| shape.weight).sum::<i64>() as u32
}

impl Table {
    /// The sums for a model; an empty one for shapes that take any.
    pub fn new(mix: &Mix, model: &str) -> Self {
        let mib = mix.sizes.iter().find(|(m, _)| m == model).map_or(0, |(_, mib)| *mib);
        let (one, several): (Vec<_>, Vec<_>) = mix
            .shapes
            .iter()
            .filter(|s| s.cards > 0 && (s.models.is_empty() || s.models.iter().any(|m| m == model)))
            .filter_map(|s| share(s, mib).map(|milli| (s, milli)))
            .partition(|(s, _)| s.cards == 1);
        let sorted = |all: &mut dyn Iterator<Item = i32>| -> Vec<i32> {
            ascending(all.map(|n| n.max(0) as u64)).into_iter().map(|n| n as i32).collect()
        };
        let asks = sorted(&mut one.iter().map(|(_, milli)| *milli));
        let cpus = sorted(&mut one.iter().chain(&several).map(|(s, _)| s.cpu));
        let width = asks.len() + 1;
        let mut table = Self {
            satisfied: (0..=1000).map(|f| asks.partition_point(|a| *a <= f) as u16).collect(),
            weights: Vec::new(),
            width,
            several: Vec::new(),
            cpus: Cpus::new(cpus),
        };
        let cpus = &table.cpus.asks;
        // The CPU that satisfies the first n asks and no more.
        let cpu = |n: usize| n.checked_sub(1).map_or(-1, |n| cpus[n]);
        for n in 0..=cpus.len() {
            for a in 0..width {
                let most = a.checked_sub(1).map_or(0, |a| asks[a]);
                table.weights.push(weigh(&one, |s, milli| milli <= most && s.cpu <= cpu(n)));
            }
        }
        for ask in sorted(&mut several.iter().map(|(_, milli)| *milli)) {
            let of: Vec<_> = several.iter().filter(|(_, milli)| *milli == ask).copied().collect();
            let width = of.iter().map(|(s, _)| s.cards).max().unwrap_or(0).min(64) as usize + 1;
            let at = |i| (i % width, cpu(i / width));
            let weight = |i| {
                let (cards, cpu) = at(i);
                weigh(&of, |s, _| s.cards as usize <= cards && s.cpu <= cpu)
            };
            let weights = (0..width * (cpus.len() + 1)).map(weight).collect();
            table.several.push(Several { ask, width, weights });
        }
        table
    }

    /// V for each number of asks satisfied.
    #[inline]
    fn weights(&self, cpu: usize) -> &[u32] {
        self.weights.get(cpu * self.width..).unwrap_or(&[])
    }

    /// What one card adds by the shapes of one card.
    #[inline]
    fn card(&self, weights: &[u32], free: i32) -> i64 {
        let satisfied = self.satisfied.get(free.max(0) as usize).or(self.satisfied.last());
        let weight = satisfied.and_then(|s| weights.get(usize::from(*s)));
        i64::from(free) * i64::from(weight.copied().unwrap_or(0))
    }

    /// The usable share with these free shares, this much free CPU, and this
    /// much CPU left once the job runs.
    #[inline]
    pub fn usable(&self, free: &[i32], cpu: i32, left: i32, rooms: &mut Rooms) -> Usable {
        let (cpu, left) = (self.cpus.satisfied(cpu), self.cpus.satisfied(left));
        let (now, then) = (self.weights(cpu), self.weights(left));
        let (mut before, mut after) = (0, 0);
        for &free in free {
            before += self.card(now, free);
            after += self.card(then, free);
        }
        rooms.clear();
        for several in &self.several {
            let room = free.iter().filter(|free| **free >= several.ask);
            let (cards, sum) = room.fold((0, 0), |(n, sum), free| (n + 1, sum + i64::from(*free)));
            before += sum * several.weight(cpu, cards);
            after += sum * several.weight(left, cards);
            rooms.push((cards, sum));
        }
        Usable { before, after, cpu: left }
    }

    /// The usable share once a card with `free` has given up `share`.
    #[inline]
    pub fn usable_with(&self, usable: &Usable, free: i32, share: i32, rooms: &Rooms) -> i64 {
        let (weights, left) = (self.weights(usable.cpu), free - share);
        let mut after = usable.after - self.card(weights, free) + self.card(weights, left);
        for (several, &(cards, sum)) in self.several.iter().zip(rooms) {
            let weight = |cards| several.weight(usable.cpu, cards);
            after += if left >= several.ask {
                -i64::from(share) * weight(cards)
            } else if free >= several.ask {
                (sum - i64::from(free)) * weight(cards - 1) - sum * weight(cards)
            } else {
                0
            };
        }
        after
    }
}

impl Cpus {
    fn new(asks: Vec<i32>) -> Self {
        let last = asks.last().map_or(0, |ask| ask >> STEP).min(4096);
        let below = (0..=last + 1).map(|step| asks.partition_point(|a| *a < step << STEP) as u16);
        Self { below: below.collect(), asks }
    }

    /// How many asks this much satisfies.
    #[inline]
    fn satisfied(&self, free: i32) -> usize {
        let step = (free.max(0) >> STEP) as usize;
        let mut n = usize::from(self.below.get(step).or(self.below.last()).copied().unwrap_or(0));
        while self.asks.get(n).is_some_and(|ask| *ask <= free) {
            n += 1;
        }
        n
    }
}

impl Several {
    /// The weight of those that are content with this.
    #[inline]
    fn weight(&self, cpu: usize, cards: usize) -> i64 {
        let at = cpu * self.width + cards.min(self.width - 1);
        i64::from(self.weights.get(at).copied().unwrap_or(0))
    }
}
