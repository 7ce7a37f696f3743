//! Writes of nodes' objects under way, and pods that ended meanwhile.
//!
//! A write that met another leader's reads the node's pods anew. By the time
//! its answer is heard, the watch may have said that one of them is gone; taken
//! in after that it would hold its room for ever, since nothing says a second
//! time that it is gone.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// See above.
#[derive(Debug, Default)]
pub(crate) struct UnderWay {
    /// Nodes whose object is being written, with the count when that began.
    nodes: BTreeMap<Arc<str>, u64>,
    /// Pods that ended while anything was under way, counted up.
    ended: VecDeque<(u64, Arc<str>)>,
    count: u64,
}

impl UnderWay {
    /// Whether nothing is.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Whether a node's object is being written.
    pub fn contains(&self, node: &str) -> bool {
        self.nodes.contains_key(node)
    }

    /// A write begins.
    pub fn begin(&mut self, node: Arc<str>) {
        self.nodes.insert(node, self.count);
    }

    /// A pod is gone, or over.
    pub fn ended(&mut self, uid: &Arc<str>) {
        if !self.nodes.is_empty() {
            self.count += 1;
            self.ended.push_back((self.count, uid.clone()));
        }
    }

    /// A write is done: pods that ended since it began.
    pub fn finish(&mut self, node: &str) -> BTreeSet<Arc<str>> {
        let Some(began) = self.nodes.remove(node) else { return BTreeSet::new() };
        let since = self.ended.iter().filter(|(n, _)| *n > began).map(|(_, uid)| uid.clone());
        let since = since.collect();
        let oldest = self.nodes.values().min().copied().unwrap_or(self.count);
        while self.ended.front().is_some_and(|(n, _)| *n <= oldest) {
            self.ended.pop_front();
        }
        since
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ended_is_known_for_as_long_as_a_write_may_bring_it_back() {
        let mut under_way = UnderWay::default();
        under_way.ended(&"before".into());
        under_way.begin("a".into());
        under_way.ended(&"p1".into());
        under_way.begin("b".into());
        under_way.ended(&"p2".into());
        assert_eq!(under_way.finish("a"), ["p1".into(), "p2".into()].into());
        assert!(under_way.contains("b") && !under_way.contains("a"));
        assert_eq!(under_way.ended.len(), 1, "b began after p1");
        assert_eq!(under_way.finish("b"), ["p2".into()].into());
        assert!(under_way.is_empty() && under_way.ended.is_empty());
        assert!(under_way.finish("b").is_empty());
    }
}
