//! Measures what jobs use, again and again, and keeps it in the store.
//!
//! At each multiple of the interval every claim's use is asked of the
//! executor. Jobs' sums go into the store a few hundred rows at a time, so that
//! the ledger thread is never held up for long; with very many jobs they take
//! turns. Five minutes that are over are rolled up into one row.

use crate::books::now;
use crate::system::System;
use crater_engine::State;
use crater_model::{Claim, JobUid, Time};
use crater_store::{RAW_LIFE, ROLLED, Sample, Subject};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// What is measured: name and unit.
pub const METRICS: [(&str, &str); 5] = [
    ("gpu", "milli-cards"),
    ("gpu-memory", "MiB"),
    ("cpu", "milli-cores"),
    ("memory", "MiB"),
    ("disk-io", "MB/s"),
];

/// Jobs measured at one moment; more take turns.
const JOBS: usize = 2000;
/// Rows of one step of the ledger.
const ROWS: usize = 500;

/// Amounts in the order of [`METRICS`].
pub type Amounts = [u64; METRICS.len()];

/// Says what runs really use.
pub trait Gauge: Send + Sync {
    /// What a claim uses at a moment; none where it cannot be known.
    fn used(&self, state: &State, claim: &Claim, at: Time) -> Option<Amounts>;
}

/// Starts the measuring thread.
pub fn start(system: &Arc<System>, gauge: Arc<dyn Gauge>) -> std::io::Result<()> {
    let system = Arc::downgrade(system);
    std::thread::Builder::new().name("collector".into()).spawn(move || {
        let mut turn = JobUid(0);
        let mut rolled: Option<Time> = None;
        loop {
            let Some(strong) = system.upgrade() else { return };
            let every = strong.interval();
            let step = u64::try_from(every.as_millis()).unwrap_or(u64::MAX).max(1);
            let next = Time((now().0 / step + 1).saturating_mul(step));
            drop(strong);
            std::thread::sleep(next - now());
            let Some(strong) = system.upgrade() else { return };
            let from = rolled.unwrap_or_else(|| unrolled(&strong, next));
            let (samples, after) = measure(&strong.books.view().state, &*gauge, next, turn);
            turn = after;
            if keep(&strong, next, samples).is_err() {
                return;
            }
            match roll_up(&strong, from, next) {
                Ok(until) => rolled = Some(until),
                Err(Stopped) => return,
            }
        }
    })?;
    Ok(())
}

/// The server stops.
struct Stopped;

/// Where rolling up goes on after a start.
fn unrolled(system: &System, at: Time) -> Time {
    let known = system.reader().and_then(|reader| reader.rolled_up());
    let known = known.unwrap_or_else(|error| {
        tracing::warn!(%error, "where samples are rolled up is not known");
        None
    });
    let oldest = Time(at.0.saturating_sub(RAW_LIFE.as_millis() as u64)).floor(ROLLED);
    known.map_or(at.floor(ROLLED), |known| known.max(oldest))
}

/// The samples of a moment: the cluster's, and those of jobs after `turn`.
fn measure(state: &State, gauge: &dyn Gauge, at: Time, turn: JobUid) -> (Vec<Sample>, JobUid) {
    let mut jobs: BTreeMap<JobUid, (Amounts, Amounts)> = BTreeMap::new();
    let mut all = (Amounts::default(), Amounts::default());
    for claim in state.claims() {
        let held = held(claim);
        let used = gauge.used(state, claim, at);
        let job = jobs.entry(claim.job).or_default();
        for i in 0..METRICS.len() {
            let used = used.map_or(0, |used| used[i]);
            job.0[i] += held[i];
            job.1[i] += used;
            all.0[i] += held[i];
            all.1[i] += used;
        }
    }
    let mut samples = rows(Subject::Cluster, &all);
    if jobs.len() <= JOBS {
        samples.extend(jobs.iter().flat_map(|(job, sums)| rows(Subject::Job(*job), sums)));
        return (samples, JobUid(0));
    }
    let after = jobs.range((std::ops::Bound::Excluded(turn), std::ops::Bound::Unbounded));
    let mut last = turn;
    for (job, sums) in after.chain(jobs.range(..=turn)).take(JOBS) {
        samples.extend(rows(Subject::Job(*job), sums));
        last = *job;
    }
    (samples, last)
}

fn rows(subject: Subject, (held, used): &(Amounts, Amounts)) -> Vec<Sample> {
    let metrics = METRICS.iter().enumerate();
    metrics
        .map(|(i, (metric, _))| Sample { subject, metric, held: held[i], used: used[i] })
        .collect()
}

/// What a claim holds, in the order of [`METRICS`].
pub fn held(claim: &Claim) -> Amounts {
    let held = &claim.held;
    [held.milli().0, held.gpu_memory().0, held.cpu.0, held.memory.0, held.disk.0]
}

fn keep(system: &System, at: Time, samples: Vec<Sample>) -> Result<(), Stopped> {
    let mut rest = samples;
    while !rest.is_empty() {
        let more = rest.split_off(rest.len().min(ROWS));
        let part = std::mem::replace(&mut rest, more);
        let kept =
            system.books.change_blocking(move |writer| writer.store().add_samples(at, &part));
        if let Err(error) = kept.map_err(|_| Stopped)? {
            tracing::error!(%error, "samples are lost");
        }
    }
    Ok(())
}

/// Rolls up all five minutes that are over; gives out where that ends.
fn roll_up(system: &System, from: Time, at: Time) -> Result<Time, Stopped> {
    let mut from = from;
    while from + Duration::from_secs(ROLLED) <= at {
        let rolled = system.books.change_blocking(move |writer| writer.store().roll_up(from));
        if let Err(error) = rolled.map_err(|_| Stopped)? {
            tracing::error!(%error, "samples are not rolled up");
        }
        from = from + Duration::from_secs(ROLLED);
    }
    Ok(from)
}
