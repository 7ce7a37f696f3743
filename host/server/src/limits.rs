//! Ends jobs that have run for as long as they may.

use crate::books::now;
use crate::system::System;
use crater_engine::State;
use crater_model::{JobState, JobUid, Time};
use std::sync::Arc;
use std::time::Duration;

/// Books are looked at this often, however often they change.
const REST: Duration = Duration::from_millis(250);
/// And at least this often.
const TICK: Duration = Duration::from_secs(1);

/// Starts the thread.
pub fn start(system: &Arc<System>) -> std::io::Result<()> {
    let system = Arc::downgrade(system);
    std::thread::Builder::new().name("limits".into()).spawn(move || {
        loop {
            let Some(strong) = system.upgrade() else { return };
            let view = strong.books.view();
            let over = over(&view.state, now());
            if !over.is_empty() && end(&strong, over).is_err() {
                return;
            }
            let (books, seq) = (strong.books.clone(), view.state.seq);
            drop((strong, view));
            std::thread::sleep(REST);
            books.wait(seq, TICK);
        }
    })?;
    Ok(())
}

/// Jobs whose present run has lasted for as long as they may run.
fn over(state: &State, now: Time) -> Vec<(JobUid, u32)> {
    let running = state.queues().values().flat_map(|queue| queue.running.iter());
    let jobs = running.filter_map(|uid| state.job(*uid));
    let over = jobs.filter(|job| {
        let limit = job.spec.run_limit;
        let runs = job.state == JobState::Running && limit > 0;
        runs && job.since + Duration::from_secs(limit.into()) <= now
    });
    over.map(|job| (job.uid, job.spec.run_limit)).collect()
}

fn end(system: &System, jobs: Vec<(JobUid, u32)>) -> Result<(), crate::books::Unavailable> {
    system.books.change_blocking(move |writer| {
        for (job, limit) in jobs {
            let reason = format!("it ran for as long as it may: {limit} s (--run-limit)");
            let done = writer.ledger.end_job(writer.now, job, JobState::Failed, &reason);
            // It ended by itself meanwhile.
            if let Err(error) = done {
                tracing::debug!(%error, %job, "it is over");
            }
        }
    })
}
