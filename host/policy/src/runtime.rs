//! The runtime of a process: one engine, one clock, and the components that
//! are loaded.

use crate::cache::{Cache, CacheError};
use crate::compile::{self, Compiler};
use crate::host::{self, State};
use crate::instance::Clock;
use crate::limits::Limits;
use crate::load::{Code, LoadError, Loaded};
use crate::precompiled::{self, Artefact};
use crate::ticker::Ticker;
use crate::wasm_config::{self, Metering};
use crater_model::Digest;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use thiserror::Error;
use wasmtime::Engine;
use wasmtime::component::{Component, Linker};

/// Why there is no runtime.
#[derive(Debug, Error)]
pub enum RuntimeError {
    /// This machine or kernel lacks something that the engine needs.
    #[error("the WebAssembly engine does not start here: {detail}")]
    Engine {
        /// The engine's words.
        detail: String,
    },
    /// The deadline thread could not be started.
    #[error("the thread that ends overlong calls could not be started")]
    Ticker(#[source] std::io::Error),
    /// The path of this program is not known, and no compiler was named.
    #[error("this program's own path is not known; name a compiler")]
    NoProgram(#[source] std::io::Error),
    /// The cache folder is not usable.
    #[error(transparent)]
    Cache(#[from] CacheError),
}

/// Loads policies and runs them. Cheap to clone; one for a process is enough,
/// and its deadline thread sleeps while nothing runs.
#[derive(Clone)]
pub struct Runtime(Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) engine: Engine,
    pub(crate) linker: Linker<State>,
    pub(crate) clock: Clock,
    pub(crate) limits: Limits,
    metering: Metering,
    compiler: Compiler,
    cache: Option<Cache>,
    known: Mutex<BTreeMap<Digest, Weak<Code>>>,
}

/// Settings of a [`Runtime`].
#[derive(Clone, Debug, Default)]
pub struct Builder {
    limits: Limits,
    compiler: Option<Compiler>,
    cache: Option<PathBuf>,
    fuel: Option<u64>,
}

impl Builder {
    /// The limits of policies whose queue sets none.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// The program that compiles, in place of this one. It must call
    /// [`run_if_asked`](crate::child::run_if_asked).
    #[must_use]
    pub fn compiler(mut self, program: impl Into<PathBuf>) -> Self {
        self.compiler = Some(Compiler::Process(program.into()));
        self
    }

    /// Compiles in this process, without limits on time and memory. For tests
    /// and for components that are trusted.
    #[must_use]
    pub fn compile_here(mut self) -> Self {
        self.compiler = Some(Compiler::Here);
        self
    }

    /// A folder of this user's own in which compiled components are kept.
    #[must_use]
    pub fn cache(mut self, folder: impl Into<PathBuf>) -> Self {
        self.cache = Some(folder.into());
        self
    }

    /// Counts instructions instead of time: a call may use `fuel` of them.
    /// The same call then ends at the same instruction everywhere.
    #[must_use]
    pub fn metered(mut self, fuel: u64) -> Self {
        self.fuel = Some(fuel);
        self
    }

    /// Starts the engine. Costs about a millisecond.
    pub fn build(self) -> Result<Runtime, RuntimeError> {
        let metering = if self.fuel.is_some() { Metering::Fuel } else { Metering::Deadline };
        let broken = |e: wasmtime::Error| RuntimeError::Engine { detail: format!("{e:#}") };
        let engine = wasm_config::engine(metering).map_err(broken)?;
        let linker = host::linker(&engine).map_err(broken)?;
        let clock = match self.fuel {
            Some(fuel) => Clock::Fuel(fuel),
            None => Clock::Wall(Ticker::start(&engine).map_err(RuntimeError::Ticker)?),
        };
        let compiler = match self.compiler {
            Some(compiler) => compiler,
            None => Compiler::Process(std::env::current_exe().map_err(RuntimeError::NoProgram)?),
        };
        let cache = self.cache.map(|folder| Cache::open(&folder, &engine)).transpose()?;
        Ok(Runtime(Arc::new(Inner {
            engine,
            linker,
            clock,
            limits: self.limits,
            metering,
            compiler,
            cache,
            known: Mutex::default(),
        })))
    }
}

impl Runtime {
    /// A runtime with the default limits, no cache, and this program as its
    /// own compiler.
    pub fn new() -> Result<Self, RuntimeError> {
        Self::builder().build()
    }

    /// To set limits, compiler, cache and metering.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// The limits of policies whose queue sets none.
    pub fn limits(&self) -> &Limits {
        &self.0.limits
    }

    /// Verifies, compiles and checks a component, and asks it what it is.
    ///
    /// Costs a process and a compilation, from milliseconds to seconds by the
    /// size of the component, unless it is loaded already or in the cache.
    /// Blocks; call it off the deciding threads.
    pub fn load(&self, wasm: &[u8]) -> Result<Loaded, LoadError> {
        let digest = Digest(*blake3::hash(wasm).as_bytes());
        let known = || {
            let known = self.0.known.lock().unwrap_or_else(PoisonError::into_inner);
            known.get(&digest).and_then(Weak::upgrade)
        };
        if let Some(code) = known() {
            return Ok(Loaded(code));
        }
        let code = Arc::new(Code::load(self, digest, wasm)?);
        let mut known = self.0.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|_, code| code.strong_count() > 0);
        known.insert(digest, Arc::downgrade(&code));
        Ok(Loaded(code))
    }

    /// Machine code for a component, from the cache or the compiler.
    pub(crate) fn component(&self, digest: Digest, wasm: &[u8]) -> Result<Component, LoadError> {
        let inner = &*self.0;
        let unloadable = |e: wasmtime::Error| LoadError::Artefact { detail: format!("{e:#}") };
        if let Some(cache) = &inner.cache
            && let Some(artefact) = cache.get(digest)
        {
            match precompiled::load(&inner.engine, &artefact) {
                Ok(component) => return Ok(component),
                Err(_) => cache.forget(digest),
            }
        }
        let bytes = compile::compile(&inner.compiler, inner.metering, wasm, &inner.limits)?;
        let artefact = Artefact::vouched(bytes);
        let component = precompiled::load(&inner.engine, &artefact).map_err(unloadable)?;
        if let Some(cache) = &inner.cache {
            // A full disk makes restarts slower and stops no policy.
            let _ = cache.put(digest, &artefact);
        }
        Ok(component)
    }

    pub(crate) fn inner(&self) -> &Inner {
        &self.0
    }
}

impl std::fmt::Debug for Runtime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Runtime")
            .field("metering", &self.0.metering)
            .field("compiler", &self.0.compiler)
            .field("limits", &self.0.limits)
            .finish_non_exhaustive()
    }
}
