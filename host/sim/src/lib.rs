//! Simulator.

pub mod generate;
pub mod live;
pub mod pooling;
pub mod random;
pub mod report;
pub mod scenario;
pub mod steady;
pub mod trace;
pub mod world;
pub mod yardstick;
