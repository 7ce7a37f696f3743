//! What is known of all nodes for jobs of one shape under one policy.

use crate::tree::{ABSENT, Tree};
use crater_model::{Reason, Reasons};
use rustc_hash::FxHashMap;

/// A policy's answer for one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// 0 keep, positive a reason, negative defer for as many seconds.
    pub code: i32,
    /// Score of a row that is kept.
    pub score: i32,
    /// Cards of a row that is kept, 0 for the host's choice.
    pub mask: u32,
}

/// What is known of one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// There is no such node.
    Gone,
    /// The host or the policy left it out.
    Out(Reason),
    /// The policy left it out for so many seconds.
    Later(u32),
    /// It is in the running.
    In {
        /// Score.
        score: i32,
        /// Cards, 0 for the host's choice.
        mask: u32,
    },
}

#[derive(Clone, Copy, Debug, Default)]
struct Leaf {
    /// 0 gone, 1 in, 2 later, 3 + i reason i.
    why: u16,
    lane: u32,
    mask: u32,
    /// Score, or seconds for `later`.
    value: i32,
    /// The policy's part in the sum of answers.
    hash: u64,
}

const GONE: u16 = 0;
const IN: u16 = 1;
const LATER: u16 = 2;
const REASONS: u16 = 3;

/// All nodes for one shape of job.
#[derive(Debug, Default)]
pub struct Shape {
    /// Position in the decider's log up to which changes are in.
    pub cursor: u64,
    /// When it was last used, in decisions.
    pub used: u64,
    leaves: Vec<Leaf>,
    lanes: Vec<Tree>,
    counts: Vec<u64>,
    reasons: Vec<Reason>,
    reason_ids: FxHashMap<Reason, u16>,
    answers: u64,
}

/// The winner of a shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Top {
    /// The node.
    pub slot: u32,
    /// Its score with its groups'.
    pub score: i64,
    /// Its cards, 0 for the host's choice.
    pub mask: u32,
}

impl Shape {
    /// One of which nothing is known yet.
    pub fn unknown() -> Self {
        Self { cursor: u64::MAX, ..Self::default() }
    }

    /// Sets what is known of a node. `asked` is the policy's answer, if it was
    /// asked; `lane` groups nodes that get the same addition.
    pub fn set(&mut self, slot: u32, lane: u32, verdict: &Verdict, asked: Option<Answer>) {
        let at = slot as usize;
        if self.leaves.len() <= at {
            self.leaves.resize(at + 1, Leaf::default());
        }
        if let Verdict::Out(reason) = verdict {
            // Full nodes mostly stay full for the same reason.
            let old = &self.leaves[at];
            let known = old.why.checked_sub(REASONS).map(|i| &self.reasons[usize::from(i)]);
            if known == Some(reason) && asked.is_none() && old.hash == 0 && old.lane == lane {
                return;
            }
        }
        let (why, value, mask) = match verdict {
            Verdict::Gone => (GONE, 0, 0),
            Verdict::In { score, mask } => (IN, *score, *mask),
            Verdict::Later(secs) => (LATER, i32::try_from(*secs).unwrap_or(i32::MAX), 0),
            Verdict::Out(reason) => (self.reason_id(reason), 0, 0),
        };
        let hash = asked.map_or(0, |a| row_hash(slot, a));
        let old = std::mem::replace(&mut self.leaves[at], Leaf { why, lane, mask, value, hash });
        self.answers = self.answers.wrapping_sub(old.hash).wrapping_add(hash);
        self.count(old.why, -1);
        self.count(why, 1);
        if old.why == IN && (why != IN || old.lane != lane) {
            self.lanes[old.lane as usize].set(at, ABSENT);
        }
        if why == IN {
            if self.lanes.len() <= lane as usize {
                self.lanes.resize_with(lane as usize + 1, Tree::default);
            }
            self.lanes[lane as usize].set(at, i64::from(value));
        }
    }

    fn reason_id(&mut self, reason: &Reason) -> u16 {
        if let Some(id) = self.reason_ids.get(reason) {
            return *id;
        }
        let id = REASONS + self.reasons.len().min(60_000) as u16;
        self.reasons.push(reason.clone());
        self.reason_ids.insert(reason.clone(), id);
        id
    }

    fn count(&mut self, why: u16, by: i64) {
        let why = usize::from(why);
        if self.counts.len() <= why {
            self.counts.resize(why + 1, 0);
        }
        self.counts[why] = self.counts[why].wrapping_add_signed(by);
    }

    /// The best node, given what each lane adds.
    pub fn top(&self, additions: &[i64]) -> Option<Top> {
        let mut best: Option<(i64, std::cmp::Reverse<usize>)> = None;
        for (lane, tree) in self.lanes.iter().enumerate() {
            let Some((at, score)) = tree.top() else { continue };
            let score = score + additions.get(lane).copied().unwrap_or(0);
            best = best.max(Some((score, std::cmp::Reverse(at))));
        }
        let (score, std::cmp::Reverse(at)) = best?;
        Some(Top { slot: at as u32, score, mask: self.leaves[at].mask })
    }

    /// Nodes in the running.
    pub fn candidates(&self) -> u32 {
        self.counts.get(usize::from(IN)).map_or(0, |n| *n as u32)
    }

    /// All nodes in the running with their scores, by slot.
    pub fn scored(&self) -> impl Iterator<Item = (u32, i32, u32, u32)> + '_ {
        let inside = |(slot, leaf): (usize, &Leaf)| {
            (leaf.why == IN).then_some((slot as u32, leaf.value, leaf.mask, leaf.lane))
        };
        self.leaves.iter().enumerate().filter_map(inside)
    }

    /// Sum of the hashes of all answers that were used.
    pub fn answers(&self) -> u64 {
        self.answers
    }

    /// Why each node that is not in the running is out. The figures are the
    /// caller's to add.
    pub fn reasons(&self) -> Reasons {
        let count = |why: u16| self.counts.get(usize::from(why)).copied().unwrap_or(0);
        let nodes = self.counts.iter().skip(1).sum();
        let mut reasons = Reasons { nodes, ..Reasons::default() };
        if count(LATER) > 0 {
            reasons.counts.insert(Reason::Deferred, count(LATER));
        }
        for (i, reason) in self.reasons.iter().enumerate() {
            let n = count(REASONS + i as u16);
            if n > 0 {
                reasons.counts.insert(reason.clone(), n);
            }
        }
        reasons
    }

    /// The shortest deferral, in seconds.
    pub fn later(&self) -> Option<u32> {
        if self.counts.get(usize::from(LATER)).is_none_or(|n| *n == 0) {
            return None;
        }
        self.leaves.iter().filter(|l| l.why == LATER).map(|l| l.value as u32).min()
    }

    /// Number of leaves, for the cache's bound.
    pub fn size(&self) -> usize {
        self.leaves.len() + 16
    }
}

/// Hash of one row's answer; its sum over rows does not depend on their order.
pub fn row_hash(slot: u32, a: Answer) -> u64 {
    let (score, mask) = if a.code == 0 { (a.score, a.mask) } else { (0, 0) };
    let x = u64::from(slot) << 32 | u64::from(a.code as u32);
    let y = u64::from(score as u32) << 32 | u64::from(mask);
    mix(mix(x) ^ y)
}

/// Finaliser of splitmix64 (Steele, Lea, Flood 2014).
pub fn mix(x: u64) -> u64 {
    let mut z = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
