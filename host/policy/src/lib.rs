//! The policy runtime: loads WebAssembly components that follow the contract
//! in `wit/`, confines them, and lets the engine ask them.
//!
//! ```text
//! bytes ─► Runtime::load ─► Loaded ─► configure ─► Configured ─► engine
//!          size, compile     code and   prepare,      one digest,
//!          in a child, check manifest   configure     pooled instances
//! ```
//!
//! **Architecture Invariant**: no other crate of the host names the
//! WebAssembly engine, and this one knows nothing of ledgers, clusters or the
//! network. Whatever a guest does, a call ends with an answer or a
//! [`Fault`](crater_engine::policy::Fault), and no other queue notices.

#![deny(unsafe_code)]

mod abi;
mod cache;
pub mod child;
mod compile;
mod config;
mod configured;
mod contract;
mod counters;
mod deadline;
mod decide;
mod fault;
mod golden;
mod host;
mod instance;
mod limiter;
mod limits;
mod load;
mod logs;
mod made_up;
mod manifest;
mod names;
mod pool;
mod precompiled;
mod runtime;
mod slot;
mod ticker;
mod wasm_config;
mod wit_text;

pub use cache::CacheError;
pub use compile::CompileError;
pub use config::ConfigError;
pub use configured::{ConfigureError, Configured, Setting};
pub use contract::ContractError;
pub use counters::Counters;
pub use fault::Failure;
pub use golden::GoldenError;
pub use limits::Limits;
pub use load::{LoadError, Loaded};
pub use logs::{Level, Line};
pub use manifest::ManifestError;
pub use runtime::{Builder, Runtime, RuntimeError};
pub use slot::{Candidate, Live, Refusal, Round, Slot, Stage, Status};
