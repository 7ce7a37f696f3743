//! Holds every decision against a plain recount: what is placed has room, and
//! what waits has none that its policy did not refuse.

use super::pack::most;
use super::room::Room;
use super::tenants::{Tenants, binding, may_borrow};
use crate::world::Observer;
use crater_engine::plan::Room as PlannedRoom;
use crater_engine::{Interface, Job, Outcome, Plan, Policies, Record, State};
use crater_model::event::Entry;
use crater_model::{
    Cause, ClaimState, ClaimUid, Event, Eviction, Hold, JobUid, Kind, Mib, NodeUid, OverQuota,
    Reason, Reasons, Share,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Looks on, and remembers the first decision that was wrong.
#[derive(Clone, Debug, Default)]
pub struct Judge {
    verdict: Option<String>,
    /// Members whose placement was checked.
    pub placed: u64,
    /// Waiting jobs whose reasons were checked, over all moments.
    pub waiting: u64,
    /// Of those, jobs that waited for a quota.
    pub over_quota: u64,
    /// Jobs that were made to go, each with its right and its need checked.
    pub evicted: u64,
    /// Waiting gangs of which nothing is known: their policy decides, or there
    /// are too many ways to try.
    pub open: u64,
}

impl Judge {
    /// The first decision that was wrong.
    pub fn verdict(&self) -> Option<&str> {
        self.verdict.as_deref()
    }

    fn placements(&mut self, state: &State, plan: &Plan) -> Result<(), String> {
        if plan.placements.is_empty() {
            return Ok(());
        }
        let mut rooms = Room::of(state);
        let mut tenants = Tenants::of(state);
        for placement in &plan.placements {
            let job = state.job(placement.job).ok_or("an unknown job was placed")?;
            for member in &placement.members {
                let room = rooms.get_mut(&member.node).ok_or("placed on an unknown node")?;
                room.take(&job.spec.request, &member.held).map_err(|why| {
                    format!("{} on {}: {why}: {:?}", job.uid, member.node, member.held)
                })?;
                if let Some(tenants) = &mut tenants {
                    let tenant = job.spec.tenant.as_str();
                    tenants
                        .take(
                            state,
                            tenant,
                            member.node,
                            &member.held,
                            may_borrow(state, &job.spec),
                        )
                        .map_err(|why| format!("{} above a quota: {why}", job.uid))?;
                }
                self.placed += 1;
            }
        }
        Ok(())
    }

    fn waits(
        &mut self,
        state: &State,
        policies: &Policies,
        rooms: &BTreeMap<NodeUid, Room>,
        record: &Record,
        reasons: &Reasons,
    ) -> Result<(), String> {
        let Some(job) = state.job(record.job) else { return Ok(()) };
        let told = reasons.job.as_deref().unwrap_or_default();
        let own = ["paused", "fallback is to hold", "its start was refused"];
        if own.iter().any(|text| told.contains(text)) || job.spec.together.is_some() {
            return Ok(());
        }
        if told.contains("limits not available") {
            let known = state.quotas().platform().quotas_known;
            return if known { Err(format!("{} waits: {told}", job.uid)) } else { Ok(()) };
        }
        self.waiting += 1;
        let request = &job.spec.request;
        let policy = policies.get(&record.queue).filter(|_| record.fault.is_none());
        let filters = policy.is_some_and(|p| p.manifest().exports(Interface::Filter));
        if let Some(over) = &reasons.quota {
            return self.quota_waits(state, rooms, job, over, filters);
        }
        if job.spec.min_members > 1 {
            // A policy may refuse nodes, or choose cards without which the
            // next member does not fit: that is its own business.
            let several = request.cards() > 1;
            if filters || (policy.is_some() && several) {
                self.open += 1;
                return Ok(());
            }
            return self.gang_waits(rooms, job, reasons);
        }
        let fitting = rooms.values().filter(|r| r.fits(request)).count() as u64;
        let of_policy = |r: &Reason| matches!(r, Reason::Policy(_) | Reason::Deferred);
        let refused: u64 =
            reasons.counts.iter().filter(|(r, _)| of_policy(r)).map(|(_, n)| n).sum();
        if fitting != refused || (refused > 0 && !filters) {
            return Err(format!(
                "{} waits: it fits on {fitting} nodes and the policy refused {refused}: {reasons}",
                job.uid
            ));
        }
        Ok(())
    }

    /// A job that waits for a quota: the figures are right, and no quota allows
    /// any way in which it could be placed now.
    fn quota_waits(
        &mut self,
        state: &State,
        rooms: &BTreeMap<NodeUid, Room>,
        job: &Job,
        over: &OverQuota,
        filters: bool,
    ) -> Result<(), String> {
        self.over_quota += 1;
        let tenant = job.spec.tenant.as_str();
        let tenants = Tenants::of(state).ok_or_else(|| format!("nobody has a quota: {over}"))?;
        let (tenants, borrow) = (tenants.beside(state, job.uid), may_borrow(state, &job.spec));
        tenants.right(tenant, over, borrow)?;
        let gpu = job.spec.request.gpu.as_ref();
        let mig = gpu.is_some_and(|g| matches!(g.share, Share::Mig { .. }));
        if job.spec.min_members > 1 || filters || mig {
            return Ok(());
        }
        // Cards of one model that are charged differently are not told apart, here
        // or where the job was tried first.
        if gpu.is_some() && mixed(state, &job.spec.request.models) {
            return Ok(());
        }
        for (node, room) in rooms {
            let ways = room.ways(&job.spec.request);
            if let Some(way) =
                ways.iter().find(|held| tenants.allow(state, tenant, *node, held, borrow))
            {
                return Err(format!("{} waits, but may be on {node}: {over}: {way:?}", job.uid));
            }
        }
        Ok(())
    }

    fn gang_waits(
        &mut self,
        rooms: &BTreeMap<NodeUid, Room>,
        job: &Job,
        reasons: &Reasons,
    ) -> Result<(), String> {
        let enough = u64::from(job.spec.min_members);
        let mut found = 0;
        for room in rooms.values() {
            let Some(most) = most(room, &job.spec.request, enough - found) else {
                self.open += 1;
                return Ok(());
            };
            found += most;
            if found >= enough {
                return Err(format!("{} waits though {enough} members fit: {reasons}", job.uid));
            }
        }
        Ok(())
    }

    fn note(&mut self, result: Result<(), String>) {
        if let (None, Err(text)) = (&self.verdict, result) {
            self.verdict = Some(text);
        }
    }
}

/// Whether a model among these, or any where none is named, has cards of several
/// sizes or slices.
fn mixed(state: &State, models: &[Arc<str>]) -> bool {
    let mut sorts: BTreeMap<Arc<str>, (Mib, Option<Mib>)> = BTreeMap::new();
    let cards = state.nodes().flat_map(|node| &node.spec.cards);
    let mut usable = cards.filter(|card| models.is_empty() || models.contains(&card.model));
    usable.any(|card| {
        let sort = (card.memory, card.slice);
        *sorts.entry(card.model.clone()).or_insert(sort) != sort
    })
}

impl Judge {
    /// The rooms of a plan, each on what those before it left.
    fn rooms(&mut self, state: &State, plan: &Plan) -> Result<(), String> {
        let releasing = state.claims().filter(|c| c.state == ClaimState::Releasing);
        let mut gone: BTreeSet<ClaimUid> = releasing.map(|c| c.uid).collect();
        let mut holds = state.holds().clone();
        holds.retain(|job, _| !plan.placed(*job) && !plan.given_up.iter().any(|(j, _)| j == job));
        for room in &plan.rooms {
            let going = room.evictions.iter().flat_map(|e| e.claims.iter().copied());
            gone.extend(going);
            for eviction in &room.evictions {
                self.evicted += 1;
                let who = format!("{} for {}", eviction.job, room.hold.job);
                Self::eviction(state, plan, room, eviction, (&gone, &holds))
                    .map_err(|why| format!("{who}: {why}"))?;
            }
            holds.insert(room.hold.job, room.hold.clone());
        }
        Ok(())
    }

    /// Whoever goes lets himself be preempted, stands below or borrowed, and is
    /// needed to go; and no one goes over and over.
    fn eviction(
        state: &State,
        plan: &Plan,
        room: &PlannedRoom,
        eviction: &Eviction,
        (gone, holds): (&BTreeSet<ClaimUid>, &BTreeMap<JobUid, Hold>),
    ) -> Result<(), String> {
        let hold = &room.hold;
        let holder = state.job(hold.job).ok_or("room for an unknown job")?;
        let victim = state.job(eviction.job).ok_or("an unknown job goes")?;
        if !victim.spec.preemptible || victim.spec.kind == Kind::Inference {
            return Err("it is not preemptible".to_owned());
        }
        let claims = victim.claims.iter().filter_map(|c| state.claim(*c));
        let right = match eviction.cause {
            Cause::Preempt => holder.rank() > victim.rank(),
            Cause::Reclaim => claims.flat_map(|c| &c.loans).next().is_some(),
            _ => false,
        };
        if !right {
            return Err(format!("{:?} without a right to", eviction.cause));
        }
        if eviction.cause == Cause::Reclaim {
            let (asker, taken) = (holder.spec.tenant.as_str(), &eviction.claims);
            Tenants::keep_their_own(state, plan, asker, taken, gone)?;
        }
        if victim.preemptions > 50 {
            return Err(format!("evicted {} times", victim.preemptions));
        }
        let [member] = hold.members.as_slice() else { return Ok(()) };
        if Tenants::of(state).is_some() {
            return Ok(());
        }
        // Without its going there would be no room where the job goes.
        let counts = |c| !gone.contains(&c) || eviction.claims.contains(&c);
        let Some(mut left) = Room::of_node(state, member.node, &counts) else { return Ok(()) };
        let binds = |other: &&Hold| {
            let above = state.job(other.job).is_none_or(|j| j.rank() >= holder.rank());
            other.job != hold.job && (other.starts.is_none() || above)
        };
        let kept = holds.values().filter(binds).flat_map(|h| &h.members);
        kept.filter(|m| m.node == member.node).for_each(|m| left.add(&m.held));
        let placed = plan.placements.iter().flat_map(|p| &p.members);
        placed.filter(|m| m.node == member.node).for_each(|m| left.add(&m.held));
        if left.fits(&holder.spec.request) {
            return Err("it goes, and need not".to_owned());
        }
        Ok(())
    }
}

impl Observer for Judge {
    fn applied(&mut self, state: &State, entry: Option<&Entry>) {
        if let Some(Entry { event: Event::PlanCommitted { claims }, .. }) = entry
            && let Some(tenants) = Tenants::of(state)
        {
            self.note(tenants.admitted(state, claims));
        }
    }

    fn decided(&mut self, state: &State, _policies: &Policies, plan: &Plan) {
        let found = self.placements(state, plan).and_then(|()| self.rooms(state, plan));
        self.note(found);
    }

    fn settled(&mut self, state: &State, policies: &Policies, plan: &Plan) {
        if plan.records.is_empty() {
            return;
        }
        let rooms = Room::of(state);
        for record in &plan.records {
            if let Outcome::Waits(reasons) = &record.outcome {
                let mut rooms = std::borrow::Cow::Borrowed(&rooms);
                // What is kept for others is not free for it.
                for hold in binding(state, record.job) {
                    for member in &hold.members {
                        if let Some(room) = rooms.to_mut().get_mut(&member.node) {
                            room.add(&member.held);
                        }
                    }
                }
                let found = self.waits(state, policies, &rooms, record, reasons);
                self.note(found);
            }
        }
    }

    fn stop(&self) -> bool {
        self.verdict.is_some()
    }
}
