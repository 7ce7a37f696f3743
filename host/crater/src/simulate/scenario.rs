//! `crater simulate scenario`.

use crate::cli::Scenario as Args;
use crate::exit::input;
use crate::loader::Loader;
use anyhow::anyhow;
use crater_engine::{Policy, Strings};
use crater_sim::scenario::{ScenarioError, run_dir, run_file};
use crater_sim::world::PolicySource;
use std::sync::Arc;

/// WebAssembly policies by name or file.
struct Source(Loader);

impl PolicySource for Source {
    fn load(&self, name: &str, config: &str) -> Result<Arc<dyn Policy>, String> {
        let state = crater_engine::State::new(self.0.strings().clone());
        let facts = crater_engine::facts::facts(&[], &state);
        let config = if config.is_empty() { "{}" } else { config };
        let policy = self.0.policy(name, config, &facts).map_err(|e| format!("{e:#}"))?;
        Ok(policy)
    }

    fn strings(&self) -> Arc<Strings> {
        self.0.strings().clone()
    }
}

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let source = Source(Loader::new(Arc::new(Strings::default()))?);
    let mut failed = 0;
    let mut passed = 0;
    for path in &args.paths {
        let ran = if path.is_dir() {
            run_dir(path, &source).map_err(input)?
        } else {
            vec![(path.clone(), run_file(path, &source))]
        };
        if ran.is_empty() {
            return Err(input(anyhow!("{}: no file ends in .scenario", path.display())));
        }
        for (file, outcome) in ran {
            match outcome {
                Ok(outcome) => {
                    passed += 1;
                    println!("ok      {}", file.display());
                    if args.verbose {
                        println!("{outcome}");
                    }
                }
                // What cannot be read is bad input; what does not hold is not.
                Err(error @ (ScenarioError::Read { .. } | ScenarioError::Syntax { .. })) => {
                    return Err(input(error));
                }
                Err(error) => {
                    failed += 1;
                    println!("FAILED  {}\n{error}", file.display());
                }
            }
        }
    }
    println!("{passed} passed, {failed} failed");
    if failed == 0 {
        Ok(())
    } else {
        Err(anyhow!("{failed} of {} scenarios failed", passed + failed))
    }
}
