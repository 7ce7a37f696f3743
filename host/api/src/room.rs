//! What a job has to do with the one pool: why it had to go, what it borrows,
//! what room is kept for it, and what an elastic one has of its members.

use crate::types::rfc3339;
use crater_engine::{Job, State};
use crater_model::event::Entry;
use crater_model::{ClaimState, Event, Hold, JobState, Resource, Usage};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use utoipa::ToSchema;

/// A job in the one pool. What does not concern it is left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default, rename_all = "kebab-case")]
pub struct RoomView {
    /// The last time that it had to go.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evicted: Option<EvictedView>,
    /// When it last saved its progress, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<String>,
    /// What it borrows, by the tenant beyond whose hard quota it is.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub borrowed: BTreeMap<String, BTreeMap<String, String>>,
    /// Room that is kept for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept: Option<KeptView>,
    /// Starts that were refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<RefusedStart>,
    /// Members of an elastic one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elastic: Option<ElasticView>,
    /// What its members find in their environment besides its own variables.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
}

/// Why a job had to go, or to give up members.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct EvictedView {
    /// When, RFC 3339.
    pub at: String,
    /// preempt, reclaim, deadlock, defragment, idle, lost-node or manual.
    pub cause: String,
    /// The same in words.
    pub why: String,
    /// The words of the person who did it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Members that it gave up while it ran on; all of it without.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub members: Option<u32>,
}

/// Room that is kept for a waiting job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct KeptView {
    /// Where.
    pub nodes: Vec<String>,
    /// For so many members.
    pub members: u32,
    /// When it is planned to start, RFC 3339, where others end by themselves;
    /// `unknown` where nobody said how long they run. Without, they are being
    /// evicted and it starts when they have gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
}

/// Starts that executors refused.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct RefusedStart {
    /// In a row.
    pub times: u32,
    /// The executor's words.
    pub words: String,
    /// Not tried again before this, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// Members of a job that runs with fewer, too.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ElasticView {
    /// Members that hold something and are not told to end.
    pub now: u32,
    /// Those that must start together.
    pub min: u32,
    /// Those that it may have.
    pub max: u32,
}

impl RoomView {
    /// Of a job in the books, with what happened to it.
    pub fn of(state: &State, job: &Job, entries: &[Entry]) -> Self {
        let spec = &job.spec;
        let claims = || job.claims.iter().filter_map(|uid| state.claim(*uid));
        let live = claims().filter(|claim| claim.state != ClaimState::Releasing).count();
        let elastic = spec.min_members < spec.members;
        let elastic = elastic.then_some(ElasticView {
            now: live as u32,
            min: spec.min_members,
            max: spec.members,
        });
        let refused = (job.refusals > 0).then(|| RefusedStart {
            times: job.refusals,
            words: job.reason.to_string(),
            next: (job.state == JobState::Pending).then(|| rfc3339(job.not_before)),
        });
        let mut loans: BTreeMap<String, Usage> = BTreeMap::new();
        for loan in claims().flat_map(|claim| &claim.loans) {
            loans.entry(loan.tenant.to_string()).or_default().add(&loan.amounts);
        }
        let environment = crater_server::executor::environment(job);
        let starts = !job.claims.is_empty();
        Self {
            evicted: last_eviction(entries),
            checkpoint: job.checkpointed.map(rfc3339),
            borrowed: loans.into_iter().map(|(tenant, usage)| (tenant, amounts(&usage))).collect(),
            kept: state.holds().get(&job.uid).map(|hold| kept(state, hold)),
            refused,
            elastic,
            environment: environment
                .into_iter()
                .filter(|_| starts)
                .map(|(name, value)| (name.to_owned(), value))
                .collect(),
        }
    }
}

/// Amounts by resource, for people.
fn amounts(usage: &Usage) -> BTreeMap<String, String> {
    let all = Resource::COMMON.into_iter().map(|resource| (usage.get(&resource), resource));
    let some = all.filter(|(amount, _)| *amount > 0);
    some.map(|(amount, resource)| (resource.to_string(), resource.spell(amount))).collect()
}

fn kept(state: &State, hold: &Hold) -> KeptView {
    let name = |node| state.node(node).map(|node| node.spec.name.to_string());
    let nodes: BTreeSet<String> = hold.members.iter().filter_map(|m| name(m.node)).collect();
    let until =
        hold.starts.map(|at| if at == Hold::UNKNOWN { "unknown".to_owned() } else { rfc3339(at) });
    let members = hold.members.len() as u32;
    KeptView { nodes: nodes.into_iter().collect(), members, until }
}

/// The last time that it had to go, by its own entries.
fn last_eviction(entries: &[Entry]) -> Option<EvictedView> {
    entries.iter().rev().find_map(|entry| {
        let Event::RoomMade { evictions, .. } = &entry.event else { return None };
        let eviction = evictions.first()?;
        Some(EvictedView {
            at: rfc3339(entry.at),
            cause: crater_server::chronicle::cause(eviction.cause).to_owned(),
            why: eviction.cause.to_string(),
            reason: eviction.reason.as_ref().map(ToString::to_string),
            members: (!eviction.whole).then_some(eviction.claims.len() as u32),
        })
    })
}
