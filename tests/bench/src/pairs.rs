//! The published experiment's cluster: native beside WebAssembly, with and
//! without the host's cache.

use crater_bench::{Native, component, patient};
use crater_engine::facts::facts;
use crater_engine::{Decider, Policy, Strings};
use crater_policy::{Runtime, Setting};
use crater_sdk::native::Guest;
use crater_sim::generate::Generate;
use crater_sim::trace::{Trace, traces_dir};
use crater_sim::yardstick::{Run, Yardstick};
use std::sync::Arc;
use std::time::Instant;

/// The trace `default` where there is one, else one generated like it.
fn trace() -> Trace {
    for folder in [None, Some("../shared/data".into())] {
        if let Ok(trace) = traces_dir(folder).and_then(|t| t.openb("default")) {
            return trace;
        }
    }
    println!("no traces (CRATER_TRACES): a generated workload stands in for `default`");
    Generate::default().trace().expect("the defaults can be generated")
}

/// Runs the comparison.
pub fn run(runtime: &Runtime, strings: &Arc<Strings>) {
    let trace = trace();
    let yardstick = Yardstick::new(&trace, strings.clone()).expect("the trace has cards");
    println!("{}: {} nodes, {} pods", trace.name, trace.nodes.len(), trace.pods.len());
    println!(
        "{:<10} {:<16} {:>12} {:>12} {:>8}",
        "policy", "cache", "native 1/s", "Wasm 1/s", "ratio"
    );
    let guests = [
        crater_policy_fgd::native(),
        crater_policy_bestfit::native(),
        crater_policy_shadow_price::native(),
    ];
    for guest in guests {
        for cached in [false, true] {
            compare(runtime, strings, &yardstick, &guest, cached);
        }
    }
}

fn compare(
    runtime: &Runtime,
    strings: &Arc<Strings>,
    yardstick: &Yardstick<'_>,
    guest: &Guest,
    cached: bool,
) {
    let cluster = yardstick.cluster(42).expect("the trace's nodes are accepted");
    let facts = facts(&yardstick.mix(), cluster.state());
    let native: Arc<dyn Policy> =
        Arc::new(Native::new(guest, "{}", &facts, cluster.state()).expect("it takes no settings"));
    let name = guest.manifest.name;
    let loaded = runtime.load(&component(name)).expect("its own component loads");
    let setting =
        Setting { config: "{}", facts: &facts, strings: strings.clone(), limits: Some(patient()) };
    let wasm: Arc<dyn Policy> = Arc::new(loaded.configure(&setting).expect("it takes no settings"));
    let mut ratios = vec![];
    let mut rates = [vec![], vec![]];
    for turn in 0..3 {
        let mut both: Vec<Run> = vec![];
        for (policy, rates) in [&native, &wasm].into_iter().zip(&mut rates) {
            let decider = if cached { Decider::default() } else { Decider::forgetful() };
            let start = Instant::now();
            let run = yardstick.run(42 + turn, Some(policy.clone()), decider, &mut || ());
            let run = run.expect("the trace runs");
            rates.push(run.decisions as f64 / start.elapsed().as_secs_f64());
            assert_eq!(run.faults, 0, "{name} failed");
            both.push(run);
        }
        let places = |run: &Run| run.decided.iter().map(|d| (d.job, d.node)).collect::<Vec<_>>();
        assert_eq!(places(&both[0]), places(&both[1]), "{name}: the same placements");
        ratios.push(rates[1][turn as usize] / rates[0][turn as usize]);
    }
    let cache = if cached { "rows and shapes" } else { "none" };
    println!(
        "{name:<10} {cache:<16} {:>12.0} {:>12.0} {:>8.2}",
        median(&mut rates[0].clone()),
        median(&mut rates[1].clone()),
        median(&mut ratios)
    );
}

/// The middle one.
pub fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
