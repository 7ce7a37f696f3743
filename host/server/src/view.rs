//! What readers see: published books, and why each waiting job waits.

use crater_engine::{Outcome, Plan, Record, State};
use crater_model::{JobUid, QueueName, Reason, Reasons, Time};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, PoisonError, RwLock};

/// Books as they were published.
#[derive(Clone, Debug)]
pub struct View {
    /// The books.
    pub state: State,
}

impl View {
    /// Of these books.
    pub fn new(state: State) -> Self {
        Self { state }
    }
}

/// What the last decision on a job came to.
#[derive(Clone, Debug)]
pub struct Decision {
    /// The record.
    pub record: Record,
    /// When it was made.
    pub at: Time,
}

/// The last decisions on jobs that wait, and on those placed since the start.
/// Lost with the process: the next round makes them anew.
#[derive(Debug, Default)]
pub struct Board(RwLock<HashMap<JobUid, Arc<Decision>>>);

impl Board {
    /// Notes a round's decisions; those on jobs that are over are let go.
    pub fn note(&self, plan: &Plan, state: &State) {
        let mut board = self.0.write().unwrap_or_else(PoisonError::into_inner);
        for record in &plan.records {
            let same = |known: &Arc<Decision>| known.record == *record;
            if !board.get(&record.job).is_some_and(same) {
                let decision = Decision { record: record.clone(), at: plan.now };
                board.insert(record.job, Arc::new(decision));
            }
        }
        if board.len() > 2 * state.jobs().count() + 1024 {
            board.retain(|job, _| state.job(*job).is_some_and(|job| !job.state.ended()));
        }
    }

    /// The last decision on a job.
    pub fn decision(&self, job: JobUid) -> Option<Arc<Decision>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(&job).cloned()
    }

    /// Jobs that wait, by queue and the sort of reason.
    pub fn waiting(&self, state: &State) -> BTreeMap<(QueueName, String), u64> {
        let board = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let mut counts = BTreeMap::new();
        for (queue, line) in state.queues() {
            for waiting in line.waiting.iter() {
                let sort = match board.get(&waiting.job).map(|known| &known.record.outcome) {
                    Some(Outcome::Waits(reasons)) => sort(reasons),
                    _ => "undecided".into(),
                };
                *counts.entry((queue.clone(), sort)).or_default() += 1;
            }
        }
        counts
    }

    /// Why a job waits, if it was decided that it does.
    pub fn reasons(&self, job: JobUid) -> Option<Arc<Reasons>> {
        match &self.decision(job)?.record.outcome {
            Outcome::Waits(reasons) => Some(reasons.clone()),
            Outcome::Placed(_) => None,
        }
    }
}

/// The sort of reason for which a job waits: of those of nodes the commonest.
fn sort(reasons: &Reasons) -> String {
    let common = reasons.counts.iter().max_by_key(|(_, nodes)| **nodes);
    match common {
        _ if reasons.quota.is_some() => "quota".into(),
        _ if reasons.impossible() && !reasons.counts.is_empty() => "impossible".into(),
        Some((reason, _)) => named(reason),
        None if reasons.job.is_some() => "policy".into(),
        None => "no-nodes".into(),
    }
}

/// A reason's name as it is written: `cards`, `insufficient-cpu` and the like,
/// without the figures.
fn named(reason: &Reason) -> String {
    match serde_json::to_value(reason) {
        Ok(serde_json::Value::String(name)) => name,
        Ok(serde_json::Value::Object(map)) => map.keys().next().cloned().unwrap_or_default(),
        _ => "other".into(),
    }
}
