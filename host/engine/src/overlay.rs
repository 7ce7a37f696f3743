//! A round's own view of the nodes: the books plus what the round has placed
//! so far and the room that is kept. Nothing of it outlives the round.

use crate::node::{NodeState, Owner};
use crate::quota::{Ask, CardKind, Tentative, amounts, card_kinds, open_models};
use crate::state::{Job, State};
use crater_model::{Held, Hold, JobUid, NodeUid, OverQuota, Reason, Usage};
use rustc_hash::FxHashMap;
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The books with tentative charges over them.
pub struct Overlay<'a> {
    base: &'a State,
    touched: FxHashMap<u32, NodeState>,
    undo: Vec<(u32, Option<NodeState>)>,
    /// What the round charged to tenants that have a quota.
    quota: Tentative,
    /// Room that is kept, as far as it is charged here.
    holds: BTreeMap<JobUid, Hold>,
    kinds: OnceCell<Vec<CardKind>>,
    stamp: u64,
    /// A trial began here: what was charged before stays.
    trial: Option<usize>,
}

/// What somebody who goes would leave.
#[derive(Clone, Debug)]
pub struct Leaving {
    /// The node.
    pub slot: u32,
    /// The job.
    pub job: JobUid,
    /// Whose it is.
    pub owner: Owner,
    /// What it holds there.
    pub held: Held,
}

impl<'a> Overlay<'a> {
    /// The books as they are, with the room that is kept charged to whom it is
    /// kept for. `stamp` must name no content seen before.
    pub fn new(base: &'a State, stamp: u64) -> Self {
        let mut overlay = Self {
            base,
            touched: FxHashMap::default(),
            undo: vec![],
            quota: Tentative::default(),
            holds: BTreeMap::new(),
            kinds: OnceCell::new(),
            stamp,
            trial: None,
        };
        for hold in base.holds().values() {
            overlay.keep(hold.clone());
        }
        overlay
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
        self.base.node(NodeUid(u64::from(slot))).map(|n| &**n)
    }

    fn touch(&mut self, slot: u32, mut node: NodeState) -> Option<NodeState> {
        self.stamp += 1;
        node.stamp = self.stamp;
        self.touched.insert(slot, node)
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
        let before = self.touch(slot, node);
        self.undo.push((slot, before));
        Ok(())
    }

    /// Room that is kept and charged here.
    pub fn holds(&self) -> &BTreeMap<JobUid, Hold> {
        &self.holds
    }

    /// Keeps room for a job, whether or not it is free yet, and names the nodes.
    pub fn keep(&mut self, hold: Hold) -> Vec<u32> {
        let Some(owner) = self.base.job(hold.job).map(|j| j.owner) else { return vec![] };
        let mut slots = vec![];
        for member in &hold.members {
            let slot = member.node.0 as u32;
            let Some(node) = self.get(slot) else { continue };
            let usage = amounts(&member.held, &node.spec);
            let mut node = node.clone();
            node.add_unchecked(hold.job, owner, &member.held);
            self.touch(slot, node);
            self.quota.charge(owner, usage);
            slots.push(slot);
        }
        self.quota.settle();
        self.holds.insert(hold.job, hold);
        slots
    }

    /// Frees the room that is kept for a job, and names the nodes.
    pub fn lift(&mut self, job: JobUid) -> Option<(Hold, Vec<u32>)> {
        let hold = self.holds.remove(&job)?;
        let owner = self.base.job(job)?.owner;
        let mut slots = vec![];
        for member in &hold.members {
            let slot = member.node.0 as u32;
            let Some(node) = self.get(slot) else { continue };
            let usage = amounts(&member.held, &node.spec);
            let mut node = node.clone();
            node.release(job, &member.held);
            self.touch(slot, node);
            self.quota.discharge(owner, &usage);
            slots.push(slot);
        }
        Some((hold, slots))
    }

    /// Tries what follows as if these had left, until `end_trial`; names the
    /// nodes.
    pub fn begin_trial(&mut self, leaving: &[Leaving]) -> Vec<u32> {
        let mut slots = vec![];
        for Leaving { slot, job, owner, held } in leaving {
            let Some(node) = self.get(*slot) else { continue };
            let usage = amounts(held, &node.spec);
            let mut node = node.clone();
            node.release(*job, held);
            let before = self.touch(*slot, node);
            self.undo.push((*slot, before));
            self.quota.free(*owner, &usage);
            slots.push(*slot);
        }
        self.trial = Some(self.undo.len());
        slots
    }

    /// Forgets the trial, and names the nodes.
    pub fn end_trial(&mut self) -> Vec<u32> {
        self.trial = None;
        let slots = self.roll_back();
        self.quota.forget_freed();
        slots
    }

    /// Whether the quotas allow one more member.
    pub fn within_quota(&self, ask: &Ask<'_>) -> Result<(), Box<OverQuota>> {
        self.quota.check(self.base.quotas(), ask)
    }

    /// What the round charged to tenants.
    pub fn quota(&self) -> &Tentative {
        &self.quota
    }

    /// Charges a member to its tenants, until `roll_back` as well.
    pub fn charge_quota(&mut self, owner: Owner, amounts: Usage) {
        self.quota.charge(owner, amounts);
    }

    /// The card models on which the quotas allow `members` more of a job, if
    /// there are some and the job allows others besides.
    pub fn models_in_quota(&self, job: &Job, members: u64) -> Option<Vec<Arc<str>>> {
        let kinds = self.kinds.get_or_init(|| card_kinds(self.base.nodes().map(|n| &*n.spec)));
        let quotas = self.base.quotas();
        let who = (job.owner, quotas.may_borrow(&job.spec));
        open_models(quotas, &self.quota, who, (&job.spec.request, members), kinds)
    }

    /// Keeps what was charged since the last `settle`; during a trial until it
    /// ends.
    pub fn settle(&mut self) {
        if self.trial.is_none() {
            self.undo.clear();
            self.quota.settle();
        }
    }

    /// Takes back what was charged since the last `settle` or the beginning of
    /// the trial, and names the nodes.
    pub fn roll_back(&mut self) -> Vec<u32> {
        self.quota.roll_back();
        let mut slots = vec![];
        while self.undo.len() > self.trial.unwrap_or(0) {
            let Some((slot, before)) = self.undo.pop() else { break };
            match before {
                Some(node) => self.touched.insert(slot, node),
                None => self.touched.remove(&slot),
            };
            slots.push(slot);
        }
        slots
    }

    /// The nodes that differ from the books.
    pub fn touched(&self) -> Vec<u32> {
        self.touched.keys().copied().collect()
    }

    /// The nodes that differ from the books, and the last stamp used.
    pub fn finish(self) -> (Vec<u32>, u64) {
        let mut slots: Vec<_> = self.touched.into_keys().collect();
        slots.sort_unstable();
        (slots, self.stamp)
    }
}
