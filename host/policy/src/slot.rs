//! A queue's place for its policy: what is live, and how it is replaced.
//!
//! A replacement goes through every check beside the live version and takes
//! its place in one step between rounds. Whatever goes wrong, the last good
//! version stays and the refusal is there to be shown.

use crate::configured::{ConfigureError, Configured, Setting};
use crate::counters::Counters;
use crate::golden;
use crate::load::LoadError;
use crate::runtime::Runtime;
use crater_model::{Digest, Time};
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard};
use thiserror::Error;

/// A version that wants to go live.
#[derive(Clone, Debug)]
pub struct Candidate<'a> {
    /// The component.
    pub wasm: &'a [u8],
    /// Configuration, facts, strings and limits.
    pub setting: Setting<'a>,
    /// Now.
    pub at: Time,
}

/// The version that is live.
#[derive(Clone, Debug)]
pub struct Live {
    /// The policy.
    pub policy: Arc<Configured>,
    /// Counts the versions of this slot; greater is later.
    pub generation: u64,
    /// When it went live.
    pub since: Time,
}

/// Where a replacement failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// The file or object could not be read.
    Read,
    /// The bytes are not a component of allowed size.
    Verify,
    /// It does not compile within the limits.
    Compile,
    /// It does not follow the contract.
    Check,
    /// `describe` failed or says what cannot be used.
    Describe,
    /// `prepare` failed or refused.
    Prepare,
    /// The configuration is unusable, or `configure` failed or refused.
    Configure,
    /// It failed the last checks on made-up tables.
    Golden,
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "read",
            Self::Verify => "verify",
            Self::Compile => "compile",
            Self::Check => "check",
            Self::Describe => "describe",
            Self::Prepare => "prepare",
            Self::Configure => "configure",
            Self::Golden => "golden checks",
        })
    }
}

/// A replacement that did not happen.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("policy refused ({stage}): {text}")]
pub struct Refusal {
    /// When, as the candidate said.
    pub at: Time,
    /// Where.
    pub stage: Stage,
    /// Why, for the author or the queue's owner.
    pub text: String,
    /// BLAKE3 of the refused bytes, if they could be read.
    pub wasm: Option<Digest>,
}

/// What a slot shows.
#[derive(Clone, Debug)]
pub struct Status {
    /// The live version, if there is one, and what it has done.
    pub live: Option<(Live, Counters)>,
    /// The last refusal since a version went live.
    pub refusal: Option<Refusal>,
    /// Versions that went live.
    pub swaps: u64,
    /// Versions that were refused.
    pub refusals: u64,
}

#[derive(Debug, Default)]
struct History {
    refusal: Option<Refusal>,
    swaps: u64,
    refusals: u64,
}

/// Holds a queue's policy. Share it by reference or `Arc`.
#[derive(Debug)]
pub struct Slot {
    runtime: Runtime,
    live: RwLock<Option<Live>>,
    history: Mutex<History>,
    /// One replacement at a time, in the order they came.
    swapping: Mutex<()>,
}

/// The live version, held for one decision round. A swap waits for it.
pub struct Round<'a>(RwLockReadGuard<'a, Option<Live>>);

impl Deref for Round<'_> {
    type Target = Option<Live>;

    fn deref(&self) -> &Option<Live> {
        &self.0
    }
}

impl Slot {
    /// An empty slot.
    pub fn new(runtime: Runtime) -> Self {
        Self {
            runtime,
            live: RwLock::default(),
            history: Mutex::default(),
            swapping: Mutex::default(),
        }
    }

    /// The live version. A decision that takes it once names one digest; a
    /// swap does not wait for it, so the decision may end after a swap. Hold a
    /// [`Round`] where that must not happen.
    pub fn live(&self) -> Option<Live> {
        self.read().clone()
    }

    /// The live version for one round. A swap that is ready waits until all
    /// rounds that began before it have ended, and rounds that begin then see
    /// the new version: after [`Slot::swap`] returned, no decision by the old
    /// one ends. Do not take a second round, or [`Slot::live`], on the same
    /// thread while holding one.
    pub fn round(&self) -> Round<'_> {
        Round(self.read())
    }

    /// Takes a candidate through all checks and makes it live. `warm` runs
    /// last before that, to fill caches while the old version still decides.
    ///
    /// Blocks for as long as loading, configuring and the checks take; call it
    /// off the deciding threads. A candidate that equals the live version
    /// changes nothing.
    pub fn swap(
        &self,
        candidate: &Candidate<'_>,
        warm: impl FnOnce(&Arc<Configured>),
    ) -> Result<Live, Refusal> {
        let _turn = self.swapping.lock().unwrap_or_else(PoisonError::into_inner);
        let policy = match self.checked(candidate) {
            Ok(policy) => policy,
            Err((stage, text)) => {
                let wasm = Some(Digest(*blake3::hash(candidate.wasm).as_bytes()));
                return Err(self.note(Refusal { at: candidate.at, stage, text, wasm }));
            }
        };
        let mut next = Live { policy: Arc::new(policy), generation: 1, since: candidate.at };
        let same = |live: &&Live| {
            live.policy.digest() == next.policy.digest()
                && live.policy.limits() == next.policy.limits()
        };
        if let Some(live) = self.read().as_ref().filter(same) {
            let live = live.clone();
            self.history().refusal = None;
            return Ok(live);
        }
        warm(&next.policy);
        next.policy.forget_counts();
        let old = {
            let mut live = self.live.write().unwrap_or_else(PoisonError::into_inner);
            let mut history = self.history();
            history.swaps += 1;
            history.refusal = None;
            next.generation = history.swaps;
            live.replace(next.clone())
        };
        // Its instances are unmapped after the lock is free.
        drop(old);
        Ok(next)
    }

    /// Notes a candidate that could not even be read, such as a file that is
    /// gone. What is live stays live.
    pub fn unreadable(&self, at: Time, text: String) -> Refusal {
        self.note(Refusal { at, stage: Stage::Read, text, wasm: None })
    }

    /// Takes the policy away, when the queue's configuration names none. Waits
    /// for rounds as a swap does.
    pub fn clear(&self) {
        let _turn = self.swapping.lock().unwrap_or_else(PoisonError::into_inner);
        let old = self.live.write().unwrap_or_else(PoisonError::into_inner).take();
        self.history().refusal = None;
        drop(old);
    }

    /// For status, metrics and the command line.
    pub fn status(&self) -> Status {
        let live = self.live().map(|live| {
            let counters = live.policy.counters();
            (live, counters)
        });
        let history = self.history();
        Status {
            live,
            refusal: history.refusal.clone(),
            swaps: history.swaps,
            refusals: history.refusals,
        }
    }

    fn checked(&self, candidate: &Candidate<'_>) -> Result<Configured, (Stage, String)> {
        let loaded = self.runtime.load(candidate.wasm).map_err(|e| (load_stage(&e), chain(&e)))?;
        let policy =
            loaded.configure(&candidate.setting).map_err(|e| (configure_stage(&e), chain(&e)))?;
        golden::check(&policy).map_err(|e| (Stage::Golden, chain(&e)))?;
        Ok(policy)
    }

    fn note(&self, refusal: Refusal) -> Refusal {
        let mut history = self.history();
        history.refusals += 1;
        history.refusal = Some(refusal.clone());
        refusal
    }

    fn read(&self) -> RwLockReadGuard<'_, Option<Live>> {
        // Only whole values are ever put there.
        self.live.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn history(&self) -> std::sync::MutexGuard<'_, History> {
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn load_stage(error: &LoadError) -> Stage {
    match error {
        LoadError::Empty
        | LoadError::TooLarge { .. }
        | LoadError::NotWasm { .. }
        | LoadError::CoreModule => Stage::Verify,
        LoadError::Compile(_) | LoadError::Artefact { .. } => Stage::Compile,
        LoadError::Contract(_) | LoadError::Start(_) => Stage::Check,
        LoadError::Describe(_) | LoadError::Manifest(_) => Stage::Describe,
    }
}

fn configure_stage(error: &ConfigureError) -> Stage {
    match error {
        ConfigureError::Prepare(_)
        | ConfigureError::PrepareRefused(_)
        | ConfigureError::PreparedTooLarge { .. } => Stage::Prepare,
        ConfigureError::Config(_)
        | ConfigureError::Start(_)
        | ConfigureError::Configure(_)
        | ConfigureError::Refused(_) => Stage::Configure,
    }
}

/// An error and its causes in one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}
