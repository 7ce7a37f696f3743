//! Where the mix comes from that policies prepare for.

use crate::exit::input;
use crate::loader::Loader;
use anyhow::{Context, anyhow};
use crater_engine::facts::{MixShape, facts};
use crater_engine::{Learner, Policy, State};
use crater_policy::{Configured, Loaded};
use crater_sim::trace::{Pod, Trace, Traces};
use crater_sim::yardstick::{Moment, mix};
use std::path::Path;
use std::sync::Arc;

/// What a policy is told of the workload before it comes.
#[derive(Clone, Debug, PartialEq)]
pub struct Known {
    /// The mix; empty if nothing is known.
    pub shapes: Vec<MixShape>,
    /// Learn from what arrives until so many percent of the cluster's GPU were
    /// asked for; what is known beforehand then counts as few jobs.
    pub learn: Option<f64>,
}

/// Finds the mix behind `--mix`: `trace` (the one that is played), `none`,
/// `trace=NAME` or a file.
pub fn known(
    text: &str,
    learn: Option<f64>,
    traces: &Traces,
    trace: &Trace,
) -> anyhow::Result<Known> {
    let shapes = match text.split_once('=') {
        None if text == "trace" => mix(&trace.pods),
        None if text == "none" => vec![],
        Some(("trace", name)) => mix(&traces.openb(name).map_err(input)?.pods),
        _ => file(Path::new(text))?,
    };
    Ok(Known { shapes, learn })
}

/// A mix in a JSON file, as `simulate mix` prints it.
fn file(path: &Path) -> anyhow::Result<Vec<MixShape>> {
    let name = || format!("--mix: {}", path.display());
    let text = std::fs::read_to_string(path).with_context(name).map_err(input)?;
    let shapes: Vec<MixShape> = serde_json::from_str(&text).with_context(name).map_err(input)?;
    match shapes
        .iter()
        .position(|s| s.weight == 0 || s.cards == 0 && s.milli.0 + s.card_memory.0 > 0)
    {
        None => Ok(shapes),
        Some(i) => Err(input(anyhow!(
            "--mix: {}: shape {}: expected a weight of 1 or more, and GPU only with cards",
            path.display(),
            i + 1
        ))),
    }
}

/// Tells one run's policy of the mix as it becomes known.
pub struct Teacher<'a> {
    loader: &'a Loader,
    loaded: &'a Loaded,
    config: &'a str,
    learner: Option<(Learner, f64)>,
    noted: usize,
}

impl<'a> Teacher<'a> {
    /// For one run.
    pub fn new(loader: &'a Loader, loaded: &'a Loaded, config: &'a str, known: &Known) -> Self {
        let prior = || Learner::with_prior(Learner::HALF_LIFE, &known.shapes, Learner::MINIMUM);
        let learner = known.learn.map(|until| (prior(), until));
        Self { loader, loaded, config, learner, noted: 0 }
    }

    /// The policy as it begins: with the mix that is known, or with what
    /// learning makes of it.
    pub fn first(&mut self, known: &Known, state: &State) -> anyhow::Result<Arc<Configured>> {
        let shapes = match &mut self.learner {
            Some((learner, _)) => learner.take(Learner::MINIMUM),
            None => known.shapes.clone(),
        };
        self.loader.configure(self.loaded, self.config, &facts(&shapes, state))
    }

    /// A policy that knows more, if there is enough that is new.
    pub fn next(&mut self, moment: &Moment<'_>) -> anyhow::Result<Option<Arc<dyn Policy>>> {
        let Some((learner, until)) = &mut self.learner else { return Ok(None) };
        let news: &[Pod] = moment.arrived.get(self.noted..).unwrap_or(&[]);
        for pod in news {
            learner.note(&pod.request(), 1);
        }
        self.noted = moment.arrived.len();
        let last = moment.arrived_pct >= *until;
        if !last && !learner.due(Learner::MINIMUM) {
            return Ok(None);
        }
        let shapes = learner.take(Learner::MINIMUM);
        if last {
            self.learner = None;
        }
        let facts = facts(&shapes, moment.state);
        let policy = self.loader.configure(self.loaded, self.config, &facts)?;
        Ok(Some(policy))
    }
}
