//! `make bench`: what WebAssembly and the cache cost, on the simulator's path,
//! one thread, and what the whole server does (`serve`). Ratios come from runs that take turns in one process, since
//! machines are noisy; figures are medians.

mod grid;
mod pairs;
mod room;
mod serve;
mod tables;

use crater_engine::Strings;
use crater_policy::Runtime;
use std::sync::Arc;

fn main() {
    crater_policy::child::run_if_asked();
    let what = std::env::args().nth(1).unwrap_or_else(|| "all".into());
    let all = what == "all";
    if all || what == "serve" {
        serve::run();
    }
    if what == "serve" {
        return;
    }
    let runtime = match Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("crater-bench: {error}");
            std::process::exit(1);
        }
    };
    let strings = Arc::new(Strings::default());
    if all || what == "pairs" {
        pairs::run(&runtime, &strings);
    }
    if all || what == "tables" {
        tables::run(&runtime, &strings);
    }
    if all || what == "room" {
        room::run(&runtime, &strings);
    }
    if all || what == "grid" {
        grid::run(&runtime, &strings);
    }
}
