//! What a call costs: `cargo run --release -p crater-policy --example call_cost`.

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
    let wasm = Guest::default().with("filter", KEEP).with("score", SUM).build();
    let from = Instant::now();
    let loaded = runtime.load(&wasm)?;
    println!("load                      {:>9.1} µs", from.elapsed().as_secs_f64() * 1e6);
    let facts = Values::new();
    let strings = Arc::new(Strings::default());
    let setting = Setting { config: "", facts: &facts, strings, limits: None };
    let policy = loaded.configure(&setting)?;
    let one = |id, value| vec![Column { id, values: vec![value] }];
    let (context, job) = (one(1, 0), one(100, 1));
    for (rows, columns) in [(0, 0), (1, 2), (91, 12), (1213, 2), (1213, 12), (10_000, 12)] {
        let table = table(rows, columns);
        let score = time(|| drop(policy.score(&context, &job, &table)));
        let filter = time(|| drop(policy.filter(&context, &job, &table)));
        println!("{rows:>6} rows × {columns:>2}   score {score:>7.2} µs   keep {filter:>7.2} µs");
    }
    let limits = Limits { calls_per_instance: 1, ..Limits::default() };
    let fresh = loaded.configure(&Setting { limits: Some(limits), ..setting })?;
    let table = table(91, 12);
    let cost = time(|| drop(fresh.score(&context, &job, &table)));
    println!("    91 rows × 12   score {cost:>7.2} µs on a fresh instance each");
    Ok(())
}

/// Microseconds a call: the best of five averages over 20 ms or more.
fn time(mut call: impl FnMut()) -> f64 {
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
