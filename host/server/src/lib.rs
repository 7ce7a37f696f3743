//! The running system of `crater serve`: the ledger thread, the deciders, the
//! executor, and the configuration that they follow.
//!
//! ```text
//! API ─► books (one thread: run, sync, publish, answer) ─► view ─► deciders (a thread a queue)
//!          ▲                     │                                      │ plan
//!          └── reports ── executor ◄── journal                          └─► books
//! ```
//!
//! **Architecture Invariant**: only the ledger thread changes the books, no
//! guest runs in it, and nothing is answered or executed before it is durable.

#![forbid(unsafe_code)]

pub mod books;
pub mod config;
pub mod deciders;
pub mod executor;
pub mod policies;
pub mod system;
pub mod view;
mod watch;

pub use books::{Books, Unavailable, Writer, now};
pub use config::{Config, ConfigError};
pub use policies::{Source, Wanted};
pub use system::{Options, Reload, StartError, System};
pub use view::{Decision, View};
