//! A simulated cluster in virtual time: the real books and the real decision,
//! over simulated machines.
//!
//! `clock` is the time, `executor` the machines, `wire` what lies between them
//! and the books, `driver` the loop that joins all three to ledger, decider
//! and policies. Observers look on; `check` is the one that knows what must
//! always hold. Everything follows from the settings' seed.

mod check;
mod clock;
mod command;
mod commands;
mod driver;
mod executor;
mod observer;
pub mod scripted;
mod source;
mod wire;

pub use check::Checks;
pub use clock::Agenda;
pub use command::{Command, CommandError, Decides};
pub use driver::{Settings, World};
pub use executor::{Alarm, Behaviour, Effects, Executor, Order, Report};
pub use observer::{Both, Nobody, Observer};
pub use source::{NoPolicies, PolicySource};
pub use wire::{Wire, WireSettings};
