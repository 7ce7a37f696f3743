//! What happened, for the timeline and for expectations on decisions.

use super::lex::spell;
use crate::world::{Command, CommandError, Observer};
use crater_engine::{Outcome, Plan, Policies, Record, Refusal, State};
use crater_model::event::Entry;
use crater_model::{ClaimUid, Digest, Event, Held, JobState, JobUid, NodeUid, Time};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

/// A command that was refused.
#[derive(Clone, Debug)]
pub struct Refused {
    /// The command, as it prints.
    pub command: String,
    /// The job, if it was a submission.
    pub job: Option<Arc<str>>,
    /// The field to blame, `policy` for the policy's own word.
    pub field: String,
    /// Why.
    pub why: String,
}

/// Takes notes.
#[derive(Debug, Default)]
pub struct Notes {
    start: Time,
    lines: Vec<(Time, String)>,
    nodes: BTreeMap<NodeUid, Arc<str>>,
    claims: BTreeMap<ClaimUid, JobUid>,
    states: BTreeMap<JobUid, JobState>,
    waits: BTreeMap<JobUid, String>,
    /// Names of policies.
    pub policies: BTreeMap<Digest, String>,
    /// The last decision on each job.
    pub records: BTreeMap<JobUid, Record>,
    /// Refused commands, in order.
    pub refused: Vec<Refused>,
    /// Entries seen.
    pub entries: u64,
    /// Placements seen.
    pub placements: u64,
}

impl Notes {
    /// Nothing noted yet, of a world that begins at `start`.
    pub fn new(start: Time) -> Self {
        Self { start, ..Self::default() }
    }

    /// Everything noted, one line each.
    pub fn timeline(&self) -> String {
        let mut text = String::new();
        for (at, line) in &self.lines {
            let at = spell(*at - self.start);
            let _ = writeln!(text, "{at:>8}  {line}");
        }
        text
    }

    /// Name of a node, gone or not.
    pub fn node_name(&self, node: NodeUid) -> Arc<str> {
        self.nodes.get(&node).cloned().unwrap_or_else(|| node.to_string().into())
    }

    /// Adds a line.
    pub fn say(&mut self, at: Time, line: String) {
        self.lines.push((at, line));
    }

    /// Notes a refusal.
    pub fn refuse(&mut self, at: Time, refused: Refused) {
        self.say(at, format!("{} refused: {}", refused.command, refused.why));
        self.refused.push(refused);
    }

    fn event(&mut self, state: &State, entry: &Entry) {
        let at = entry.at;
        match &entry.event {
            Event::NodeAdded { node, spec } => {
                self.nodes.insert(*node, spec.name.clone());
                let cards = spec.cards.len();
                let text = format!(
                    "node {}: cpu {}, memory {}, {cards} cards",
                    spec.name, spec.cpu, spec.memory
                );
                self.say(at, text);
            }
            Event::NodeChanged { node, .. } => {
                self.say(at, format!("node {} changed", self.node_name(*node)));
            }
            Event::NodeRemoved { node } => {
                self.say(at, format!("node {} removed", self.node_name(*node)));
            }
            Event::QueueSet { spec } => {
                self.say(at, format!("queue {}: fallback {}", spec.name, spec.fallback));
            }
            Event::PolicySet { queue, digest } => {
                let name = self.policies.get(digest).cloned().unwrap_or_else(|| digest.short());
                self.say(at, format!("queue {queue}: policy {name}"));
            }
            Event::JobSubmitted { job, spec } => {
                self.say(at, format!("{} submitted to {}", spec.name, spec.queue));
                self.states.insert(*job, JobState::Pending);
            }
            Event::PlanCommitted { claims } => {
                for claim in claims {
                    self.claims.insert(claim.uid, claim.job);
                    let name = name(state, claim.job);
                    let (node, held) = (self.node_name(claim.node), held(&claim.held));
                    self.say(at, format!("{name}/{} goes to {node}: {held}", claim.member));
                }
            }
            Event::MemberEnded { claim, success: false, .. } => {
                let job = self.claims.get(claim).map(|job| name(state, *job));
                self.say(at, format!("a member of {} failed", job.unwrap_or_default()));
            }
            Event::TenantSet { spec } => {
                let hard: Vec<String> =
                    spec.hard.iter().map(|(r, n)| format!("{r}={}", r.spell(n))).collect();
                self.say(at, format!("tenant {}: hard {}", spec.path, hard.join(" ")));
            }
            Event::TenantRemoved { path } => self.say(at, format!("tenant {path} removed")),
            Event::PlatformSet { spec } => {
                let known = if spec.quotas_known { "known" } else { "unknown" };
                self.say(at, format!("quotas are {known}"));
            }
            Event::JobUpdated { job, .. } => {
                self.say(at, format!("{} updated", name(state, *job)));
            }
            Event::RoomMade { evictions, hold } => {
                for eviction in evictions {
                    let (victim, n) = (name(state, eviction.job), eviction.claims.len());
                    let what = if eviction.whole { "all" } else { "some" };
                    let line = format!("{victim} gives up {n} claims ({what}): {}", eviction.cause);
                    self.say(at, line);
                }
                if let Some(hold) = hold {
                    let nodes: Vec<_> =
                        hold.members.iter().map(|m| self.node_name(m.node).to_string()).collect();
                    let holder = name(state, hold.job);
                    self.say(at, format!("room is kept for {holder} on {}", nodes.join(", ")));
                }
            }
            Event::RoomGivenUp { job, reason } => {
                self.say(at, format!("room of {} given up: {reason}", name(state, *job)));
            }
            Event::StartRefused { claim, reason } => {
                let job = self.claims.get(claim).map(|job| name(state, *job));
                let job = job.unwrap_or_default();
                self.say(at, format!("the start of {job} was refused: {reason}"));
            }
            Event::Checkpointed { job } => {
                self.say(at, format!("{} saved its progress", name(state, *job)));
            }
            Event::LendingSet { open } => {
                let open = if *open { "open" } else { "closed" };
                self.say(at, format!("borrowing is {open}"));
            }
            Event::JobEnded { .. }
            | Event::ClaimMoved { .. }
            | Event::MemberEnded { .. }
            | Event::JobsForgotten { .. } => {}
        }
        // Whatever it was, say which of the known jobs it moved.
        let moved: Vec<_> = self
            .states
            .iter()
            .filter_map(|(uid, old)| state.job(*uid).filter(|j| j.state != *old))
            .map(|job| (job.uid, job.spec.name.clone(), job.state))
            .collect();
        for (uid, name, now) in moved {
            self.say(at, format!("{name} is {now}"));
            self.states.insert(uid, now);
            self.waits.remove(&uid);
        }
    }
}

fn name(state: &State, job: JobUid) -> Arc<str> {
    state.job(job).map_or_else(|| job.to_string().into(), |j| j.spec.name.clone())
}

/// What a member holds, in a few words.
pub fn held(held: &Held) -> String {
    let mut text = format!("cpu {}, memory {}", held.cpu, held.memory);
    for share in &held.cards {
        let _ = write!(text, ", card {}: ", share.card);
        let _ = match &share.instance {
            Some(i) => write!(text, "{}@{}", i.profile, i.start),
            None => write!(text, "{} and {}", share.milli, share.memory),
        };
    }
    text
}

impl Observer for Notes {
    fn applied(&mut self, state: &State, entry: Option<&Entry>) {
        self.entries += 1;
        if let Some(entry) = entry {
            self.event(state, entry);
        }
    }

    fn refused(&mut self, at: Time, command: &Command, error: &CommandError) {
        let field = match error {
            CommandError::Refused(Refusal::Field(e)) => e.field.clone(),
            CommandError::Refused(Refusal::Unknown { what, .. })
            | CommandError::Unknown { what, .. } => (*what).to_owned(),
            CommandError::Policy(_) => "policy".to_owned(),
            _ => String::new(),
        };
        let job = match command {
            Command::Submit { spec, .. } => Some(spec.name.clone()),
            _ => None,
        };
        let refused = Refused { command: command.to_string(), job, field, why: error.to_string() };
        self.refuse(at, refused);
    }

    fn decided(&mut self, state: &State, _policies: &Policies, plan: &Plan) {
        self.placements += plan.placements.len() as u64;
        for record in &plan.records {
            self.records.insert(record.job, record.clone());
            if let Some(fault) = &record.fault {
                let text = format!("decision on {}: {fault}", name(state, record.job));
                if self.waits.insert(record.job, text.clone()).as_ref() != Some(&text) {
                    self.say(plan.now, text);
                }
            } else if let Outcome::Waits(reasons) = &record.outcome {
                let text = format!("{} waits: {reasons}", name(state, record.job));
                if self.waits.insert(record.job, text.clone()).as_ref() != Some(&text) {
                    self.say(plan.now, text);
                }
            }
        }
    }
}
