//! The policies of the queues: what each should be, what is live, and why the
//! last replacement was refused.

use crate::books::now;
use crater_engine::facts::{MixShape, facts};
use crater_engine::{Learner, State, Strings};
use crater_model::{Digest, QueueName};
use crater_policy::{Candidate, Configured, Limits, Live, Refusal, Runtime, Setting, Slot, Status};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

/// Where a queue's policy comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// One that the binary brings along.
    BuiltIn(String),
    /// A component in a file.
    File(PathBuf),
}

impl Source {
    /// What a configuration calls it: a path ends in `.wasm` or has a slash.
    pub fn parse(text: &str) -> Self {
        let file = text.contains('/')
            || std::path::Path::new(text)
                .extension()
                .is_some_and(|e| e.eq_ignore_ascii_case("wasm"));
        if file { Self::File(text.into()) } else { Self::BuiltIn(text.to_owned()) }
    }
}

impl std::fmt::Display for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::BuiltIn(name) => f.write_str(name),
            Self::File(path) => write!(f, "{}", path.display()),
        }
    }
}

/// What a queue's policy should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Where it comes from.
    pub source: Source,
    /// Its configuration, JSON.
    pub config: String,
}

/// Reads a built-in policy's component by its name.
pub type BuiltIns = Arc<dyn Fn(&str) -> Option<Vec<u8>> + Send + Sync>;

struct Place {
    wanted: Wanted,
    slot: Arc<Slot>,
}

/// The policies of all queues.
pub struct Policies {
    runtime: Runtime,
    strings: Arc<Strings>,
    built_ins: BuiltIns,
    places: RwLock<BTreeMap<QueueName, Place>>,
    learner: Mutex<Learner>,
    budgets: RwLock<BTreeMap<QueueName, Duration>>,
    /// What is live, for those who must not wait for a queue's round or swap.
    known: RwLock<BTreeMap<QueueName, Live>>,
}

impl Policies {
    /// No queue has a policy yet.
    pub fn new(runtime: Runtime, strings: Arc<Strings>, built_ins: BuiltIns) -> Self {
        Self {
            runtime,
            strings,
            built_ins,
            places: RwLock::default(),
            learner: Mutex::new(Learner::new(Learner::HALF_LIFE)),
            budgets: RwLock::default(),
            known: RwLock::default(),
        }
    }

    /// The place of a queue's policy.
    pub fn slot(&self, queue: &str) -> Option<Arc<Slot>> {
        self.read().get(queue).map(|place| place.slot.clone())
    }

    /// How long the policy of each queue may compute in one round; those that
    /// are not named as long as their calls' deadlines allow.
    pub fn set_budgets(&self, budgets: BTreeMap<QueueName, Duration>) {
        *self.budgets.write().unwrap_or_else(PoisonError::into_inner) = budgets;
    }

    /// How long a queue's policy may compute in one round.
    pub fn budget(&self, queue: &str) -> Option<Duration> {
        self.budgets.read().unwrap_or_else(PoisonError::into_inner).get(queue).copied()
    }

    /// The policy of each queue, without waiting for anybody's round: one that
    /// is replaced meanwhile may still be given out.
    pub fn all_known(&self) -> Vec<(QueueName, Arc<Configured>)> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known.iter().map(|(queue, live)| (queue.clone(), live.policy.clone())).collect()
    }

    /// One queue's, likewise.
    pub fn known(&self, queue: &str) -> Option<Arc<Configured>> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known.get(queue).map(|live| live.policy.clone())
    }

    fn note(&self, queue: &str, live: &Live) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        // Two swaps may come here in another order than they were made.
        if known.get(queue).is_none_or(|last| last.generation <= live.generation) {
            known.insert(queue.into(), live.clone());
        }
    }

    /// Counts the versions that went live in a queue; 0 without a policy.
    pub fn generation(&self, queue: &str) -> u64 {
        self.slot(queue).and_then(|slot| slot.live()).map_or(0, |live| live.generation)
    }

    /// What each queue's policy should be, and what it is.
    pub fn status(&self) -> Vec<(QueueName, Wanted, Status)> {
        let places = self.read();
        places.iter().map(|(q, p)| (q.clone(), p.wanted.clone(), p.slot.status())).collect()
    }

    /// The files that policies come from.
    pub fn files(&self) -> Vec<(QueueName, PathBuf)> {
        let places = self.read();
        let file = |(queue, place): (&QueueName, &Place)| match &place.wanted.source {
            Source::File(path) => Some((queue.clone(), path.clone())),
            Source::BuiltIn(_) => None,
        };
        places.iter().filter_map(file).collect()
    }

    /// Checks a policy as a queue would take it, without changing anything.
    pub fn check(&self, wanted: &Wanted, state: &State) -> Result<Digest, String> {
        let slot = Slot::new(self.runtime.clone());
        let live = self.swap(&slot, wanted, state).map_err(|refusal| refusal.to_string())?;
        Ok(crater_engine::Policy::digest(&*live.policy))
    }

    /// Makes a queue's policy what is wanted, or keeps the last good one and
    /// says why. Blocks for as long as compiling takes.
    pub fn set(&self, queue: &QueueName, wanted: &Wanted, state: &State) -> Result<Live, Refusal> {
        let slot = {
            let mut places = self.places.write().unwrap_or_else(PoisonError::into_inner);
            let place = places.entry(queue.clone()).or_insert_with(|| Place {
                wanted: wanted.clone(),
                slot: Arc::new(Slot::new(self.runtime.clone())),
            });
            place.wanted = wanted.clone();
            place.slot.clone()
        };
        self.swap(&slot, wanted, state).inspect(|live| self.note(queue, live))
    }

    /// Reads a queue's policy again, its file or its facts having changed.
    pub fn refresh(&self, queue: &str, state: &State) -> Option<Result<Live, Refusal>> {
        let (wanted, slot) = {
            let places = self.read();
            let place = places.get(queue)?;
            (place.wanted.clone(), place.slot.clone())
        };
        Some(self.swap(&slot, &wanted, state).inspect(|live| self.note(queue, live)))
    }

    /// Takes a queue's policy away: its built-in order decides.
    pub fn clear(&self, queue: &str) {
        let place = self.places.write().unwrap_or_else(PoisonError::into_inner).remove(queue);
        if let Some(place) = place {
            self.known.write().unwrap_or_else(PoisonError::into_inner).remove(queue);
            place.slot.clear();
        }
    }

    /// Learns from a submission. Whether there is enough that is new for the
    /// policies to see it.
    pub fn learn(&self, spec: &crater_model::JobSpec) -> bool {
        let mut learner = self.learner.lock().unwrap_or_else(PoisonError::into_inner);
        learner.note(&spec.request, spec.members);
        learner.due(Learner::MINIMUM)
    }

    /// Tells the policies that prepare of the mix as it is now.
    pub fn teach(&self, state: &State) {
        let preparing: Vec<QueueName> = self
            .status()
            .into_iter()
            .filter(|(_, _, status)| {
                let prepares = |live: &(Live, _)| {
                    let manifest = crater_engine::Policy::manifest(&*live.0.policy);
                    manifest.exports(crater_engine::Interface::Prepare)
                };
                status.live.as_ref().is_some_and(prepares)
            })
            .map(|(queue, _, _)| queue)
            .collect();
        let mix =
            self.learner.lock().unwrap_or_else(PoisonError::into_inner).take(Learner::MINIMUM);
        for queue in preparing {
            let Some(slot) = self.slot(&queue) else { continue };
            let Some(wanted) = self.read().get(&queue).map(|p| p.wanted.clone()) else { continue };
            match self.swap_with(&slot, &wanted, state, &mix) {
                Ok(live) => self.note(&queue, &live),
                Err(error) => tracing::warn!(%queue, %error, "the mix was not taken"),
            }
        }
    }

    fn swap(&self, slot: &Slot, wanted: &Wanted, state: &State) -> Result<Live, Refusal> {
        let mut learner = self.learner.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mix = learner.take(Learner::MINIMUM);
        self.swap_with(slot, wanted, state, &mix)
    }

    fn swap_with(
        &self,
        slot: &Slot,
        wanted: &Wanted,
        state: &State,
        mix: &[MixShape],
    ) -> Result<Live, Refusal> {
        let at = now();
        let wasm = match &wanted.source {
            Source::BuiltIn(name) => (self.built_ins)(name)
                .ok_or_else(|| slot.unreadable(at, format!("no built-in policy is called {name}"))),
            Source::File(path) => std::fs::read(path)
                .map_err(|error| slot.unreadable(at, format!("{}: {error}", path.display()))),
        }?;
        let facts = facts(mix, state);
        let strings = self.strings.clone();
        let limits: Option<Limits> = None;
        let setting = Setting { config: &wanted.config, facts: &facts, strings, limits };
        slot.swap(&Candidate { wasm: &wasm, setting, at }, |_: &Arc<Configured>| {})
    }

    fn read(&self) -> std::sync::RwLockReadGuard<'_, BTreeMap<QueueName, Place>> {
        self.places.read().unwrap_or_else(PoisonError::into_inner)
    }
}
