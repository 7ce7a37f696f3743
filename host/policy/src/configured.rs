//! A policy as one queue uses it: code, configuration and prepared data.

use crate::abi::{lowered, sig};
use crate::config::{self, ConfigError};
use crate::contract::Call;
use crate::counters::{Counters, Meter};
use crate::fault::{Failure, cut};
use crate::host::Shared;
use crate::instance::Instance;
use crate::limits::Limits;
use crate::load::{Code, Loaded};
use crate::logs::Line;
use crate::names::Names;
use crate::pool::{Pool, Taken};
use crater_engine::policy::{Fault, Interface, Manifest, Values};
use crater_engine::strings::Strings;
use crater_model::Digest;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use thiserror::Error;
use wasmtime::component::{ComponentNamedList, Lift, Lower};

/// What a queue gives a policy.
#[derive(Clone, Debug)]
pub struct Setting<'a> {
    /// JSON, or nothing.
    pub config: &'a str,
    /// For `prepare`, which sees those of them that the manifest wants.
    pub facts: &'a Values,
    /// The host's strings, shared with whoever makes columns.
    pub strings: Arc<Strings>,
    /// The queue's limits; the runtime's where there are none.
    pub limits: Option<Limits>,
}

/// Why a policy does not take its configuration.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ConfigureError {
    /// It is not even asked.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// `prepare` failed.
    #[error("the policy failed in prepare: {0}")]
    Prepare(Failure),
    /// `prepare` refused.
    #[error("the policy refused in prepare: {0}")]
    PrepareRefused(String),
    /// `prepare` made too much.
    #[error("the policy prepared {bytes} bytes; {limit} are allowed")]
    PreparedTooLarge {
        /// What it made.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// No instance could be started.
    #[error("the policy does not start: {0}")]
    Start(Failure),
    /// `configure` failed.
    #[error("the policy failed in configure: {0}")]
    Configure(Failure),
    /// `configure` refused. The text is the policy's own.
    #[error("the policy refused its configuration: {0}")]
    Refused(String),
}

/// A configured policy; implements the engine's
/// [`Policy`](crater_engine::policy::Policy). Threads may share it: each call
/// has an instance of its own.
pub struct Configured {
    code: Arc<Code>,
    limits: Limits,
    config: String,
    prepared: Vec<u8>,
    digest: Digest,
    shared: Shared,
    pool: Pool,
    meter: Meter,
    round_from_ns: AtomicU64,
    round_ns: AtomicU64,
}

impl Loaded {
    /// Prepares and configures. Runs guest code for up to
    /// [`Limits::prepare`] and [`Limits::setup`]; call it off the round.
    pub fn configure(&self, setting: &Setting<'_>) -> Result<Configured, ConfigureError> {
        let code = self.0.clone();
        let limits = setting.limits.unwrap_or(code.runtime.inner().limits);
        let config = config::canonical(setting.config)?;
        let names = Arc::new(Names::new(setting.strings.clone(), limits.new_strings));
        let shared = Shared { names, ..Shared::default() };
        let prepared = prepare(&code, &limits, &shared, &config, setting.facts)?;
        let configured = Configured {
            digest: digest(code.wasm, &config, &prepared),
            code,
            limits,
            config,
            prepared,
            shared,
            pool: Pool::default(),
            meter: Meter::default(),
            round_from_ns: AtomicU64::new(0),
            round_ns: AtomicU64::new(u64::MAX),
        };
        // The first instance tells whether the configuration is accepted.
        if let Taken::Room(ticket) = configured.pool.take(1, Duration::ZERO) {
            ticket.give_back(Box::new(configured.instance()?));
        }
        Ok(configured)
    }
}

fn prepare(
    code: &Code,
    limits: &Limits,
    shared: &Shared,
    config: &str,
    facts: &Values,
) -> Result<Vec<u8>, ConfigureError> {
    let call = Call::Decide(Interface::Prepare);
    if code.exports.get(call).is_none() {
        return Ok(Vec::new());
    }
    let mut instance = code.start(*limits, shared.clone()).map_err(ConfigureError::Start)?;
    let wanted = |id| code.manifest.wants(id);
    let facts: Vec<_> = lowered(facts).into_iter().filter(|(id, _)| wanted(*id)).collect();
    let (answer,): sig::PrepareOut = instance
        .enter::<sig::Prepare<'_>, _>(
            &code.runtime.inner().clock,
            call,
            limits.prepare,
            limits.prepared_bytes,
            (config, &facts),
        )
        .map_err(ConfigureError::Prepare)?;
    let prepared = answer.map_err(|text| ConfigureError::PrepareRefused(cut(&text)))?;
    if prepared.len() > limits.prepared_bytes {
        let (bytes, limit) = (prepared.len(), limits.prepared_bytes);
        return Err(ConfigureError::PreparedTooLarge { bytes, limit });
    }
    Ok(prepared)
}

/// Names code, configuration and prepared data, each with its length.
fn digest(wasm: Digest, config: &str, prepared: &[u8]) -> Digest {
    let mut hasher = blake3::Hasher::new();
    hasher.update(b"crater policy 1\n");
    hasher.update(&wasm.0);
    hasher.update(&(config.len() as u64).to_le_bytes());
    hasher.update(config.as_bytes());
    hasher.update(blake3::hash(prepared).as_bytes());
    Digest(*hasher.finalize().as_bytes())
}

impl Configured {
    /// What the policy says of itself.
    pub fn manifest(&self) -> &Manifest {
        &self.code.manifest
    }

    /// Names code, configuration and prepared data.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// BLAKE3 of the component's bytes alone.
    pub fn wasm(&self) -> Digest {
        self.code.wasm
    }

    /// Its configuration in canonical spelling.
    pub fn config(&self) -> &str {
        &self.config
    }

    /// The limits it runs under.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// What it has done so far.
    pub fn counters(&self) -> Counters {
        self.meter.read()
    }

    /// The last lines that it logged, for its queue's owner.
    pub fn logs(&self) -> Vec<Line> {
        self.shared.log.lines()
    }

    /// Begins a decision round with a budget of guest time. When it is used
    /// up, calls fail as unavailable until the next round, so that one queue's
    /// policy cannot slow the others' rounds. `None` takes the budget away.
    pub fn start_round(&self, budget: Option<Duration>) {
        let ns = budget.map_or(u64::MAX, |b| u64::try_from(b.as_nanos()).unwrap_or(u64::MAX));
        self.round_from_ns.store(self.meter.guest_ns(), Ordering::Relaxed);
        self.round_ns.store(ns, Ordering::Relaxed);
    }

    /// Guest time since the round began.
    pub fn spent(&self) -> Duration {
        let from = self.round_from_ns.load(Ordering::Relaxed);
        Duration::from_nanos(self.meter.guest_ns().saturating_sub(from))
    }

    /// Lets idle instances go; the next calls make fresh ones.
    pub(crate) fn drop_idle(&self) {
        for _ in 0..self.pool.clear() {
            self.meter.dropped();
        }
    }

    /// Counts from nothing: what came before was not a decision.
    pub(crate) fn forget_counts(&self) {
        self.meter.reset();
    }

    /// A fresh instance that has taken the configuration.
    fn instance(&self) -> Result<Instance, ConfigureError> {
        let mut instance =
            self.code.start(self.limits, self.shared.clone()).map_err(ConfigureError::Start)?;
        let (answer,): sig::ConfigureOut = instance
            .enter::<sig::Configure<'_>, _>(
                &self.code.runtime.inner().clock,
                Call::Configure,
                self.limits.setup,
                0,
                (&self.config, &self.prepared),
            )
            .map_err(ConfigureError::Configure)?;
        answer.map_err(|text| ConfigureError::Refused(cut(&text)))?;
        self.meter.made();
        Ok(instance)
    }

    /// One decision call: takes an instance, enters it, judges the answer, and
    /// returns the instance if nothing went wrong. `answer` is the size in
    /// bytes of a right answer.
    pub(crate) fn ask<P, R>(
        &self,
        interface: Interface,
        answer: usize,
        params: P,
        check: impl FnOnce(&R) -> Result<(), String>,
    ) -> Result<R, Fault>
    where
        P: ComponentNamedList + Lower,
        R: ComponentNamedList + Lift + 'static,
    {
        self.meter.asked();
        let result = self.enter(interface, answer, params, check);
        if let Err(fault) = &result {
            self.meter.fault(fault);
        }
        result
    }

    fn enter<P, R>(
        &self,
        interface: Interface,
        answer: usize,
        params: P,
        check: impl FnOnce(&R) -> Result<(), String>,
    ) -> Result<R, Fault>
    where
        P: ComponentNamedList + Lower,
        R: ComponentNamedList + Lift + 'static,
    {
        let unavailable = |detail| Fault::Unavailable { interface, detail };
        let call = Call::Decide(interface);
        if self.code.exports.get(call).is_none() {
            return Err(unavailable("the policy does not make this decision".to_owned()));
        }
        let budget = Duration::from_nanos(self.round_ns.load(Ordering::Relaxed));
        if self.spent() >= budget {
            let ms = budget.as_secs_f64() * 1e3;
            return Err(unavailable(format!("it has used its {ms} ms of this round")));
        }
        let (ticket, mut instance) = match self.pool.take(self.limits.instances, self.limits.call) {
            Taken::Used(ticket, instance) => (ticket, instance),
            Taken::Room(ticket) => {
                (ticket, Box::new(self.instance().map_err(|e| unavailable(e.to_string()))?))
            }
            Taken::Full => {
                let most = self.limits.instances;
                return Err(unavailable(format!("all {most} instances are in use")));
            }
        };
        let clock = &self.code.runtime.inner().clock;
        let from = Instant::now();
        let result = instance.enter::<P, R>(clock, call, self.limits.call, answer, params);
        self.meter.call(from.elapsed());
        let result = result.and_then(|r| check(&r).map_err(Failure::Answer).map(|()| r));
        if result.is_ok() && !instance.worn() {
            ticket.give_back(instance);
        } else {
            self.meter.dropped();
        }
        result.map_err(|failure| failure.at(interface))
    }
}

impl std::fmt::Debug for Configured {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Configured")
            .field("name", &self.code.manifest.name)
            .field("digest", &self.digest)
            .finish_non_exhaustive()
    }
}
