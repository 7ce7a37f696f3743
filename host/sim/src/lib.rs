//! Simulator.

pub mod trace;
