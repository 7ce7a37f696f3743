//! The random-world harness: from a seed a small cluster, queues with scripted
//! policies and a stream of events, written as a scenario. While it runs,
//! everything that must hold is checked after every event, and what is placed
//! and what waits is compared with a plain recount. A world that fails is cut
//! down to the lines that matter.

mod cluster;
mod jobs;
mod judge;
mod pack;
mod policies;
mod room;
mod shrink;
mod stream;
mod tenants;

pub use judge::Judge;
pub use room::Room;
pub use shrink::shrink;
pub use stream::world;

use crate::scenario::{Manner, Outcome, Scenario, ScenarioError};
use crate::world::{Both, NoPolicies, Observer};
use std::fmt;

/// What a random world may contain.
#[derive(Clone, Copy, Debug)]
pub struct Spice {
    /// Policies with faults that come by count and not by argument, as
    /// deadlines do.
    pub counted_faults: bool,
}

/// A random world in which something was not as it must be.
#[derive(Clone, Debug)]
pub struct Failure {
    /// Its seed.
    pub seed: u64,
    /// What was wrong with the whole world.
    pub what: String,
    /// The fewest lines found that still go wrong.
    pub scenario: String,
    /// What is wrong with those.
    pub cut: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seed, what, scenario, cut } = self;
        write!(f, "seed {seed}: {what}\ncut down to:\n{scenario}\nwhich gives: {cut}")
    }
}

/// Runs the world of lines with all checks; an error says what was wrong.
pub fn check(lines: &[String], extra: &mut dyn Observer) -> Result<(Outcome, Judge), String> {
    let scenario = read(lines)?;
    let mut judge = Judge::default();
    let manner = Manner { lenient: true, quiet: true };
    let outcome = scenario.run_once(&NoPolicies, 0, &manner, &mut Both(&mut judge, extra));
    let outcome = match outcome {
        Ok(outcome) => outcome,
        Err(ScenarioError::Broken { what, place, .. }) => {
            return Err(format!("line {}: {what}", place.line));
        }
        Err(other) => return Err(format!("the world does not run: {other}")),
    };
    match judge.verdict() {
        Some(text) => Err(text.to_owned()),
        None => Ok((outcome, judge)),
    }
}

/// Reads lines as a scenario.
pub fn read(lines: &[String]) -> Result<Scenario, String> {
    Scenario::parse("random", &lines.join("\n")).map_err(|e| format!("the world does not run: {e}"))
}

/// Makes and runs the world of a seed; one that goes wrong is cut down.
pub fn run_seed(seed: u64, spice: Spice) -> Result<(Outcome, Judge), Box<Failure>> {
    let lines = world(seed, spice);
    check(&lines, &mut crate::world::Nobody).map_err(|what| {
        let fails = |lines: &[String]| {
            let cut = check(lines, &mut crate::world::Nobody).err();
            cut.filter(|cut| !cut.starts_with("the world does not run"))
        };
        let lines = shrink(&lines, &|lines| fails(lines).is_some());
        let cut = fails(&lines).unwrap_or_else(|| what.clone());
        Box::new(Failure { seed, what, scenario: lines.join("\n"), cut })
    })
}
