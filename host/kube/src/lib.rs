//! Crater on Kubernetes: a second scheduler for pods that name it.
//!
//! The API server is the truth. What it says becomes commands to the engine's
//! ledger ([`mirror`]), which is made anew from a full list whenever a leader
//! begins; what the ledger commits is promised in a node's claims object
//! ([`claims`]), bound ([`bind`]) and read back where the outcome is unknown.
//!
//! **Architecture Invariant**: the only crate that names kube. Policies come as
//! the engine's trait; nothing here knows what they are made of.

#![forbid(unsafe_code)]

mod adopt;
pub mod api;
mod believe;
pub mod bind;
pub mod cache;
pub mod cards;
mod carry;
pub mod claims;
mod leader;
pub mod lease;
pub mod machine;
pub mod mirror;
mod nodes;
pub mod objects;
pub mod pod;
mod pods;
mod promises;
pub mod quantity;
pub mod say;
mod scheduler;
pub mod settings;
pub mod stats;
mod told;
mod underway;
pub mod want;
pub mod watch;
#[cfg(test)]
mod world;

pub use leader::now;
pub use mirror::Mirror;
pub use scheduler::{Scheduler, ServeError, Stopper};
pub use settings::{Fence, LeaseTimes, Settings};
pub use stats::Stats;

/// The client library and the API's types, for tests that speak to the same
/// API server: no other crate may depend on them.
pub use {k8s_openapi, kube};

/// Crater's own kinds.
pub const CRDS: &str = include_str!("../manifests/crds.yaml");
/// What the scheduler's account may do.
pub const RBAC: &str = include_str!("../manifests/rbac.yaml");
/// The fence at admission, where it is wanted.
pub const FENCE_AT_ADMISSION: &str = include_str!("../manifests/fence-at-admission.yaml");
/// Keeps the scheduler's words on pods for the scheduler's account.
pub const ASSIGNED_AT_ADMISSION: &str = include_str!("../manifests/assigned-at-admission.yaml");
