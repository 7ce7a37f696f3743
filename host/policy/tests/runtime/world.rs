//! Runtimes and tables for the tests.

use crate::guest::Guest;
use crater_engine::policy::{Column, Table, Values};
use crater_engine::strings::Strings;
use crater_policy::{Builder, Configured, Limits, Runtime, Setting};
use std::sync::Arc;
use std::time::Duration;

/// The compiler that belongs to this crate.
pub const COMPILER: &str = env!("CARGO_BIN_EXE_crater-compile");

/// Fuel of one call on a metered runtime: plenty for a guest that behaves.
pub const FUEL: u64 = 10_000_000;

/// What a loaded machine may add to a limit before a test fails.
pub const MARGIN: Duration = Duration::from_secs(20);

pub fn builder() -> Builder {
    Runtime::builder().compiler(COMPILER)
}

pub fn runtime() -> Runtime {
    builder().build().unwrap()
}

/// A runtime on which the same call ends at the same instruction everywhere.
pub fn metered() -> Runtime {
    builder().metered(FUEL).build().unwrap()
}

pub fn setting<'a>(config: &'a str, facts: &'a Values) -> Setting<'a> {
    Setting { config, facts, strings: Arc::new(Strings::default()), limits: None }
}

/// Loads and configures a guest that is fine so far.
pub fn configured(runtime: &Runtime, guest: &Guest) -> Configured {
    let loaded = runtime.load(&guest.build()).unwrap();
    loaded.configure(&setting("", &Vec::new())).unwrap()
}

/// The same under a queue's own limits.
pub fn limited(runtime: &Runtime, guest: &Guest, limits: Limits) -> Configured {
    let loaded = runtime.load(&guest.build()).unwrap();
    let facts = Vec::new();
    loaded.configure(&Setting { limits: Some(limits), ..setting("", &facts) }).unwrap()
}

/// The defaults with this limit of a call, if any.
pub fn limits_of(call: Option<Duration>) -> Limits {
    Limits { call: call.unwrap_or(Limits::default().call), ..Limits::default() }
}

pub fn one(id: u32, value: i32) -> Values {
    vec![Column { id, values: vec![value] }]
}

/// A table whose column `c` has in row `i` the value `c * 1000 + i`.
pub fn table(rows: u32, columns: u32) -> Table {
    let value = |c: u32, i: u32| i32::try_from(c * 1000 + i).unwrap();
    let column = |c| Column { id: 200 + c, values: (0..rows).map(|i| value(c, i)).collect() };
    Table { rows, columns: (0..columns).map(column).collect() }
}
