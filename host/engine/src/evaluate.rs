//! Finding the best node for one member: by what is remembered of all nodes,
//! or by asking about every one anew.

use crate::builtin;
use crate::cache::{Cache, same_job};
use crate::fit::{fits, mask_fits};
use crate::node::NodeState;
use crate::overlay::Overlay;
use crate::policy::{Fault, Interface, Policy, Scores, Table};
use crate::rows::{Asking, whole_table};
use crate::shape::{Answer, Shape, Top, Verdict, row_hash};
use crater_model::columns as c;
use crater_model::{Fallback, Reason, Reasons, Request};

/// Most rows of one call, so that a deadline means the same on any cluster.
pub const ROWS: usize = 2048;

/// Who scores.
#[derive(Clone, Copy)]
pub enum Scorer<'a> {
    /// A built-in order.
    Builtin(Fallback),
    /// A policy; the order is for what it leaves to the host.
    Policy(&'a dyn Policy, Fallback),
}

/// What was found.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// The best node.
    pub top: Option<Top>,
    /// Nodes in the running.
    pub candidates: u32,
    /// Sum of the hashes of the answers.
    pub answers: u64,
    /// Why the others are out; only filled in when there is no best one.
    pub reasons: Reasons,
    /// The shortest deferral in seconds.
    pub later: Option<u32>,
}

/// One evaluation's surroundings.
pub struct Evaluation<'a, 'b> {
    /// The nodes.
    pub overlay: &'a Overlay<'b>,
    /// The job.
    pub asking: Asking<'a>,
    /// Who scores.
    pub scorer: Scorer<'a>,
}

impl Evaluation<'_, '_> {
    fn request(&self) -> &Request {
        &self.asking.job.spec.request
    }

    /// Brings a shape up to date for the given nodes.
    pub fn refresh(
        &self,
        cache: &mut Cache,
        number: u32,
        shape: &mut Shape,
        slots: &[u32],
    ) -> Result<(), Fault> {
        let mut open: Vec<(u32, u32, u32)> = vec![];
        for &slot in slots {
            let lane = cache.groups.as_mut().map_or(0, |g| g.lane(slot));
            let Some(node) = self.overlay.get(slot) else {
                shape.set(slot, lane, &Verdict::Gone, None);
                continue;
            };
            if let Err(reason) = fits(node, self.request()) {
                shape.set(slot, lane, &Verdict::Out(reason), None);
                continue;
            }
            match self.scorer {
                Scorer::Builtin(order) => {
                    let score = builtin::score(order, node, self.request());
                    shape.set(slot, lane, &Verdict::In { score, mask: 0 }, None);
                }
                Scorer::Policy(policy, _) => {
                    let strings = &self.overlay.base().strings;
                    let row = cache.rows.id(&cache.layout, node, self.asking.job, strings);
                    match cache.rows.answer(number, row) {
                        Some(answer) => {
                            let verdict = self.verdict(policy, node, answer)?;
                            shape.set(slot, lane, &verdict, Some(answer));
                        }
                        None => open.push((row, slot, lane)),
                    }
                }
            }
        }
        let Scorer::Policy(policy, _) = self.scorer else { return Ok(()) };
        // Equal rows once, each with the nodes that share it.
        open.sort_unstable();
        let mut rest = open.as_slice();
        while !rest.is_empty() {
            let mut rows = vec![];
            let mut taken = 0;
            for (row, _, _) in rest {
                if rows.last() != Some(row) {
                    if rows.len() == ROWS {
                        break;
                    }
                    rows.push(*row);
                }
                taken += 1;
            }
            let mut table = cache.layout.table(rows.len());
            for row in &rows {
                cache.layout.append(cache.rows.row(*row), &mut table);
            }
            let answers = self.ask(cache, policy, &table, &|i, out| {
                cache.layout.append(cache.rows.row(rows[i]), out);
            })?;
            for (row, answer) in rows.iter().zip(&answers) {
                cache.rows.remember(number, *row, *answer);
            }
            let mut at = 0;
            for (row, slot, lane) in &rest[..taken] {
                while rows[at] != *row {
                    at += 1;
                }
                let Some(node) = self.overlay.get(*slot) else { continue };
                let verdict = self.verdict(policy, node, answers[at])?;
                shape.set(*slot, *lane, &verdict, Some(answers[at]));
            }
            rest = &rest[taken..];
        }
        Ok(())
    }

    /// The winner of a shape that is up to date.
    pub fn pick(&self, cache: &Cache, shape: &Shape) -> Result<Found, Fault> {
        let additions = self.additions(cache, shape.candidates() > 0)?;
        let normalise = self.normalises() && !additions.is_empty();
        let top = if normalise {
            best_normalised(shape.scored(), &additions)
        } else {
            shape.top(&additions)
        };
        let reasons = if top.is_none() { shape.reasons() } else { Reasons::default() };
        Ok(Found {
            top,
            candidates: shape.candidates(),
            answers: shape.answers(),
            reasons,
            later: if top.is_none() { shape.later() } else { None },
        })
    }

    fn normalises(&self) -> bool {
        match self.scorer {
            Scorer::Policy(policy, _) => policy.manifest().option(c::OPTION_NORMALISE) == 1,
            Scorer::Builtin(_) => false,
        }
    }

    /// Asks about every node anew.
    pub fn search(&self, cache: &mut Cache, slots: u32) -> Result<Found, Fault> {
        let mut found = Found::default();
        let mut inside: Vec<(u32, i32, u32, u32)> = vec![];
        let mut asked: Vec<u32> = vec![];
        let mut table = cache.layout.table(slots as usize);
        let mut row = vec![];
        let strings = &self.overlay.base().strings;
        let whole = match self.scorer {
            Scorer::Policy(policy, _) => whole_table(policy.manifest()),
            Scorer::Builtin(_) => false,
        };
        for slot in 0..slots {
            let Some(node) = self.overlay.get(slot) else { continue };
            found.reasons.nodes += 1;
            if let Err(reason) = fits(node, self.request()) {
                found.reasons.count(reason);
                continue;
            }
            match self.scorer {
                Scorer::Builtin(order) => {
                    inside.push((slot, builtin::score(order, node, self.request()), 0, 0));
                }
                Scorer::Policy(policy, _) => {
                    row.clear();
                    cache.layout.row(node, self.asking.job, strings, &mut row);
                    cache.layout.append(&row, &mut table);
                    asked.push(slot);
                    if asked.len() == ROWS && !whole {
                        self.search_rows(cache, policy, &asked, &table, &mut inside, &mut found)?;
                        asked.clear();
                        table = cache.layout.table(ROWS);
                    }
                }
            }
        }
        if let Scorer::Policy(policy, _) = self.scorer
            && !asked.is_empty()
        {
            self.search_rows(cache, policy, &asked, &table, &mut inside, &mut found)?;
        }
        let additions = self.additions(cache, !inside.is_empty())?;
        found.candidates = inside.len() as u32;
        found.top = if self.normalises() && !additions.is_empty() {
            best_normalised(inside.into_iter(), &additions)
        } else {
            best(inside.into_iter(), &additions)
        };
        if found.top.is_some() {
            found.reasons = Reasons::default();
            found.later = None;
        }
        Ok(found)
    }

    fn search_rows(
        &self,
        cache: &mut Cache,
        policy: &dyn Policy,
        asked: &[u32],
        table: &Table,
        inside: &mut Vec<(u32, i32, u32, u32)>,
        found: &mut Found,
    ) -> Result<(), Fault> {
        let strings = &self.overlay.base().strings;
        let answers = self.ask(cache, policy, table, &|i, out| {
            let Some(node) = self.overlay.get(asked[i]) else { return };
            let mut row = vec![];
            cache.layout.row(node, self.asking.job, strings, &mut row);
            cache.layout.append(&row, out);
        })?;
        for (&slot, &answer) in asked.iter().zip(&answers) {
            found.answers = found.answers.wrapping_add(row_hash(slot, answer));
            let Some(node) = self.overlay.get(slot) else { continue };
            match self.verdict(policy, node, answer)? {
                Verdict::In { score, mask } => {
                    let lane = cache.groups.as_mut().map_or(0, |g| g.lane(slot));
                    inside.push((slot, score, mask, lane));
                }
                Verdict::Later(secs) => {
                    found.later = Some(found.later.map_or(secs, |s| s.min(secs)));
                    found.reasons.count(Reason::Deferred);
                }
                Verdict::Out(reason) => found.reasons.count(reason),
                Verdict::Gone => {}
            }
        }
        Ok(())
    }

    /// Asks the policy about a table of rows. `again` appends row i of it to
    /// another table, for the rows that its filter keeps.
    fn ask(
        &self,
        cache: &Cache,
        policy: &dyn Policy,
        table: &Table,
        again: &dyn Fn(usize, &mut Table),
    ) -> Result<Vec<Answer>, Fault> {
        let manifest = policy.manifest();
        let context = cache.layout.context(self.asking.now, self.asking.seed);
        let job = cache.layout.job(&self.asking, &self.overlay.base().strings);
        let rows = table.rows as usize;
        let mut answers = vec![Answer { code: 0, score: 0, mask: 0 }; rows];
        if manifest.exports(Interface::Filter) {
            let codes = policy.filter(&context, &job, table)?;
            check_len(Interface::Filter, codes.len(), rows)?;
            for (answer, code) in answers.iter_mut().zip(&codes) {
                answer.code = *code;
            }
        }
        if !manifest.exports(Interface::Score) {
            return Ok(answers);
        }
        let kept: Vec<usize> = (0..rows).filter(|i| answers[*i].code == 0).collect();
        if kept.is_empty() {
            return Ok(answers);
        }
        let scores = if kept.len() == rows {
            policy.score(&context, &job, table)?
        } else {
            let mut part = cache.layout.table(kept.len());
            for i in &kept {
                again(*i, &mut part);
            }
            policy.score(&context, &job, &part)?
        };
        take_scores(&scores, &kept, &mut answers)?;
        Ok(answers)
    }

    /// What an answer means for a node, once it was checked.
    fn verdict(
        &self,
        policy: &dyn Policy,
        node: &NodeState,
        answer: Answer,
    ) -> Result<Verdict, Fault> {
        let manifest = policy.manifest();
        match answer.code {
            0 => {}
            n if n < 0 => return Ok(Verdict::Later(n.unsigned_abs())),
            n => {
                let text = manifest.reasons.iter().find(|(code, _)| *code == n);
                let text = text.ok_or_else(|| {
                    bad(Interface::Filter, format!("code {n} is not among its reasons"))
                })?;
                return Ok(Verdict::Out(Reason::Policy(text.1.clone())));
            }
        }
        if !manifest.exports(Interface::Score) {
            let (Scorer::Policy(_, order) | Scorer::Builtin(order)) = self.scorer;
            let score = builtin::score(order, node, self.request());
            return Ok(Verdict::In { score, mask: 0 });
        }
        if answer.mask != 0 && !mask_fits(node, self.request(), answer.mask) {
            let detail = format!(
                "cards {:#b} are not {} cards of the node that have room for the job",
                answer.mask,
                self.request().cards()
            );
            return Err(bad(Interface::Score, detail));
        }
        Ok(Verdict::In { score: answer.score, mask: answer.mask })
    }

    /// What each lane adds; empty without `score-groups`. Not asked for when
    /// no node is in the running: nothing could come of it but a fault.
    fn additions(&self, cache: &Cache, any: bool) -> Result<Vec<i64>, Fault> {
        let (Scorer::Policy(policy, _), Some(groups)) = (self.scorer, &cache.groups) else {
            return Ok(vec![]);
        };
        if groups.rows() == 0 || !any {
            return Ok(vec![]);
        }
        let wanted = &cache.layout.groups;
        let same = if wanted.contains(&c::GROUP_SAME_JOB) {
            let slots = self.overlay.base().node_slots() as u32;
            same_job(groups, self.overlay, slots, self.asking.job)
        } else {
            vec![]
        };
        let table = groups.table(wanted, &same);
        let context = cache.layout.context(self.asking.now, self.asking.seed);
        let job = cache.layout.job(&self.asking, &self.overlay.base().strings);
        let answers = policy.score_groups(&context, &job, &table)?;
        check_len(Interface::ScoreGroups, answers.len(), groups.rows())?;
        Ok(groups.additions(&answers))
    }
}

/// Writes the scores of the rows that were kept into their answers.
fn take_scores(scores: &Scores, kept: &[usize], answers: &mut [Answer]) -> Result<(), Fault> {
    check_len(Interface::Score, scores.scores.len(), kept.len())?;
    if !scores.cards.is_empty() {
        check_len(Interface::Score, scores.cards.len(), kept.len())?;
    }
    for (i, at) in kept.iter().enumerate() {
        answers[*at].score = scores.scores[i];
        answers[*at].mask = scores.cards.get(i).map_or(0, |m| *m as u32);
    }
    Ok(())
}

fn bad(interface: Interface, detail: String) -> Fault {
    Fault::BadAnswer { interface, detail }
}

fn check_len(interface: Interface, got: usize, rows: usize) -> Result<(), Fault> {
    if got == rows {
        return Ok(());
    }
    Err(bad(interface, format!("{got} entries for {rows} rows")))
}

type Inside = (u32, i32, u32, u32);

fn best(inside: impl Iterator<Item = Inside>, additions: &[i64]) -> Option<Top> {
    let mut top: Option<Top> = None;
    for (slot, score, mask, lane) in inside {
        let score = i64::from(score) + additions.get(lane as usize).copied().unwrap_or(0);
        if top.is_none_or(|t| score > t.score) {
            top = Some(Top { slot, score, mask });
        }
    }
    top
}

/// The best after the host has mapped scores to 0–100, rounding down. Without
/// group scores the winner is the same as before the mapping.
fn best_normalised(inside: impl Iterator<Item = Inside>, additions: &[i64]) -> Option<Top> {
    let all: Vec<Inside> = inside.collect();
    let low = i64::from(all.iter().map(|i| i.1).min()?);
    let high = i64::from(all.iter().map(|i| i.1).max()?);
    let map = |score: i32| {
        if high == low { 100 } else { ((i64::from(score) - low) * 100 / (high - low)) as i32 }
    };
    best(all.into_iter().map(|(slot, score, mask, lane)| (slot, map(score), mask, lane)), additions)
}
