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
pub mod chronicle;
pub mod collector;
pub mod config;
pub mod deciders;
pub mod executor;
mod lending;
mod limits;
pub mod logs;
pub mod metrics;
pub mod policies;
pub mod system;
pub mod timed;
pub mod view;
mod watch;
pub mod webhooks;

pub use books::{Books, Unavailable, Writer, now};
pub use config::{Config, ConfigError};
pub use policies::{Source, Wanted};
pub use system::{Options, Reload, StartError, System};
pub use view::{Decision, View};

/// A moment as RFC 3339 in UTC.
pub fn rfc3339(at: crater_model::Time) -> String {
    let millis = i64::try_from(at.0).unwrap_or(i64::MAX);
    jiff::Timestamp::from_millisecond(millis).map_or_else(|_| at.0.to_string(), |t| t.to_string())
}
