//! Runs nothing: declared machines on which members start, run for as long as
//! they say, and end, by the wall clock.
//!
//! A job's environment may say what it plays: `CRATER_SIMULATE_SECONDS` how
//! long each member runs, `CRATER_SIMULATE_EXIT` its exit code,
//! `CRATER_SIMULATE_FAIL` after how many seconds one of its members fails,
//! `CRATER_SIMULATE_START` how many seconds it takes to start,
//! `CRATER_SIMULATE_UTILISATION` which part of what it holds it uses,
//! `CRATER_SIMULATE_CHECKPOINT` after how many seconds, again and again, the job
//! saves its progress, also when it is told to end; it goes on from there when
//! it starts again. `CRATER_SIMULATE_STOP` is how many seconds it takes to end
//! when it is told to, and `CRATER_SIMULATE_REFUSE` the words with which its
//! machine refuses to start it.

mod gauge;
mod play;
mod progress;

use super::Executor;
use crate::books::{Books, now};
use crate::logs::{InMemory, Stream};
use crater_engine::State;
use crater_model::{Claim, ClaimState, ClaimUid, JobState, JobUid, Time};
use crater_store::Reader;
pub use gauge::Declared;
use play::Play;
use progress::Progress;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
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

/// What is told of a claim.
#[derive(Clone, Debug)]
enum Report {
    Runs,
    Refused(String),
    Saved(JobUid),
    Ended { success: bool },
    Gone,
}

/// The executor.
pub struct Simulated {
    pace: Pace,
    /// What jobs did before.
    history: Option<Reader>,
    /// What comes next for each claim, and when.
    next: BTreeMap<ClaimUid, (Time, Next)>,
    due: BTreeSet<(Time, ClaimUid)>,
    /// When jobs save their progress, by the claim that does it.
    saves: BTreeSet<(Time, ClaimUid)>,
    runs: BTreeMap<ClaimUid, Play>,
    logs: Arc<InMemory>,
}

/// Jobs of which lines are kept.
const JOBS: usize = 4096;
/// Bytes of lines that are kept of a job.
const BYTES: usize = 16 << 10;

impl Simulated {
    /// At this pace.
    pub fn new(pace: Pace) -> Self {
        Self {
            pace,
            history: None,
            next: BTreeMap::new(),
            due: BTreeSet::new(),
            saves: BTreeSet::new(),
            runs: BTreeMap::new(),
            logs: Arc::new(InMemory::new(JOBS, BYTES)),
        }
    }

    /// With what jobs did before: they go on from their checkpoints.
    #[must_use]
    pub fn with_history(self, history: Reader) -> Self {
        Self { history: Some(history), ..self }
    }

    /// What jobs print: what happened to them here.
    pub fn logs(&self) -> Arc<InMemory> {
        self.logs.clone()
    }

    fn say(&self, play: &Play, text: &str) {
        let line = format!("{} member {}: {text}\n", crate::rfc3339(now()), play.member);
        self.logs.print(play.job, Stream::Stdout, line.as_bytes());
    }

    fn plan(&mut self, claim: ClaimUid, at: Time, next: Next) {
        if let Some((before, _)) = self.next.insert(claim, (at, next)) {
            self.due.remove(&(before, claim));
        }
        self.due.insert((at, claim));
    }

    /// What a job can go on from. Only one that saved its progress is looked up.
    fn progress(&self, state: &State, job: JobUid) -> Progress {
        let saved = state.job(job).is_some_and(|job| job.checkpointed.is_some());
        let history = self.history.as_ref().filter(|_| saved);
        let events = history.map(|history| history.events(job)).transpose();
        let events = events.unwrap_or_else(|error| {
            tracing::warn!(%error, %job, "it starts from nothing");
            None
        });
        events.map(|events| Progress::of(&events)).unwrap_or_default()
    }

    /// The job saves its progress by this claim after a while.
    fn save_later(&mut self, claim: ClaimUid, every: Option<Duration>) {
        if let Some(every) = every {
            self.saves.insert((now() + every, claim));
        }
    }

    /// The checkpoints that are due, each with its job.
    fn saved(&mut self, time: Time, reports: &mut Vec<(ClaimUid, Report)>) {
        while let Some((at, claim)) = self.saves.first().copied().filter(|(at, _)| *at <= time) {
            self.saves.remove(&(at, claim));
            let Some(play) = self.runs.get(&claim).cloned() else { continue };
            self.say(&play, "saves its progress");
            reports.push((claim, Report::Saved(play.job)));
            if matches!(self.next.get(&claim), Some((_, Next::End { .. }))) {
                self.save_later(claim, play.save);
            }
        }
    }

    /// What has happened by now.
    fn happened(&mut self, time: Time) -> Vec<(ClaimUid, Report)> {
        let mut reports = vec![];
        // First: who is told to end saves before it does.
        self.saved(time, &mut reports);
        while let Some((at, claim)) = self.due.first().copied().filter(|(at, _)| *at <= time) {
            self.due.remove(&(at, claim));
            let Some((_, next)) = self.next.remove(&claim) else { continue };
            let Some(play) = self.runs.get(&claim).cloned() else { continue };
            let report = match (next, &play.refuse) {
                (Next::Up, Some(words)) => {
                    self.say(&play, &format!("its start is refused: {words}"));
                    Report::Refused(words.clone())
                }
                (Next::Up, None) => {
                    self.say(&play, "runs");
                    let end = Next::End { success: play.success() };
                    self.plan(claim, time + play.rest(), end);
                    self.save_later(claim, play.save);
                    reports.push((claim, Report::Runs));
                    continue;
                }
                (Next::End { success }, _) => {
                    self.say(&play, &format!("ended with exit code {}", play.exit));
                    Report::Ended { success }
                }
                (Next::Gone, _) => {
                    self.say(&play, "ended, as it was told");
                    Report::Gone
                }
            };
            reports.push((claim, report));
            self.runs.remove(&claim);
        }
        reports
    }
}

impl Executor for Simulated {
    fn start(&mut self, state: &State, claim: &Claim) {
        if self.next.contains_key(&claim.uid) {
            return;
        }
        let progress = self.progress(state, claim.job);
        let play = Play::of(state, claim, progress, self.pace);
        if claim.state == ClaimState::Held {
            // It ran before this process did: it has the rest of its time.
            let running = state.job(claim.job).filter(|job| job.state == JobState::Running);
            let since = running.map_or_else(now, |job| job.since);
            self.say(&play, &format!("taken up again on {}", play.place));
            let rest = play.time.saturating_sub(play.progress.base);
            self.plan(claim.uid, since + rest, Next::End { success: play.success() });
            self.save_later(claim.uid, play.save);
        } else {
            self.say(&play, &format!("starting on {}; {}", play.place, play.told));
            if !play.progress.saved.is_zero() {
                let (saved, rest) = (play.progress.saved.as_secs(), play.rest().as_secs());
                self.say(&play, &format!("goes on after {saved} s, {rest} s are left"));
            }
            self.plan(claim.uid, now() + play.start, Next::Up);
        }
        self.runs.insert(claim.uid, play);
    }

    fn stop(&mut self, state: &State, claim: &Claim) {
        if matches!(self.next.get(&claim.uid), Some((_, Next::Gone))) {
            return;
        }
        let job = state.job(claim.job);
        let known = self.runs.get(&claim.uid).cloned();
        // One that ran before this process did, and was told before.
        let play = known.unwrap_or_else(|| Play::of(state, claim, Progress::default(), self.pace));
        let why = job.map_or_else(String::new, |job| match (job.state, job.evicted) {
            (state, _) if state.ended() => format!(": {state}, {}", job.reason),
            (JobState::Preempting, Some(cause)) => format!(": {cause}"),
            (state, _) => format!(": {state}"),
        });
        self.say(&play, &format!("told to end{why}"));
        let ran = matches!(self.next.get(&claim.uid), Some((_, Next::End { .. })));
        let again = job.is_some_and(|job| !job.state.ended());
        if ran && again && play.save.is_some() {
            self.saves.insert((now(), claim.uid));
        }
        self.plan(claim.uid, now() + play.stop, Next::Gone);
        self.runs.insert(claim.uid, play);
    }

    fn step(&mut self, books: &Books) -> Duration {
        let reports = self.happened(now());
        if !reports.is_empty() {
            let reported = books.change_blocking(move |writer| {
                for (claim, report) in reports {
                    let (now, ledger) = (writer.now, &mut writer.ledger);
                    // An old message changes nothing, and says so by `false`.
                    let told = match report {
                        Report::Runs => ledger.move_claim(now, claim, ClaimState::Held),
                        Report::Refused(words) => ledger.refuse_start(now, claim, &words),
                        Report::Saved(job) => super::saved(ledger, now, job),
                        Report::Ended { success } => ledger.member_ended(now, claim, success),
                        Report::Gone => ledger.move_claim(now, claim, ClaimState::Gone),
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
        let first = self.due.first().into_iter().chain(self.saves.first());
        let next = first.map(|(at, _)| *at).min();
        let pause = next.map_or(Duration::from_secs(1), |at| at - now());
        pause.clamp(Duration::from_millis(1), Duration::from_secs(1))
    }
}
