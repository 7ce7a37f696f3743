//! The HTTP API of the running system.
//!
//! Handlers read published books and the store's history and hold up nobody;
//! what changes anything goes through the ledger thread and is answered once
//! it is durable. Errors are RFC 9457 problems that name the field.

#![forbid(unsafe_code)]
#![allow(clippy::result_large_err, reason = "a problem is made once and sent at once")]
#![allow(unused_qualifications, reason = "written by utoipa's macros")]

mod amount;
mod app;
pub mod auth;
pub mod backup;
pub mod checkpoints;
pub mod cluster;
mod extract;
mod hub;
pub mod jobs;
mod live;
pub mod logs;
mod metrics;
mod problem;
pub mod queues;
pub mod quotas;
mod requests;
pub mod room;
pub mod samples;
mod serve;
pub mod status;
pub mod tokens;
mod types;
pub mod usage;
pub mod webhooks;

pub use amount::Amount;
pub use app::App;
pub use problem::Problem;
pub use serve::{ServeError, openapi, router, serve};
pub use types::{CardView, ClaimView, DecisionView, EventView, JobDetail, JobView, Submit};
