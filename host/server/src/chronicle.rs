//! What is told of what happens besides the books: usage by tenant, the
//! outbox of webhooks, and how long things took.
//!
//! It follows each entry on the ledger thread and writes into the entry's own
//! transaction, so nothing is counted twice or lost over a restart. It sends
//! nothing and waits for nothing.

mod usage;

use crate::metrics::Metrics;
use crate::webhooks::{Hooks, Notice};
use crater_engine::{Job, State};
use crater_model::event::Entry;
use crater_model::{Cause, Event, JobState, JobUid, Time};
use crater_store::{Store, StoreError};
use std::collections::HashMap;
use std::sync::Arc;
pub use usage::{MarkError, Meter as UsageMeter};

/// What was last seen of a job.
#[derive(Clone, Copy, Debug)]
struct Seen {
    state: JobState,
    /// Since when it waits, runs or is over.
    since: Time,
    /// It ran before: this is not its first start.
    ran: bool,
}

/// Follows the journal on the ledger thread.
#[derive(Debug)]
pub struct Chronicle {
    seen: HashMap<JobUid, Seen>,
    usage: UsageMeter,
    hooks: Arc<Hooks>,
    metrics: Arc<Metrics>,
    /// Something was put into the outbox since the last publication.
    posted: bool,
}

impl Chronicle {
    /// On recovered books.
    pub fn new(state: &State, usage: UsageMeter, hooks: Arc<Hooks>, metrics: Arc<Metrics>) -> Self {
        let seen = |job: &Arc<Job>| {
            let ran = job.attempts > 1 || job.state == JobState::Running;
            (job.uid, Seen { state: job.state, since: job.since, ran })
        };
        let seen = state.jobs().filter(|job| !job.state.ended()).map(seen).collect();
        Self { seen, usage, hooks, metrics, posted: false }
    }

    /// Follows an entry that the books just took.
    pub fn note(
        &mut self,
        store: &mut Store,
        state: &State,
        entry: &Entry,
        jobs: &[JobUid],
    ) -> Result<(), StoreError> {
        if let Event::RoomMade { evictions, .. } = &entry.event {
            for eviction in evictions.iter().filter(|eviction| !eviction.whole) {
                let cause = [("cause", cause(eviction.cause).to_owned())];
                let given = eviction.claims.len() as u64;
                self.metrics.given_up.get_or_create(&cause).inc_by(given);
            }
        }
        for uid in jobs {
            let job = state.job(*uid);
            self.usage.follow(state, *uid, job, entry.at);
            let Some(job) = job else { continue };
            let before = self.seen.get(uid).copied();
            if before.is_some_and(|before| before.state == job.state) {
                continue;
            }
            self.count(job, before, entry);
            let event = notable(before.map(|before| before.state), job.state);
            // One that no machine would start had no place to lose.
            let refused = matches!(entry.event, Event::StartRefused { .. });
            if let Some(event) = event.filter(|event| !refused || *event != Notice::Preempt) {
                self.post(store, state, event, job, entry)?;
            }
            if job.state.ended() {
                self.seen.remove(uid);
            } else {
                let ran = job.state == JobState::Running || before.is_some_and(|b| b.ran);
                self.seen.insert(*uid, Seen { state: job.state, since: entry.at, ran });
            }
        }
        Ok(())
    }

    /// Writes the sums of this transaction, before it is committed.
    pub fn sync(&mut self, store: &mut Store) -> Result<(), StoreError> {
        self.usage.write(store)
    }

    /// Counts what is held up to now, and notes in the store up to where.
    pub fn mark(&mut self, store: &mut Store, state: &State, now: Time) -> Result<(), StoreError> {
        self.usage.mark(store, state, now)
    }

    /// What was written is durable: senders may begin.
    pub fn published(&mut self) {
        if std::mem::take(&mut self.posted) {
            self.hooks.ring();
        }
    }

    fn count(&self, job: &Job, before: Option<Seen>, entry: &Entry) {
        let queue = || ("queue", job.spec.queue.to_string());
        let seconds = |from: Time| (entry.at - from).as_secs_f64();
        match job.state {
            JobState::Starting => {
                let from = before.map_or(job.submitted, |before| before.since);
                self.metrics.waits.get_or_create(&[queue()]).observe(seconds(from));
            }
            JobState::Running if before.is_none_or(|before| !before.ran) => {
                let took = seconds(job.submitted);
                self.metrics.starts.get_or_create(&[queue()]).observe(took);
            }
            _ if matches!(entry.event, Event::StartRefused { .. }) => {
                self.metrics.refused.get_or_create(&[queue()]).inc();
            }
            _ if loses_its_place(before.map(|before| before.state), job.state) => {
                self.evicted(job.evicted.unwrap_or(Cause::LostNode));
            }
            JobState::Evicted => self.evicted(Cause::Manual),
            _ => {}
        }
        if job.state.ended() {
            let result = ("result", job.state.to_string().to_lowercase());
            self.metrics.ended.get_or_create(&[queue(), result]).inc();
        }
    }

    fn evicted(&self, why: Cause) {
        self.metrics.evictions.get_or_create(&[("cause", cause(why).to_owned())]).inc();
    }

    fn post(
        &mut self,
        store: &mut Store,
        state: &State,
        event: Notice,
        job: &Job,
        entry: &Entry,
    ) -> Result<(), StoreError> {
        let hooks = self.hooks.all();
        let mut body = None;
        for hook in hooks.iter().filter(|hook| hook.wants(event, job.spec.tenant.as_str())) {
            let body = body.get_or_insert_with(|| event.body(state, job, entry));
            store.post(&hook.url, event.name(), job.uid, entry.at, body)?;
            self.posted = true;
        }
        Ok(())
    }
}

/// A cause's name, as the journal, labels and notifications have it.
pub const fn cause(cause: Cause) -> &'static str {
    match cause {
        Cause::Preempt => "preempt",
        Cause::Reclaim => "reclaim",
        Cause::Deadlock => "deadlock",
        Cause::Defragment => "defragment",
        Cause::Idle => "idle",
        Cause::LostNode => "lost-node",
        Cause::Manual => "manual",
    }
}

/// Which notification a change of state is, if any.
fn notable(before: Option<JobState>, now: JobState) -> Option<Notice> {
    match now {
        JobState::Running => Some(Notice::Start),
        _ if loses_its_place(before, now) => Some(Notice::Preempt),
        state if state.ended() => Some(Notice::End),
        _ => None,
    }
}

/// Whether a job is on its way back into its queue. One without other members
/// waits again at once.
fn loses_its_place(before: Option<JobState>, now: JobState) -> bool {
    match now {
        JobState::Preempting => true,
        JobState::Pending => before.is_some_and(|before| before != JobState::Preempting),
        _ => false,
    }
}
