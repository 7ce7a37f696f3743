//! The pure core of Crater: the books and their journal, what fits where, and
//! the decision. See ARCHITECTURE.md for how the parts meet.
//!
//! **Architecture Invariant**: no clock, no random number, no IO, no thread,
//! no Wasm runtime, no Kubernetes. Time and seeds are arguments; policies are
//! a trait.

#![forbid(unsafe_code)]

pub mod admit;
pub mod builtin;
mod cache;
pub mod cow;
pub mod deadlock;
pub mod decider;
mod evaluate;
pub mod facts;
mod figures;
pub mod fit;
mod groups;
pub mod ledger;
mod links;
pub mod node;
mod order;
mod overlay;
pub mod plan;
pub mod policy;
mod preempt;
pub mod quota;
mod room;
pub mod rows;
mod shape;
pub mod snapshot;
pub mod state;
pub mod strings;
mod together;
mod tree;
pub mod workload;

pub use decider::{Decider, Policies, Round};
pub use ledger::{Committed, Journal, Ledger, MemoryJournal, Refusal};
pub use plan::{By, Outcome, Placement, Plan, Record};
pub use policy::{Fault, Interface, Manifest, Policy};
pub use quota::{Level, Quotas};
pub use shape::mix;
pub use snapshot::{Snapshot, SnapshotError};
pub use state::{ApplyError, Job, Queue, State};
pub use strings::Strings;
pub use workload::Learner;
