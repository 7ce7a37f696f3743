//! Who would borrow under a quota that is not set yet.

use crater_engine::{Job, State};
use crater_model::{Borrow, Resource, Share, TenantSpec};

/// What is looked at: memory on cards follows from the card and is not known
/// before a job is placed.
const LOOKED_AT: [Resource; 3] = [Resource::Gpu, Resource::Cpu, Resource::Memory];
/// Most jobs that are named.
const MOST: usize = 10;

/// Waiting jobs of the tenant, each taken alone, that would start with what is
/// borrowed, and those that would if borrowing were open.
pub fn would_borrow(state: &State, spec: &TenantSpec) -> Vec<String> {
    let quotas = state.quotas();
    if !quotas.platform().borrowing {
        return vec![];
    }
    let below = |job: &&Job| {
        let rest = job.spec.tenant.as_str().strip_prefix(spec.path.as_str());
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let waiting = state.queues().values().flat_map(|queue| queue.waiting.iter());
    let mut jobs: Vec<&Job> =
        waiting.filter_map(|w| state.job(w.job)).map(|job| &**job).filter(below).collect();
    jobs.sort_unstable_by_key(|job| job.uid);
    let level = state.level(spec.path.as_str());
    let mut lines = vec![];
    for job in jobs {
        let when = match quotas.may_borrow(&job.spec) {
            Borrow::Open => "would borrow",
            Borrow::Closed => "would borrow once borrowing opens:",
            Borrow::Off | Borrow::NotPreemptible => continue,
        };
        let over = LOOKED_AT.iter().filter_map(|resource| {
            let hard = spec.hard.get(resource)?;
            let asked = asked(job, resource);
            let used = level.map_or(0, |level| level.used.get(resource)) + asked;
            let soft = spec.soft(resource, quotas.platform())?;
            (asked > 0 && used > hard && used <= soft)
                .then(|| format!("{} of {resource}", resource.spell((used - hard).min(asked))))
        });
        let over: Vec<String> = over.collect();
        if !over.is_empty() {
            lines.push(format!("{} {when} {}", job.uid, over.join(", ")));
        }
    }
    let more = lines.len().saturating_sub(MOST);
    lines.truncate(MOST);
    if more > 0 {
        lines.push(format!("and {more} more jobs would borrow"));
    }
    lines
}

/// What those members ask for that must start together.
fn asked(job: &Job, resource: &Resource) -> u64 {
    let request = &job.spec.request;
    let each = match resource {
        Resource::Cpu => request.cpu.0,
        Resource::Memory => request.memory.0,
        Resource::Gpu => request.gpu.as_ref().map_or(0, |gpu| match &gpu.share {
            Share::Part { milli, .. } => milli.0 * gpu.cards,
            _ => 1000 * gpu.cards,
        }),
        _ => 0,
    };
    each.saturating_mul(job.spec.min_members.into())
}
