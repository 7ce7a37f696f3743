//! Room for the first job of a queue that finds none, so that smaller ones do
//! not take it for ever.
//!
//! Where the jobs in its way have run limits, the moment is known at which it
//! can start at the latest (Lifka, "The ANL/IBM SP scheduling system", 1995);
//! what ends before may run until then. Where they have none, the room is the
//! job's as soon as it is free.

use super::search::Search;
use super::{Making, SEARCHES, kept};
use crate::decider::{Decider, Round, Turn};
use crate::overlay::{Leaving, Overlay};
use crate::plan::{Plan, Room};
use crate::quota::shut;
use crate::state::{Job, State};
use crater_model::{ClaimState, Hold, Reasons, Time};
use rustc_hash::FxHashSet;
use std::sync::Arc;

impl Decider {
    /// Keeps room for a job that was not placed and has waited long enough, if
    /// its queue keeps none yet.
    #[allow(clippy::too_many_arguments)]
    pub(crate) fn reserve(
        &mut self,
        making: &mut Making,
        overlay: &mut Overlay<'_>,
        job: &Job,
        turn: &Turn<'_>,
        round: Round<'_>,
        plan: &mut Plan,
    ) -> Option<Arc<Reasons>> {
        let after = u64::from(turn.queue.spec.room.reserve_after);
        if after == 0 {
            return None;
        }
        let due = job.submitted + std::time::Duration::from_secs(after);
        if round.now < due {
            plan.wake = Some(plan.wake.map_or(due, |at| at.min(due)));
            return None;
        }
        let state = overlay.base();
        let queue = &turn.queue.spec.name;
        let same = |uid| state.job(uid).is_some_and(|j| j.spec.queue == *queue);
        let keeps = overlay.holds().keys().any(|uid| same(*uid));
        if keeps || making.searches >= SEARCHES || shut(overlay, job).is_some() {
            return None;
        }
        making.survey(state, round.now);
        let ends = ends(state);
        let none = FxHashSet::default();
        let mut search = Search::new(overlay, job, &making.leaving, &none);
        let mut leaving = making.leaving.clone();
        let mut starts = round.now;
        for (end, left) in ends {
            if search.fits() {
                break;
            }
            search.leave(overlay, &left, true);
            leaving.push(left);
            starts = end.unwrap_or(Hold::UNKNOWN);
        }
        let Some(members) = self.try_without(overlay, job, turn, round, &leaving, plan) else {
            making.searches += 1;
            return None;
        };
        let hold = Hold { job: job.uid, members, starts: Some(starts) };
        let reasons = kept(state, &hold, round.now);
        self.note(overlay.keep(hold.clone()));
        plan.rooms.push(Room { evictions: vec![], hold });
        Some(Arc::new(reasons))
    }
}

/// What runs, in the order in which it ends: known ends first, then by age.
fn ends(state: &State) -> Vec<(Option<Time>, Leaving)> {
    let mut ends: Vec<(Time, Option<Time>, Leaving)> = vec![];
    for claim in state.claims().filter(|c| c.state != ClaimState::Releasing) {
        let Some(job) = state.job(claim.job) else { continue };
        let limit = u64::from(job.spec.run_limit);
        let end = (limit > 0).then(|| Time(job.since.0.saturating_add(limit * 1000)));
        let left = Leaving {
            slot: claim.node.0 as u32,
            job: job.uid,
            owner: job.owner,
            held: claim.held.clone(),
        };
        ends.push((job.since, end, left));
    }
    ends.sort_by_key(|(since, end, _)| (end.is_none(), *end, *since));
    ends.into_iter().map(|(_, end, left)| (end, left)).collect()
}
