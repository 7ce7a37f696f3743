//! What a simulated member plays, by its job's environment.

use super::Pace;
use super::progress::Progress;
use crater_engine::State;
use crater_model::{Claim, JobUid, Task};
use std::fmt::Write as _;
use std::time::Duration;

/// Characters of a command, or of a refusal, in a line.
const WORDS: usize = 200;
/// From the signal to end until it is ended by force, unless the job says so.
const GRACE: Duration = Duration::from_secs(30);

/// What a claim's member plays.
#[derive(Clone, Debug)]
pub struct Play {
    /// The job.
    pub job: JobUid,
    /// Which member of it.
    pub member: u32,
    /// Where it runs, and what.
    pub place: String,
    /// How long it runs if nothing was done yet.
    pub time: Duration,
    /// What is done already.
    pub progress: Progress,
    /// Its exit code.
    pub exit: String,
    /// How often it saves the job's progress; never without.
    pub save: Option<Duration>,
    /// The machine refuses to start it, with these words.
    pub refuse: Option<String>,
    /// From a claim to a running member.
    pub start: Duration,
    /// From being told to end until it has.
    pub stop: Duration,
    /// What its environment would say besides its own variables.
    pub told: String,
}

impl Play {
    /// What a claim's member plays.
    pub fn of(state: &State, claim: &Claim, progress: Progress, pace: Pace) -> Self {
        let job = state.job(claim.job);
        let task = job.map(|job| job.spec.task.clone()).unwrap_or_default();
        let env = |name: &str| task.env.get(name);
        let span = |name: &str| env(name).and_then(|text| seconds(text));
        // One member saves for all of them, and one fails.
        let first = job.and_then(|job| job.claims.first()) == Some(&claim.uid);
        let fails = span("CRATER_SIMULATE_FAIL").filter(|_| first);
        let usual = env("CRATER_SIMULATE_EXIT").map_or("0", String::as_str);
        let exit = if fails.is_some() { "1" } else { usual };
        let grace = task.grace.map_or(GRACE, |grace| Duration::from_secs(grace.into()));
        Self {
            job: claim.job,
            member: claim.member,
            place: place(state, claim, &task),
            time: fails.or_else(|| span("CRATER_SIMULATE_SECONDS")).unwrap_or(pace.run),
            progress,
            exit: exit.chars().take(16).collect(),
            save: span("CRATER_SIMULATE_CHECKPOINT").filter(|every| first && !every.is_zero()),
            refuse: env("CRATER_SIMULATE_REFUSE").map(|text| cut(text)),
            start: span("CRATER_SIMULATE_START").unwrap_or(pace.start),
            // Who takes longer than its grace is ended by force.
            stop: span("CRATER_SIMULATE_STOP").unwrap_or(pace.stop).min(grace),
            told: job.map(|job| said(&crate::executor::environment(job))).unwrap_or_default(),
        }
    }

    /// Whether it ends well.
    pub fn success(&self) -> bool {
        self.exit == "0"
    }

    /// What it has to run in this run.
    pub fn rest(&self) -> Duration {
        self.time.saturating_sub(self.progress.saved)
    }
}

/// Seconds as people write them.
fn seconds(text: &str) -> Option<Duration> {
    let seconds = text.parse::<f64>().ok();
    let seconds = seconds.filter(|s| s.is_finite() && (0.0..1e9).contains(s));
    seconds.map(Duration::from_secs_f64)
}

fn said(environment: &[(&str, String)]) -> String {
    let pairs: Vec<String> =
        environment.iter().map(|(name, value)| format!("{name}={value}")).collect();
    pairs.join(" ")
}

fn cut(text: &str) -> String {
    let plain: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    plain.chars().take(WORDS).collect()
}

/// Where a member runs and what, in words.
fn place(state: &State, claim: &Claim, task: &Task) -> String {
    let node = state.node(claim.node).map_or("a node", |node| &*node.spec.name);
    let mut text = format!("node {node}");
    for card in &claim.held.cards {
        let _ = match &card.instance {
            Some(mig) => write!(text, ", card {} ({})", card.card, mig.profile),
            None => write!(text, ", card {} ({} of it, {})", card.card, card.milli, card.memory),
        };
    }
    if !task.image.is_empty() {
        let _ = write!(text, ", image {}", cut(&task.image));
    }
    if !task.command.is_empty() {
        let _ = write!(text, "; would run `{}`", cut(&task.command));
    }
    text
}
