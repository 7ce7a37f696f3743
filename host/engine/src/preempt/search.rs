//! The cheapest set of units without which a job fits.
//!
//! Sets are compared by their dearest unit, then by the next, and so on; of two
//! that agree so far the shorter is cheaper. Read as binary numbers with the
//! dearest unit as the highest digit, the cheapest set is the smallest number.
//! Since more room never makes a job fit worse, it is found digit by digit: from
//! the dearest unit down, each stays unless the job does not fit although all
//! cheaper ones go. Limits that tenants keep are the exception: a unit that
//! would take its tenant below its own is left out.

use super::Making;
use super::units::Unit;
use crate::fit::count;
use crate::node::NodeState;
use crate::overlay::{Leaving, Overlay};
use crate::quota::{Ask, Tentative, least};
use crate::state::{Job, State};
use crater_model::{Cause, Request, Usage};
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
    /// What tenants whose loans are taken back would have lost.
    taken: FxHashMap<Arc<str>, Usage>,
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
            taken: FxHashMap::default(),
            banned,
        };
        for slot in 0..state.node_slots() as u32 {
            let Some(node) = overlay.get(slot) else { continue };
            search.add_to_total(node, slot, 0);
        }
        for left in leaving {
            search.leave(overlay, left, true);
        }
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

    /// Whether a unit may go: what is taken back leaves its tenant its own.
    fn may_go(&self, making: &Making, unit: &Unit) -> bool {
        if unit.cause != Cause::Reclaim {
            return true;
        }
        let held = &making.candidates[unit.of].claims[unit.claims.clone()];
        let mut all = Usage::default();
        for held in held {
            all.add(&held.usage);
        }
        held.iter().flat_map(|h| &h.loans).all(|loan| {
            let Some(level) = self.state.level(&loan.tenant) else { return true };
            let taken = self.taken.get(&loan.tenant);
            loan.amounts.iter().all(|(resource, _)| {
                let gone = taken.map_or(0, |t| t.get(&resource)) + all.get(&resource);
                let left = level.used.get(&resource).saturating_sub(gone);
                left >= level.hard(&resource).unwrap_or(0)
            })
        })
    }

    fn go(&mut self, overlay: &Overlay<'_>, making: &Making, unit: &Unit, goes: bool) {
        for held in &making.candidates[unit.of].claims[unit.claims.clone()] {
            self.leave(overlay, &held.leaving, goes);
            if unit.cause == Cause::Reclaim {
                for loan in &held.loans {
                    let taken = self.taken.entry(loan.tenant.clone()).or_default();
                    if goes { taken.add(&held.usage) } else { taken.take(&held.usage) }
                }
            }
        }
    }

    /// The cheapest set of units, given cheapest first; `None` if all of them
    /// together are not enough.
    pub fn cheapest(
        mut self,
        overlay: &Overlay<'_>,
        making: &Making,
        units: &[Unit],
    ) -> Option<Vec<usize>> {
        // The dearest unit of the cheapest set: with it and all cheaper ones
        // gone the job fits, with the cheaper ones alone it does not.
        let mut gone: Vec<usize> = vec![];
        let mut fits = self.fits();
        for (at, unit) in units.iter().enumerate() {
            if fits {
                break;
            }
            // What a job can do without goes before the job: it is cheaper.
            if self.may_go(making, unit) {
                self.go(overlay, making, unit, true);
                gone.push(at);
                fits = self.fits();
            }
        }
        if !fits {
            return None;
        }
        let mut needed = vec![];
        let mut whole: FxHashSet<usize> = FxHashSet::default();
        for &at in gone.iter().rev() {
            let unit = &units[at];
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
