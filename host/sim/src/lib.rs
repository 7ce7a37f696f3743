//! Simulator.

pub mod generate;
pub mod report;
pub mod live;
pub mod random;
pub mod scenario;
pub mod trace;
pub mod world;
pub mod yardstick;
