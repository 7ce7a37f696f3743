//! Jobs from plain values.

use super::Owned;
use crate::columns::{
    JOB_CARD_MIB, JOB_CARD_MILLI, JOB_CARDS, JOB_CPU, JOB_ID, JOB_KIND, JOB_MEMBERS, JOB_MEMORY,
    JOB_MIN_MEMBERS, JOB_MODELS, JOB_ORDER, JOB_PRIORITY, JOB_WHOLE_CARDS,
};
use crate::strings;

/// A job: medium training of one member without a GPU, unless said otherwise.
#[derive(Clone, Debug)]
pub struct JobSpec(Owned);

/// A job to set values on.
#[must_use]
pub fn job() -> JobSpec {
    let fixed = [(JOB_ID, 1), (JOB_KIND, 2), (JOB_PRIORITY, 50), (JOB_MEMBERS, 1)];
    let asked = [(JOB_MIN_MEMBERS, 1), (JOB_CARDS, 0), (JOB_CARD_MILLI, 0), (JOB_CARD_MIB, 0)];
    let mut columns: Owned = fixed.into_iter().chain(asked).map(|(id, v)| (id, vec![v])).collect();
    columns.insert(JOB_MODELS, Vec::new());
    columns.insert(JOB_WHOLE_CARDS, vec![0]);
    JobSpec(columns)
}

impl JobSpec {
    /// Any column, by its id.
    #[must_use]
    pub fn set(mut self, id: u32, value: i32) -> Self {
        self.0.insert(id, vec![value]);
        self
    }

    /// A share of one card in milli-cards.
    #[must_use]
    pub fn share(self, milli: i32) -> Self {
        self.set(JOB_CARDS, 1).set(JOB_CARD_MILLI, milli)
    }

    /// Whole cards.
    #[must_use]
    pub fn whole(self, cards: i32) -> Self {
        self.set(JOB_CARDS, cards).set(JOB_CARD_MILLI, 1000).set(JOB_WHOLE_CARDS, 1)
    }

    /// Memory of each card in MiB; the share follows from it.
    #[must_use]
    pub fn card_memory(self, cards: i32, mib: i32) -> Self {
        self.set(JOB_CARDS, cards).set(JOB_CARD_MILLI, 0).set(JOB_CARD_MIB, mib)
    }

    /// CPU in milli-cores.
    #[must_use]
    pub fn cpu(self, milli: i32) -> Self {
        self.set(JOB_CPU, milli)
    }

    /// Memory in MiB.
    #[must_use]
    pub fn memory(self, mib: i32) -> Self {
        self.set(JOB_MEMORY, mib)
    }

    /// Card models that it may use.
    #[must_use]
    pub fn models<const N: usize>(mut self, models: [&str; N]) -> Self {
        self.0.insert(JOB_MODELS, models.map(strings::id).to_vec());
        self
    }

    /// All its columns.
    pub(crate) fn columns(&self) -> Owned {
        self.0.clone()
    }
}

/// The rows of `rank`: lists have no rows there, `job-order` is the position.
pub(super) fn table(jobs: &[JobSpec]) -> Owned {
    let mut table: Owned = jobs.iter().flat_map(|j| j.0.keys()).map(|id| (*id, vec![])).collect();
    table.remove(&JOB_MODELS);
    table.insert(JOB_ORDER, Vec::new());
    for (row, job) in (0..).zip(jobs) {
        for (id, column) in &mut table {
            let own = job.0.get(id).and_then(|v| v.first().copied());
            column.push(own.unwrap_or(if *id == JOB_ORDER {
                row
            } else {
                crate::batch::absent(*id)
            }));
        }
    }
    table
}
