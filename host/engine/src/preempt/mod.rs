//! Making room: which running jobs go so that a waiting one can start.
//!
//! A job that finds no room is tried against the cluster without those who
//! leave it already and without the cheapest set of those who may be made to.
//! Only if it is placed there, by its policy and within its quotas, is anything
//! evicted; and the room is kept for it until it starts.

mod exact;
mod reserve;
mod search;
mod units;

use crate::decider::{Decider, Policies, Round, Turn};
use crate::fit::could_fit;
use crate::node::NodeState;
use crate::overlay::{Leaving, Overlay};
use crate::plan::{Member, Outcome, Plan, Record, Room};
use crate::rows::speaks_of_nodes;
use crate::state::{Job, State};
use crater_model::{
    Cause, Eviction, Hold, HoldMember, JobUid, Kind, NodeUid, Priority, QueueName, Reasons,
    Request, Time, Together,
};
use rustc_hash::{FxHashMap, FxHashSet};
use search::Search;
use std::cmp::Reverse;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use units::{Candidate, Unit, survey, units};

/// Most searches of one round that came to nothing, for evictions and for room
/// that is planned, so that a long queue of
/// jobs without a chance does not hold up the others.
const SEARCHES: usize = 16;
/// Most ways in which the cheapest sets are tried with the job's policy.
const TRIES: usize = 8;

/// What a round knows of who may go.
#[derive(Default)]
pub struct Making {
    surveyed: bool,
    candidates: Vec<Candidate>,
    leaving: Vec<Leaving>,
    /// Some of those were evicted, for a job that may be gone by now.
    evicting: bool,
    /// When the next job is no longer spared because it is young or its queue
    /// has given enough.
    later: Option<Time>,
    /// Jobs that go, or give up members, by this round's word.
    gone: FxHashSet<JobUid>,
    unpriced: BTreeSet<QueueName>,
    /// Searches that came to nothing.
    failed: FxHashSet<Alike>,
    searches: usize,
}

/// What two jobs have in common for which the same may go.
#[derive(PartialEq, Eq, Hash)]
struct Alike {
    request: Arc<Request>,
    min: u32,
    rank: (Priority, Reverse<Kind>),
    user: i32,
    queue: QueueName,
    /// It may borrow.
    preemptible: bool,
    together: Option<Together>,
}

impl Making {
    fn survey(&mut self, state: &State, now: Time) {
        if !self.surveyed {
            (self.candidates, self.leaving, self.later) = survey(state, now);
            // Those who lost a machine leave for nobody.
            let evicted = |left: &Leaving| {
                let cause = state.job(left.job).and_then(|j| j.evicted);
                cause.is_some_and(|cause| !matches!(cause, Cause::LostNode | Cause::Manual))
            };
            self.evicting = self.leaving.iter().any(evicted);
            self.surveyed = true;
        }
    }
}

fn alike(job: &Job) -> Alike {
    let spec = &job.spec;
    Alike {
        request: spec.request.clone(),
        min: spec.min_members,
        rank: job.rank(),
        user: job.owner.user,
        queue: spec.queue.clone(),
        preemptible: spec.preemptible,
        together: spec.together.clone(),
    }
}

impl Decider {
    /// Finds room for a job that was not placed; says what waits for what.
    /// `only_evicting`: it has room that is kept already, but others are there.
    #[allow(clippy::too_many_arguments)]
    pub(crate) fn make_room(
        &mut self,
        making: &mut Making,
        overlay: &mut Overlay<'_>,
        job: &Job,
        turn: &Turn<'_>,
        policies: &Policies,
        round: Round<'_>,
        plan: &mut Plan,
        only_evicting: bool,
    ) -> Option<Arc<Reasons>> {
        let state = overlay.base();
        if state.victims.is_empty() {
            return None;
        }
        making.survey(state, round.now);
        if let Some(later) = making.later {
            plan.wake = Some(plan.wake.map_or(later, |at| at.min(later)));
        }
        if making.candidates.is_empty() && !making.evicting {
            return None;
        }
        let alike = alike(job);
        if making.searches >= SEARCHES || making.failed.contains(&alike) {
            return None;
        }
        let room = self.search(making, overlay, job, turn, policies, round, plan);
        let room = room.filter(|room| !only_evicting || !room.evictions.is_empty());
        let Some(room) = room else {
            making.failed.insert(alike);
            making.searches += 1;
            return None;
        };
        let reasons = Arc::new(told(state, &room));
        for eviction in &room.evictions {
            making.gone.insert(eviction.job);
            let of = making.candidates.iter().find(|c| c.job.uid == eviction.job);
            let claims = of.iter().flat_map(|c| &c.claims);
            let going = claims.filter(|h| eviction.claims.contains(&h.claim));
            making.leaving.extend(going.map(|h| h.leaving.clone()));
        }
        self.note(overlay.keep(room.hold.clone()));
        plan.rooms.push(room);
        Some(reasons)
    }

    #[allow(clippy::too_many_arguments)]
    fn search(
        &mut self,
        making: &mut Making,
        overlay: &mut Overlay<'_>,
        job: &Job,
        turn: &Turn<'_>,
        policies: &Policies,
        round: Round<'_>,
        plan: &mut Plan,
    ) -> Option<Room> {
        // Who is nowhere near a node that the job could use, and not of its
        // tenants, makes no room for it.
        let state = overlay.base();
        let mut usable: FxHashMap<u32, bool> = FxHashMap::default();
        let bound = state.quotas().binds(job.owner);
        for candidate in &making.candidates {
            for held in &candidate.claims {
                let slot = held.leaving.slot;
                usable.entry(slot).or_insert_with(|| {
                    let node = overlay.get(slot);
                    node.is_some_and(|n| could_fit(n, &job.spec.request))
                });
            }
        }
        let relevant = |candidate: &Candidate| {
            let near = |h: &units::Held| usable.get(&h.leaving.slot).copied().unwrap_or(false);
            let kin = bound && candidate.job.owner.department == job.owner.department;
            kin || candidate.claims.iter().any(near)
        };
        let units = units(making, overlay, job, &relevant, policies, round, plan);
        if units.is_empty() && !making.evicting {
            return None;
        }
        let mut banned = FxHashSet::default();
        for _ in 0..TRIES {
            let search = Search::new(overlay, job, &making.leaving, &banned);
            let chosen = search.cheapest(overlay, making, &units)?;
            let chosen: Vec<&Unit> = chosen.iter().map(|at| &units[*at]).collect();
            let mut leaving = making.leaving.clone();
            leaving.extend(chosen.iter().flat_map(|unit| {
                let claims = &making.candidates[unit.of].claims[unit.claims.clone()];
                claims.iter().map(|h| h.leaving.clone())
            }));
            if let Some(members) = self.try_without(overlay, job, turn, round, &leaving, plan) {
                // The policy may have taken nodes that need nobody to go.
                let chosen = needed(overlay, making, job, &chosen, &members);
                let evictions = evictions(making, &chosen);
                return Some(Room {
                    evictions,
                    hold: Hold { job: job.uid, members, starts: None },
                });
            }
            if failed(plan, job.uid) {
                return None;
            }
            // Its policy or quotas want none of these nodes.
            let before = banned.len();
            banned.extend(leaving.iter().map(|l| l.slot));
            if banned.len() == before {
                return None;
            }
        }
        None
    }

    /// Places a job as if some had left, and takes it back. A policy that fails
    /// here is not asked about the job again in this round.
    fn try_without(
        &mut self,
        overlay: &mut Overlay<'_>,
        job: &Job,
        turn: &Turn<'_>,
        round: Round<'_>,
        leaving: &[Leaving],
        plan: &mut Plan,
    ) -> Option<Vec<HoldMember>> {
        if failed(plan, job.uid) {
            return None;
        }
        let mut turn = Turn { full: FxHashMap::default(), fault: turn.fault.clone(), ..*turn };
        let speaks = turn.policy.filter(|p| speaks_of_nodes(p.manifest()));
        let speaks = if turn.fault.is_some() { None } else { speaks };
        let mut record = turn.waits(job.uid, Arc::default());
        let mut wake = None;
        self.note(overlay.begin_trial(leaving));
        let shut = crate::quota::shut(overlay, job).is_some();
        let placed = if shut {
            None
        } else {
            let tried = self.place(overlay, job, &mut turn, speaks, round, &mut wake, &mut record);
            tried.map_err(|fault| plan.failed.push((job.uid, fault))).ok()
        };
        self.note(overlay.end_trial());
        let Some(Outcome::Placed(placement)) = placed else { return None };
        Some(placement.members.into_iter().map(hold_member).collect())
    }

    /// Leaves out the room that cannot come to be any more, once those who leave
    /// have left, and what is kept for a queue that is paused: it is in nobody's
    /// way. That of the round's queues is given up.
    pub(crate) fn leave_out_lost(
        &mut self,
        making: &mut Making,
        overlay: &mut Overlay<'_>,
        round: Round<'_>,
        plan: &mut Plan,
    ) {
        if overlay.holds().is_empty() {
            return;
        }
        let state = overlay.base();
        making.survey(state, round.now);
        let leaving: Vec<&Leaving> = making.leaving.iter().collect();
        // All of it is lifted first: what is lost speaks against nothing else,
        // and what is only planned comes after what is made.
        let all: Vec<JobUid> = overlay.holds().keys().copied().collect();
        let mut lifted = vec![];
        for uid in all {
            if let Some((hold, slots)) = overlay.lift(uid) {
                self.note(slots);
                lifted.push(hold);
            }
        }
        lifted.sort_by_key(|hold| (hold.starts.is_some(), hold.job));
        for hold in lifted {
            let Some(job) = state.job(hold.job) else { continue };
            let queue = state.queues().get(&job.spec.queue);
            let there = if hold.starts.is_some() {
                hold.members.iter().all(|m| {
                    let node = state.node(m.node).filter(|n| !n.spec.cordoned);
                    node.is_some_and(|n| could_fit(n, &job.spec.request))
                })
            } else {
                charges(overlay, &leaving, hold.job, &hold.members)
            };
            let lost = if queue.is_none_or(|queue| queue.spec.paused) {
                Some("its queue is paused")
            } else if !there {
                Some("the room that was kept for it is not there any more")
            } else {
                None
            };
            match lost {
                None => self.note(overlay.keep(hold)),
                Some(why) => {
                    let name = queue.map_or("", |queue| &*queue.spec.name);
                    if round.queue.is_none_or(|only| name == only) {
                        plan.given_up.push((hold.job, why.into()));
                    }
                }
            }
        }
    }

    /// Frees the room that is kept for jobs which wait for others to end by
    /// themselves and stand below a job, or have to let it by: it has room that
    /// was made for it. Theirs comes after.
    pub(crate) fn set_aside(
        &mut self,
        overlay: &mut Overlay<'_>,
        job: &Job,
        own: Option<&Hold>,
    ) -> Vec<Hold> {
        let state = overlay.base();
        let made = own.is_some_and(|hold| hold.starts.is_none());
        let below = |hold: &&Hold| {
            let holder = state.job(hold.job);
            hold.starts.is_some() && (made || holder.is_some_and(|h| h.rank() < job.rank()))
        };
        let jobs: Vec<JobUid> = overlay.holds().values().filter(below).map(|h| h.job).collect();
        let mut aside = vec![];
        for uid in jobs {
            if let Some((hold, slots)) = overlay.lift(uid) {
                self.note(slots);
                aside.push(hold);
            }
        }
        aside
    }

    /// Tries a job that found no room in the room that is kept for others, where
    /// it does not delay them: it ends before they start, or stands below them
    /// and lets itself be preempted.
    pub(crate) fn borrow_room(
        &mut self,
        overlay: &mut Overlay<'_>,
        job: &Job,
        turn: &Turn<'_>,
        round: Round<'_>,
        wake: &mut Option<Time>,
    ) -> Option<Record> {
        let state = overlay.base();
        let limit = u64::from(job.spec.run_limit);
        let fair = |hold: &&Hold| {
            let Some(starts) = hold.starts.filter(|at| *at > round.now) else { return false };
            let ends = limit > 0
                && starts != Hold::UNKNOWN
                && Time(round.now.0.saturating_add(limit * 1000)) <= starts;
            let above = state.job(hold.job).is_some_and(|holder| holder.rank() > job.rank());
            ends || (above && job.spec.preemptible)
        };
        let open: Vec<JobUid> = overlay.holds().values().filter(fair).map(|h| h.job).collect();
        if open.is_empty() {
            return None;
        }
        let mut lifted = vec![];
        for uid in open {
            if let Some((hold, slots)) = overlay.lift(uid) {
                self.note(slots);
                lifted.push(hold);
            }
        }
        let mut own = Turn { full: FxHashMap::default(), fault: turn.fault.clone(), ..*turn };
        let record = self.decide_job(overlay, job, &mut own, round, wake);
        for hold in lifted {
            self.note(overlay.keep(hold));
        }
        matches!(record.outcome, Outcome::Placed(_)).then_some(record)
    }
}

/// Those of the units without which the members would not fit where they were
/// placed, or not within the quotas.
fn needed<'a>(
    overlay: &Overlay<'_>,
    making: &Making,
    job: &Job,
    units: &[&'a Unit],
    members: &[HoldMember],
) -> Vec<&'a Unit> {
    let bound = overlay.base().quotas().binds(job.owner);
    let mut kept: Vec<&Unit> = units.to_vec();
    // The dearest first; what a job can do without goes before the job.
    for unit in units.iter().rev() {
        let forced = |u: &&&Unit| u.of == unit.of && u.whole && !unit.whole;
        if kept.iter().any(|u| forced(&u)) {
            continue;
        }
        let rest: Vec<&Unit> = kept.iter().copied().filter(|u| !std::ptr::eq(*u, *unit)).collect();
        let held = |u: &&Unit| &making.candidates[u.of].claims[u.claims.clone()];
        let leaving: Vec<&Leaving> = making
            .leaving
            .iter()
            .chain(rest.iter().flat_map(|u| held(u).iter().map(|h| &h.leaving)))
            .collect();
        if charges(overlay, &leaving, job.uid, members)
            && (!bound || search::quota_allows(overlay, job, &leaving))
        {
            kept = rest;
        }
    }
    kept
}

/// Whether members fit where they were placed once some have left.
fn charges(
    overlay: &Overlay<'_>,
    leaving: &[&Leaving],
    job: JobUid,
    members: &[HoldMember],
) -> bool {
    let mut nodes: FxHashMap<NodeUid, NodeState> = FxHashMap::default();
    let owner = crate::node::Owner::default();
    members.iter().all(|member| {
        let node = match nodes.entry(member.node) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => {
                let slot = member.node.0 as u32;
                let Some(node) = overlay.get(slot) else { return false };
                let mut node = node.clone();
                for left in leaving.iter().filter(|l| l.slot == slot) {
                    node.release(left.job, &left.held);
                }
                entry.insert(node)
            }
        };
        !node.spec.cordoned && node.charge(job, owner, &member.held).is_ok()
    })
}

/// Whether a job's policy failed in this round while more was tried for it.
pub(crate) fn failed(plan: &Plan, job: JobUid) -> bool {
    plan.failed.iter().any(|(uid, _)| *uid == job)
}

fn hold_member(member: Member) -> HoldMember {
    HoldMember { member: member.member, node: member.node, held: member.held }
}

fn evictions(making: &Making, chosen: &[&Unit]) -> Vec<Eviction> {
    let mut by_job: BTreeMap<JobUid, Eviction> = BTreeMap::new();
    for unit in chosen {
        let candidate = &making.candidates[unit.of];
        let job = candidate.job.uid;
        let (claims, whole, cause, reason) = (vec![], false, unit.cause, None);
        let entry = by_job.entry(job).or_insert(Eviction { job, claims, whole, cause, reason });
        entry.whole |= unit.whole;
        let held = &candidate.claims[unit.claims.clone()];
        entry.claims.extend(held.iter().map(|h| h.claim));
    }
    for eviction in by_job.values_mut() {
        eviction.claims.sort_unstable();
    }
    by_job.into_values().collect()
}

/// The hold's nodes, for people.
fn places(state: &State, hold: &Hold) -> String {
    let mut nodes: Vec<&str> =
        hold.members.iter().filter_map(|m| state.node(m.node)).map(|n| &*n.spec.name).collect();
    nodes.sort_unstable();
    nodes.dedup();
    let more = nodes.len().saturating_sub(3);
    nodes.truncate(3);
    let on = nodes.join(", ");
    if more > 0 { format!("{on} and {more} more nodes") } else { on }
}

/// What is said of room that is kept.
pub(crate) fn kept(state: &State, hold: &Hold, now: Time) -> Reasons {
    let on = places(state, hold);
    let text = match hold.starts.map(|at| at.secs_since(now)) {
        _ if hold.starts == Some(Hold::UNKNOWN) => {
            format!(
                "room on {on} is kept for it: it starts when enough of those who run have ended"
            )
        }
        None => format!("room on {on} is kept for it until those who hold it are gone"),
        Some(0) => format!("room on {on} is kept for it: it is due to start"),
        Some(secs) => format!(
            "room on {on} is kept for it: it is planned to start {secs} s from now, when others end"
        ),
    };
    Reasons::of_job(&text)
}

fn told(state: &State, room: &Room) -> Reasons {
    let on = places(state, &room.hold);
    let victims: Vec<String> = room
        .evictions
        .iter()
        .map(|e| match (e.whole, e.cause) {
            (true, Cause::Reclaim) => format!("{} gives back what it borrowed", e.job),
            (true, _) => format!("{} is preempted", e.job),
            (false, _) => format!("{} gives up {} of its members", e.job, e.claims.len()),
        })
        .collect();
    let text = if victims.is_empty() {
        format!("room on {on} is kept for it until those who hold it are gone")
    } else {
        format!("room on {on} is made for it: {}", victims.join(", "))
    };
    Reasons::of_job(&text)
}
