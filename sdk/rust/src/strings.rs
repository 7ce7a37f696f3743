//! Texts behind the ids that stand for strings in columns: the host's table in
//! a component, a table of this thread natively.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The id of a text: the same for as long as the host runs, never 0, save that
/// the empty text is 0.
pub fn id(text: &str) -> i32 {
    if text.is_empty() {
        return 0;
    }
    #[cfg(target_arch = "wasm32")]
    return crate::wasm::string_id(text);
    #[cfg(not(target_arch = "wasm32"))]
    CURRENT.with_borrow(Arc::clone).id(text)
}

/// The text of an id, empty if there is none.
pub fn text(id: i32) -> String {
    #[cfg(target_arch = "wasm32")]
    return crate::wasm::string_text(id);
    #[cfg(not(target_arch = "wasm32"))]
    CURRENT.with_borrow(Arc::clone).text(id)
}

/// A host's table of strings, for natively compiled policies.
pub trait Strings: Send + Sync {
    /// The id of a text, never 0.
    fn id(&self, text: &str) -> i32;
    /// The text of an id, empty if there is none.
    fn text(&self, id: i32) -> String;
}

/// A table that grows as it is asked.
#[derive(Debug, Default)]
pub struct Local(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    ids: BTreeMap<String, i32>,
    texts: Vec<String>,
}

impl Strings for Local {
    fn id(&self, text: &str) -> i32 {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(id) = known.ids.get(text) {
            return *id;
        }
        known.texts.push(text.to_owned());
        let id = i32::try_from(known.texts.len()).unwrap_or(i32::MAX);
        known.ids.insert(text.to_owned(), id);
        id
    }

    fn text(&self, id: i32) -> String {
        let at = usize::try_from(id).ok().and_then(|id| id.checked_sub(1));
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        at.and_then(|at| known.texts.get(at).cloned()).unwrap_or_default()
    }
}

thread_local! {
    static CURRENT: RefCell<Arc<dyn Strings>> = RefCell::new(Arc::new(Local::default()));
}

/// Runs native policy code with a host's table in place of this thread's own.
pub fn with<R>(table: Arc<dyn Strings>, run: impl FnOnce() -> R) -> R {
    struct Restore(Option<Arc<dyn Strings>>);
    impl Drop for Restore {
        fn drop(&mut self) {
            if let Some(before) = self.0.take() {
                CURRENT.set(before);
            }
        }
    }
    let _restore = Restore(Some(CURRENT.replace(table)));
    run()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hosts_table_is_used_for_as_long_as_it_is_given() {
        let mine = id("T4");
        assert_eq!((text(mine).as_str(), id(""), text(0).as_str()), ("T4", 0, ""));
        let host = Arc::new(Local::default());
        host.id("one");
        assert_eq!(with(host, || (id("T4"), text(1))), (2, "one".into()));
        assert_eq!(id("T4"), mine);
    }
}
