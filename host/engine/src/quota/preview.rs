//! What a tenant's new quota would do, before it is set.

use super::demand::stated;
use super::levels::Quotas;
use super::tentative::{Ask, Tentative};
use super::{amounts, least};
use crate::state::{Job, State};
use crater_model::{
    Borrow, ClaimUid, JobUid, OverQuota, Priority, Resource, TenantPath, TenantSpec, Usage,
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// One consequence. Figures are in the resource's own unit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "effect", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum Effect {
    /// It uses more than it may. Nothing is evicted; nothing starts that asks
    /// for the resource until enough has ended.
    Exceeds {
        /// The tenant.
        tenant: Arc<str>,
        /// Of what.
        resource: Resource,
        /// What it could use.
        hard: u64,
        /// What it uses.
        used: u64,
        /// What it uses above that.
        excess: u64,
        /// The youngest claims that make up the excess.
        claims: Vec<ClaimUid>,
    },
    /// A waiting job that no quota holds back now would wait for this one.
    WouldWait {
        /// The job.
        job: JobUid,
        /// What it would wait for.
        over: OverQuota,
    },
    /// A waiting job that a quota holds back now could start where there is
    /// room: each taken alone.
    CouldStart {
        /// The job.
        job: JobUid,
        /// What it waits for now.
        over: OverQuota,
    },
    /// A waiting job would start with more than the hard limit: it borrows, and
    /// may have to give it back.
    WouldBorrow {
        /// The job.
        job: JobUid,
        /// The limit that it would go beyond.
        over: OverQuota,
    },
    /// A waiting job is above the new ceiling; it keeps its priority.
    AboveCeiling {
        /// The job.
        job: JobUid,
        /// Its priority.
        priority: Priority,
        /// The ceiling.
        ceiling: Priority,
    },
    /// What is promised as always usable is more than there is for it.
    NotGuaranteed {
        /// Whose limit or capacity is too small; empty for the cluster's.
        tenant: Arc<str>,
        /// Of what.
        resource: Resource,
        /// What there is: the hard limit above, or the healthy capacity.
        available: u64,
        /// What its tenants may use together.
        promised: u64,
    },
}

/// The consequences of making or changing a tenant. Changes nothing; costs a
/// walk over the claims and the waiting jobs under the tenant's department.
pub fn preview(state: &State, spec: &TenantSpec) -> Vec<Effect> {
    let spec = Arc::new(spec.clone().rounded());
    let mut after = state.quotas().clone();
    after.set(state.known_owner(spec.path.as_str()), &spec);
    let mut effects = exceeds(state, &spec);
    let own = |job: &&Arc<Job>| covers(&spec.path, &job.spec.tenant);
    let mut waiting: Vec<&Arc<Job>> = state
        .queues()
        .values()
        .flat_map(|q| q.waiting.iter())
        .filter_map(|w| state.job(w.job))
        .filter(own)
        .collect();
    waiting.sort_unstable_by_key(|j| j.uid);
    for job in waiting {
        let borrow = after.may_borrow(&job.spec);
        if borrow == Borrow::Open
            && refusal(&after, job, borrow).is_none()
            && let Some(over) = refusal(&after, job, Borrow::Off)
        {
            effects.push(Effect::WouldBorrow { job: job.uid, over });
        }
        let before = state.quotas().may_borrow(&job.spec);
        match (refusal(state.quotas(), job, before), refusal(&after, job, borrow)) {
            (None, Some(over)) => effects.push(Effect::WouldWait { job: job.uid, over }),
            (Some(over), None) => effects.push(Effect::CouldStart { job: job.uid, over }),
            _ => {}
        }
        let priority = job.spec.priority;
        if let Some(ceiling) = spec.ceiling.filter(|c| priority > *c) {
            effects.push(Effect::AboveCeiling { job: job.uid, priority, ceiling });
        }
    }
    effects.extend(not_guaranteed(state, &after, &spec));
    effects
}

/// Whether a tenant's level is one of a job's.
fn covers(level: &TenantPath, tenant: &TenantPath) -> bool {
    [tenant.department(), tenant.project(), tenant.as_str()].contains(&level.as_str())
}

fn exceeds(state: &State, spec: &TenantSpec) -> Vec<Effect> {
    let of_tenant =
        |job: &JobUid| state.job(*job).is_some_and(|j| covers(&spec.path, &j.spec.tenant));
    let claims: Vec<(ClaimUid, Usage)> = state
        .claims()
        .filter(|c| of_tenant(&c.job))
        .filter_map(|c| Some((c.uid, amounts(&c.held, &state.node(c.node)?.spec))))
        .collect();
    let mut effects = vec![];
    for (resource, hard) in spec.hard.iter() {
        let used = claims.iter().map(|(_, a)| a.get(&resource)).fold(0, u64::saturating_add);
        let excess = used.saturating_sub(hard);
        let mut covered = 0u64;
        let youngest = claims.iter().rev().filter(|(_, a)| a.get(&resource) > 0);
        let above: Vec<ClaimUid> = youngest
            .take_while(|(_, a)| {
                let more = covered < excess;
                covered = covered.saturating_add(a.get(&resource));
                more
            })
            .map(|(claim, _)| *claim)
            .collect();
        if excess > 0 {
            let tenant = spec.path.as_str().into();
            effects.push(Effect::Exceeds { tenant, resource, hard, used, excess, claims: above });
        }
    }
    effects
}

/// The quota that holds a job back, by what it asks for at least.
fn refusal(quotas: &Quotas, job: &Job, borrow: Borrow) -> Option<OverQuota> {
    let (nothing, member) = (Usage::default(), least(&job.spec.request));
    let together = u64::from(job.spec.min_members);
    let (owner, before) = (job.owner, &nothing);
    let ask = Ask { owner, borrow, before, member: &member, now: together, together };
    let over = *Tentative::default().check(quotas, &ask).err()?;
    Some(OverQuota { asked: stated(job, &over), ..over })
}

/// Limits that promise more than there is: the tenant's children's against its
/// own, its and its neighbours' against their parent's, departments' against
/// the cluster.
fn not_guaranteed(state: &State, after: &Quotas, spec: &TenantSpec) -> Vec<Effect> {
    let path = spec.path.as_str();
    let parent = path.rsplit_once('/').map(|(parent, _)| parent);
    let hard = |path: &str| after.tenants().iter().find(|(p, _)| p.as_str() == path);
    let promised = |parent: Option<&str>, resource: &Resource| {
        let below = |p: &TenantPath| p.as_str().rsplit_once('/').map(|(up, _)| up) == parent;
        let set = after.tenants().iter().filter(|(p, _)| below(p));
        set.filter_map(|(_, s)| s.hard.get(resource)).fold(0, u64::saturating_add)
    };
    let mut effects = vec![];
    let mut compare = |tenant: &str, resource: &Resource, available: u64, promised: u64| {
        if promised > available {
            let (tenant, resource) = (tenant.into(), resource.clone());
            effects.push(Effect::NotGuaranteed { tenant, resource, available, promised });
        }
    };
    for (resource, own) in spec.hard.iter() {
        compare(path, &resource, own, promised(Some(path), &resource));
        match parent {
            None => compare("", &resource, capacity(state, &resource), promised(None, &resource)),
            Some(parent) => {
                if let Some(available) = hard(parent).and_then(|(_, s)| s.hard.get(&resource)) {
                    compare(parent, &resource, available, promised(Some(parent), &resource));
                }
            }
        }
    }
    effects
}

/// The healthy capacity of the cluster.
fn capacity(state: &State, resource: &Resource) -> u64 {
    let mut all = Usage::default();
    for node in state.nodes() {
        let spec = &node.spec;
        all.cpu += spec.cpu;
        all.memory += spec.memory;
        all.disk += spec.disk;
        for card in spec.cards.iter().filter(|c| c.healthy) {
            all.add_card(&card.model, crater_model::MilliCards::CARD, card.memory);
        }
    }
    all.get(resource)
}
