//! Write a scheduling policy for Crater.
//!
//! An author writes what a decision means for *one* node (or group, eviction
//! unit, waiting job) over named columns. The crate makes of it the batched
//! WebAssembly exports, the manifest, and a native form for tests and
//! measurements. A whole policy that prefers the fullest node:
//!
//! ```
//! use crater_sdk::prelude::*;
//!
//! pub struct Tight;
//!
//! impl Policy for Tight {
//!     fn configure(config: &str, _: &[u8]) -> Result<Self, String> {
//!         Settings::none(config).map(|()| Self)
//!     }
//!     fn score(&self, _: &Context, _: &Job, node: &Node) -> Score {
//!         Score::from(-node.get(NODE_GPU_FREE))
//!     }
//! }
//! crater_sdk::export!(Tight { name: "tight", wants: [NODE_GPU_FREE], exports: [score] });
//!
//! // Natively the same code runs without a runtime:
//! use crater_sdk::testing::{Tester, job, node};
//! let tight = Tester::new(&native(), "{}").unwrap();
//! let nodes = [node().cards([1000, 1000]), node().cards([1000, 300])];
//! assert_eq!(tight.scores(&job().share(500), &nodes), [-2000, -1300]);
//! ```
//!
//! The crate is a `["cdylib", "rlib"]`; built for `wasm32-unknown-unknown` and
//! wrapped as a component it exports `policy` and the listed interfaces, and
//! imports `log` and `strings` where it uses them, nothing else.
//!
//! A policy reads only the columns that it `wants`; any other, and any that
//! the host does not know, reads as the default of [`ids::absent`]. That
//! list is also what the host caches answers by, so the shorter it is, the
//! less often the policy is asked.

#![deny(missing_docs)]

// The bindings' macros name this crate by its name, also from within.
extern crate self as crater_sdk;

mod answer;
mod batch;
mod card;
pub mod chance;
mod columns;
mod export;
mod facts;
pub mod host;
mod job;
mod lists;
mod manifest;
pub mod native;
mod node;
mod policy;
mod settings;
pub mod strings;
pub mod testing;
#[cfg(target_arch = "wasm32")]
pub mod wasm;

pub use answer::{Price, Rank, Score, Scores, Verdict};
pub use batch::{Column, Table};
pub use card::{Ask, Card};
pub use facts::{Class, Facts, Shape};
pub use job::{Context, Job, Jobs};
pub use lists::{Group, Groups, Unit, Units};
pub use manifest::{Interface, Manifest};
pub use node::{Node, Nodes};
pub use policy::Policy;
pub use settings::Settings;

/// The ids of the contract, and what an absent one reads as.
pub mod ids {
    pub use crate::batch::absent;
    pub use crate::columns::*;
}

/// What a policy's file needs: `use crater_sdk::prelude::*;`.
pub mod prelude {
    pub use crate::columns::*;
    pub use crate::{
        Ask, Card, Context, Facts, Group, Groups, Job, Jobs, Node, Nodes, Policy, Price, Rank,
        Score, Scores, Settings, Unit, Units, Verdict,
    };
}
