//! Simulator.

pub mod generate;
pub mod trace;
