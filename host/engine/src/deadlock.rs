//! Gangs of which each holds a part that the others wait for.
//!
//! Placement never makes one: a gang is charged whole or not at all. But parts
//! of gangs can come from outside, as members that others placed, or when an
//! executor loses some of them while it cannot say which.

use crate::fit::{Choice, choose};
use crate::node::NodeState;
use crate::state::{Job, State};
use crater_model::{ClaimState, JobState, JobUid, NodeUid, Time};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

/// So long a gang may hold a part before it is looked at, in seconds.
pub const AFTER: u64 = 30;

/// The job that has to go so that another can go on, and that other one: of the
/// gangs that hold a part and wait, all of them for so long, the cheapest that
/// lets itself be preempted and whose going completes another. `None` while any
/// of them could still be completed, or nobody's going would help.
pub fn deadlock(state: &State, now: Time) -> Option<(JobUid, JobUid)> {
    let partial: Vec<&Arc<Job>> = state
        .elastic
        .iter()
        .filter_map(|uid| state.job(*uid))
        .filter(|job| job.state == JobState::Starting && !state.enough(job))
        .collect();
    let old = |job: &&Arc<Job>| now.secs_since(job.since) >= AFTER;
    if partial.len() < 2 || !partial.iter().all(old) {
        return None;
    }
    let leaving = |job: &Job| {
        let mut claims = job.claims.iter().filter_map(|c| state.claim(*c));
        claims.any(|c| c.state == ClaimState::Releasing)
    };
    if partial.iter().any(|job| leaving(job) || completes(state, job, None)) {
        return None;
    }
    let mut victims: Vec<&Arc<Job>> =
        partial.iter().copied().filter(|j| j.spec.preemptible).collect();
    // The least important first, then the one that holds least, then the youngest.
    victims.sort_by_key(|job| (job.rank(), job.claims.len(), Reverse(job.uid)));
    victims.into_iter().find_map(|victim| {
        let others = partial.iter().filter(|job| job.uid != victim.uid);
        let freed = others.into_iter().find(|job| completes(state, job, Some(victim)))?;
        Some((victim.uid, freed.uid))
    })
}

/// Whether the members that a job lacks fit on the free room and on what another
/// one would leave.
fn completes(state: &State, job: &Job, without: Option<&Arc<Job>>) -> bool {
    let mut nodes: BTreeMap<NodeUid, NodeState> = BTreeMap::new();
    if let Some(other) = without {
        for claim in other.claims.iter().filter_map(|c| state.claim(*c)) {
            let Some(node) = state.node(claim.node) else { continue };
            let node = nodes.entry(claim.node).or_insert_with(|| NodeState::clone(node));
            node.release(other.uid, &claim.held);
        }
    }
    let held = job.claims.len() + job.ended as usize;
    let mut missing = (job.spec.min_members as usize).saturating_sub(held);
    for known in state.nodes() {
        let mut node = nodes.remove(&known.uid).unwrap_or_else(|| NodeState::clone(known));
        while missing > 0 {
            let Ok(held) = choose(&node, &job.spec.request, Choice::Roomiest) else { break };
            if node.charge(job.uid, job.owner, &held).is_err() {
                break;
            }
            missing -= 1;
        }
    }
    missing == 0
}
