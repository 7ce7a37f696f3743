//! What was last seen of the cluster. A standby keeps it, so that it can lead
//! at once.

use crate::claims::ClaimsSeen;
use crate::machine::{InventorySeen, NodeSeen};
use crate::pod::PodSeen;
use crate::watch::Feed;
use std::collections::BTreeMap;
use std::sync::Arc;

/// News of the cluster.
#[derive(Debug)]
pub enum Sight {
    /// Pods.
    Pods(Feed<Arc<PodSeen>>),
    /// Nodes.
    Nodes(Feed<NodeSeen>),
    /// Cards.
    Inventories(Feed<InventorySeen>),
    /// Promises.
    Claims(Feed<ClaimsSeen>),
}

/// What one sight changed, for the books.
#[derive(Debug)]
pub enum Change {
    /// A pod appeared or changed.
    Pod(Arc<PodSeen>),
    /// A pod is gone, by uid.
    PodGone(Arc<str>),
    /// A node appeared or changed.
    Node(NodeSeen),
    /// A node is gone, by name and uid.
    NodeGone(Arc<str>, Arc<str>),
    /// Cards of a node appeared or changed.
    Inventory(InventorySeen),
    /// Nothing is said of a node's cards any more.
    InventoryGone(Arc<str>),
}

/// What was last seen.
#[derive(Debug, Default)]
pub struct Cache {
    /// Pods by uid.
    pub pods: BTreeMap<Arc<str>, Arc<PodSeen>>,
    /// Nodes by name.
    pub nodes: BTreeMap<Arc<str>, NodeSeen>,
    /// Cards by node.
    pub inventories: BTreeMap<Arc<str>, InventorySeen>,
    /// Promises by node.
    pub claims: BTreeMap<Arc<str>, ClaimsSeen>,
    /// The newest list of each: pods, nodes, inventories, claims.
    pub listed: [Option<u64>; 4],
}

impl Cache {
    /// Takes a sight in.
    pub fn see(&mut self, sight: Sight) -> Vec<Change> {
        match sight {
            Sight::Pods(feed) => {
                self.mark(0, &feed);
                let key = |p: &Arc<PodSeen>| p.uid.clone();
                let gone = |p: Arc<PodSeen>| Change::PodGone(p.uid.clone());
                take(&mut self.pods, feed, key, Change::Pod, gone)
            }
            Sight::Nodes(feed) => {
                self.mark(1, &feed);
                let key = |n: &NodeSeen| n.name.clone();
                let gone = |n: NodeSeen| Change::NodeGone(n.name, n.uid);
                take(&mut self.nodes, feed, key, Change::Node, gone)
            }
            Sight::Inventories(feed) => {
                self.mark(2, &feed);
                let key = |i: &InventorySeen| i.name.clone();
                let gone = |i: InventorySeen| Change::InventoryGone(i.name);
                take(&mut self.inventories, feed, key, Change::Inventory, gone)
            }
            Sight::Claims(feed) => {
                self.mark(3, &feed);
                match feed {
                    Feed::All(all, _) => {
                        self.claims = all.into_iter().map(|c| (c.node.clone(), c)).collect();
                    }
                    Feed::One(claims) => {
                        self.claims.insert(claims.node.clone(), claims);
                    }
                    Feed::Gone(claims) => {
                        self.claims.remove(&claims.node);
                    }
                }
                vec![]
            }
        }
    }

    fn mark<T>(&mut self, which: usize, feed: &Feed<T>) {
        if let Feed::All(_, asked) = feed {
            self.listed[which] = Some(*asked);
        }
    }

    /// Whether everything has been listed since these requests.
    pub fn has_listed(&self, since: [u64; 4]) -> bool {
        self.listed.iter().zip(since).all(|(listed, since)| listed.is_some_and(|l| l >= since))
    }
}

fn take<T: Clone + PartialEq>(
    map: &mut BTreeMap<Arc<str>, T>,
    feed: Feed<T>,
    key: impl Fn(&T) -> Arc<str>,
    changed: impl Fn(T) -> Change,
    gone: impl Fn(T) -> Change,
) -> Vec<Change> {
    match feed {
        Feed::One(new) => {
            let old = map.insert(key(&new), new.clone());
            if old.as_ref() == Some(&new) { vec![] } else { vec![changed(new)] }
        }
        Feed::Gone(last) => map.remove(&key(&last)).map(gone).into_iter().collect(),
        Feed::All(all, _) => {
            let mut old = std::mem::take(map);
            let mut changes = vec![];
            for new in all {
                let name = key(&new);
                old.remove(&name);
                // What is as it was is told too: a list puts right whatever
                // was taken wrongly before.
                changes.push(changed(new.clone()));
                map.insert(name, new);
            }
            // First what is gone: its room is wanted.
            let mut first: Vec<Change> = old.into_values().map(gone).collect();
            first.extend(changes);
            first
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::InventorySpec;

    fn seen(name: &str) -> InventorySeen {
        InventorySeen { name: name.into(), spec: InventorySpec::default() }
    }

    #[test]
    fn a_list_says_what_is_gone_too() {
        let mut cache = Cache::default();
        let mut see = |feed| format!("{:?}", cache.see(Sight::Inventories(feed)).len());
        assert_eq!(see(Feed::All(vec![seen("a"), seen("b")], 1)), "2");
        assert_eq!(see(Feed::One(seen("a"))), "0", "nothing new");
        assert_eq!(see(Feed::All(vec![seen("b"), seen("c")], 2)), "3", "a gone, c new, b again");
        assert_eq!(see(Feed::Gone(seen("a"))), "0", "it was gone before");
        assert!(cache.has_listed([0; 4]) == cache.listed.iter().all(Option::is_some));
    }
}
