//! The port to whoever runs what was placed.
//!
//! An executor follows the journal. It is told of each new claim after the
//! claim is durable, and of each that is to end; it reports back what really
//! happened. All of it may be told twice: a claim's identity makes it the same.

pub mod local;
pub mod simulated;

use crate::books::Books;
use crater_engine::{Job, Journal, Ledger, Refusal, State};
use crater_model::{Claim, ClaimState, ClaimUid, Event, JobUid, Time};
use std::collections::BTreeSet;

/// Runs claims.
pub trait Executor: Send + 'static {
    /// Starts what a claim is for, or takes up again what runs already.
    fn start(&mut self, state: &State, claim: &Claim);

    /// Ends it, with the job's grace.
    fn stop(&mut self, state: &State, claim: &Claim);

    /// Does what is due and reports; returns when it wants to be called again,
    /// at the latest.
    fn step(&mut self, books: &Books) -> std::time::Duration;
}

/// What every member of a job finds in its environment besides its own: which
/// job it is, how often it was started before, and whether there is progress
/// that it saved to go on from.
pub fn environment(job: &Job) -> [(&'static str, String); 3] {
    [
        ("CRATER_JOB_ID", job.uid.to_string()),
        ("CRATER_RESTART_COUNT", job.attempts.saturating_sub(1).to_string()),
        ("CRATER_RESUME", u8::from(job.checkpointed.is_some()).to_string()),
    ]
}

/// Notes a checkpoint; one of a job that is over meanwhile changes nothing.
fn saved<J: Journal>(ledger: &mut Ledger<J>, now: Time, job: JobUid) -> Result<bool, Refusal> {
    match ledger.checkpointed(now, job) {
        Ok(()) => Ok(true),
        Err(Refusal::Over { .. } | Refusal::Unknown { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Runs an executor on the journal until the server stops.
pub fn run(books: &Books, executor: &mut dyn Executor) {
    let (view, batches) = books.follow();
    for claim in view.state.claims() {
        tell(executor, &view.state, claim);
    }
    loop {
        let pause = executor.step(books);
        match batches.recv_timeout(pause) {
            Ok(batch) => {
                let view = books.view();
                for entry in batch.iter() {
                    touched(&view.state, &entry.event, &mut |claim| {
                        tell(executor, &view.state, claim);
                    });
                }
            }
            Err(std::sync::mpsc::RecvTimeoutError::Timeout) => {}
            Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => return,
        }
    }
}

fn tell(executor: &mut dyn Executor, state: &State, claim: &Claim) {
    match claim.state {
        ClaimState::Reserved | ClaimState::Starting | ClaimState::Held => {
            executor.start(state, claim);
        }
        ClaimState::Releasing => executor.stop(state, claim),
        ClaimState::Gone => {}
    }
}

/// The claims that an event may have changed, as they are now.
fn touched(state: &State, event: &Event, tell: &mut dyn FnMut(&Claim)) {
    let mut of_job = |job: JobUid| {
        let claims = state.job(job).map(|job| job.claims.clone()).unwrap_or_default();
        for claim in claims.iter().filter_map(|uid| state.claim(*uid)) {
            tell(claim);
        }
    };
    let job_of = |claim: ClaimUid| state.claim(claim).map(|claim| claim.job);
    match event {
        Event::PlanCommitted { claims } => {
            let jobs: BTreeSet<JobUid> = claims.iter().map(|claim| claim.job).collect();
            jobs.into_iter().for_each(of_job);
        }
        Event::JobEnded { job, .. } | Event::JobUpdated { job, .. } => of_job(*job),
        Event::RoomMade { evictions, .. } => evictions.iter().for_each(|e| of_job(e.job)),
        // A lost member makes the others of its job go, too. The claim itself
        // is gone by now, so its job has to be looked for.
        Event::MemberEnded { .. } | Event::StartRefused { .. } | Event::NodeRemoved { .. } => {
            let going = |job: &&std::sync::Arc<Job>| {
                job.state.ended() || job.state == crater_model::JobState::Preempting
            };
            let jobs = state.queues().values().flat_map(|queue| queue.running.iter());
            let jobs: Vec<JobUid> =
                jobs.filter_map(|uid| state.job(*uid)).filter(going).map(|job| job.uid).collect();
            jobs.into_iter().for_each(of_job);
        }
        Event::ClaimMoved { claim, .. } => {
            if let Some(job) = job_of(*claim) {
                of_job(job);
            }
        }
        _ => {}
    }
}
