//! Random worlds: everything that must hold, holds after every event.

use crater_sim::random::{Spice, run_seed};
use std::env;

/// `CRATER_SEEDS=5000` runs more worlds, `CRATER_SEED=17` begins elsewhere.
fn setting(name: &str, default: u64) -> u64 {
    env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

#[test]
fn nothing_is_oversold_forgotten_or_left_waiting_without_cause() {
    let (first, count) = (setting("CRATER_SEED", 0), setting("CRATER_SEEDS", 1000));
    let spice = Spice { counted_faults: true };
    let mut failures = vec![];
    let (mut entries, mut placed, mut waiting, mut open, mut evicted) = (0, 0, 0, 0, 0);
    for seed in first..first + count {
        match run_seed(seed, spice) {
            Ok((outcome, judge)) => {
                entries += outcome.journal.len() as u64;
                placed += judge.placed;
                waiting += judge.waiting;
                open += judge.open;
                evicted += judge.evicted;
            }
            Err(failure) => failures.push(failure.to_string()),
        }
        assert!(failures.len() < 3, "\n{}", failures.join("\n\n"));
    }
    assert!(failures.is_empty(), "\n{}", failures.join("\n\n"));
    println!(
        "{count} worlds: {entries} entries, {placed} members placed, {waiting} reasons checked, \
         {open} gangs left open, {evicted} made to go"
    );
    assert!(count < 100 || (placed > 0 && waiting > 0 && evicted > 0), "the worlds are too dull");
}
