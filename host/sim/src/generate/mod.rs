//! Generated clusters and workloads, for use without any file.
//!
//! They resemble the published openb traces in what they are made of (class
//! shares, popular sizes, card models, run times), and are not those traces:
//! figures measured on one say nothing exact about the other.

mod cluster;
mod pods;
mod tables;

pub use cluster::cluster;

use crate::trace::{Class, Trace};
use crater_model::FieldError;

/// Most machines of a generated cluster.
pub const MOST_NODES: usize = 100_000;
/// Most pods of a generated workload.
pub const MOST_PODS: usize = 10_000_000;

/// What to generate. The same values always give the same trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Generate {
    /// Every random number follows from it.
    pub seed: u64,
    /// Machines; the published cluster has 1,213.
    pub nodes: usize,
    /// Pods; the published `default` workload has 8,152.
    pub pods: usize,
    /// Weights of the classes, in the order of [`Class::ALL`].
    pub mix: [u32; 4],
    /// Thousandths of the pods with a card that are bound to card models: none
    /// in `default`, 330 in `gpuspec33`.
    pub bound: u32,
    /// Per cent of the cluster that the pods would use on average, from the
    /// first arrival to the last, if none waited: of its cards or its cores,
    /// whichever is used more. Sets how densely they arrive.
    pub load: u32,
}

impl Default for Generate {
    fn default() -> Self {
        Self { seed: 42, nodes: 1213, pods: 8152, mix: [133, 378, 480, 9], bound: 0, load: 90 }
    }
}

impl Generate {
    /// The same cluster and workload at another size: both in proportion to
    /// the number of machines.
    #[must_use]
    pub fn scaled(self, nodes: usize) -> Self {
        let pods = nodes.saturating_mul(self.pods) / self.nodes.max(1);
        Self { nodes, pods, ..self }
    }

    /// Refuses what cannot be generated, naming the field.
    pub fn check(&self) -> Result<(), FieldError> {
        let within = |field: &str, value: usize, least: usize, most: usize| {
            let expected = format!("a whole number from {least} to {most}");
            let fine = (least..=most).contains(&value);
            if fine { Ok(()) } else { Err(FieldError::new(field, &value.to_string(), expected)) }
        };
        within("nodes", self.nodes, 1, MOST_NODES)?;
        within("pods", self.pods, 0, MOST_PODS)?;
        within("bound", self.bound as usize, 0, 1000)?;
        within("load", self.load as usize, 1, 1000)?;
        let total: u64 = self.mix.iter().copied().map(u64::from).sum();
        if total == 0 || total > u64::from(u32::MAX) {
            let value = self.mix.map(|w| w.to_string()).join(" ");
            let expected = format!("{} weights that are not all 0", Class::ALL.len());
            return Err(FieldError::new("mix", &value, expected));
        }
        Ok(())
    }

    /// Generates the cluster and its workload, in the order of arrival.
    pub fn trace(&self) -> Result<Trace, FieldError> {
        self.check()?;
        let nodes = cluster(self.nodes);
        let pods = pods::pods(self, &nodes);
        Ok(Trace { name: format!("generated-{}", self.seed), nodes, pods })
    }
}
