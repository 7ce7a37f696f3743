//! Traces: clusters and workloads that were recorded somewhere, or generated.
//!
//! The files are data of others and are read from a folder that the user
//! names. Readers are strict: what they do not understand they refuse, by
//! file, line and column, and no input makes them panic.

mod error;
mod folder;
mod mix;
pub mod openb;
pub mod philly;
mod pod;
pub(crate) mod stream;
mod table;
mod yardstick;

pub use error::TraceError;
pub use folder::{TRACES_VARIABLE, Traces, traces_dir};
pub use mix::{Shape, workload_mix};
pub use pod::{Class, Pod, Qos, Trace};
pub use yardstick::{MEMBERS_PER_NODE, node_order, yardstick_arrivals};
