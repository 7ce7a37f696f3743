//! The quotas' word in a round, job by job.

use super::demand::stated;
use super::{Ask, amounts, least};
use crate::overlay::Overlay;
use crate::state::Job;
use crater_model::{Held, OverQuota, Reason, Reasons, Request, Usage};
use std::sync::Arc;

/// Why a job cannot start whatever cards it would be given; nodes need not be
/// looked at. Concerns the job's tenant, so nothing is remembered for others.
pub fn shut(overlay: &Overlay<'_>, job: &Job) -> Option<Arc<Reasons>> {
    if !overlay.base().quotas().binds(job.owner) {
        return None;
    }
    let (before, member) = (Usage::default(), least(&job.spec.request));
    let together = u64::from(job.spec.min_members);
    let (owner, borrow) = (job.owner, overlay.base().quotas().may_borrow(&job.spec));
    let ask = Ask { owner, borrow, before: &before, member: &member, now: together, together };
    let mut over = overlay.within_quota(&ask).err()?;
    over.asked = stated(job, &over);
    Some(Arc::new(Reasons::of_quota(over.into())))
}

/// A job that is being placed under a quota.
pub struct Gate {
    /// The job with the card models that the quotas leave it, if those are
    /// fewer than it may use.
    pub narrowed: Option<Arc<Job>>,
    /// What its members so far were charged.
    before: Usage,
    /// The last refusal.
    over: Option<Arc<OverQuota>>,
}

impl Gate {
    /// For a job that a quota binds; `None` for others.
    pub fn of(overlay: &Overlay<'_>, job: &Job) -> Option<Self> {
        let binds = overlay.base().quotas().binds(job.owner);
        binds.then(|| Self { narrowed: None, before: Usage::default(), over: None })
    }

    /// For a gang, with the card models only on which the quotas allow all of
    /// it that must start together; `None` where that leaves out nothing.
    /// Was refused for `over` before.
    pub fn of_gang(overlay: &Overlay<'_>, job: &Job, over: Option<Arc<OverQuota>>) -> Option<Self> {
        let together = u64::from(job.spec.min_members);
        let narrowed = (together > 1).then(|| narrowed(overlay, job, together)).flatten();
        narrowed.map(|job| Self { narrowed: Some(job), before: Usage::default(), over })
    }

    /// Whether the quotas allow a member as it would be held on a node, the
    /// `placed` ones before it being charged already; what it counts for.
    pub fn check(
        &self,
        overlay: &Overlay<'_>,
        job: &Job,
        placed: usize,
        slot: u32,
        held: &Held,
    ) -> Result<Usage, Reason> {
        let node = overlay.get(slot).ok_or(Reason::Cordoned)?;
        let member = amounts(held, &node.spec);
        let together = u64::from(job.spec.min_members).saturating_sub(placed as u64);
        let (owner, borrow) = (job.owner, overlay.base().quotas().may_borrow(&job.spec));
        let (before, member_ref) = (&self.before, &member);
        let ask = Ask { owner, borrow, before, member: member_ref, now: 1, together };
        match overlay.within_quota(&ask) {
            Ok(()) => Ok(member),
            Err(over) => Err(Reason::Quota(over.into())),
        }
    }

    /// Charges a member that was checked.
    pub fn charge(&mut self, overlay: &mut Overlay<'_>, job: &Job, member: Usage) {
        self.before.add(&member);
        overlay.charge_quota(job.owner, member);
    }

    /// After a refusal: leaves out the card models without quota, if that
    /// leaves others. A share of another card may be smaller, or its model's
    /// own limit not reached.
    pub fn narrow(&mut self, overlay: &Overlay<'_>, job: &Job, over: Arc<OverQuota>) -> bool {
        self.over = Some(over);
        let narrowed = narrowed(overlay, job, 1);
        let fewer = narrowed.is_some();
        self.narrowed = narrowed.or(self.narrowed.take());
        fewer
    }

    /// The last refusal, beside what the nodes say if they were asked again.
    pub fn reasons(&self, of_nodes: Arc<Reasons>) -> Arc<Reasons> {
        let Some(over) = &self.over else { return of_nodes };
        let own = Reasons::of_quota(over.clone());
        Arc::new(Reasons { job: own.job, quota: own.quota, ..Reasons::clone(&of_nodes) })
    }
}

/// The job with those card models only on which the quotas allow `members` more
/// of it; `None` if that leaves no model or leaves out none.
fn narrowed(overlay: &Overlay<'_>, job: &Job, members: u64) -> Option<Arc<Job>> {
    let models = overlay.models_in_quota(job, members)?;
    let mut narrowed = job.clone();
    let request = Request { models, ..Request::clone(&job.spec.request) };
    Arc::make_mut(&mut narrowed.spec).request = Arc::new(request);
    Some(Arc::new(narrowed))
}
