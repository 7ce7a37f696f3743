//! Every scenario under tests/scenarios passes.

use crater_sim::scenario::run_dir;
use crater_sim::world::NoPolicies;
use std::path::Path;

#[test]
fn every_scenario_passes() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/scenarios");
    let ran = run_dir(&folder, &NoPolicies).expect("the folder can be read");
    assert!(ran.len() >= 8, "only {} scenarios were found", ran.len());
    let failures: Vec<String> =
        ran.into_iter().filter_map(|(_, ran)| ran.err()).map(|e| e.to_string()).collect();
    assert!(failures.is_empty(), "\n{}", failures.join("\n\n"));
}
