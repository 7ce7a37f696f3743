//! What a call costs, of a tiny guest or of a given component:
//! `cargo run --release -p crater-policy --example call_cost [-- FILE.wasm]`.

#[path = "../tests/runtime/guest.rs"]
#[allow(dead_code)]
mod guest;

use crater_engine::policy::{Column, Policy, Table, Values};
use crater_engine::strings::Strings;
use crater_policy::{Limits, Runtime, Setting};
use guest::{Guest, KEEP, SUM};
use std::sync::Arc;
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let runtime = Runtime::builder().compile_here().build()?;
    let wasm = match std::env::args().nth(1) {
        Some(file) => std::fs::read(file)?,
        None => Guest::default().with("filter", KEEP).with("score", SUM).build(),
    };
    let from = Instant::now();
    let loaded = runtime.load(&wasm)?;
    println!("load                      {:>9.1} µs", from.elapsed().as_secs_f64() * 1e6);
    let facts = Values::new();
    let strings = Arc::new(Strings::default());
    let setting = Setting { config: "", facts: &facts, strings, limits: None };
    let from = Instant::now();
    let policy = loaded.configure(&setting)?;
    println!("configure                 {:>9.1} µs", from.elapsed().as_secs_f64() * 1e6);
    let one = |id, value| vec![Column { id, values: vec![value] }];
    let (context, job) = (one(1, 0), one(100, 1));
    for (rows, columns) in [(0, 0), (1, 2), (91, 12), (1213, 2), (1213, 12), (10_000, 12)] {
        let table = table(rows, columns);
        let score = time(|| policy.score(&context, &job, &table).is_ok());
        let filter = time(|| policy.filter(&context, &job, &table).is_ok());
        println!("{rows:>6} rows × {columns:>2}   score {score:>7.2} µs   keep {filter:>7.2} µs");
    }
    let limits = Limits { calls_per_instance: 1, ..Limits::default() };
    let fresh = loaded.configure(&Setting { limits: Some(limits), ..setting })?;
    let table = table(91, 12);
    let cost = time(|| fresh.score(&context, &job, &table).is_ok());
    println!("    91 rows × 12   score {cost:>7.2} µs on a fresh instance each");
    let endless = Guest::default().with("filter", "(loop $l (br $l)) (unreachable)").build();
    let facts = Values::new();
    let strings = Arc::new(Strings::default());
    let setting = Setting { config: "", facts: &facts, strings, limits: None };
    let endless = runtime.load(&endless)?.configure(&setting)?;
    for _ in 0..3 {
        let from = Instant::now();
        let fault = endless.filter(&context, &job, &table).err();
        let took = from.elapsed().as_secs_f64() * 1e3;
        println!("an endless loop ends after {took:.1} ms: {}", fault.ok_or("no fault")?);
    }
    Ok(())
}

/// Microseconds a call: the best of five averages over 20 ms or more; not a
/// number where a call fails.
fn time(mut call: impl FnMut() -> bool) -> f64 {
    if !call() {
        return f64::NAN;
    }
    let mut best = f64::INFINITY;
    for _ in 0..5 {
        let (from, mut calls) = (Instant::now(), 0);
        while from.elapsed().as_millis() < 20 {
            for _ in 0..50 {
                call();
            }
            calls += 50;
        }
        best = best.min(from.elapsed().as_secs_f64() * 1e6 / f64::from(calls));
    }
    best
}

fn table(rows: u32, columns: u32) -> Table {
    let values: Vec<i32> = (0..rows as i32).collect();
    let column = |c| Column { id: 200 + c, values: values.clone() };
    Table { rows, columns: (0..columns).map(column).collect() }
}
