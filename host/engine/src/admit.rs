//! A policy's word at submission, before the ledger takes the job.

use crate::policy::{Fault, Interface, Policy};
use crate::rows::{Asking, Layout};
use crate::state::{Job, State};
use crater_model::columns as c;
use crater_model::{JobSpec, JobState, Need, Priority, Time};
use smallvec::SmallVec;
use std::sync::Arc;

/// What became of a submission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Admission {
    /// Accepted, perhaps with defaults filled in.
    Accepted(JobSpec),
    /// Refused, with the policy's words for the submitter.
    Refused(String),
}

/// Asks the queue's policy. Defaults may narrow what a job asks for, never
/// widen its rights: priority only falls, a run limit only shortens.
pub fn admit(
    state: &State,
    policy: &dyn Policy,
    spec: JobSpec,
    now: Time,
    seed: u64,
) -> Result<Admission, Fault> {
    if !policy.manifest().exports(Interface::Admit) {
        return Ok(Admission::Accepted(spec));
    }
    let layout = Layout::new(policy.manifest());
    let spec = Arc::new(spec);
    let job = Job {
        uid: state.next_job(),
        spec: spec.clone(),
        owner: state.owner(&spec),
        state: JobState::Pending,
        submitted: now,
        since: now,
        claims: SmallVec::new(),
        ended: 0,
        attempts: 0,
        preemptions: 0,
        evicted: None,
        checkpointed: None,
        refusals: 0,
        not_before: now,
        failed: false,
        reason: "".into(),
    };
    let asking = Asking { job: &job, placed: 0, now, seed };
    let values = layout.job(&asking, &state.strings);
    let defaults = match policy.admit(&layout.context(now, seed), &values)? {
        Ok(defaults) => defaults,
        Err(text) => return Ok(Admission::Refused(text.chars().take(1000).collect())),
    };
    let mut spec = JobSpec::clone(&spec);
    for column in defaults {
        let bad = |detail: String| Fault::BadAnswer { interface: Interface::Admit, detail };
        let name = c::info(column.id).map_or("an unknown column", |i| i.name);
        let [value] = column.values[..] else {
            return Err(bad(format!("{name} must have one value")));
        };
        set(&mut spec, column.id, value)
            .ok_or_else(|| bad(format!("{name} cannot be set to {value}")))?;
    }
    Ok(Admission::Accepted(spec))
}

fn set(spec: &mut JobSpec, id: u32, value: i32) -> Option<()> {
    let need = |value| match value {
        0 => Some(Need::None),
        1 => Some(Need::Preferred),
        2 => Some(Need::Required),
        _ => None,
    };
    match id {
        c::JOB_PRIORITY => {
            let priority = Priority(u16::try_from(value).ok()?);
            spec.priority = (priority <= spec.priority).then_some(priority)?;
        }
        c::JOB_RUN_LIMIT => {
            let limit = u32::try_from(value).ok().filter(|l| *l > 0)?;
            let shorter = spec.run_limit == 0 || limit <= spec.run_limit;
            spec.run_limit = shorter.then_some(limit)?;
        }
        c::JOB_DISK_WEIGHT => {
            let weight = u16::try_from(value).ok().filter(|w| (1..=10_000).contains(w))?;
            let request = Arc::make_mut(&mut spec.request);
            request.disk.weight = (weight <= request.disk.weight).then_some(weight)?;
        }
        c::JOB_NVLINK => Arc::make_mut(&mut spec.request).nvlink = need(value)?,
        c::JOB_NUMA => Arc::make_mut(&mut spec.request).numa = need(value)?,
        _ => return None,
    }
    Some(())
}
