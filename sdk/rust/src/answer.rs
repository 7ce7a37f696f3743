//! What a policy answers, for one row and for many.

/// Whether a node may take the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It may.
    Keep,
    /// It may not, for the manifest's reason with this code (1 or more).
    Refuse(i32),
    /// Not now: ask again in so many seconds (1 or more) even if nothing
    /// changes until then.
    Defer(i32),
}

impl Verdict {
    /// The contract's code: 0, the reason's, or minus the seconds.
    #[inline]
    pub const fn code(self) -> i32 {
        match self {
            Self::Keep => 0,
            Self::Refuse(code) => code,
            Self::Defer(seconds) => -(if seconds < 1 { 1 } else { seconds }),
        }
    }
}

/// How good a node is, and optionally which of its cards to use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Score {
    /// Greater is better, in the policy's own fixed point.
    pub value: i32,
    /// Bit mask of the cards to use, bit 0 the node's first; 0 leaves the
    /// choice to the host.
    pub cards: u32,
}

impl Score {
    /// A score with the cards to use.
    #[inline]
    pub const fn on(value: i32, cards: u32) -> Self {
        Self { value, cards }
    }
}

impl From<i32> for Score {
    #[inline]
    fn from(value: i32) -> Self {
        Self { value, cards: 0 }
    }
}

/// The scores of many rows. The list of masks stays empty, and so is not sent,
/// until a row names cards.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scores {
    /// One a row.
    pub values: Vec<i32>,
    /// Empty, or one mask a row.
    pub cards: Vec<i32>,
}

impl Scores {
    /// Space for so many rows.
    pub fn with_capacity(rows: usize) -> Self {
        Self { values: Vec::with_capacity(rows), cards: Vec::new() }
    }

    /// Adds the next row's.
    #[inline]
    pub fn push(&mut self, score: Score) {
        self.mask(self.values.len(), self.values.capacity(), score.cards);
        self.values.push(score.value);
    }

    /// A row's mask, of about so many rows in all.
    #[inline]
    fn mask(&mut self, row: usize, rows: usize, mask: u32) {
        if mask != 0 || !self.cards.is_empty() {
            if self.cards.is_empty() {
                self.begin_masks(row, rows);
            }
            self.cards.push(mask.cast_signed());
        }
    }

    #[cold]
    fn begin_masks(&mut self, row: usize, rows: usize) {
        self.cards.reserve(rows);
        self.cards.resize(row, 0);
    }
}

impl Extend<Score> for Scores {
    #[inline]
    fn extend<T: IntoIterator<Item = Score>>(&mut self, scores: T) {
        // The values go in without a check of the space for each, which the
        // length of the iterator already says.
        let mut values = std::mem::take(&mut self.values);
        let (mut row, rows) = (values.len(), values.capacity());
        values.extend(scores.into_iter().map(|score| {
            self.mask(row, rows, score.cards);
            row += 1;
            score.value
        }));
        self.values = values;
    }
}

/// What evicting a unit would cost; lower goes first. Sets of units are
/// compared by their worst member: tier, then cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Price {
    /// Compared first.
    pub tier: i32,
    /// Compared within a tier.
    pub cost: i32,
}

impl Price {
    /// Spares the unit where its job is within its own quota. What is borrowed
    /// can be taken back all the same.
    pub const SPARE: Self = Self { tier: i32::MAX, cost: 0 };
}

/// A job's place in its queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rank {
    /// Lower tiers go first.
    pub tier: i32,
    /// Within a tier the host serves next the class that uses least.
    pub class: i32,
    /// Within a class the greater weight goes first, then the earlier submitted.
    pub weight: i32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_are_sent_from_the_first_row_that_names_cards() {
        let mut scores = Scores::default();
        scores.push(Score::from(5));
        assert!(scores.cards.is_empty());
        scores.push(Score::on(6, 0b10));
        scores.push(Score::from(7));
        assert_eq!((scores.values, scores.cards), (vec![5, 6, 7], vec![0, 2, 0]));
    }

    #[test]
    fn a_deferral_is_at_least_a_second() {
        let codes = [Verdict::Keep, Verdict::Refuse(3), Verdict::Defer(60), Verdict::Defer(0)];
        assert_eq!(codes.map(Verdict::code), [0, 3, -60, -1]);
    }
}
