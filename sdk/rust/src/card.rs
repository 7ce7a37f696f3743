//! A card, and whether what a job asks for fits on it.

use crate::columns::{
    CARD_FREE, CARD_HEALTHY, CARD_MEMORY_FREE, CARD_MEMORY_TOTAL, CARD_MODEL, JOB_CARD_MIB,
    JOB_CARD_MILLI, JOB_CARDS, JOB_MIG_PROFILE, JOB_NUMA, JOB_NVLINK, JOB_WHOLE_CARDS,
};
use crate::job::Job;
use crate::node::{Node, Nodes};

/// A card of a node.
#[derive(Clone, Copy, Debug)]
pub struct Card<'a> {
    pub(crate) nodes: &'a Nodes<'a>,
    /// Place in the flat columns.
    pub(crate) at: usize,
    pub(crate) index: usize,
}

impl Card<'_> {
    /// A value by its id, such as `card.get(CARD_FREE)`.
    #[inline]
    pub fn get(&self, id: u32) -> i32 {
        self.nodes.card.get(id, self.at)
    }

    /// Its position on the node.
    #[inline]
    pub fn index(&self) -> usize {
        self.index
    }

    /// Its bit in a card mask; 0 for the 33rd card and those after it, which a
    /// mask cannot name.
    #[inline]
    pub fn bit(&self) -> u32 {
        if self.index < 32 { 1 << self.index } else { 0 }
    }

    /// Whether one card's part of what the job asks for fits here; see
    /// [`Ask::fits`].
    pub fn fits(&self, job: &Job) -> bool {
        Ask::of(job).fits(self)
    }
}

/// What a job asks of each of its cards, read once for many rows. Needs
/// `JOB_CARDS`, `JOB_CARD_MILLI`, `JOB_CARD_MIB` and `JOB_WHOLE_CARDS`; and, to
/// choose cards as the host would have them, `JOB_MODELS`, `JOB_MIG_PROFILE`,
/// `JOB_NVLINK` and `JOB_NUMA`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask<'a> {
    /// Distinct cards; 0 for work without a GPU.
    pub cards: usize,
    /// Share of each in milli-cards; 0 where memory decides.
    pub milli: i32,
    /// Memory of each in MiB; 0 in proportion to the share.
    pub mib: i32,
    /// Whole cards, shared with nobody.
    pub whole: bool,
    /// String ids of the models that it may use; empty means any.
    pub models: &'a [i32],
    /// Which cards go together is the host's to say: MIG instances, or cards
    /// that must be joined by links or a NUMA node.
    pub by_host: bool,
}

impl<'a> Ask<'a> {
    /// What this job asks for.
    #[inline]
    pub fn of(job: &Job<'a>) -> Self {
        let cards = job.get(JOB_CARDS).max(0) as usize;
        let required = |need| job.get(need) == 2;
        Self {
            cards,
            milli: job.get(JOB_CARD_MILLI),
            mib: job.get(JOB_CARD_MIB),
            whole: job.get(JOB_WHOLE_CARDS) != 0,
            models: job.models(),
            by_host: job.get(JOB_MIG_PROFILE) != 0
                || cards > 1 && (required(JOB_NVLINK) || required(JOB_NUMA)),
        }
    }

    /// Whether it takes all of each card.
    #[inline]
    pub fn takes_all(&self) -> bool {
        self.whole || self.milli >= 1000
    }

    /// Memory that is charged on a card with `total` MiB: what was asked; in
    /// proportion to the share (rounded down) where none was; all of it for a
    /// whole card and for an ask up to 2 % above it, which means the card by
    /// its nominal size. Memory slices, which the host may round up to, are not
    /// known here.
    #[inline]
    pub fn mib_on(&self, total: i32) -> i32 {
        if self.whole {
            total
        } else if self.mib == 0 {
            (i64::from(total) * i64::from(self.milli) / 1000) as i32
        } else if self.mib > total && i64::from(self.mib) * 100 <= i64::from(total) * 102 {
            total
        } else {
            self.mib
        }
    }

    /// Share that is charged on a card with `total` MiB: what was asked, or
    /// ⌈1000 · memory / total⌉ where memory decides.
    #[inline]
    pub fn milli_on(&self, total: i32) -> i32 {
        if self.whole {
            1000
        } else if self.milli > 0 || self.mib <= 0 {
            self.milli.max(1)
        } else if total <= 0 {
            i32::MAX
        } else {
            let (mib, total) = (i64::from(self.mib_on(total)), i64::from(total));
            ((1000 * mib + total - 1) / total).min(i64::from(i32::MAX)) as i32
        }
    }

    /// Whether one card's part fits: healthy, of a model that the job may use,
    /// with enough free share and free memory. A column that was not wanted
    /// does not speak against a card, save that a job whose memory decides
    /// fits nowhere without `CARD_MEMORY_TOTAL`.
    #[inline]
    pub fn fits(&self, card: &Card) -> bool {
        let column = |id| card.nodes.card.column(id);
        Room::new(column).takes(self, card.at)
    }

    /// Cards with room in order of their free share times `sign`, the lowest
    /// index among equals, as a mask; 0 if there are too few or the choice is
    /// the host's.
    #[inline]
    pub(crate) fn choose(&self, node: &Node, sign: i32) -> u32 {
        if self.by_host {
            return 0;
        }
        let room = Room::new(|id| node.card_column(id));
        let mut mask = 0;
        for _ in 0..self.cards {
            let (mut best, mut least) = (0, i32::MAX);
            for (card, free) in room.free.iter().enumerate().take(32) {
                let key = free * sign;
                if key < least && mask >> card & 1 == 0 && room.takes(self, card) {
                    (best, least) = (1 << card, key);
                }
            }
            if best == 0 {
                return 0;
            }
            mask |= best;
        }
        mask
    }

    /// The first cards with room, as a mask; 0 as in `choose`.
    #[inline]
    pub(crate) fn first(&self, node: &Node) -> u32 {
        if self.by_host {
            return 0;
        }
        let (mut mask, mut left) = (0, self.cards);
        for card in node.fitting(self).take(self.cards).filter(|card| *card < 32) {
            mask |= 1 << card;
            left -= 1;
        }
        if left == 0 { mask } else { 0 }
    }
}

/// The card columns that say whether there is room.
pub(crate) struct Room<'a> {
    pub(crate) free: &'a [i32],
    memory_free: &'a [i32],
    memory_total: &'a [i32],
    healthy: &'a [i32],
    model: &'a [i32],
}

impl<'a> Room<'a> {
    #[expect(clippy::inline_always, reason = "a few loads a row")]
    #[inline(always)]
    pub(crate) fn new(column: impl Fn(u32) -> &'a [i32]) -> Self {
        Self {
            free: column(CARD_FREE),
            memory_free: column(CARD_MEMORY_FREE),
            memory_total: column(CARD_MEMORY_TOTAL),
            healthy: column(CARD_HEALTHY),
            model: column(CARD_MODEL),
        }
    }

    /// Whether a card takes its part of what is asked.
    #[expect(clippy::inline_always, reason = "asked of every card of every row")]
    #[inline(always)]
    pub(crate) fn takes(&self, ask: &Ask, card: usize) -> bool {
        let value = |column: &[i32]| column.get(card).copied().unwrap_or(0);
        let (free, total) = (value(self.free), value(self.memory_total));
        if ask.milli > 0 && free < ask.milli || free < ask.milli_on(total) {
            return false;
        }
        let room = match self.memory_free.get(card) {
            None => true,
            // Whether ⌊total · milli / 1000⌋ is there, without dividing.
            Some(free) if ask.mib == 0 && !ask.whole => {
                i64::from(total) * i64::from(ask.milli) < (i64::from(*free) + 1) * 1000
            }
            Some(free) => *free >= ask.mib_on(total),
        };
        room && self.healthy.get(card).is_none_or(|healthy| *healthy != 0)
            && (ask.models.is_empty()
                || self.model.get(card).is_none_or(|model| ask.models.contains(model)))
    }
}

#[cfg(test)]
mod tests {
    use crate::columns::*;
    use crate::job::Jobs;
    use crate::testing::{NodeSpec, card, job, node, with_nodes};

    /// Which cards of one node fit, as a string of 0 and 1, and the tightest.
    fn fit(ask: &crate::testing::JobSpec, on: NodeSpec) -> (String, u32) {
        let columns = ask.columns();
        let columns: Vec<_> = columns.iter().map(|(id, v)| (*id, v.as_slice())).collect();
        let jobs = Jobs::one(&columns);
        let job = jobs.row(0);
        with_nodes(&[on], |nodes| {
            let node = nodes.row(0);
            let fits = node.cards().map(|c| if c.fits(&job) { '1' } else { '0' }).collect();
            (fits, node.tightest(&crate::Ask::of(&job)))
        })
    }

    #[test]
    fn shares_memory_and_health_decide() {
        let sick = || card().free(0).healthy(false);
        let cards = || node().card(card().free(400)).card(card().free(1000)).card(sick());
        assert_eq!(fit(&job().share(500), cards()), ("010".into(), 0b010));
        assert_eq!(fit(&job().share(300), cards()), ("110".into(), 0b001));
        assert_eq!(fit(&job().whole(1), cards()), ("010".into(), 0b010));
        assert_eq!(fit(&job().whole(2), cards()), ("010".into(), 0));
    }

    #[test]
    fn memory_alone_brings_its_share() {
        // 40,000 of 80,000 MiB goes with 500 milli, and 40,001 with 501.
        let half = || node().card(card().memory(80_000, 80_000).free(500));
        assert_eq!(fit(&job().card_memory(1, 40_000), half()).0, "1");
        assert_eq!(fit(&job().card_memory(1, 40_001), half()).0, "0");
        // A share may be there and its memory not.
        let short = || node().card(card().memory(80_000, 9_000).free(900));
        assert_eq!(fit(&job().share(500), short()).0, "0");
        assert_eq!(fit(&job().share(500).set(JOB_CARD_MIB, 8_000), short()).0, "1");
    }

    #[test]
    fn other_models_and_required_links_are_respected() {
        let t4 = crate::strings::id("T4");
        let mixed = || node().model("A10").card(card()).card(card().set(CARD_MODEL, t4));
        assert_eq!(fit(&job().share(500).models(["T4"]), mixed()), ("01".into(), 0b10));
        let joined = job().whole(2).set(JOB_NVLINK, 2);
        assert_eq!(fit(&joined, node().cards([1000, 1000])), ("11".into(), 0));
    }

    #[test]
    fn the_nominal_size_means_the_whole_memory() {
        let card80 = || node().card(card().memory(81_559, 81_559).free(1000));
        assert_eq!(fit(&job().card_memory(1, 81_920), card80()).0, "1");
        assert_eq!(fit(&job().card_memory(1, 90_000), card80()).0, "0");
    }
}
