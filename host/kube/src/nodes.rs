//! Machines in the books: what their Nodes and inventories say, and what that
//! means for the pods on them.

use crate::machine::{InventorySeen, NodeSeen, describe};
use crate::mirror::{Machine, Mirror, Standing};
use crater_model::Time;
use std::sync::Arc;

impl Mirror {
    /// A Node appeared or changed.
    pub fn node_seen(&mut self, now: Time, seen: NodeSeen) {
        let name = seen.name.clone();
        if self.machines.get(&name).is_some_and(|m| m.seen.uid != seen.uid) {
            self.node_gone(now, &name);
        }
        let (spec, uuids, bad) = describe(&seen, self.inventories.get(&name));
        self.troubles.inventories += u64::from(bad.is_some());
        if let Some(machine) = self.machines.get_mut(&name) {
            machine.seen = seen;
            if machine.spec == spec && machine.uuids == uuids {
                return;
            }
            let other_cards = machine.uuids != uuids;
            machine.spec = spec.clone();
            machine.uuids = uuids;
            let node = machine.node;
            let done = self.ledger.change_node(now, node, spec);
            self.defect(done);
            if other_cards {
                self.give_cards(now, &name);
            }
            return;
        }
        let added = self.ledger.add_node(now, spec.clone());
        let Some(node) = self.defect(added) else { return };
        self.machines.insert(name.clone(), Machine { seen, node, spec, uuids });
        let mut bound: Vec<Arc<str>> =
            self.bound.get(&name).into_iter().flatten().cloned().collect();
        bound.sort_by_key(|uid| self.names_no_cards(uid));
        for uid in bound {
            self.settle(now, &uid);
        }
    }

    /// Charges pods anew that hold fewer cards in the books than they should:
    /// what is said of a node's cards may come after its pods, and a card that
    /// another pod held may be free now.
    pub(crate) fn give_cards(&mut self, now: Time, name: &str) {
        self.short.remove(name);
        let short = |uid: &&Arc<str>| {
            let Some(entry) = self.pods.get(*uid) else { return false };
            let Standing::Bound(_, claim) = entry.standing else { return false };
            let held = self.state().claim(claim).map_or(0, |c| c.held.cards.len() as u64);
            held < entry.seen.cards()
        };
        let mut short: Vec<Arc<str>> =
            self.bound.get(name).into_iter().flatten().filter(short).cloned().collect();
        short.sort_by_key(|uid| self.names_no_cards(uid));
        for uid in &short {
            self.leave_books(now, uid, true);
        }
        for uid in short {
            self.settle(now, &uid);
        }
    }

    /// Who has no cards by name is given some that are left: last.
    fn names_no_cards(&self, uid: &str) -> bool {
        self.pods.get(uid).is_none_or(|e| e.seen.assigned.is_none())
    }

    /// Something left a node.
    pub(crate) fn freed(&mut self, now: Time, node: &str) {
        if self.short.contains(node) {
            self.give_cards(now, node);
        }
    }

    /// A Node is gone, and with it what was held on it. Pods that are still
    /// bound to its name hold nothing until a node of that name comes.
    pub fn node_gone(&mut self, now: Time, name: &str) {
        let Some(machine) = self.machines.remove(name) else { return };
        for uid in self.promised.get(name).cloned().unwrap_or_default() {
            self.refused_binding(now, &uid);
        }
        for uid in self.bound.get(name).cloned().unwrap_or_default() {
            self.leave_books(now, &uid, true);
            self.stand(&uid, Standing::Afar);
        }
        self.short.remove(name);
        let done = self.ledger.remove_node(now, machine.node);
        self.defect(done);
    }

    /// The cards of a node, or `None` when nothing is said of them any more.
    pub fn inventory(&mut self, now: Time, name: &str, seen: Option<InventorySeen>) {
        match seen {
            Some(seen) => self.inventories.insert(name.into(), seen),
            None => self.inventories.remove(name),
        };
        if let Some(machine) = self.machines.get(name) {
            let seen = machine.seen.clone();
            self.node_seen(now, seen);
        }
    }
}
