//! Jobs as processes of this machine.
//!
//! ```text
//! server ── Local ──► keeper (one a member, outlives the server) ──► enter ──► the member's command
//!              ▲         │ output, rotated                            │ cgroup, mounts, user
//!              └─────────┴── end.json, once                           └─ becomes it by exec
//! ```
//!
//! A **keeper** is this program started anew, in a session of its own. It makes
//! the member's cgroup, starts it, writes what it prints, ends it when it is
//! told to, ends whatever it leaves behind, and writes down how it ended, before
//! it goes. So a server that is killed loses nothing: the next one finds each
//! member's folder, and in it either a keeper that holds the lock or the end.
//!
//! **Architecture Invariants**: no process outlives its claim, since all that a
//! member starts stays in its cgroup; no member runs as the server's user or
//! sees the server's folder; the only ones who write into a claim's folder are
//! the server that makes it and the keeper that holds its lock.

#![forbid(unsafe_code)]

pub mod disk;
pub mod enter;
pub mod folder;
pub mod governor;
pub mod groups;
pub mod image;
pub mod keeper;
pub mod local;
pub mod machine;
pub mod order;
pub mod output;
pub mod users;

pub use folder::Folder;
pub use groups::{Found, Group, GroupError, Limits};
pub use local::{Local, OpenError, Report};
pub use order::{End, Order};
pub use output::Output;
pub use users::Users;
