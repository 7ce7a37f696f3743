//! A native test harness: readable jobs and nodes, the batched code path, and
//! only the columns that the policy wants, as the host would hand them over.
//!
//! ```
//! # use crater_sdk::prelude::*;
//! # pub struct Tight;
//! # impl Policy for Tight {
//! #     fn configure(_: &str, _: &[u8]) -> Result<Self, String> { Ok(Self) }
//! #     fn score(&self, _: &Context, _: &Job, n: &Node) -> Score { (-n.get(NODE_GPU_FREE)).into() }
//! # }
//! # crater_sdk::export!(Tight { name: "tight", wants: [NODE_GPU_FREE], exports: [score] });
//! use crater_sdk::testing::{Tester, job, node};
//! let tester = Tester::new(&native(), "{}").unwrap();
//! let nodes = [node().model("T4").cards([1000, 400]).cpu(32_000, 8_000)];
//! assert_eq!(tester.scores(&job().share(300).cpu(2_000), &nodes), [-1400]);
//! ```

mod jobs;
mod nodes;
mod rows;

pub use jobs::{JobSpec, job};
pub use nodes::{CardSpec, NodeSpec, card, node};
pub use rows::{RowSpec, group, unit};

use crate::columns::{MINUTE_OF_DAY, NOW, SEED, WEEKDAY};
use crate::native::{Configured, Guest};
use crate::{Column, Interface, Scores, Table};
use std::collections::BTreeMap;

/// Columns that own their values, by id.
pub(crate) type Owned = BTreeMap<u32, Vec<i32>>;

/// A configured policy and the context that it is asked in.
pub struct Tester {
    guest: Guest,
    policy: Box<dyn Configured>,
    context: Owned,
}

impl Tester {
    /// Configures a policy that needs no `prepare`.
    pub fn new(guest: &Guest, config: &str) -> Result<Self, String> {
        Self::prepared(guest, config, &[])
    }

    /// Runs `prepare` on facts, then configures.
    pub fn with_facts(guest: &Guest, config: &str, facts: &[Column]) -> Result<Self, String> {
        let wants = guest.wants();
        let facts: Vec<Column> =
            facts.iter().copied().filter(|(id, _)| wants.binary_search(id).is_ok()).collect();
        Self::prepared(guest, config, &guest.prepare(config, &facts)?)
    }

    /// Configures with what `prepare` made.
    pub fn prepared(guest: &Guest, config: &str, prepared: &[u8]) -> Result<Self, String> {
        let policy = guest.configure(config, prepared)?;
        Ok(Self { guest: *guest, policy, context: Owned::new() })
    }

    /// The time of the calls that follow, in minutes since 1970-01-01 UTC.
    #[must_use]
    pub fn at(mut self, minutes: i32) -> Self {
        self.context.insert(NOW, vec![minutes]);
        self.context.insert(MINUTE_OF_DAY, vec![minutes.rem_euclid(1440)]);
        // The first of January 1970 was a Thursday.
        self.context.insert(WEEKDAY, vec![(minutes.div_euclid(1440) + 3).rem_euclid(7)]);
        self
    }

    /// The seed of the calls that follow.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.context.insert(SEED, vec![seed as i32, (seed >> 32) as i32]);
        self
    }

    /// Filter codes of nodes: 0 keeps, a positive code is a reason's, minus n
    /// defers for n seconds.
    pub fn codes(&self, job: &JobSpec, nodes: &[NodeSpec]) -> Vec<i32> {
        self.exported(Interface::Filter);
        let (table, job) = (self.wanted(nodes::table(nodes)), self.wanted(job.columns()));
        let (table, job, context) = (borrow(&table), borrow(&job), self.context());
        let nodes = Table { rows: nodes.len() as u32, columns: &table };
        checked(nodes.rows, self.policy.filter(&borrow(&context), &job, nodes))
    }

    /// Scores of nodes and, where the policy names any, masks of cards.
    pub fn answer(&self, job: &JobSpec, nodes: &[NodeSpec]) -> Scores {
        self.exported(Interface::Score);
        let (table, job) = (self.wanted(nodes::table(nodes)), self.wanted(job.columns()));
        let (table, job, context) = (borrow(&table), borrow(&job), self.context());
        let nodes = Table { rows: nodes.len() as u32, columns: &table };
        let answer = self.policy.score(&borrow(&context), &job, nodes);
        assert!(answer.cards.is_empty() || answer.cards.len() == nodes.rows as usize);
        Scores { values: checked(nodes.rows, answer.values), cards: answer.cards }
    }

    /// Scores of nodes.
    pub fn scores(&self, job: &JobSpec, nodes: &[NodeSpec]) -> Vec<i32> {
        self.answer(job, nodes).values
    }

    /// Masks of cards, 0 where the choice is left to the host.
    pub fn masks(&self, job: &JobSpec, nodes: &[NodeSpec]) -> Vec<i32> {
        let cards = self.answer(job, nodes).cards;
        if cards.is_empty() { vec![0; nodes.len()] } else { cards }
    }

    /// The row of the best node, the first of equals.
    pub fn best(&self, job: &JobSpec, nodes: &[NodeSpec]) -> Option<usize> {
        let scores = self.scores(job, nodes);
        (0..scores.len()).rev().max_by_key(|row| scores[*row])
    }

    /// What groups add.
    pub fn group_scores(&self, job: &JobSpec, groups: &[RowSpec]) -> Vec<i32> {
        self.exported(Interface::ScoreGroups);
        let (table, job) = (self.wanted(rows::table(groups)), self.wanted(job.columns()));
        let (table, job, context) = (borrow(&table), borrow(&job), self.context());
        let groups = Table { rows: groups.len() as u32, columns: &table };
        checked(groups.rows, self.policy.score_groups(&borrow(&context), &job, groups))
    }

    /// (tier, cost) of eviction units.
    pub fn prices(&self, preemptor: &JobSpec, units: &[RowSpec]) -> Vec<(i32, i32)> {
        self.exported(Interface::Preempt);
        let (table, job) = (self.wanted(rows::table(units)), self.wanted(preemptor.columns()));
        let (table, job, context) = (borrow(&table), borrow(&job), self.context());
        let units = Table { rows: units.len() as u32, columns: &table };
        checked(units.rows, self.policy.price(&borrow(&context), &job, units))
    }

    /// (tier, class, weight) of waiting jobs.
    pub fn ranks(&self, jobs: &[JobSpec]) -> Vec<(i32, i32, i32)> {
        self.exported(Interface::Rank);
        let table = self.wanted(jobs::table(jobs));
        let (table, context) = (borrow(&table), self.context());
        let jobs = Table { rows: jobs.len() as u32, columns: &table };
        checked(jobs.rows, self.policy.rank(&borrow(&context), jobs))
    }

    /// Values filled in at submission, or the refusal.
    pub fn admission(&self, job: &JobSpec) -> Result<Vec<(u32, Vec<i32>)>, String> {
        self.exported(Interface::Admit);
        let (job, context) = (self.wanted(job.columns()), self.context());
        self.policy.admit(&borrow(&context), &borrow(&job))
    }

    /// A decision that the manifest does not list is never asked of a policy.
    fn exported(&self, interface: Interface) {
        assert!(
            self.guest.manifest.exports(interface),
            "{} does not export {interface:?}",
            self.guest.manifest.name
        );
    }

    fn context(&self) -> Owned {
        self.wanted(self.context.clone())
    }

    /// Keeps what the manifest wants; offsets come with their family, labels
    /// by their own list.
    fn wanted(&self, mut columns: Owned) -> Owned {
        let wants = self.guest.wants();
        let family = |id: u32| wants.iter().any(|want| want / 100 == id / 100);
        columns.retain(|id, _| match id {
            300 | 400 => family(*id),
            10_000.. => true,
            _ => wants.binary_search(id).is_ok(),
        });
        columns
    }
}

pub(crate) fn borrow(columns: &Owned) -> Vec<Column<'_>> {
    columns.iter().map(|(id, values)| (*id, values.as_slice())).collect()
}

fn checked<T>(rows: u32, answer: Vec<T>) -> Vec<T> {
    assert_eq!(answer.len(), rows as usize, "an answer has one entry a row");
    answer
}

/// Nodes with all their columns, for tests of the views themselves.
#[cfg(test)]
pub(crate) fn with_nodes<R>(nodes: &[NodeSpec], run: impl FnOnce(&crate::Nodes) -> R) -> R {
    let table = nodes::table(nodes);
    run(&crate::Nodes::new(&Table { rows: nodes.len() as u32, columns: &borrow(&table) }))
}
