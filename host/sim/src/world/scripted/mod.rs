//! Policies that are written as one line of text, for tests and scenarios:
//! predictable or hashed answers, and every way to fail. The same line always
//! means the same answers.
//!
//! See docs/scenarios.md for the words; `script.rs` reads them.

mod answers;
mod script;

pub use script::{Script, ScriptError};

use crater_engine::policy::{Scores, Table, Values};
use crater_engine::{Fault, Interface, Manifest, Policy};
use crater_model::Digest;
use std::sync::atomic::{AtomicU64, Ordering};

/// A policy made from a script.
#[derive(Debug)]
pub struct Scripted {
    manifest: Manifest,
    digest: Digest,
    script: Script,
    calls: AtomicU64,
    calm: bool,
}

impl Scripted {
    /// The policy that a text describes.
    pub fn new(text: &str) -> Result<Self, ScriptError> {
        let script = Script::parse(text)?;
        let digest = Digest(*blake3::hash(format!("scripted {text}").as_bytes()).as_bytes());
        let manifest = script.manifest();
        Ok(Self { manifest, digest, script, calls: AtomicU64::new(0), calm: false })
    }

    /// The same policy on a day when none of its counted faults (`#n`) comes,
    /// as a deadline does not on a machine that has nothing else to do.
    #[must_use]
    pub fn calm(mut self) -> Self {
        self.calm = true;
        self
    }

    /// Whether its answers depend on nothing but the arguments.
    pub fn is_a_function(&self) -> bool {
        self.calm || self.script.faults.iter().all(|f| f.every == 0)
    }

    fn fault(
        &self,
        interface: Interface,
        of: u64,
        table: Option<&Table>,
    ) -> Result<Option<script::Kind>, Fault> {
        let call = self.calls.fetch_add(1, Ordering::Relaxed) + 1;
        for rule in self.script.faults.iter().filter(|r| r.interface == interface) {
            let salt = self.script.salt ^ 0xfa;
            let due = if rule.every > 0 {
                !self.calm && call.is_multiple_of(rule.every)
            } else if rule.rows > 0 {
                table.is_some_and(|t| answers::any_row(salt, of, t, rule.rows))
            } else {
                answers::percent(salt, of) < rule.percent
            };
            if due {
                return rule.kind.raise(interface).map(|()| Some(rule.kind));
            }
        }
        Ok(None)
    }
}

impl Policy for Scripted {
    fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    fn digest(&self) -> Digest {
        self.digest
    }

    fn filter(&self, context: &Values, job: &Values, nodes: &Table) -> Result<Vec<i32>, Fault> {
        let of = answers::of_job(&self.script, context, job);
        let kind = self.fault(Interface::Filter, of, Some(nodes))?;
        let mut codes = answers::codes(&self.script, of, nodes);
        match (kind, codes.first_mut()) {
            (Some(script::Kind::Count), _) => drop(codes.pop()),
            (Some(_), Some(code)) => *code = 999,
            _ => {}
        }
        Ok(codes)
    }

    fn score(&self, context: &Values, job: &Values, nodes: &Table) -> Result<Scores, Fault> {
        let of = answers::of_job(&self.script, context, job);
        let kind = self.fault(Interface::Score, of, Some(nodes))?;
        let mut scores = answers::scores(&self.script, of, job, nodes);
        match kind {
            Some(script::Kind::Count) => drop(scores.scores.pop()),
            Some(_) => scores.cards = vec![i32::MIN; scores.scores.len()],
            None => {}
        }
        Ok(scores)
    }

    fn score_groups(
        &self,
        context: &Values,
        job: &Values,
        groups: &Table,
    ) -> Result<Vec<i32>, Fault> {
        let of = answers::of_job(&self.script, context, job);
        let kind = self.fault(Interface::ScoreGroups, of, Some(groups))?;
        let mut answers = answers::groups(&self.script, of, groups);
        if kind.is_some() {
            answers.pop();
        }
        Ok(answers)
    }

    fn price(
        &self,
        context: &Values,
        preemptor: &Values,
        units: &Table,
    ) -> Result<Vec<(i32, i32)>, Fault> {
        let of = answers::of_job(&self.script, context, preemptor);
        let kind = self.fault(Interface::Preempt, of, Some(units))?;
        let mut prices = answers::prices(&self.script, of, units);
        match kind {
            Some(script::Kind::Count) => drop(prices.pop()),
            // Any two numbers are a price: what is wrong is one too many.
            Some(_) => prices.push((0, 0)),
            None => {}
        }
        Ok(prices)
    }

    fn rank(&self, context: &Values, jobs: &Table) -> Result<Vec<(i32, i32, i32)>, Fault> {
        let of = answers::of_job(&self.script, context, &vec![]);
        let kind = self.fault(Interface::Rank, of, Some(jobs))?;
        let mut answers = answers::ranks(&self.script, of, jobs);
        if kind.is_some() {
            answers.pop();
        }
        Ok(answers)
    }

    fn admit(&self, _context: &Values, _job: &Values) -> Result<Result<Values, String>, Fault> {
        self.fault(Interface::Admit, 0, None)?;
        Ok(self.script.refuses.clone().map_or(Ok(vec![]), Err))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_policy_and_the_same_line_the_same_one() {
        let line = "filter=30 reason=full score=hash:100 wants=node-cpu-free fault=trap@score:20";
        let policy = Scripted::new(line).unwrap();
        assert_eq!(policy.manifest().exports, [Interface::Filter, Interface::Score]);
        assert_eq!(policy.digest(), Scripted::new(line).unwrap().digest());
        assert!(policy.is_a_function());
        assert!(!Scripted::new("score=hash:2 fault=deadline@score#3").unwrap().is_a_function());
    }

    #[test]
    fn unknown_words_are_refused_by_name() {
        for (line, names) in [
            ("scroe=1", "scroe"),
            ("filter=101", "filter"),
            ("wants=node-cpu-left", "node-cpu-left"),
            ("fault=oops@score", "fault"),
            ("score", "score"),
        ] {
            let error = Scripted::new(line).unwrap_err().to_string();
            assert!(error.contains(names), "{line}: {error}");
        }
    }
}
