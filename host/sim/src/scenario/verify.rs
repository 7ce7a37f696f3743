//! Whether an expectation holds.

use super::expect::{Clause, Expectation, Figure, Of, Standing, Which};
use super::notes::{Notes, held};
use crate::world::World;
use crater_engine::node::NodeState;
use crater_engine::{By, Job, Outcome};
use crater_model::{Claim, Mib, MilliCards, MilliCores};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;

/// What was expected, and what there was instead.
pub type Failure = (String, String);

/// Checks an expectation now. Refusals are the runner's to check.
pub fn verify(world: &World, notes: &Notes, expectation: &Expectation) -> Result<(), Failure> {
    let looking = Looking { world, notes };
    match expectation {
        Expectation::Jobs { names, count, standing, clauses } => {
            looking.jobs(names, *count, *standing, clauses)
        }
        Expectation::Figures(of, which, figures) => looking.figures(of, *which, figures),
        Expectation::Refused(..) | Expectation::PolicyRefused(..) => Ok(()),
    }
}

#[derive(Clone, Copy)]
struct Looking<'a> {
    world: &'a World,
    notes: &'a Notes,
}

impl Looking<'_> {
    fn jobs(
        &self,
        names: &[Arc<str>],
        count: Option<usize>,
        standing: Standing,
        clauses: &[Clause],
    ) -> Result<(), Failure> {
        let mut misses = vec![];
        for name in names {
            let job = self.world.job(name).and_then(|uid| self.world.state().job(uid));
            let Some(job) = job else {
                misses.push((format!("{name} {standing}"), "no such job".to_owned()));
                continue;
            };
            let missed = std::iter::once(self.standing(job, standing))
                .chain(clauses.iter().map(|c| self.clause(job, c)))
                .find_map(Result::err);
            if let Some(expected) = missed {
                misses.push((format!("{name} {expected}"), self.describe(job)));
            }
        }
        let hits = names.len() - misses.len();
        match count {
            Some(count) if count != hits => {
                let found: Vec<String> = misses.into_iter().map(|(_, found)| found).collect();
                let expected = format!("{count} of {} {standing}", names.len());
                let found = format!("{hits}; the others: {}", found.join("; "));
                return Err((expected, found));
            }
            None if !misses.is_empty() => return Err(misses.swap_remove(0)),
            _ => {}
        }
        self.beside_each_other(names, clauses)
    }

    /// `together` and `apart`, over all the named jobs.
    fn beside_each_other(&self, names: &[Arc<str>], clauses: &[Clause]) -> Result<(), Failure> {
        let state = self.world.state();
        let jobs = names.iter().filter_map(|n| state.job(self.world.job(n)?));
        let claims: Vec<&Claim> = jobs
            .flat_map(|j| j.claims.iter())
            .filter_map(|c| state.claim(*c))
            .map(|c| &**c)
            .collect();
        let nodes: BTreeSet<_> = claims.iter().map(|c| c.node).collect();
        let found = || {
            let names = nodes.iter().map(|n| self.notes.node_name(*n).to_string());
            format!("{} members on {}", claims.len(), names.collect::<Vec<_>>().join(","))
        };
        if clauses.contains(&Clause::Together) && nodes.len() != 1 {
            return Err(("all members on one node".to_owned(), found()));
        }
        if clauses.contains(&Clause::Apart) && nodes.len() != claims.len() {
            return Err(("each member on a node of its own".to_owned(), found()));
        }
        Ok(())
    }

    fn standing(&self, job: &Job, standing: Standing) -> Result<(), String> {
        let holds = !job.claims.is_empty();
        let ok = match standing {
            Standing::State(state) => job.state == state,
            Standing::Placed => holds && !job.state.ended() && !self.releasing(job),
            Standing::Releasing => holds && self.releasing(job),
            Standing::Gone => !holds && job.state.ended(),
        };
        if ok { Ok(()) } else { Err(standing.to_string()) }
    }

    fn releasing(&self, job: &Job) -> bool {
        let state = self.world.state();
        let mut claims = job.claims.iter().filter_map(|c| state.claim(*c));
        claims.all(|c| c.state == crater_model::ClaimState::Releasing)
    }

    fn claims(&self, job: &Job) -> Vec<&Claim> {
        let state = self.world.state();
        job.claims.iter().filter_map(|c| state.claim(*c)).map(|c| &**c).collect()
    }

    /// Checks a clause; an error is the clause in words.
    fn clause(&self, job: &Job, clause: &Clause) -> Result<(), String> {
        let claims = self.claims(job);
        let shares = || claims.iter().flat_map(|c| c.held.cards.iter());
        let record = self.notes.records.get(&job.uid);
        let (ok, text) = match clause {
            Clause::On(nodes) => {
                let found: BTreeSet<Arc<str>> =
                    claims.iter().map(|c| self.notes.node_name(c.node)).collect();
                (
                    found.iter().eq(nodes.iter().collect::<BTreeSet<_>>()),
                    format!("on {}", nodes.join(",")),
                )
            }
            Clause::Cards(cards) => {
                let found: BTreeSet<usize> = shares().map(|s| usize::from(s.card)).collect();
                let wanted: BTreeSet<usize> = cards.iter().copied().collect();
                (found == wanted, format!("on cards {wanted:?}"))
            }
            Clause::Mig(instances) => {
                let spell = |i: &crater_model::mig::Instance| format!("{}@{}", i.profile, i.start);
                let mut found: Vec<String> =
                    shares().filter_map(|s| s.instance.as_ref()).map(spell).collect();
                let mut wanted = instances.clone();
                found.sort();
                wanted.sort();
                (found == wanted, format!("with {}", wanted.join(",")))
            }
            Clause::Members(n) => (claims.len() == *n, format!("with {n} members")),
            Clause::Because(text) => {
                let found = match record.map(|r| &r.outcome) {
                    Some(Outcome::Waits(reasons)) => reasons.to_string(),
                    _ => String::new(),
                };
                (found.contains(text), format!("because {text:?}"))
            }
            Clause::By(by) => (record.is_some_and(|r| r.by == *by), format!("by {by:?}")),
            Clause::Fault(text) => {
                let fault = record.and_then(|r| r.fault.as_ref()).map(ToString::to_string);
                (fault.is_some_and(|f| f.contains(text)), format!("with a fault {text:?}"))
            }
            Clause::Starts(n) => (job.attempts == *n, format!("after {n} starts")),
            Clause::Preemptions(n) => {
                (job.preemptions == *n, format!("after {n} preemptions, not {}", job.preemptions))
            }
            Clause::Evicted(cause) => {
                let found = job.evicted.and_then(|c| serde_json::to_value(c).ok());
                let same = found.is_some_and(|v| v.as_str() == Some(cause));
                (same, format!("for {cause}"))
            }
            Clause::Together | Clause::Apart => (true, String::new()),
        };
        if ok { Ok(()) } else { Err(text) }
    }

    /// All that could matter about a job, on one line.
    fn describe(&self, job: &Job) -> String {
        let mut text = format!("{} {}", job.spec.name, Standing::State(job.state));
        if !job.reason.is_empty() {
            let _ = write!(text, " ({})", job.reason);
        }
        for claim in self.claims(job) {
            let node = self.notes.node_name(claim.node);
            let _ = write!(text, ", {:?} on {node}: {}", claim.state, held(&claim.held));
        }
        let Some(record) = self.notes.records.get(&job.uid) else { return text };
        let by = match record.by {
            By::Policy => "policy",
            By::Fallback => "fallback",
            By::Builtin => "builtin",
        };
        let _ = write!(text, ", decided by {by}, {} starts", job.attempts);
        if let Some(fault) = &record.fault {
            let _ = write!(text, ", fault: {fault}");
        }
        if let (Outcome::Waits(reasons), true) = (&record.outcome, job.claims.is_empty()) {
            let _ = write!(text, ", because {:?}", reasons.to_string());
        }
        text
    }

    fn figures(&self, of: &Of, which: Which, figures: &[Figure]) -> Result<(), Failure> {
        let state = self.world.state();
        let node = |name: &Arc<str>| {
            let found = self.world.node(name).and_then(|uid| state.node(uid));
            found.ok_or_else(|| (format!("node {name}"), "no such node".to_owned()))
        };
        match of {
            Of::Nodes(names) => names.iter().try_for_each(|name| {
                let node = node(name)?;
                compare(&format!("node {name}"), which, figures, &|key| of_node(node, which, key))
            }),
            Of::Cards(name, cards) => {
                let node = node(name)?;
                cards.iter().try_for_each(|card| {
                    let what = format!("card {name}:{card}");
                    if *card >= node.cards.len() {
                        return Err((what, format!("{} cards", node.cards.len())));
                    }
                    compare(&what, which, figures, &|key| of_card(node, *card, which, key))
                })
            }
            Of::Queue(name) => {
                let queue = state.queues().get(name);
                let queue = queue.ok_or((format!("queue {name}"), "no such queue".to_owned()))?;
                compare(&format!("queue {name}"), which, figures, &|key| match key {
                    "waiting" => Some(queue.waiting.len() as u64),
                    "running" => Some(queue.running.len() as u64),
                    _ => None,
                })
            }
            Of::Tenants(names) => names.iter().try_for_each(|name| {
                let of = |key: &str| super::tenant::figure(state, name, which, key);
                compare(&format!("tenant {name}"), which, figures, &of)
            }),
            Of::Cluster => compare("cluster", which, figures, &|key| match key {
                "nodes" => Some(state.nodes().count() as u64),
                "starts" => Some(state.jobs().map(|j| u64::from(j.attempts)).sum()),
                "preemptions" => Some(state.jobs().map(|j| u64::from(j.preemptions)).sum()),
                "running" => Some(state.claims().count() as u64),
                _ => state.nodes().map(|n| of_node(n, which, key)).sum(),
            }),
        }
    }
}

fn compare(
    what: &str,
    which: Which,
    figures: &[Figure],
    of: &dyn Fn(&str) -> Option<u64>,
) -> Result<(), Failure> {
    let which = match which {
        Which::Free => " free",
        Which::Used => " used",
        Which::Total => " total",
        Which::Excess => " excess",
        Which::Borrowed => " borrowed",
        Which::Count => "",
    };
    for figure in figures {
        let expected = format!("{what}{which} {}", figure.text);
        let Some(found) = of(&figure.key) else {
            return Err((expected, format!("no figure of that name for {what}")));
        };
        if !figure.compare.holds(found, figure.value) {
            return Err((expected, format!("{}={}", figure.key, spell(&figure.key, found))));
        }
    }
    Ok(())
}

fn spell(key: &str, n: u64) -> String {
    match key {
        "cpu" => MilliCores(n).to_string(),
        key if key == "gpu" || key.starts_with("gpu.") => MilliCards(n).to_string(),
        "memory" | "gpu-memory" => Mib(n).to_string(),
        _ => n.to_string(),
    }
}

fn of_node(node: &NodeState, which: Which, key: &str) -> Option<u64> {
    let spec = &node.spec;
    let cards = 0..node.cards.len();
    Some(match (which, key) {
        (Which::Free, "cpu") => node.cpu_free().0,
        (Which::Free, "memory") => node.memory_free().0,
        (Which::Free, "disk") => node.disk_free().0,
        (Which::Free, "iops") => node.iops_free().0,
        (Which::Free, "gpu") => node.gpu_free().0,
        (Which::Free, "gpu-memory") => cards.map(|c| node.card_free(c).1.0).sum(),
        (Which::Free, "cards" | "idle-cards") => node.cards_idle() as u64,
        (Which::Free, "members") => u64::from(spec.members.saturating_sub(node.members)),
        (Which::Used, "cpu") => node.cpu.0,
        (Which::Used, "memory") => node.memory.0,
        (Which::Used, "disk") => node.disk.0,
        (Which::Used, "iops") => node.iops.0,
        (Which::Used, "gpu") => node.cards.iter().map(|c| c.milli.0).sum(),
        (Which::Used, "gpu-memory") => node.cards.iter().map(|c| c.memory.0).sum(),
        (Which::Used, "cards") => node.cards.iter().filter(|c| c.shares > 0).count() as u64,
        (Which::Used, "members") => u64::from(node.members),
        (Which::Used, "instances") => node.cards.iter().map(|c| c.instances.len() as u64).sum(),
        (Which::Total, "cpu") => spec.cpu.0,
        (Which::Total, "memory") => spec.memory.0,
        (Which::Total, "disk") => spec.disk.0,
        (Which::Total, "iops") => spec.iops.0,
        (Which::Total, "gpu") => 1000 * spec.cards.iter().filter(|c| c.healthy).count() as u64,
        (Which::Total, "gpu-memory") => {
            spec.cards.iter().filter(|c| c.healthy).map(|c| c.memory.0).sum()
        }
        (Which::Total, "cards") => spec.cards.len() as u64,
        (Which::Total, "members") => u64::from(spec.members),
        _ => return None,
    })
}

fn of_card(node: &NodeState, card: usize, which: Which, key: &str) -> Option<u64> {
    let (state, spec) = (&node.cards[card], &node.spec.cards[card]);
    Some(match (which, key) {
        (Which::Free, "gpu") => node.card_free(card).0.0,
        (Which::Free, "gpu-memory" | "memory") => node.card_free(card).1.0,
        (Which::Used, "gpu") => state.milli.0,
        (Which::Used, "gpu-memory" | "memory") => state.memory.0,
        (Which::Used, "shares") => u64::from(state.shares),
        (Which::Used, "instances") => state.instances.len() as u64,
        (Which::Total, "gpu-memory" | "memory") => spec.memory.0,
        _ => return None,
    })
}
