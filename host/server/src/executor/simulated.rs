//! Runs nothing: declared machines on which members start, run for as long as
//! they say, and end, by the wall clock.
//!
//! A job's environment may say what it plays: `CRATER_SIMULATE_SECONDS` how
//! long each member runs, `CRATER_SIMULATE_EXIT` its exit code,
//! `CRATER_SIMULATE_UTILISATION` which part of what it holds it uses.

mod gauge;

use super::Executor;
use crate::books::{Books, now};
use crate::logs::{InMemory, Stream};
use crater_engine::State;
use crater_model::{Claim, ClaimState, ClaimUid, JobState, JobUid, Time};
pub use gauge::Declared;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
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

/// The executor.
#[derive(Debug)]
pub struct Simulated {
    pace: Pace,
    /// What comes next for each claim, and when.
    next: BTreeMap<ClaimUid, (Time, Next)>,
    due: BTreeSet<(Time, ClaimUid)>,
    runs: BTreeMap<ClaimUid, Run>,
    logs: Arc<InMemory>,
}

/// What a claim's member plays.
#[derive(Clone, Debug)]
struct Run {
    job: JobUid,
    member: u32,
    /// Where it runs, and what.
    place: String,
    time: Duration,
    exit: String,
}

impl Run {
    fn success(&self) -> bool {
        self.exit == "0"
    }
}

/// Jobs of which lines are kept.
const JOBS: usize = 4096;
/// Bytes of lines that are kept of a job.
const BYTES: usize = 16 << 10;
/// Characters of a command in a line.
const COMMAND: usize = 200;

impl Simulated {
    /// At this pace.
    pub fn new(pace: Pace) -> Self {
        Self {
            pace,
            next: BTreeMap::new(),
            due: BTreeSet::new(),
            runs: BTreeMap::new(),
            logs: Arc::new(InMemory::new(JOBS, BYTES)),
        }
    }

    /// What jobs print: what happened to them here.
    pub fn logs(&self) -> Arc<InMemory> {
        self.logs.clone()
    }

    fn say(&self, run: &Run, text: &str) {
        let line = format!("{} member {}: {text}\n", crate::rfc3339(now()), run.member);
        self.logs.print(run.job, Stream::Stdout, line.as_bytes());
    }

    fn plan(&mut self, claim: ClaimUid, at: Time, next: Next) {
        if let Some((before, _)) = self.next.insert(claim, (at, next)) {
            self.due.remove(&(before, claim));
        }
        self.due.insert((at, claim));
    }

    /// What a claim's member plays.
    fn run_of(&self, state: &State, claim: &Claim) -> Run {
        let task = state.job(claim.job).map(|job| job.spec.task.clone()).unwrap_or_default();
        let seconds = task.env.get("CRATER_SIMULATE_SECONDS");
        let seconds = seconds.and_then(|text| text.parse::<f64>().ok());
        let seconds = seconds.filter(|s| s.is_finite() && (0.0..1e9).contains(s));
        let exit = task.env.get("CRATER_SIMULATE_EXIT").map_or("0", String::as_str);
        Run {
            job: claim.job,
            member: claim.member,
            place: place(state, claim, &task.image, &task.command),
            time: seconds.map_or(self.pace.run, Duration::from_secs_f64),
            exit: exit.chars().take(16).collect(),
        }
    }
}

/// Where a member runs and what, in words.
fn place(state: &State, claim: &Claim, image: &str, command: &str) -> String {
    let node = state.node(claim.node).map_or("a node", |node| &*node.spec.name);
    let mut text = format!("node {node}");
    for card in &claim.held.cards {
        let _ = match &card.instance {
            Some(mig) => write!(text, ", card {} ({})", card.card, mig.profile),
            None => write!(text, ", card {} ({} of it, {})", card.card, card.milli, card.memory),
        };
    }
    let cut = |text: &str| {
        let plain: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        plain.chars().take(COMMAND).collect::<String>()
    };
    if !image.is_empty() {
        let _ = write!(text, ", image {}", cut(image));
    }
    if !command.is_empty() {
        let _ = write!(text, "; would run `{}`", cut(command));
    }
    text
}

impl Executor for Simulated {
    fn start(&mut self, state: &State, claim: &Claim) {
        if self.next.contains_key(&claim.uid) {
            return;
        }
        let run = self.run_of(state, claim);
        let (time, success) = (run.time, run.success());
        if claim.state == ClaimState::Held {
            // It ran before this process did: it has the rest of its time.
            let running = state.job(claim.job).filter(|job| job.state == JobState::Running);
            let since = running.map_or_else(now, |job| job.since);
            self.say(&run, &format!("taken up again on {}", run.place));
            self.plan(claim.uid, since + time, Next::End { success });
        } else {
            self.say(&run, &format!("starting on {}", run.place));
            self.plan(claim.uid, now() + self.pace.start, Next::Up);
        }
        self.runs.insert(claim.uid, run);
    }

    fn stop(&mut self, state: &State, claim: &Claim) {
        if !matches!(self.next.get(&claim.uid), Some((_, Next::Gone))) {
            if let Some(run) = self.runs.get(&claim.uid) {
                let job = state.job(claim.job);
                let why = job.map_or_else(String::new, |job| match job.state {
                    state if state.ended() => format!(": {state}, {}", job.reason),
                    state => format!(": {state}"),
                });
                self.say(run, &format!("told to end{why}"));
            }
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
            let Some(run) = self.runs.get(&claim).cloned() else { continue };
            match next {
                Next::Up => {
                    self.say(&run, "runs");
                    self.plan(claim, time + run.time, Next::End { success: run.success() });
                    continue;
                }
                Next::End { .. } => self.say(&run, &format!("ended with exit code {}", run.exit)),
                Next::Gone => self.say(&run, "ended, as it was told"),
            }
            self.runs.remove(&claim);
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
