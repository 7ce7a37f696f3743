//! The cheapest set of units without which a job fits.
//!
//! Sets are compared by their dearest unit, then by the next, and so on; of two
//! that agree so far the shorter is cheaper. Read as binary numbers with the
//! dearest unit as the highest digit, the cheapest set is the smallest number.
//! Since more room never makes a job fit worse, it is found digit by digit: from
//! the dearest unit down, each stays unless the job does not fit although all
//! cheaper ones go. Where something is taken back, who borrowed it keeps its own,
//! so that not all sets are allowed: `exact.rs` tries them in that order.

use super::Making;
use super::units::{Back, Unit};
use crate::fit::count;
use crate::node::NodeState;
use crate::overlay::{Leaving, Overlay};
use crate::quota::{Ask, Tentative, least};
use crate::state::{Job, State};
use crater_model::{Request, Usage};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// A job, and the cluster without those who would go.
pub struct Search<'a> {
    state: &'a State,
    job: &'a Job,
    request: &'a Request,
    need: u32,
    /// Nodes on which something goes, without it.
    nodes: FxHashMap<u32, (NodeState, u32)>,
    /// Members that fit on the nodes of each group; of one group if the job
    /// does not care.
    totals: FxHashMap<Arc<str>, u64>,
    groups: Option<Arc<str>>,
    quota: Option<Tentative>,
    /// The same without those who are only tried: what tenants have left.
    left: Option<Tentative>,
    banned: &'a FxHashSet<u32>,
}

impl<'a> Search<'a> {
    /// With those gone who are leaving already; nothing is placed on `banned`
    /// nodes.
    pub fn new(
        overlay: &Overlay<'a>,
        job: &'a Job,
        leaving: &[Leaving],
        banned: &'a FxHashSet<u32>,
    ) -> Self {
        let state = overlay.base();
        let binds = state.quotas().binds(job.owner);
        let required = |t: &&crater_model::Together| t.need == crater_model::Need::Required;
        let mut search = Self {
            state,
            job,
            request: &job.spec.request,
            need: job.spec.min_members,
            nodes: FxHashMap::default(),
            totals: FxHashMap::default(),
            groups: job.spec.together.as_ref().filter(required).map(|t| t.level.clone()),
            quota: binds.then(|| overlay.quota().clone()),
            left: None,
            banned,
        };
        for slot in 0..state.node_slots() as u32 {
            let Some(node) = overlay.get(slot) else { continue };
            search.add_to_total(node, slot, 0);
        }
        for left in leaving {
            search.leave(overlay, left, true);
        }
        search.left.clone_from(&search.quota);
        search
    }

    fn counted(&self, node: &NodeState, slot: u32) -> u32 {
        if self.banned.contains(&slot) { 0 } else { count(node, self.request, self.need) }
    }

    fn group(&self, node: &NodeState) -> Option<Arc<str>> {
        match &self.groups {
            None => Some("".into()),
            Some(level) => node.spec.place(level).map(Arc::from),
        }
    }

    fn add_to_total(&mut self, node: &NodeState, slot: u32, before: u32) -> u32 {
        let now = self.counted(node, slot);
        if now != before
            && let Some(group) = self.group(node)
        {
            let total = self.totals.entry(group).or_default();
            *total = total.saturating_add(u64::from(now)).saturating_sub(u64::from(before));
        }
        now
    }

    /// Lets a claim go, or come back.
    pub fn leave(&mut self, overlay: &Overlay<'_>, left: &Leaving, goes: bool) {
        if !self.nodes.contains_key(&left.slot) {
            let Some(node) = overlay.get(left.slot) else { return };
            let count = self.counted(node, left.slot);
            self.nodes.insert(left.slot, (node.clone(), count));
        }
        let Some((mut node, before)) = self.nodes.remove(&left.slot) else { return };
        let usage = crate::quota::amounts(&left.held, &node.spec);
        if goes {
            node.release(left.job, &left.held);
        } else {
            node.add_unchecked(left.job, left.owner, &left.held);
        }
        if let Some(quota) = &mut self.quota {
            if goes { quota.free(left.owner, &usage) } else { quota.unfree(left.owner, &usage) }
        }
        let now = self.add_to_total(&node, left.slot, before);
        self.nodes.insert(left.slot, (node, now));
    }

    /// Whether the job's members that must start together fit now.
    pub fn fits(&self) -> bool {
        self.totals.values().any(|total| *total >= u64::from(self.need)) && self.within_quota()
    }

    fn within_quota(&self) -> bool {
        self.quota.as_ref().is_none_or(|quota| allows(self.state, self.job, quota))
    }

    /// Lets a unit go, or come back.
    pub fn go(&mut self, overlay: &Overlay<'_>, making: &Making, unit: &Unit, goes: bool) {
        for held in &making.candidates[unit.of].claims[unit.claims.clone()] {
            self.leave(overlay, &held.leaving, goes);
        }
    }

    /// Counts a unit among those who go for good, or no more.
    pub fn choose(&mut self, making: &Making, unit: &Unit, goes: bool) {
        let Some(left) = &mut self.left else { return };
        for held in &making.candidates[unit.of].claims[unit.claims.clone()] {
            let (owner, usage) = (held.leaving.owner, &held.usage);
            if goes { left.free(owner, usage) } else { left.unfree(owner, usage) }
        }
    }

    /// Whether one from whom something is taken back keeps its own, whoever else
    /// of it has left or goes, too.
    pub fn keeps_its_own(&self, back: &[Back]) -> bool {
        let Some(left) = &self.left else { return true };
        back.iter().all(|b| left.over(b.level, &b.resource, b.used) >= b.hard)
    }

    /// The cheapest set of units, given cheapest first; `None` if there is none
    /// with which the job fits.
    pub fn cheapest(
        mut self,
        overlay: &Overlay<'_>,
        making: &Making,
        units: &[Unit],
    ) -> Option<Vec<usize>> {
        if units.iter().any(|unit| !unit.back.is_empty()) {
            return super::exact::cheapest(self, overlay, making, units);
        }
        // The dearest unit of the cheapest set: with it and all cheaper ones
        // gone the job fits, with the cheaper ones alone it does not.
        let mut gone = 0;
        while !self.fits() {
            let unit = units.get(gone)?;
            self.go(overlay, making, unit, true);
            gone += 1;
        }
        let mut needed = vec![];
        let mut whole: FxHashSet<usize> = FxHashSet::default();
        for (at, unit) in units[..gone].iter().enumerate().rev() {
            // What a job can do without goes before the job: it is cheaper.
            if !whole.contains(&unit.of) {
                self.go(overlay, making, unit, false);
                if self.fits() {
                    continue;
                }
                self.go(overlay, making, unit, true);
            }
            if unit.whole {
                whole.insert(unit.of);
            }
            needed.push(at);
        }
        needed.reverse();
        Some(needed)
    }
}

/// Whether the quotas allow a job's minimum once some have left.
pub fn quota_allows(overlay: &Overlay<'_>, job: &Job, leaving: &[&Leaving]) -> bool {
    let mut quota = overlay.quota().clone();
    for left in leaving {
        if let Some(node) = overlay.get(left.slot) {
            quota.free(left.owner, &crate::quota::amounts(&left.held, &node.spec));
        }
    }
    allows(overlay.base(), job, &quota)
}

fn allows(state: &State, job: &Job, quota: &Tentative) -> bool {
    let (before, member) = (&Usage::default(), &least(&job.spec.request));
    let together = u64::from(job.spec.min_members);
    let (owner, borrow) = (job.owner, state.quotas().may_borrow(&job.spec));
    let ask = Ask { owner, borrow, before, member, now: together, together };
    quota.check(state.quotas(), &ask).is_ok()
}
