//! Changes of jobs, found and written as text once for however many listen.
//!
//! A thread compares the published books with those before, some times a
//! second, and sends what changed to all listeners as one shared text. Who is
//! too slow misses events and is told how all jobs stand instead. The last
//! events are kept, so that a listener that lost its connection goes on.

use crate::types::JobView;
use crater_engine::Job;
use crater_model::{JobState, JobUid};
use crater_server::System;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::broadcast;

/// Events that a listener may be behind, and that are kept for those who come
/// back.
pub const KEPT: usize = 4096;
/// Books are compared at most this often.
const PAUSE: Duration = Duration::from_millis(50);
/// Why jobs wait is looked at this often.
const REASONS: Duration = Duration::from_secs(2);
/// Longest wait for books that changed.
const LOOK: Duration = Duration::from_millis(500);

/// A change of a job.
#[derive(Debug)]
pub struct Event {
    /// Counts up.
    pub number: u64,
    /// Whose it is.
    pub tenant: Arc<str>,
    /// The job.
    pub job: JobUid,
    /// How it stands, as JSON; none once the books forgot it.
    pub shown: Option<String>,
}

/// Sends changes to all who listen.
pub struct Hub {
    /// Tells the events of this process from those of others.
    epoch: String,
    send: broadcast::Sender<Arc<Event>>,
    state: Mutex<Latest>,
}

#[derive(Default)]
struct Latest {
    next: u64,
    ring: VecDeque<Arc<Event>>,
    /// How each job in the books stands.
    jobs: BTreeMap<JobUid, Arc<Event>>,
}

/// A listener: what it has to be told first, and what comes.
pub struct Listening {
    /// First.
    pub first: Vec<Arc<Event>>,
    /// Then.
    pub news: broadcast::Receiver<Arc<Event>>,
}

impl Hub {
    /// Starts the thread.
    pub fn start(system: &Arc<System>) -> Arc<Self> {
        let epoch = format!("{:x}", crater_server::now().0);
        let hub =
            Arc::new(Self { epoch, send: broadcast::channel(KEPT).0, state: Mutex::default() });
        let (thread, system) = (hub.clone(), Arc::downgrade(system));
        let started = std::thread::Builder::new().name("events".into()).spawn(move || {
            let mut before = Before::default();
            let mut seq = 0;
            while let Some(system) = system.upgrade() {
                seq = thread.pass(&system, &mut before);
                let books = system.books.clone();
                drop(system);
                std::thread::sleep(PAUSE);
                books.wait(seq, LOOK);
            }
            seq
        });
        if let Err(error) = started {
            tracing::error!(%error, "no events are sent");
        }
        hub
    }

    /// The name of an event for the one who comes back with it.
    pub fn id(&self, event: &Event) -> String {
        format!("{}-{}", self.epoch, event.number)
    }

    /// Listens: after the event that was seen last, if it is still kept.
    pub fn listen(&self, last: Option<&str>) -> Listening {
        let state = self.lock();
        // While nothing can be sent: no event falls between the two.
        let news = self.send.subscribe();
        let seen =
            last.and_then(|id| id.strip_prefix(&*self.epoch)?.strip_prefix('-')?.parse().ok());
        let kept = state.ring.front().map_or(state.next, |event| event.number);
        let first = match seen {
            Some(seen) if (kept..=state.next).contains(&(seen + 1)) => {
                state.ring.iter().filter(|event| event.number > seen).cloned().collect()
            }
            _ => {
                let mut all: Vec<_> = state.jobs.values().cloned().collect();
                all.sort_unstable_by_key(|event| event.number);
                all
            }
        };
        Listening { first, news }
    }

    fn lock(&self) -> MutexGuard<'_, Latest> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, tenant: Arc<str>, job: JobUid, shown: Option<String>) {
        let mut state = self.lock();
        let there = shown.is_some();
        let event = Arc::new(Event { number: state.next, tenant, job, shown });
        state.next += 1;
        if there {
            state.jobs.insert(job, event.clone());
        } else {
            state.jobs.remove(&job);
        }
        if state.ring.len() == KEPT {
            state.ring.pop_front();
        }
        state.ring.push_back(event.clone());
        // Nobody may listen.
        let _ = self.send.send(event);
    }

    /// Compares the books with those before, and tells what changed.
    fn pass(&self, system: &System, before: &mut Before) -> u64 {
        let view = system.books.view();
        let state = &view.state;
        if before.seq == Some(state.seq) && before.reasons.elapsed() < REASONS {
            return state.seq;
        }
        let reasons = before.reasons.elapsed() >= REASONS;
        let mut seen = BTreeMap::new();
        for job in state.jobs() {
            let known = before.jobs.remove(&job.uid);
            let same = known.as_ref().is_some_and(|known| Arc::ptr_eq(&known.job, job));
            let waits = job.state == JobState::Pending;
            let known = match known {
                Some(known) if same && !(waits && reasons) => known,
                known => {
                    let reason = crate::jobs::reason(system, job);
                    let changed = known.is_none_or(|known| !same || known.reason != reason);
                    if changed {
                        let shown = JobView::of(state, job, reason.clone());
                        let text = serde_json::to_string(&shown).unwrap_or_default();
                        self.tell(job.spec.tenant.as_str().into(), job.uid, Some(text));
                    }
                    Known { job: job.clone(), reason: if waits { reason } else { String::new() } }
                }
            };
            seen.insert(job.uid, known);
        }
        for (uid, known) in &before.jobs {
            self.tell(known.job.spec.tenant.as_str().into(), *uid, None);
        }
        before.jobs = seen;
        before.seq = Some(state.seq);
        if reasons {
            before.reasons = Instant::now();
        }
        state.seq
    }
}

/// The books as they were last compared.
struct Before {
    seq: Option<u64>,
    jobs: BTreeMap<JobUid, Known>,
    reasons: Instant,
}

impl Default for Before {
    fn default() -> Self {
        Self { seq: None, jobs: BTreeMap::new(), reasons: Instant::now() }
    }
}

struct Known {
    job: Arc<Job>,
    /// Why it waits, as it was told last.
    reason: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hub() -> Hub {
        let send = broadcast::channel(KEPT).0;
        Hub { epoch: "e".into(), send, state: Mutex::default() }
    }

    fn numbers(listening: &Listening) -> Vec<u64> {
        listening.first.iter().map(|event| event.number).collect()
    }

    #[test]
    fn who_comes_back_goes_on_and_who_was_away_too_long_hears_all() {
        let hub = hub();
        let tell = |job, shown: Option<&str>| {
            hub.tell("t".into(), JobUid(job), shown.map(str::to_owned));
        };
        for (job, shown) in [(1, "a"), (2, "b"), (1, "c")] {
            tell(job, Some(shown));
        }
        // How each job stands, not how it stood.
        assert_eq!(numbers(&hub.listen(None)), [1, 2]);
        assert_eq!(numbers(&hub.listen(Some("e-0"))), [1, 2]);
        assert!(hub.listen(Some("e-2")).first.is_empty());
        tell(2, None);
        assert_eq!(numbers(&hub.listen(Some("e-2"))), [3]);
        assert_eq!(numbers(&hub.listen(None)), [2]);
        for unknown in ["e-9", "f-2", "e-x", ""] {
            assert_eq!(numbers(&hub.listen(Some(unknown))), [2], "{unknown}");
        }
        (0..KEPT as u64).for_each(|_| tell(3, Some("d")));
        assert_eq!(hub.listen(Some("e-2")).first.len(), 2, "too long ago: all jobs");
        assert_eq!(hub.listen(Some("e-3")).first.len(), KEPT);
    }
}
