//! A real API server on this machine for tests: etcd, kube-apiserver and kwok,
//! which plays nodes and pods, on free ports of the loopback, ended by their
//! own ids. `cargo xtask kubernetes` builds the programs once into the user's
//! cache; without them tests say why they are skipped and pass.

#![forbid(unsafe_code)]

pub mod child;
pub mod cluster;
pub mod crater;
pub mod judge;
pub mod measure;
pub mod plane;
pub mod programs;
pub mod proxy;
pub mod recount;
pub mod rounds;
pub mod world;
