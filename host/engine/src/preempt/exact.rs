//! The cheapest set where something is taken back.
//!
//! Who borrowed keeps its own limits, whoever of it goes, so of two sets that
//! make room one may be allowed and the other not. A part of an allowed set is
//! allowed. Sets are tried in the order of their price: units are decided from
//! the dearest down, staying before going, and a way is left as soon as the job
//! would not fit with all cheaper ones gone, or those chosen are not allowed
//! together. Mostly nothing has to be decided twice; where much has, the first
//! allowed set that is found from the cheapest up has to do.

use super::Making;
use super::search::Search;
use super::units::Unit;
use crate::overlay::Overlay;
use rustc_hash::FxHashSet;

/// Decisions on units that are made at least, whatever their number.
const STEPS: usize = 8192;
/// And for each unit.
const EACH: usize = 4;

/// The cheapest set of units that may go, given cheapest first; `None` if none
/// was found.
pub fn cheapest(
    search: Search<'_>,
    overlay: &Overlay<'_>,
    making: &Making,
    units: &[Unit],
) -> Option<Vec<usize>> {
    let (gone, steps) = (FxHashSet::default(), STEPS + EACH * units.len());
    let mut trying = Trying { search, overlay, making, units, chosen: vec![], gone, steps };
    if trying.search.fits() {
        return Some(vec![]);
    }
    // Who may not go even alone may not go at all.
    let may: Vec<usize> = (0..units.len()).filter(|at| trying.may_alone(*at)).collect();
    let mut fits = false;
    // The dearest unit that goes: the first with which there is an allowed set.
    for dearest in 0..may.len() {
        trying.go(may[dearest]);
        fits = fits || trying.search.fits();
        if fits && trying.below(&may[..=dearest]) {
            trying.chosen.sort_unstable();
            return Some(trying.chosen);
        }
        if trying.steps == 0 {
            trying.begin_again();
            return trying.greedily(&may);
        }
    }
    None
}

struct Trying<'a, 'b> {
    search: Search<'b>,
    overlay: &'a Overlay<'b>,
    making: &'a Making,
    units: &'a [Unit],
    /// Units that go for good, dearest first.
    chosen: Vec<usize>,
    /// Units that have gone: those, and for the moment all that are undecided.
    gone: FxHashSet<usize>,
    steps: usize,
}

impl Trying<'_, '_> {
    fn go(&mut self, at: usize) {
        self.gone.insert(at);
        self.search.go(self.overlay, self.making, &self.units[at], true);
    }

    fn come_back(&mut self, at: usize) {
        self.gone.remove(&at);
        self.search.go(self.overlay, self.making, &self.units[at], false);
    }

    fn may_alone(&mut self, at: usize) -> bool {
        let may = self.choose(at);
        if may {
            self.drop_last();
        }
        may
    }

    /// Chooses a unit, if it is allowed with those that are chosen.
    fn choose(&mut self, at: usize) -> bool {
        self.search.choose(self.making, &self.units[at], true);
        self.chosen.push(at);
        let allowed = self.chosen.iter().all(|at| self.search.keeps_its_own(&self.units[*at].back));
        if !allowed {
            self.drop_last();
        }
        allowed
    }

    fn drop_last(&mut self) {
        if let Some(at) = self.chosen.pop() {
            self.search.choose(self.making, &self.units[at], false);
        }
    }

    /// Whether a job goes whole already: what it can do without goes, too.
    fn forced(&self, at: usize) -> bool {
        let of = self.units[at].of;
        self.chosen.iter().any(|at| self.units[*at].whole && self.units[*at].of == of)
    }

    /// Decides on all of `may`, of which the last, the dearest, goes; leaves all
    /// of them gone where that comes to nothing, but for the end of the steps.
    fn below(&mut self, may: &[usize]) -> bool {
        let Some((dearest, cheaper)) = may.split_last() else { return false };
        if !self.choose(*dearest) {
            return false;
        }
        // Of the cheaper ones those from here on are decided.
        let mut from = cheaper.len();
        while from > 0 {
            self.steps = self.steps.saturating_sub(1);
            if self.steps == 0 {
                return false;
            }
            let at = cheaper[from - 1];
            if !self.forced(at) {
                self.come_back(at);
                if self.search.fits() {
                    from -= 1;
                    continue;
                }
                self.go(at);
            }
            if self.choose(at) {
                from -= 1;
                continue;
            }
            // A dead end: the last one that stays goes instead.
            loop {
                let Some(last) = cheaper.get(from).copied() else {
                    self.drop_last();
                    return false;
                };
                if self.gone.contains(&last) {
                    self.drop_last();
                } else {
                    self.go(last);
                    if self.choose(last) {
                        break;
                    }
                }
                from += 1;
            }
        }
        true
    }

    fn begin_again(&mut self) {
        while !self.chosen.is_empty() {
            self.drop_last();
        }
        let mut gone: Vec<usize> = self.gone.iter().copied().collect();
        gone.sort_unstable();
        for at in gone {
            self.come_back(at);
        }
    }

    /// One after the other goes that may, until the job fits; then those stay,
    /// from the dearest down, that need not.
    fn greedily(mut self, may: &[usize]) -> Option<Vec<usize>> {
        let mut gone = may.iter().copied();
        while !self.search.fits() {
            let at = gone.next()?;
            if self.choose(at) {
                self.go(at);
            }
        }
        let mut needed = vec![];
        while let Some(at) = self.chosen.pop() {
            let whole = |kept: &usize| self.units[*kept].whole;
            let of = |kept: &usize| self.units[*kept].of == self.units[at].of;
            if !needed.iter().any(|kept| whole(kept) && of(kept)) {
                self.come_back(at);
                if self.search.fits() {
                    continue;
                }
                self.go(at);
            }
            needed.push(at);
        }
        needed.reverse();
        Some(needed)
    }
}
