//! The table of strings that stand in columns as integers.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

/// Append-only and shared by ledger, deciders and policies. The first text is
/// 1; 0 means none.
#[derive(Debug, Default)]
pub struct Strings {
    inner: RwLock<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    ids: BTreeMap<Arc<str>, i32>,
    texts: Vec<Arc<str>>,
}

impl Strings {
    /// The id of a text, 0 for the empty one. Beyond 2³¹ texts all further
    /// ones share the last id.
    pub fn id(&self, text: &str) -> i32 {
        if text.is_empty() {
            return 0;
        }
        // A poisoned lock still guards a usable table: it only grows.
        let known =
            self.inner.read().unwrap_or_else(PoisonError::into_inner).ids.get(text).copied();
        if let Some(id) = known {
            return id;
        }
        let mut inner = self.inner.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(id) = inner.ids.get(text) {
            return *id;
        }
        let text: Arc<str> = text.into();
        inner.texts.push(text.clone());
        let id = i32::try_from(inner.texts.len()).unwrap_or(i32::MAX);
        inner.ids.insert(text, id);
        id
    }

    /// The id of a text that has one.
    pub fn known(&self, text: &str) -> Option<i32> {
        self.inner.read().unwrap_or_else(PoisonError::into_inner).ids.get(text).copied()
    }

    /// The text of an id.
    pub fn text(&self, id: i32) -> Option<Arc<str>> {
        let index = usize::try_from(id).ok()?.checked_sub(1)?;
        self.inner.read().unwrap_or_else(PoisonError::into_inner).texts.get(index).cloned()
    }

    /// All texts in the order of their ids, from 1.
    pub fn texts(&self) -> Vec<Arc<str>> {
        self.inner.read().unwrap_or_else(PoisonError::into_inner).texts.clone()
    }

    /// How many texts it holds.
    pub fn len(&self) -> usize {
        self.inner.read().unwrap_or_else(PoisonError::into_inner).texts.len()
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_stable_and_texts_come_back() {
        let strings = Strings::default();
        let (a, b) = (strings.id("T4"), strings.id("G2"));
        assert_eq!((a, b, strings.id("T4"), strings.id("")), (1, 2, 1, 0));
        assert_eq!(strings.text(2).as_deref(), Some("G2"));
        assert_eq!((strings.text(0), strings.text(3), strings.text(-1)), (None, None, None));
    }
}
