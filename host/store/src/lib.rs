//! What `crater serve` keeps: the journal and snapshots of the books, the
//! history of jobs, decisions, usage, tokens and clients' keys, in one `SQLite` file.
//!
//! [`Store`] is the one writer and the ledger's journal. Whatever it is told
//! joins one open transaction; [`Store::sync`] makes all of it durable at once,
//! and only then may anybody be told that it happened. [`Reader`] looks at what
//! is durable, from any thread, and holds up nobody.
//!
//! **Architecture Invariant**: no other crate names `SQLite`. A store that failed
//! once takes nothing more: the server ends, and reads its books back at the
//! next start.

#![forbid(unsafe_code)]

mod backup;
mod convert;
mod decisions;
mod error;
mod folder;
mod history;
mod migrate;
mod outbox;
mod reader;
mod recover;
mod samples;
mod settings;
mod store;
mod submissions;
mod tokens;
mod trim;
mod usage;

pub use backup::{check, part, restore, stage, staged, unstage};
pub use decisions::{DECISIONS_KEPT, Decision};
pub use error::StoreError;
pub use folder::FILE as DATABASE;
pub use history::{Cursor, Filter, JobPage, JobRow, Page};
pub use outbox::{Deliveries, Letter, OUTBOX_MOST};
pub use reader::Reader;
pub use recover::Recovered;
pub use samples::{MOST_POINTS, Point, RAW_LIFE, ROLLED, Sample, Subject};
pub use store::{Packed, Store};
pub use submissions::{KEY_LIFE, Submission};
pub use tokens::{NewToken, Token};
pub use trim::Trimmed;
pub use usage::{Counted, DAY_MS, UsageKey, UsageSum};
