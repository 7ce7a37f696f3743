//! Simulator.

pub mod generate;
pub mod report;
pub mod trace;
