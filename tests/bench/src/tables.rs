//! What `shadow-price` needs to make its tables of a mix.

use crater_bench::{component, patient};
use crater_engine::Strings;
use crater_engine::facts::facts;
use crater_policy::{Runtime, Setting};
use crater_sim::trace::{Trace, traces_dir};
use crater_sim::yardstick::Yardstick;
use std::sync::Arc;
use std::time::Instant;

/// Times prepare and configure in a new instance, on each trace.
pub fn run(runtime: &Runtime, strings: &Arc<Strings>) {
    let folders = [None, Some("../shared/data".into())];
    let Some(traces) = folders.into_iter().find_map(|folder| traces_dir(folder).ok()) else {
        println!("tables of a mix: skipped, no traces (CRATER_TRACES)");
        return;
    };
    println!("\n{:<14} {:>8} {:>18}", "mix", "shapes", "tables (ms)");
    for name in traces.openb_names().unwrap_or_default() {
        let trace = traces.openb(&name).expect("the traces are whole");
        let (shapes, millis) = tables(runtime, strings, &trace);
        println!("{name:<14} {shapes:>8} {millis:>18.1}");
    }
}

/// Shapes of the mix, and the median of five in milliseconds.
fn tables(runtime: &Runtime, strings: &Arc<Strings>, trace: &Trace) -> (usize, f64) {
    let yardstick = Yardstick::new(trace, strings.clone()).expect("the trace has cards");
    let cluster = yardstick.cluster(42).expect("the trace's nodes are accepted");
    let mix = yardstick.mix();
    let facts = facts(&mix, cluster.state());
    let loaded = runtime.load(&component("shadow-price")).expect("its own component loads");
    let mut millis: Vec<f64> = (0..5)
        .map(|_| {
            let strings = strings.clone();
            let limits = Some(patient());
            let setting = Setting { config: "{}", facts: &facts, strings, limits };
            let start = Instant::now();
            loaded.configure(&setting).expect("it takes its own defaults");
            start.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    millis.sort_by(f64::total_cmp);
    (mix.len(), millis[2])
}
