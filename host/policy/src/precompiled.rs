//! The one place where machine code comes in from outside the compiler.
//!
//! **Architecture Invariant**: an artefact is made by this host's own compiling
//! process and reaches [`load`] over that process's pipe, or from the private
//! cache after its authentication code was verified. Nothing that a user sends
//! gets here: users send WebAssembly.
#![expect(unsafe_code, reason = "loading precompiled code is unsafe by nature")]

use wasmtime::Engine;
use wasmtime::component::Component;

/// Proof that bytes are an artefact of this host's compiler.
pub(crate) struct Artefact(Vec<u8>);

impl Artefact {
    /// Only for what the compiling process has just answered, or what the
    /// cache has authenticated.
    pub(crate) fn vouched(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

/// Loads an artefact. An error means another engine version or machine.
pub(crate) fn load(engine: &Engine, artefact: &Artefact) -> wasmtime::Result<Component> {
    // SAFETY: `deserialize` trusts its bytes to be unmodified output of
    // `precompile_component`. `Artefact` is made in two places only, each of
    // which has just received the bytes from our own compiler or has verified
    // a keyed hash over them with a key that only this user can read.
    unsafe { Component::deserialize(engine, &artefact.0) }
}
