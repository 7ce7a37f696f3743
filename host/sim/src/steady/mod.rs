//! The steady state: pods come and go for ever, who finds no room waits, and
//! we measure for how long.
//!
//! * Arrivals are a Poisson process. Each is a pod drawn uniformly from those
//!   of the trace that have a life time; it runs for that long, at most for
//!   the trace's 99th percentile: a few pods that outlive the trace would
//!   otherwise be most of the load. Pods that no empty node holds never come.
//! * Their rate offers a load: share × life time over all arrivals, in percent
//!   of the cluster's cards.
//! * Arrivals follow from the seed and the load alone, so that all policies
//!   are measured on the same stream and may be compared seed by seed.
//! * Each arrival and each departure is an event of its own with a round of
//!   its own, at its millisecond; at one millisecond departures come first.
//!   The host's order (age) serves the queue, and who does not fit does not
//!   hold back who does.
//! * Measured are the arrivals after a warm-up: twice as many arrivals as run
//!   at a time, and twice the mean life time of the GPU in use. After the last
//!   one the stream goes on until all measured pods have started, or a quarter
//!   as many have come again. Who waits even then counts with the wait so far.
//!   What is measured over time is measured from the first to the last of them.

mod estimate;
mod meter;
mod run;
mod workload;

pub use estimate::{Estimate, estimate};
pub use meter::{Group, Run, Waits};
pub use workload::{Arrival, Arrivals, Coming, Workload, borrow_lives};

use crate::trace::Trace;
use crate::yardstick::{Yardstick, YardstickError};
use crater_engine::facts::MixShape;
use crater_engine::{Ledger, MemoryJournal, Policy, Refusal, Strings};
use std::sync::Arc;
use thiserror::Error;

/// The experiment could not be run.
#[derive(Debug, Error)]
pub enum SteadyError {
    /// There is no cluster to run on.
    #[error(transparent)]
    Cluster(#[from] YardstickError),
    /// Nothing could arrive, or nothing with GPU.
    #[error("trace {0} has no pod with a life time that asks for GPU and fits on an empty node")]
    NoLoad(String),
    /// The books refused what follows from them.
    #[error("{what} of trace {trace} is refused")]
    Refused {
        /// The trace.
        trace: String,
        /// What of it.
        what: String,
        /// Why.
        #[source]
        source: Refusal,
    },
    /// The books do not add up: a defect.
    #[error("defect: the books of trace {trace} do not add up: {what}")]
    Books {
        /// The trace.
        trace: String,
        /// How.
        what: String,
    },
}

/// What to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask {
    /// Where all chance comes from.
    pub seed: u64,
    /// GPU that the arrivals ask for, in percent of the cluster's cards.
    pub load: u32,
    /// Arrivals to measure.
    pub arrivals: u64,
}

/// The experiment on one trace.
pub struct Steady<'a> {
    trace: &'a Trace,
    yardstick: Yardstick<'a>,
    workload: Workload,
}

impl<'a> Steady<'a> {
    /// Prepares the experiment. Texts are numbered in `strings`, which the
    /// policies must share.
    pub fn new(trace: &'a Trace, strings: Arc<Strings>) -> Result<Self, SteadyError> {
        let yardstick = Yardstick::new(trace, strings)?;
        let empty = yardstick.cluster(0)?;
        let workload = Workload::new(trace, empty.state())
            .ok_or_else(|| SteadyError::NoLoad(trace.name.clone()))?;
        Ok(Self { trace, yardstick, workload })
    }

    /// What may arrive, and how densely.
    pub fn workload(&self) -> &Workload {
        &self.workload
    }

    /// The empty cluster in the order of a seed, as in the published
    /// experiment.
    pub fn cluster(&self, seed: u64) -> Result<Ledger<MemoryJournal>, SteadyError> {
        Ok(self.yardstick.cluster(seed)?)
    }

    /// The trace's mix, for policies that prepare.
    pub fn mix(&self) -> Vec<MixShape> {
        self.yardstick.mix()
    }

    /// Runs one seed at one load under one policy, or under the built-in
    /// order. `tick` is told of each arrival.
    pub fn run(
        &self,
        ask: Ask,
        policy: Option<Arc<dyn Policy>>,
        tick: &mut dyn FnMut(),
    ) -> Result<Run, SteadyError> {
        run::run(self, ask, policy, tick)
    }
}
