//! The strings interface: ids of texts for one configured policy.
//!
//! A guest may add texts while it is set up, up to a budget, and never during
//! a decision: the host's table grows for good, and a decision must leave no
//! trace but its answer.

use crater_engine::strings::Strings;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Longest text in bytes that has an id.
pub(crate) const TEXT_BYTES: usize = 256;

/// The id of a text that no column can hold. It is not 0, which columns use
/// for "none": a policy that compares the two must not see them as equal.
pub(crate) const UNKNOWN: i32 = -1;

/// The host's strings as one configured policy sees them.
#[derive(Debug, Default)]
pub(crate) struct Names {
    strings: Arc<Strings>,
    budget: usize,
    added: AtomicUsize,
    known: Mutex<Known>,
}

/// The host's table by text, as far as it has been read.
#[derive(Debug, Default)]
struct Known {
    ids: BTreeMap<Arc<str>, i32>,
    read: i32,
}

impl Names {
    pub(crate) fn new(strings: Arc<Strings>, budget: usize) -> Self {
        Self { strings, budget, ..Self::default() }
    }

    /// The id of a text: 0 for the empty one, [`UNKNOWN`] for one that is too
    /// long, past the budget, or new while `add` is false.
    pub(crate) fn id(&self, text: &str, add: bool) -> i32 {
        if text.is_empty() {
            return 0;
        }
        if text.len() > TEXT_BYTES {
            return UNKNOWN;
        }
        if let Some(id) = self.find(text) {
            return id;
        }
        let room = |added| (added < self.budget).then_some(added + 1);
        if add && self.added.fetch_update(Ordering::Relaxed, Ordering::Relaxed, room).is_ok() {
            return self.strings.id(text);
        }
        UNKNOWN
    }

    /// The text of an id, if there is one.
    pub(crate) fn text(&self, id: i32) -> Option<Arc<str>> {
        self.strings.text(id)
    }

    /// Looks a text up without adding it. Reads on where it stopped last time.
    fn find(&self, text: &str) -> Option<i32> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(id) = known.ids.get(text) {
            return Some(*id);
        }
        while let Some(next) = self.strings.text(known.read + 1) {
            known.read += 1;
            let id = known.read;
            known.ids.entry(next).or_insert(id);
        }
        known.ids.get(text).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decisions_look_up_and_setting_up_adds_within_its_budget() {
        let strings = Arc::new(Strings::default());
        let h100 = strings.id("H100");
        let names = Names::new(strings.clone(), 2);
        assert_eq!((names.id("H100", false), names.id("A100", false)), (h100, UNKNOWN));
        assert_eq!((strings.len(), names.id("", true)), (1, 0));
        let a100 = names.id("A100", true);
        assert_eq!((a100, names.id("A100", false)), (2, 2));
        let later = strings.id("T4");
        assert_eq!(names.id("T4", true), later);
        assert_eq!((names.id("B", true), names.id("C", true), strings.len()), (4, UNKNOWN, 4));
        assert_eq!(names.id(&"x".repeat(TEXT_BYTES + 1), true), UNKNOWN);
        assert_eq!(names.text(a100).as_deref(), Some("A100"));
    }
}
