//! The workload's mix as it is learned from submissions: how often each shape
//! of job was asked for, old ones counting less and less.
//!
//! Whole numbers throughout, so that the same submissions give the same mix on
//! every machine, and a bound on how many shapes are remembered, so that odd
//! requests cannot make the books grow.

use crate::facts::MixShape;
use crater_model::{Mib, MilliCards, MilliCores, Request, Share};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What tells shapes apart. Memory does not: it has too many values, and cards
/// and cores are what is scarce.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    cpu: MilliCores,
    cards: u64,
    milli: MilliCards,
    card_memory: Mib,
    models: Vec<Arc<str>>,
}

/// How often a shape came, in parts of a job, and the memory it asked for last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Seen {
    weight: u64,
    memory: Mib,
}

/// A mix that is being learned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Learner {
    shapes: BTreeMap<Key, Seen>,
    half_life: u64,
    /// Sum of the weights.
    total: u64,
    /// Members until weights are next reduced.
    until: u64,
    /// Members that came since the mix was last taken.
    news: u64,
    /// Jobs that it rested on then.
    taken: u64,
}

/// Parts of a job in a weight.
const PART: u64 = 1 << 10;
/// How often weights are reduced in a half-life.
const STEPS: u64 = 16;
/// 2 to the power of −1/16, of 65536.
const STEP: u64 = 62_757;
/// Shapes that are remembered at most.
const SHAPES: usize = 4096;

impl Learner {
    /// Jobs after which an earlier one counts half, unless set otherwise.
    pub const HALF_LIFE: u32 = 10_000;
    /// Jobs before a mix is worth using, unless set otherwise. Two hundred do
    /// for most workloads; with one that is short of cores they do not.
    pub const MINIMUM: u64 = 500;

    /// Knows nothing yet. A job counts half after `half_life` more of them, at
    /// least 16.
    pub fn new(half_life: u32) -> Self {
        let half_life = u64::from(half_life).max(STEPS);
        let until = half_life / STEPS;
        Self { shapes: BTreeMap::new(), half_life, total: 0, until, news: 0, taken: 0 }
    }

    /// Begins with a mix that may be wrong: it counts as `jobs` jobs, so that
    /// what is submitted soon weighs more.
    pub fn with_prior(half_life: u32, prior: &[MixShape], jobs: u64) -> Self {
        let mut learner = Self::new(half_life);
        let all: u128 = prior.iter().map(|s| u128::from(s.weight)).sum();
        let jobs = u128::from(jobs).min(all) * u128::from(PART);
        for shape in prior {
            // Rounded up: together they count as no fewer jobs than was said.
            let weight = (u128::from(shape.weight) * jobs).div_ceil(all.max(1));
            let key = Key {
                cpu: shape.cpu,
                cards: shape.cards,
                milli: shape.milli,
                card_memory: shape.card_memory,
                models: shape.models.clone(),
            };
            // No more than the prior's own weight, which is 64 bits.
            learner.add(key, u64::try_from(weight).unwrap_or(u64::MAX >> 20), shape.memory);
        }
        learner
    }

    /// Takes note of a job that asks for this once a member.
    pub fn note(&mut self, request: &Request, members: u32) {
        let gpu = request.gpu.as_ref();
        let (milli, card_memory) = match gpu.map(|gpu| &gpu.share) {
            None => (MilliCards::ZERO, Mib::ZERO),
            Some(Share::Part { milli, memory }) => (*milli, memory.unwrap_or_default()),
            Some(Share::Memory { memory }) => (MilliCards::ZERO, *memory),
            // A MIG instance is a card of its own in the books; here it stands
            // for nothing that a share could be left over from.
            Some(Share::Whole | Share::Mig { .. }) => (MilliCards::CARD, Mib::ZERO),
        };
        let key = Key {
            cpu: request.cpu,
            cards: gpu.map_or(0, |gpu| gpu.cards),
            milli,
            card_memory,
            models: request.models.clone(),
        };
        let mut left = u64::from(members);
        while left > 0 {
            let now = left.min(self.until);
            self.add(key.clone(), now * PART, request.memory);
            (left, self.until) = (left - now, self.until - now);
            self.news += now;
            if self.until == 0 {
                self.forget();
            }
        }
        while self.shapes.len() > SHAPES {
            self.forget();
        }
    }

    fn add(&mut self, key: Key, weight: u64, memory: Mib) {
        let seen = self.shapes.entry(key).or_insert(Seen { weight: 0, memory });
        seen.weight = seen.weight.saturating_add(weight);
        seen.memory = memory;
        self.total = self.total.saturating_add(weight);
    }

    /// One step of a half-life. What counts less than an eighth of a job goes.
    fn forget(&mut self) {
        self.until = self.half_life / STEPS;
        self.shapes.retain(|_, seen| {
            seen.weight = ((u128::from(seen.weight) * u128::from(STEP)) >> 16) as u64;
            seen.weight >= PART / 8
        });
        self.total = self.shapes.values().fold(0, |sum: u64, seen| sum.saturating_add(seen.weight));
    }

    /// Jobs that the mix rests on: those seen, less what was forgotten.
    pub fn jobs(&self) -> u64 {
        self.total / PART
    }

    /// Whether so much is new that policies should see the mix again: `minimum`
    /// jobs at first, then half as many as it rests on, at most a quarter of a
    /// half-life.
    pub fn due(&self, minimum: u64) -> bool {
        let wait = (self.taken / 2).min(self.half_life / 4).max(1);
        self.jobs() >= minimum && (self.taken < minimum || self.news >= wait)
    }

    /// The mix as a fact, the most frequent shape first; from now on only later
    /// jobs are news. Empty while it rests on fewer than `minimum` jobs.
    pub fn take(&mut self, minimum: u64) -> Vec<MixShape> {
        (self.news, self.taken) = (0, self.jobs());
        if self.jobs() < minimum {
            return vec![];
        }
        let mut all: Vec<MixShape> = self
            .shapes
            .iter()
            .map(|(key, seen)| MixShape {
                weight: (seen.weight + PART / 2) / PART,
                cpu: key.cpu,
                memory: seen.memory,
                cards: key.cards,
                milli: key.milli,
                card_memory: key.card_memory,
                models: key.models.clone(),
            })
            .filter(|shape| shape.weight > 0)
            .collect();
        all.sort_by_key(|shape| std::cmp::Reverse(shape.weight));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crater_model::GpuAsk;

    fn share(milli: u64) -> Request {
        let share = Share::Part { milli: MilliCards(milli), memory: None };
        Request { gpu: Some(GpuAsk { cards: 1, share }), ..Request::default() }
    }

    fn weights(learner: &mut Learner) -> Vec<(u64, u64)> {
        learner.take(1).iter().map(|s| (s.milli.0, s.weight)).collect()
    }

    #[test]
    fn what_came_long_ago_counts_half_after_a_half_life() {
        let mut learner = Learner::new(1600);
        (0..800).for_each(|_| learner.note(&share(300), 1));
        (0..1600).for_each(|_| learner.note(&share(500), 1));
        let seen = weights(&mut learner);
        // 800 with a half-life of 1600 leaves some 670, then half of it.
        assert!((300..370).contains(&seen[1].1), "{seen:?}");
        assert!((1100..1250).contains(&seen[0].1), "{seen:?}");
    }

    #[test]
    fn the_members_of_a_gang_count_one_by_one() {
        let (mut gang, mut single) = (Learner::new(160), Learner::new(160));
        gang.note(&share(200), 1000);
        (0..1000).for_each(|_| single.note(&share(200), 1));
        assert_eq!(gang, single);
    }

    #[test]
    fn too_few_jobs_are_no_mix_and_then_it_is_due_again_by_halves() {
        let mut learner = Learner::new(Learner::HALF_LIFE);
        let mut taken = vec![];
        for job in 1..=3000 {
            learner.note(&share(100), 1);
            if learner.due(500) {
                taken.push(job);
                assert!(!learner.take(500).is_empty());
            }
        }
        assert_eq!(taken[0], 500);
        assert!((4..9).contains(&taken.len()), "{taken:?}");
        assert!(Learner::new(100).take(1).is_empty());
    }

    #[test]
    fn a_wrong_prior_is_soon_outweighed() {
        let prior = MixShape {
            weight: 8000,
            cpu: MilliCores::ZERO,
            memory: Mib::ZERO,
            cards: 1,
            milli: MilliCards(700),
            card_memory: Mib::ZERO,
            models: vec![],
        };
        let mut learner = Learner::with_prior(Learner::HALF_LIFE, &[prior], 500);
        assert_eq!(weights(&mut learner), [(700, 500)]);
        (0..2000).for_each(|_| learner.note(&share(300), 1));
        let seen = weights(&mut learner);
        assert!(seen[0].0 == 300 && seen[0].1 > 3 * seen[1].1, "{seen:?}");
    }

    #[test]
    fn odd_requests_do_not_make_it_grow() {
        let mut learner = Learner::new(Learner::HALF_LIFE);
        for cpu in 0..20_000 {
            learner.note(&Request { cpu: MilliCores(cpu), ..share(300) }, 1);
        }
        assert!(learner.shapes.len() <= SHAPES);
    }
}
