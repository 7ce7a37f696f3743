//! A policy as an ordinary library: the same code path as the component's
//! exports, without a runtime. For tests and for measuring what WebAssembly
//! costs.

use crate::{
    Column, Context, Facts, Groups, Jobs, Manifest, Nodes, Policy, Price, Rank, Scores, Table,
    Units,
};

type Answer = Result<Box<dyn Configured>, String>;

/// A natively compiled policy, not yet configured. Each policy crate has a
/// function `native` that returns its own.
#[derive(Clone, Copy, Debug)]
pub struct Guest {
    /// What it says of itself.
    pub manifest: Manifest,
    configure: fn(&str, &[u8]) -> Answer,
    prepare: fn(&str, &[Column]) -> Result<Vec<u8>, String>,
}

impl Guest {
    /// The guest behind a type.
    pub const fn of<P: Policy>(manifest: Manifest) -> Self {
        Self {
            manifest,
            configure: |config, prepared| Ok(Box::new(P::configure(config, prepared)?)),
            prepare: |config, facts| P::prepare(config, &Facts::new(facts)),
        }
    }

    /// An instance; see the contract's `configure`.
    pub fn configure(&self, config: &str, prepared: &[u8]) -> Result<Box<dyn Configured>, String> {
        (self.configure)(config, prepared)
    }

    /// See the contract's `prepare`.
    pub fn prepare(&self, config: &str, facts: &[Column]) -> Result<Vec<u8>, String> {
        (self.prepare)(config, facts)
    }

    /// The ids that it wants, ascending, each once.
    pub fn wants(&self) -> Vec<u32> {
        let mut wants = self.manifest.wants.to_vec();
        wants.sort_unstable();
        wants.dedup();
        wants
    }
}

/// A configured policy behind the contract's calls. Columns are borrowed; their
/// order does not matter.
pub trait Configured: Send + Sync {
    /// One code a row.
    fn filter(&self, context: &[Column], job: &[Column], nodes: Table) -> Vec<i32>;

    /// One score a row, and perhaps card masks.
    fn score(&self, context: &[Column], job: &[Column], nodes: Table) -> Scores;

    /// One number a group.
    fn score_groups(&self, context: &[Column], job: &[Column], groups: Table) -> Vec<i32>;

    /// (tier, cost) of each unit.
    fn price(&self, context: &[Column], preemptor: &[Column], units: Table) -> Vec<(i32, i32)>;

    /// (tier, class, weight) of each job.
    fn rank(&self, context: &[Column], jobs: Table) -> Vec<(i32, i32, i32)>;

    /// Values to fill in, or a refusal.
    fn admit(&self, context: &[Column], job: &[Column]) -> Result<Vec<(u32, Vec<i32>)>, String>;
}

impl<P: Policy> Configured for P {
    fn filter(&self, context: &[Column], job: &[Column], nodes: Table) -> Vec<i32> {
        let mut out = Vec::with_capacity(nodes.rows as usize);
        let (context, jobs) = (Context::new(context), Jobs::one(job));
        self.filter_rows(&context, &jobs.row(0), &Nodes::new(&nodes), &mut out);
        out
    }

    fn score(&self, context: &[Column], job: &[Column], nodes: Table) -> Scores {
        let mut out = Scores::with_capacity(nodes.rows as usize);
        let (context, jobs) = (Context::new(context), Jobs::one(job));
        self.score_rows(&context, &jobs.row(0), &Nodes::new(&nodes), &mut out);
        out
    }

    fn score_groups(&self, context: &[Column], job: &[Column], groups: Table) -> Vec<i32> {
        let mut out = Vec::with_capacity(groups.rows as usize);
        let (context, jobs) = (Context::new(context), Jobs::one(job));
        self.score_group_rows(&context, &jobs.row(0), &Groups::new(&groups), &mut out);
        out
    }

    fn price(&self, context: &[Column], preemptor: &[Column], units: Table) -> Vec<(i32, i32)> {
        let mut out = Vec::with_capacity(units.rows as usize);
        let (context, jobs) = (Context::new(context), Jobs::one(preemptor));
        self.price_rows(&context, &jobs.row(0), &Units::new(&units), &mut out);
        out.into_iter().map(|Price { tier, cost }| (tier, cost)).collect()
    }

    fn rank(&self, context: &[Column], jobs: Table) -> Vec<(i32, i32, i32)> {
        let mut out = Vec::with_capacity(jobs.rows as usize);
        let jobs = Jobs::many(jobs.rows, jobs.columns);
        self.rank_rows(&Context::new(context), &jobs, &mut out);
        out.into_iter().map(|Rank { tier, class, weight }| (tier, class, weight)).collect()
    }

    fn admit(&self, context: &[Column], job: &[Column]) -> Result<Vec<(u32, Vec<i32>)>, String> {
        let (context, jobs) = (Context::new(context), Jobs::one(job));
        let set = Policy::admit(self, &context, &jobs.row(0))?;
        Ok(set.into_iter().map(|(id, value)| (id, vec![value])).collect())
    }
}
