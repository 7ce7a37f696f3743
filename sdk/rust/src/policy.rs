//! The trait that an author implements.

use crate::{
    Context, Facts, Group, Groups, Job, Jobs, Node, Nodes, Price, Rank, Score, Scores, Unit, Units,
    Verdict,
};

/// A policy as configured for one queue. Implement the decisions that you want
/// to make and list them under `exports` in [`export!`](crate::export).
///
/// A decision is a function of its arguments and the configuration. Keep no
/// state between calls: the host caches answers, asks for rows in parts, and
/// uses many instances at once.
///
/// Every decision has a form for one row and, for speed, one for the whole
/// call (`…_rows`), which by default asks the first for each row. A short one
/// runs about twice as fast with `#[inline]` on it: what it reads of the job is
/// then read once a call.
#[expect(unused_variables, reason = "the defaults decide nothing")]
pub trait Policy: Sized + Send + Sync + 'static {
    /// Takes the queue's configuration (JSON) and what `prepare` made, empty
    /// without it. An error refuses the configuration and is shown to the
    /// queue's owner. [`Settings`](crate::Settings) reads it; a policy without any answers
    /// `Settings::none(config).map(|()| Self)`.
    fn configure(config: &str, prepared: &[u8]) -> Result<Self, String>;

    /// Heavy work off the round: what is made here from the facts is handed to
    /// `configure` on every instance.
    ///
    /// String ids hold as long as the host runs, the result for longer: keep
    /// texts in it ([`strings::text`](crate::strings::text)), not ids.
    fn prepare(config: &str, facts: &Facts) -> Result<Vec<u8>, String> {
        Ok(Vec::new())
    }

    /// Whether a node may take the job. The host has already left out the
    /// nodes that cannot hold it.
    fn filter(&self, context: &Context, job: &Job, node: &Node) -> Verdict {
        Verdict::Keep
    }

    /// How good a node is.
    fn score(&self, context: &Context, job: &Job, node: &Node) -> Score {
        Score::default()
    }

    /// What a group of nodes adds to the scores of each of its nodes.
    fn score_group(&self, context: &Context, job: &Job, group: &Group) -> i32 {
        0
    }

    /// What evicting one of this queue's own units would cost.
    fn price(&self, context: &Context, preemptor: &Job, unit: &Unit) -> Price {
        Price { tier: 0, cost: 0 }
    }

    /// A waiting job's place in this queue.
    fn rank(&self, context: &Context, job: &Job) -> Rank {
        Rank::default()
    }

    /// A word at submission: values of settable columns to fill in, or a
    /// refusal that the submitter reads.
    fn admit(&self, context: &Context, job: &Job) -> Result<Vec<(u32, i32)>, String> {
        Ok(Vec::new())
    }

    /// All nodes of a call: pushes one code a row.
    fn filter_rows(&self, context: &Context, job: &Job, nodes: &Nodes, out: &mut Vec<i32>) {
        out.extend(nodes.iter().map(|node| self.filter(context, job, &node).code()));
    }

    /// All nodes of a call: pushes one score a row.
    fn score_rows(&self, context: &Context, job: &Job, nodes: &Nodes, out: &mut Scores) {
        out.extend(nodes.iter().map(|node| self.score(context, job, &node)));
    }

    /// All groups of a call: pushes one number a row.
    fn score_group_rows(&self, context: &Context, job: &Job, groups: &Groups, out: &mut Vec<i32>) {
        out.extend((0..groups.len()).map(|row| self.score_group(context, job, &groups.row(row))));
    }

    /// All units of a call: pushes one price a row.
    fn price_rows(&self, context: &Context, preemptor: &Job, units: &Units, out: &mut Vec<Price>) {
        out.extend((0..units.len()).map(|row| self.price(context, preemptor, &units.row(row))));
    }

    /// All waiting jobs of a call: pushes one rank a row.
    fn rank_rows(&self, context: &Context, jobs: &Jobs, out: &mut Vec<Rank>) {
        out.extend((0..jobs.len()).map(|row| self.rank(context, &jobs.row(row))));
    }
}
