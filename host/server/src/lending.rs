//! Opens and closes borrowing by how much of the cluster is in use, and looks
//! for deadlocks.
//!
//! The rule and its two thresholds are the ledger's; this thread tells it the
//! figure, every five seconds and soon after much was placed or given back.

use crate::books::now;
use crate::system::System;
use crater_engine::State;
use crater_model::{MilliCards, Time};
use crater_store::{Point, Subject};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The figure is told at least this often.
const TICK: Duration = Duration::from_secs(5);
/// Books are looked at no more often than this, however often they change.
const REST: Duration = Duration::from_millis(250);
/// Deadlocks are looked for so often.
const DEADLOCKS: Duration = Duration::from_secs(30);
/// Points of a percent of the cluster that count as much.
const MUCH: u64 = 5;
/// Measured use is averaged over this long.
const MEAN: Duration = Duration::from_mins(5);
/// Points that are read at most: a second's interval for five minutes.
const POINTS: u32 = 400;

/// Starts the thread.
pub fn start(system: &Arc<System>) -> std::io::Result<()> {
    let system = Arc::downgrade(system);
    std::thread::Builder::new().name("lending".into()).spawn(move || {
        let (mut seq, mut told) = (0, None);
        let mut last: Option<Instant> = None;
        let mut looked = Instant::now();
        loop {
            let Some(strong) = system.upgrade() else { return };
            let view = strong.books.view();
            let promised = view.state.allocated_percent();
            let due = last.is_none_or(|last| last.elapsed() >= TICK);
            if due || much(told, promised) {
                let used = measured(&strong, &view.state).or(promised);
                if tell(&strong, used).is_err() {
                    return;
                }
                (told, last) = (promised, Some(Instant::now()));
            }
            if looked.elapsed() >= DEADLOCKS {
                looked = Instant::now();
                if deadlocks(&strong).is_err() {
                    return;
                }
            }
            seq = view.state.seq.max(seq);
            let left = last.map_or(TICK, |last| TICK.saturating_sub(last.elapsed()));
            let books = strong.books.clone();
            drop((strong, view));
            std::thread::sleep(REST);
            books.wait(seq, left);
        }
    })?;
    Ok(())
}

/// Sends a gang back to its queue if it and others wait for each other's parts.
fn deadlocks(system: &System) -> Result<(), crate::books::Unavailable> {
    if crater_engine::deadlock::deadlock(&system.books.view().state, now()).is_none() {
        return Ok(());
    }
    let broken = system.books.change_blocking(|writer| writer.ledger.break_deadlock(writer.now))?;
    match broken {
        Ok(Some(job)) => tracing::warn!(%job, "it was evicted to end a deadlock"),
        Ok(None) => {}
        Err(error) => tracing::error!(%error, "a deadlock stays as it is"),
    }
    Ok(())
}

/// Whether that is another figure than the one that was told.
fn much(told: Option<u64>, now: Option<u64>) -> bool {
    match (told, now) {
        (Some(told), Some(now)) => told.abs_diff(now) >= MUCH,
        (told, now) => told != now,
    }
}

/// Tells the ledger, unless that cannot change anything.
fn tell(system: &System, used: Option<u64>) -> Result<(), crate::books::Unavailable> {
    let (borrowing, open) = {
        let view = system.books.view();
        (view.state.quotas().platform().borrowing, view.state.quotas().open())
    };
    if !borrowing && !open {
        return Ok(());
    }
    let noted =
        system.books.change_blocking(move |writer| writer.ledger.note_use(writer.now, used))?;
    match noted {
        Ok(true) => tracing::info!(used, open = !open, "borrowing"),
        Ok(false) => {}
        Err(error) => tracing::error!(%error, "borrowing stays as it is"),
    }
    Ok(())
}

/// The mean of what the collector measured in the last five minutes, in percent
/// of the healthy cards; nothing where it does not report.
fn measured(system: &System, state: &State) -> Option<u64> {
    let now = now();
    let from = Time(now.0.saturating_sub(MEAN.as_millis() as u64));
    let points = system.reader().and_then(|r| r.points(Subject::Cluster, "gpu", from, POINTS));
    let points = points.inspect_err(|error| tracing::warn!(%error, "use is not known")).ok()?;
    let late = system.interval() * 2;
    mean(&points, now, late, healthy(state))
}

/// Share of the cards that are healthy.
fn healthy(state: &State) -> u64 {
    let cards = state.nodes().flat_map(|node| node.spec.cards.iter());
    cards.filter(|card| card.healthy).count() as u64 * MilliCards::CARD.0
}

/// The mean in percent. A collector that has missed two turns reports no more.
fn mean(points: &[Point], now: Time, late: Duration, cards: u64) -> Option<u64> {
    let single = || points.iter().filter(|point| point.span == 0);
    let last = single().map(|point| point.at).max()?;
    if now - last > late || cards == 0 {
        return None;
    }
    let (n, total) = single()
        .fold((0, 0_u64), |(n, total), point| (n + point.n, total.saturating_add(point.total)));
    total.checked_div(n).map(|used| used.saturating_mul(100) / cards)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(at: u64, used: u64) -> Point {
        Point { at: Time(at), span: 0, n: 1, held: used, total: used, low: used, high: used }
    }

    #[test]
    fn use_is_a_mean_and_unknown_once_nobody_reports() {
        let points = [point(1000, 0), point(2000, 4000), point(3000, 8000)];
        let late = Duration::from_secs(2);
        assert_eq!(mean(&points, Time(4000), late, 8000), Some(50));
        assert_eq!(mean(&points, Time(5001), late, 8000), None);
        assert_eq!(mean(&points, Time(4000), late, 0), None);
        assert_eq!(mean(&[], Time(4000), late, 8000), None);
    }

    #[test]
    fn little_is_told_at_the_next_turn_only() {
        assert!(!much(Some(40), Some(44)) && much(Some(40), Some(45)) && much(Some(40), None));
        assert!(!much(None, None));
    }
}
