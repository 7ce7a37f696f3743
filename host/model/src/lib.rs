//! The words of Crater: amounts, requests, jobs, nodes, cards, queues, events
//! and reasons.
//!
//! **Architecture Invariant**: nothing here reads a clock, draws a random
//! number, does IO or knows of a thread. Everything is plain data that can be
//! compared, hashed and written to a journal.

#![forbid(unsafe_code)]

pub mod amount;
pub mod claim;
pub mod columns;
pub mod event;
pub mod eviction;
pub mod id;
pub mod job;
pub mod mig;
pub mod node;
pub mod parse;
pub mod queue;
pub mod quota;
pub mod reason;
pub mod request;
pub mod select;
pub mod task;
pub mod tenant;
pub mod time;

pub use amount::{Iops, MbPerSec, Mib, MilliCards, MilliCores};
pub use claim::{CardShare, Claim, ClaimState, Held, Loan};
pub use event::Event;
pub use eviction::{Cause, Eviction, Hold, HoldMember};
pub use id::{ClaimUid, Digest, JobUid, NodeUid, QueueName, TenantPath};
pub use job::{JobChanges, JobSpec, JobState, Kind, Priority, Together};
pub use node::{CardSpec, Links, MigMode, NodeSpec};
pub use parse::FieldError;
pub use queue::{Fallback, QueueSpec, RoomRules};
pub use quota::{Amounts, Borrow, OverQuota, Resource, Usage};
pub use reason::{Reason, Reasons};
pub use request::{DiskAsk, GpuAsk, Need, Request, Share, Within};
pub use task::Task;
pub use tenant::{PlatformSpec, TenantSpec};
pub use time::Time;
