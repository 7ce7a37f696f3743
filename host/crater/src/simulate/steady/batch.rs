//! Many runs on some threads.

use super::record::{Cell, Record};
use crate::progress;
use crater_engine::Policy;
use crater_sim::steady::{Ask, Steady};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Instant;

/// One run to make.
pub struct Unit<'a> {
    /// The experiment.
    pub steady: &'a Steady<'a>,
    /// Who decides.
    pub policy: Arc<dyn Policy>,
    /// What to run.
    pub ask: Ask,
    /// What it is of.
    pub cell: Cell,
    /// The policy's digest.
    pub digest: String,
}

/// Makes all runs on `jobs` threads. `each` is given every one as soon as it
/// and those before it are done; whatever the threads do, in the same order.
pub fn run_all(
    units: &[Unit<'_>],
    jobs: usize,
    mut each: impl FnMut(&Record) -> anyhow::Result<()>,
) -> anyhow::Result<Vec<Record>> {
    let about = |u: &Unit<'_>| u.steady.workload().about(u.ask.load, u.ask.arrivals);
    let bar = progress::bar(units.iter().map(about).sum(), "steady state");
    let next = AtomicUsize::new(0);
    let (sender, receiver) = mpsc::channel();
    let mut records = vec![];
    std::thread::scope(|scope| {
        for _ in 0..jobs.min(units.len()) {
            let (sender, next, bar) = (sender.clone(), &next, &bar);
            scope.spawn(move || {
                loop {
                    let i = next.fetch_add(1, Ordering::Relaxed);
                    let Some(unit) = units.get(i) else { return };
                    if sender.send((i, one(unit, bar))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        let mut done = BTreeMap::new();
        for (i, result) in receiver {
            done.insert(i, result);
            while let Some(result) = done.remove(&records.len()) {
                let shown = result.and_then(|record| {
                    bar.suspend(|| each(&record))?;
                    records.push(record);
                    Ok(())
                });
                if shown.is_err() {
                    // What runs comes to its end; nothing more begins.
                    next.store(units.len(), Ordering::Relaxed);
                    return shown;
                }
            }
        }
        Ok(())
    })?;
    bar.finish_and_clear();
    Ok(records)
}

fn one(unit: &Unit<'_>, bar: &indicatif::ProgressBar) -> anyhow::Result<Record> {
    const STEP: u64 = 1024;
    let start = Instant::now();
    let mut steps = 0;
    let policy = Some(unit.policy.clone());
    let run = unit.steady.run(unit.ask, policy, &mut || {
        steps += 1;
        if steps % STEP == 0 {
            bar.inc(STEP);
        }
    })?;
    let wall_seconds = start.elapsed().as_millis() as f64 / 1000.0;
    let (cell, digest) = (unit.cell.clone(), unit.digest.clone());
    Ok(Record { cell, digest, wall_seconds, run })
}
