//! The books' part on making room: evictions, room that is kept, starts that
//! were refused.

use crate::state::{Job, State};
use crater_model::{
    ClaimState, ClaimUid, Eviction, Hold, JobState, JobUid, MilliCards, NodeUid, Time,
};
use std::sync::Arc;
use std::time::Duration;

/// After the first refusal of a start.
const FIRST_BACK_OFF: Duration = Duration::from_secs(5);
/// The longest wait between refused starts.
const LONGEST_BACK_OFF: Duration = Duration::from_mins(5);
/// Evictions are counted over this long.
pub const HOUR: u64 = 3600;

/// What, which, and what is wrong with it.
type Problem = (&'static str, String, &'static str);

impl State {
    /// Refuses evictions and room that do not follow from the books.
    pub(crate) fn check_room(
        &self,
        evictions: &[Eviction],
        hold: Option<&Hold>,
    ) -> Result<(), Problem> {
        for eviction in evictions {
            let uid = || eviction.job.to_string();
            let job = self.job(eviction.job).filter(|j| !j.state.ended());
            let job = job.ok_or_else(|| ("job", uid(), "unknown or over"))?;
            if let Some(claim) = eviction.claims.iter().find(|c| !job.claims.contains(c)) {
                return Err(("claim", claim.to_string(), "not the job's"));
            }
        }
        if let Some(hold) = hold
            && self.job(hold.job).is_none_or(|j| j.state != JobState::Pending)
        {
            return Err(("job", hold.job.to_string(), "not waiting"));
        }
        Ok(())
    }

    /// Lets jobs go and keeps room. Both were checked.
    pub(crate) fn make_room(&mut self, evictions: &[Eviction], hold: Option<&Hold>, at: Time) {
        for eviction in evictions {
            let Some(job) = self.jobs.get_mut(eviction.job.0 as usize) else { continue };
            let queue = job.spec.queue.clone();
            let all = job.claims.clone();
            if eviction.whole {
                job.preemptions = job.preemptions.saturating_add(1);
                job.evicted = Some(eviction.cause);
                self.set_job(eviction.job, JobState::Preempting, at);
            }
            let going: &[ClaimUid] = if eviction.whole { &all } else { &eviction.claims };
            for claim in going {
                self.move_claim(*claim, ClaimState::Releasing, at);
            }
            if let Some(queue) = Arc::make_mut(&mut self.queues).get_mut(&queue) {
                let times = Arc::make_mut(&mut queue.evictions);
                while times.front().is_some_and(|t| at.secs_since(*t) >= HOUR) {
                    times.pop_front();
                }
                times.push_back(at);
            }
            self.note_job(eviction.job);
        }
        if let Some(hold) = hold {
            Arc::make_mut(&mut self.holds).insert(hold.job, hold.clone());
        }
    }

    /// Room on a machine that is gone, or on cards that it no longer has, is kept
    /// no more.
    pub(crate) fn drop_holds(&mut self, node: NodeUid, gone: bool) {
        let cards = self.node(node).map_or(0, |n| n.cards.len());
        let lost = |hold: &Hold| {
            let mut here = hold.members.iter().filter(|m| m.node == node);
            here.any(|m| gone || m.held.cards.iter().any(|c| usize::from(c.card) >= cards))
        };
        if self.holds.values().any(lost) {
            Arc::make_mut(&mut self.holds).retain(|_, hold| !lost(hold));
        }
    }

    /// A member was not started: the job gives back what it holds, waits a
    /// while, longer each time, and is tried again.
    pub(crate) fn refuse_start(&mut self, claim: ClaimUid, reason: Arc<str>, at: Time) {
        let Some(uid) = self.claim(claim).map(|c| c.job) else { return };
        if let Some(job) = self.jobs.get_mut(uid.0 as usize).filter(|j| !j.state.ended()) {
            let doublings = job.refusals.min(16);
            let wait = FIRST_BACK_OFF.saturating_mul(1 << doublings).min(LONGEST_BACK_OFF);
            job.refusals = job.refusals.saturating_add(1);
            job.not_before = at + wait;
            job.reason = reason;
        }
        let before = self.job(uid).and_then(|j| j.evicted);
        self.drop_claim(claim, at);
        self.lost_member(uid, at);
        // It lost no machine.
        if let Some(job) = self.jobs.get_mut(uid.0 as usize) {
            job.evicted = before;
        }
    }

    /// Whether a job runs, or will, with what it still holds.
    pub(crate) fn enough(&self, job: &Job) -> bool {
        // What runs must go on running: members that only start do not count.
        let counts = |state: ClaimState| match job.state {
            JobState::Running => state == ClaimState::Held,
            _ => state != ClaimState::Releasing,
        };
        let live = job.claims.iter().filter_map(|c| self.claim(*c));
        let live = live.filter(|c| counts(c.state)).count();
        live > 0 && live + job.ended as usize >= job.spec.min_members as usize
    }

    /// Keeps the lists of jobs that run and lack members, and of those that let
    /// themselves be preempted.
    pub(crate) fn note_job(&mut self, job: JobUid) {
        let Some(known) = self.job(job) else { return };
        let up = matches!(known.state, JobState::Starting | JobState::Running);
        let held = known.claims.len() + known.ended as usize;
        // Elastic, or a gang of which only a part was placed.
        let (min, most) = (known.spec.min_members as usize, known.spec.members as usize);
        let more = up && !known.claims.is_empty() && held < if min < most { most } else { min };
        if more != self.elastic.contains(&job) {
            let elastic = Arc::make_mut(&mut self.elastic);
            if more {
                elastic.insert(job)
            } else {
                elastic.remove(&job)
            };
        }
        let victim = self.job(job).is_some_and(|j| j.may_go());
        if victim != self.victims.contains(&job) {
            let victims = Arc::make_mut(&mut self.victims);
            if victim {
                victims.insert(job)
            } else {
                victims.remove(&job)
            };
        }
    }

    /// Compares the lists with a recount.
    pub(crate) fn audit_lists(&self) -> Result<(), String> {
        let victims = self.jobs().filter(|j| j.may_go()).map(|j| j.uid);
        if !victims.eq(self.victims.iter().copied()) {
            return Err("the list of jobs that may be preempted is not right".to_owned());
        }
        let leaving = self.claims().filter(|c| c.state == ClaimState::Releasing).map(|c| c.uid);
        if !leaving.eq(self.leaving.iter().copied()) {
            return Err("the list of claims that are releasing is not right".to_owned());
        }
        Ok(())
    }

    /// Whether a queue has jobs that could do with more members.
    pub fn elastic(&self, queue: &str) -> bool {
        let of = |uid: &JobUid| self.job(*uid).is_some_and(|j| &*j.spec.queue == queue);
        self.elastic.iter().any(of)
    }

    /// How much of the healthy cards is promised, in percent; 0 without cards,
    /// `None` if none is healthy. What borrowing goes by where nobody measures
    /// use.
    pub fn allocated_percent(&self) -> Option<u64> {
        let (mut total, mut used) = (0_u64, 0_u64);
        for node in self.nodes() {
            for (spec, card) in node.spec.cards.iter().zip(&node.cards) {
                total += if spec.healthy { MilliCards::CARD.0 } else { 0 };
                used += card.milli.0;
            }
        }
        match (total, used) {
            (0, 0) if self.nodes().all(|n| n.cards.is_empty()) => Some(0),
            (0, _) => None,
            (total, used) => Some(used.saturating_mul(100) / total),
        }
    }
}
