//! What came of a day: who waited, what was used, what was lost.

use crate::world::Observer;
use crater_engine::State;
use crater_model::event::Entry;
use crater_model::{Event, JobState, JobUid, Kind, MilliCards, Time};
use std::collections::BTreeMap;

/// How a kind of work fared.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fared {
    /// Jobs that came.
    pub jobs: u64,
    /// Seconds until each first ran, sorted; those that never did count with
    /// their wait so far.
    pub waits: Vec<f64>,
    /// Card-hours that were held.
    pub card_hours: f64,
    /// Times that jobs were preempted.
    pub preemptions: u64,
    /// Jobs that ended.
    pub ended: u64,
}

impl Fared {
    /// The wait that so many percent do not exceed, in seconds.
    pub fn percentile(&self, percent: usize) -> f64 {
        let at = (self.waits.len() * percent).div_ceil(100).saturating_sub(1);
        self.waits.get(at).copied().unwrap_or(0.0)
    }

    /// The mean wait in seconds.
    pub fn mean(&self) -> f64 {
        self.waits.iter().sum::<f64>() / self.waits.len().max(1) as f64
    }
}

/// Looks on while a day goes by.
#[derive(Debug, Default)]
pub struct Meter {
    last: Option<Time>,
    /// Milli-card-milliseconds that were promised, by kind.
    held: BTreeMap<Kind, f64>,
    submitted: BTreeMap<JobUid, Time>,
    first_run: BTreeMap<JobUid, Time>,
    promised: BTreeMap<Kind, u64>,
}

impl Meter {
    /// Counts up to a moment.
    fn advance(&mut self, now: Time) {
        if let Some(last) = self.last {
            let ms = (now - last).as_millis() as f64;
            for (kind, milli) in &self.promised {
                *self.held.entry(*kind).or_default() += ms * *milli as f64;
            }
        }
        self.last = Some(now);
    }

    /// The figures at the end of a day.
    pub fn figures(mut self, state: &State, end: Time) -> BTreeMap<Kind, Fared> {
        self.advance(end);
        let mut all: BTreeMap<Kind, Fared> = BTreeMap::new();
        for (uid, submitted) in &self.submitted {
            let Some(job) = state.job(*uid) else { continue };
            let fared = all.entry(job.spec.kind).or_default();
            fared.jobs += 1;
            fared.preemptions += u64::from(job.preemptions);
            fared.ended += u64::from(job.state.ended());
            let ran = self.first_run.get(uid).copied().unwrap_or(end);
            fared.waits.push((ran - *submitted).as_secs_f64());
        }
        for (kind, fared) in &mut all {
            fared.waits.sort_by(f64::total_cmp);
            fared.card_hours = self.held.get(kind).copied().unwrap_or(0.0) / 1000.0 / 3_600_000.0;
        }
        all
    }
}

impl Observer for Meter {
    fn applied(&mut self, state: &State, entry: Option<&Entry>) {
        let Some(entry) = entry else { return };
        self.advance(entry.at);
        match &entry.event {
            Event::JobSubmitted { job, .. } => {
                self.submitted.insert(*job, entry.at);
            }
            Event::ClaimMoved { claim, .. } => {
                let job = state.claim(*claim).and_then(|c| state.job(c.job));
                if let Some(job) = job.filter(|j| j.state == JobState::Running) {
                    self.first_run.entry(job.uid).or_insert(entry.at);
                }
            }
            _ => {}
        }
        self.promised.clear();
        for claim in state.claims() {
            if let Some(job) = state.job(claim.job) {
                let MilliCards(milli) = claim.held.milli();
                *self.promised.entry(job.spec.kind).or_default() += milli;
            }
        }
    }
}
