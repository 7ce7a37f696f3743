//! From bytes to a component that is known to be a policy.

use crate::abi::sig;
use crate::compile::CompileError;
use crate::contract::{self, Call, ContractError, Exports};
use crate::fault::{Failure, cut};
use crate::host::{Shared, State};
use crate::instance::Instance;
use crate::limits::Limits;
use crate::manifest::{self, ManifestError};
use crate::runtime::Runtime;
use crater_engine::policy::{Interface, Manifest};
use crater_model::Digest;
use std::sync::Arc;
use thiserror::Error;
use wasmtime::component::InstancePre;

/// Why bytes are not a policy. Each text tells the author what to change.
#[derive(Debug, Error)]
pub enum LoadError {
    /// No bytes at all.
    #[error("the policy is empty; it must be a WebAssembly component")]
    Empty,
    /// Too many bytes.
    #[error("the policy has {bytes} bytes; {limit} are allowed")]
    TooLarge {
        /// Its size.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// Not WebAssembly.
    #[error(
        "the policy is not WebAssembly: it begins with {start:02x?}, not with 00 61 73 6d; give the component that the build wrote (.wasm)"
    )]
    NotWasm {
        /// Its first bytes.
        start: Vec<u8>,
    },
    /// A core module.
    #[error(
        "the policy is a core module; make it a component with `wasm-tools component new` \
         or `crater policy build`"
    )]
    CoreModule,
    /// The compiler refused it or did not finish.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// The engine does not take its own compiler's output.
    #[error("the compiled policy does not load; the compiler is another version: {detail}")]
    Artefact {
        /// The engine's words.
        detail: String,
    },
    /// It does not follow the contract.
    #[error(transparent)]
    Contract(#[from] ContractError),
    /// It failed while it was instantiated.
    #[error("the policy does not start: {0}")]
    Start(Failure),
    /// `describe` failed.
    #[error("the policy failed in describe: {0}")]
    Describe(Failure),
    /// `describe` answered what cannot be used.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
}

/// A policy's code, checked and compiled, not yet configured for a queue.
/// Cheap to clone.
#[derive(Clone)]
pub struct Loaded(pub(crate) Arc<Code>);

pub(crate) struct Code {
    pub(crate) runtime: Runtime,
    pub(crate) pre: InstancePre<State>,
    pub(crate) exports: Exports,
    pub(crate) manifest: Manifest,
    pub(crate) wasm: Digest,
}

impl Loaded {
    /// What the policy says of itself.
    pub fn manifest(&self) -> &Manifest {
        &self.0.manifest
    }

    /// BLAKE3 of the component's bytes.
    pub fn wasm(&self) -> Digest {
        self.0.wasm
    }
}

impl std::fmt::Debug for Loaded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Loaded")
            .field("name", &self.0.manifest.name)
            .field("wasm", &self.0.wasm)
            .finish_non_exhaustive()
    }
}

impl Code {
    pub(crate) fn load(runtime: &Runtime, wasm: Digest, bytes: &[u8]) -> Result<Self, LoadError> {
        let inner = runtime.inner();
        check_bytes(bytes, inner.limits.component_bytes)?;
        let component = runtime.component(wasm, bytes)?;
        contract::check_imports(&component)?;
        let exports = contract::find_exports(&component)?;
        let pre = inner
            .linker
            .instantiate_pre(&component)
            .map_err(|e| ContractError::ImportType { detail: cut(&format!("{e:#}")) })?;
        let limits = inner.limits;
        let (engine, clock) = (&inner.engine, &inner.clock);
        let mut instance =
            Instance::start(engine, &pre, &exports, clock, limits, Shared::default())
                .map_err(LoadError::Start)?;
        check_types(&instance, &exports)?;
        let (out,): sig::DescribeOut = instance
            .enter::<sig::Describe, _>(clock, Call::Describe, limits.setup, 0, ())
            .map_err(LoadError::Describe)?;
        let manifest = manifest::check(out, exports.interfaces())?;
        Ok(Self { runtime: runtime.clone(), pre, exports, manifest, wasm })
    }

    /// A fresh instance, not yet configured.
    pub(crate) fn start(&self, limits: Limits, shared: Shared) -> Result<Instance, Failure> {
        let inner = self.runtime.inner();
        Instance::start(&inner.engine, &self.pre, &self.exports, &inner.clock, limits, shared)
    }
}

/// What can be said of bytes without compiling them.
fn check_bytes(bytes: &[u8], limit: usize) -> Result<(), LoadError> {
    if bytes.is_empty() {
        return Err(LoadError::Empty);
    }
    if bytes.len() > limit {
        return Err(LoadError::TooLarge { bytes: bytes.len(), limit });
    }
    if !bytes.starts_with(b"\0asm") {
        return Err(LoadError::NotWasm { start: bytes.iter().take(8).copied().collect() });
    }
    // After the magic: a version, and a layer, 0 for modules and 1 for
    // components.
    if bytes.get(6..8) == Some(&[0, 0]) {
        return Err(LoadError::CoreModule);
    }
    Ok(())
}

fn check_types(instance: &Instance, exports: &Exports) -> Result<(), ContractError> {
    for call in Call::ALL {
        let fits = match call {
            Call::Describe => instance.fits::<sig::Describe, sig::DescribeOut>(call),
            Call::Configure => instance.fits::<sig::Configure<'_>, sig::ConfigureOut>(call),
            Call::Decide(Interface::Prepare) => {
                instance.fits::<sig::Prepare<'_>, sig::PrepareOut>(call)
            }
            Call::Decide(Interface::Filter | Interface::ScoreGroups) => {
                instance.fits::<sig::OnTable<'_>, sig::FilterOut>(call)
            }
            Call::Decide(Interface::Score) => {
                instance.fits::<sig::OnTable<'_>, sig::ScoreOut>(call)
            }
            Call::Decide(Interface::Preempt) => {
                instance.fits::<sig::OnTable<'_>, sig::PriceOut>(call)
            }
            Call::Decide(Interface::Rank) => instance.fits::<sig::Rank<'_>, sig::RankOut>(call),
            Call::Decide(Interface::Admit) => instance.fits::<sig::Admit<'_>, sig::AdmitOut>(call),
        };
        if !fits {
            return Err(exports.mistyped(call));
        }
    }
    Ok(())
}
