//! Engine.
pub mod policy;
pub mod strings;
