//! Runs nothing: declared machines on which members start, run for as long as
//! they say, and end, by the wall clock.
//!
//! A job's environment may say what it plays: `CRATER_SIMULATE_SECONDS` how
//! long each member runs, `CRATER_SIMULATE_EXIT` its exit code.

use super::Executor;
use crate::books::{Books, now};
use crater_engine::State;
use crater_model::{Claim, ClaimState, ClaimUid, JobState, Time};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// How long things take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// From a claim to a running member.
    pub start: Duration,
    /// How long a member runs unless its job says otherwise.
    pub run: Duration,
    /// From being told to end until it has.
    pub stop: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            start: Duration::from_millis(200),
            run: Duration::from_mins(5),
            stop: Duration::from_millis(500),
        }
    }
}

/// What comes next for a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Up,
    End { success: bool },
    Gone,
}

/// The executor.
#[derive(Debug)]
pub struct Simulated {
    pace: Pace,
    /// What comes next for each claim, and when.
    next: BTreeMap<ClaimUid, (Time, Next)>,
    due: BTreeSet<(Time, ClaimUid)>,
    runs: BTreeMap<ClaimUid, (Duration, bool)>,
}

impl Simulated {
    /// At this pace.
    pub fn new(pace: Pace) -> Self {
        Self { pace, next: BTreeMap::new(), due: BTreeSet::new(), runs: BTreeMap::new() }
    }

    fn plan(&mut self, claim: ClaimUid, at: Time, next: Next) {
        if let Some((before, _)) = self.next.insert(claim, (at, next)) {
            self.due.remove(&(before, claim));
        }
        self.due.insert((at, claim));
    }

    /// How long the job's members run, and whether they end well.
    fn run_of(&self, state: &State, claim: &Claim) -> (Duration, bool) {
        let task = state.job(claim.job).map(|job| job.spec.task.clone()).unwrap_or_default();
        let seconds = task.env.get("CRATER_SIMULATE_SECONDS");
        let seconds = seconds.and_then(|text| text.parse::<f64>().ok());
        let seconds = seconds.filter(|s| s.is_finite() && (0.0..1e9).contains(s));
        let exit = task.env.get("CRATER_SIMULATE_EXIT").map_or("0", String::as_str);
        (seconds.map_or(self.pace.run, Duration::from_secs_f64), exit == "0")
    }
}

impl Executor for Simulated {
    fn start(&mut self, state: &State, claim: &Claim) {
        if self.next.contains_key(&claim.uid) {
            return;
        }
        let (run, success) = self.run_of(state, claim);
        self.runs.insert(claim.uid, (run, success));
        if claim.state == ClaimState::Held {
            // It ran before this process did: it has the rest of its time.
            let running = state.job(claim.job).filter(|job| job.state == JobState::Running);
            let since = running.map_or_else(now, |job| job.since);
            self.plan(claim.uid, since + run, Next::End { success });
        } else {
            self.plan(claim.uid, now() + self.pace.start, Next::Up);
        }
    }

    fn stop(&mut self, _: &State, claim: &Claim) {
        if !matches!(self.next.get(&claim.uid), Some((_, Next::Gone))) {
            self.plan(claim.uid, now() + self.pace.stop, Next::Gone);
        }
    }

    fn step(&mut self, books: &Books) -> Duration {
        let time = now();
        let mut moves = vec![];
        while let Some((at, claim)) = self.due.first().copied().filter(|(at, _)| *at <= time) {
            self.due.remove(&(at, claim));
            let Some((_, next)) = self.next.remove(&claim) else { continue };
            moves.push((claim, next));
            if let (Next::Up, Some((run, success))) = (next, self.runs.get(&claim).copied()) {
                self.plan(claim, time + run, Next::End { success });
            } else {
                self.runs.remove(&claim);
            }
        }
        if !moves.is_empty() {
            let reported = books.change_blocking(move |writer| {
                for (claim, next) in moves {
                    let (now, ledger) = (writer.now, &mut writer.ledger);
                    // An old message changes nothing, and says so by `false`.
                    let told = match next {
                        Next::Up => ledger.move_claim(now, claim, ClaimState::Held),
                        Next::End { success } => ledger.member_ended(now, claim, success),
                        Next::Gone => ledger.move_claim(now, claim, ClaimState::Gone),
                    };
                    if let Err(error) = told {
                        tracing::error!(%error, %claim, "a report was refused");
                    }
                }
            });
            if reported.is_err() {
                return Duration::from_secs(1);
            }
        }
        let pause = self.due.first().map_or(Duration::from_secs(1), |(at, _)| *at - now());
        pause.clamp(Duration::from_millis(1), Duration::from_secs(1))
    }
}
