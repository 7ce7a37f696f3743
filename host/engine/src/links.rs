//! Which of a node's cards reach each other best.

use crate::node::NodeState;
use crater_model::CardShare;
use smallvec::SmallVec;

/// Most sets that are looked at: all of them up to 8 of 16 cards.
const SETS: u64 = 20_000;

/// The set of `count` of the cards whose slowest pair is fastest; of those the
/// one with the most bandwidth over all pairs; of those the first in the order
/// given. `None` where bandwidths are not known or there are too many sets.
pub fn best(node: &NodeState, cards: &[CardShare], count: usize) -> Option<Vec<CardShare>> {
    let n = node.cards.len();
    let known = &node.spec.links.bandwidth;
    if count < 2 || known.len() != n * n || sets(cards.len(), count) > SETS {
        return None;
    }
    let between = |a: &CardShare, b: &CardShare| {
        u64::from(known[usize::from(a.card) * n + usize::from(b.card)])
    };
    let mut best: Option<((u64, u64), Chosen)> = None;
    let mut chosen: Chosen = (0..count).collect();
    loop {
        let (mut slowest, mut sum) = (u64::MAX, 0);
        for (i, a) in chosen.iter().enumerate() {
            for b in &chosen[i + 1..] {
                let speed = between(&cards[*a], &cards[*b]);
                slowest = slowest.min(speed);
                sum += speed;
            }
        }
        if best.as_ref().is_none_or(|(most, _)| (slowest, sum) > *most) {
            best = Some(((slowest, sum), chosen.clone()));
        }
        if !next(&mut chosen, cards.len()) {
            break;
        }
    }
    best.map(|(_, chosen)| chosen.into_iter().map(|i| cards[i].clone()).collect())
}

type Chosen = SmallVec<[usize; 16]>;

/// The next set in lexicographic order; `false` after the last.
fn next(chosen: &mut Chosen, n: usize) -> bool {
    let k = chosen.len();
    let Some(at) = (0..k).rev().find(|i| chosen[*i] < n - k + i) else { return false };
    chosen[at] += 1;
    for i in at + 1..k {
        chosen[i] = chosen[i - 1] + 1;
    }
    true
}

/// How many sets of k there are among n.
fn sets(n: usize, k: usize) -> u64 {
    let k = k.min(n.saturating_sub(k)) as u64;
    (0..k).fold(1_u64, |sets, i| sets.saturating_mul(n as u64 - i) / (i + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_set_comes_once_in_order() {
        let mut chosen: Chosen = (0..3).collect();
        let mut all = vec![chosen.clone()];
        while next(&mut chosen, 6) {
            all.push(chosen.clone());
        }
        assert_eq!(all.len() as u64, sets(6, 3));
        assert!(all.windows(2).all(|w| w[0] < w[1]), "{all:?}");
        assert_eq!((sets(16, 8), sets(8, 8), sets(8, 0), sets(3, 5)), (12_870, 1, 1, 1));
    }
}
