//! A round's own view of the nodes: the books plus what the round has placed
//! so far. Nothing of it outlives the round.

use crate::node::{NodeState, Owner};
use crate::quota::{Ask, CardKind, Tentative, card_kinds, open_models};
use crate::state::State;
use crater_model::{Held, JobUid, OverQuota, Reason, Request, Usage};
use rustc_hash::FxHashMap;
use std::cell::OnceCell;
use std::sync::Arc;

/// The books with tentative charges over them.
pub struct Overlay<'a> {
    base: &'a State,
    touched: FxHashMap<u32, NodeState>,
    undo: Vec<(u32, Option<NodeState>)>,
    /// What the round charged to tenants that have a quota.
    quota: Tentative,
    kinds: OnceCell<Vec<CardKind>>,
    stamp: u64,
}

impl<'a> Overlay<'a> {
    /// The books as they are. `stamp` must name no content seen before.
    pub fn new(base: &'a State, stamp: u64) -> Self {
        let (touched, quota) = (FxHashMap::default(), Tentative::default());
        Self { base, touched, undo: vec![], quota, kinds: OnceCell::new(), stamp }
    }

    /// The books below.
    pub fn base(&self) -> &'a State {
        self.base
    }

    /// A node as the round sees it.
    pub fn get(&self, slot: u32) -> Option<&NodeState> {
        if !self.touched.is_empty()
            && let Some(node) = self.touched.get(&slot)
        {
            return Some(node);
        }
        self.base.node(crater_model::NodeUid(u64::from(slot))).map(|n| &**n)
    }

    /// Charges a member for the rest of the round, or until `roll_back`.
    pub fn charge(
        &mut self,
        slot: u32,
        job: JobUid,
        owner: Owner,
        held: &Held,
    ) -> Result<(), Reason> {
        let Some(node) = self.get(slot) else { return Err(Reason::Cordoned) };
        let mut node = node.clone();
        node.charge(job, owner, held)?;
        self.stamp += 1;
        node.stamp = self.stamp;
        let before = self.touched.insert(slot, node);
        self.undo.push((slot, before));
        Ok(())
    }

    /// Whether the quotas allow one more member.
    pub fn within_quota(&self, ask: &Ask<'_>) -> Result<(), Box<OverQuota>> {
        self.quota.check(self.base.quotas(), ask)
    }

    /// Charges a member to its tenants, until `roll_back` as well.
    pub fn charge_quota(&mut self, owner: Owner, amounts: Usage) {
        self.quota.charge(owner, amounts);
    }

    /// The card models on which the quotas allow `members` more, if there are some
    /// and the request allows others besides.
    pub fn models_in_quota(
        &self,
        owner: Owner,
        request: &Request,
        members: u64,
    ) -> Option<Vec<Arc<str>>> {
        let kinds = self.kinds.get_or_init(|| card_kinds(self.base.nodes().map(|n| &*n.spec)));
        open_models(self.base.quotas(), &self.quota, owner, (request, members), kinds)
    }

    /// Keeps what was charged since the last `settle`.
    pub fn settle(&mut self) {
        self.undo.clear();
        self.quota.settle();
    }

    /// Takes back what was charged since the last `settle`, and names the
    /// nodes.
    pub fn roll_back(&mut self) -> Vec<u32> {
        self.quota.roll_back();
        let mut slots = vec![];
        while let Some((slot, before)) = self.undo.pop() {
            match before {
                Some(node) => self.touched.insert(slot, node),
                None => self.touched.remove(&slot),
            };
            slots.push(slot);
        }
        slots
    }

    /// The nodes that differ from the books, and the last stamp used.
    pub fn finish(self) -> (Vec<u32>, u64) {
        let mut slots: Vec<_> = self.touched.into_keys().collect();
        slots.sort_unstable();
        (slots, self.stamp)
    }
}
