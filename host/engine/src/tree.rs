//! The best of many scores, kept as they change one by one.

/// A tournament over positions 0, 1, 2 …: the greatest score and, among
/// equals, the first position. A change costs the height of the tree, a look
/// at the winner nothing.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    /// Node 1 is the root, the leaves begin at `width`.
    best: Vec<i64>,
    width: usize,
}

/// No score: the position is not in the running.
pub const ABSENT: i64 = i64::MIN;

impl Tree {
    /// Sets the score of a position; `ABSENT` takes it out.
    pub fn set(&mut self, at: usize, score: i64) {
        if at >= self.width {
            self.grow(at + 1);
        }
        let mut node = self.width + at;
        if self.best[node] == score {
            return;
        }
        self.best[node] = score;
        while node > 1 {
            node /= 2;
            let best = self.best[2 * node].max(self.best[2 * node + 1]);
            if self.best[node] == best {
                return;
            }
            self.best[node] = best;
        }
    }

    /// Fills all positions at once.
    pub fn fill(&mut self, scores: &[i64]) {
        self.width = scores.len().next_power_of_two();
        self.best = vec![ABSENT; 2 * self.width];
        self.best[self.width..self.width + scores.len()].copy_from_slice(scores);
        for node in (1..self.width).rev() {
            self.best[node] = self.best[2 * node].max(self.best[2 * node + 1]);
        }
    }

    /// The first position with the greatest score, and the score.
    pub fn top(&self) -> Option<(usize, i64)> {
        let best = *self.best.get(1)?;
        if best == ABSENT {
            return None;
        }
        let mut node = 1;
        while node < self.width {
            node = if self.best[2 * node] == best { 2 * node } else { 2 * node + 1 };
        }
        Some((node - self.width, best))
    }

    fn grow(&mut self, len: usize) {
        let mut scores = self.best.split_off(self.width.min(self.best.len()));
        scores.resize(len.max(16), ABSENT);
        self.fill(&scores);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_winner_is_that_of_a_plain_search(
            changes in prop::collection::vec((0usize..200, -5i64..5), 1..300)
        ) {
            let mut tree = Tree::default();
            let mut plain = vec![ABSENT; 200];
            for (at, score) in changes {
                let score = if score == -5 { ABSENT } else { score };
                tree.set(at, score);
                plain[at] = score;
                let best = *plain.iter().max().unwrap();
                let expected = plain.iter().position(|s| *s == best).map(|at| (at, best));
                prop_assert_eq!(tree.top(), expected.filter(|(_, best)| *best != ABSENT));
            }
            let mut filled = Tree::default();
            filled.fill(&plain);
            prop_assert_eq!(filled.top(), tree.top());
        }
    }
}
