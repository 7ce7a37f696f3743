//! What tenants use, recounted from the claims alone, and whether their quotas
//! allow more. It shares no code with the engine's own sums.

use crater_engine::{Plan, State};
use crater_model::{Claim, ClaimUid, Held, Hold, JobSpec, JobUid, NodeUid, OverQuota, Resource};
use std::collections::{BTreeMap, BTreeSet};

/// Amounts by resource.
type Amounts = BTreeMap<Resource, u64>;

/// Every claim with whose it is, and every limit.
#[derive(Clone, Debug, Default)]
pub struct Tenants {
    /// Level, resource, hard and soft limit.
    limits: Vec<(String, Resource, u64, u64)>,
    claims: Vec<(String, Amounts)>,
}

/// The room that is kept for others and that a job has to respect: all that is
/// made by evictions, and what is only planned for those that do not stand
/// below it; a job for which room is made comes before all that is planned.
pub fn binding(state: &State, job: JobUid) -> impl Iterator<Item = &Hold> {
    let made = state.holds().get(&job).is_some_and(|own| own.starts.is_none());
    let rank = state.job(job).map(|j| j.rank());
    state.holds().values().filter(move |hold| {
        let holder = state.job(hold.job).map(|j| j.rank());
        hold.job != job && (hold.starts.is_none() || !(made || holder < rank))
    })
}

/// Whether a job may use more than the hard limits now.
pub fn may_borrow(state: &State, job: &JobSpec) -> bool {
    let (quotas, platform) = (state.quotas(), state.quotas().platform());
    let lets = job.preemptible || platform.borrow_unpreemptible;
    platform.borrowing && quotas.open() && lets
}

/// Whether a tenant is a level or below it.
fn under(tenant: &str, level: &str) -> bool {
    tenant == level || tenant.strip_prefix(level).is_some_and(|rest| rest.starts_with('/'))
}

fn amounts(state: &State, node: NodeUid, held: &Held) -> Amounts {
    let mut all = Amounts::from([
        (Resource::Cpu, held.cpu.0),
        (Resource::Memory, held.memory.0),
        (Resource::Disk, held.disk.0),
    ]);
    let Some(node) = state.node(node) else { return all };
    for share in &held.cards {
        let model = Resource::Model(node.spec.cards[usize::from(share.card)].model.clone());
        *all.entry(Resource::Gpu).or_default() += share.milli.0;
        *all.entry(Resource::GpuMemory).or_default() += share.memory.0;
        *all.entry(model).or_default() += share.milli.0;
    }
    all
}

impl Tenants {
    /// Those of the books; `None` where no one has a quota.
    pub fn of(state: &State) -> Option<Self> {
        let (tenants, platform) = (state.quotas().tenants(), state.quotas().platform());
        let limits = tenants.iter().flat_map(|(path, spec)| {
            spec.hard.iter().map(|(resource, hard)| {
                let soft = spec.soft(&resource, platform).unwrap_or(hard);
                (path.to_string(), resource, hard, soft)
            })
        });
        let limits: Vec<_> = limits.collect();
        if limits.is_empty() {
            return None;
        }
        let mut found = Self { limits, claims: vec![] };
        state.claims().for_each(|claim| found.add(state, claim));
        Some(found)
    }

    /// The same with the room that is kept for others than `job`.
    pub fn beside(mut self, state: &State, job: JobUid) -> Self {
        for hold in binding(state, job) {
            let Some(holder) = state.job(hold.job) else { continue };
            for member in &hold.members {
                let amounts = amounts(state, member.node, &member.held);
                self.claims.push((holder.spec.tenant.to_string(), amounts));
            }
        }
        self
    }

    /// Whether those from whom claims are taken back for a tenant keep what is
    /// theirs, once all that leave have left. What comes in their place counts.
    pub fn keep_their_own(
        state: &State,
        plan: &Plan,
        asker: &str,
        taken: &[ClaimUid],
        gone: &BTreeSet<ClaimUid>,
    ) -> Result<(), String> {
        let Some(mut left) = Self::of(state) else { return Ok(()) };
        left.claims.clear();
        for claim in state.claims().filter(|claim| !gone.contains(&claim.uid)) {
            left.add(state, claim);
        }
        let placed = plan.placements.iter().map(|p| (p.job, &p.members));
        let placed = placed.flat_map(|(job, members)| members.iter().map(move |m| (job, m)));
        let kept = state.holds().values().chain(plan.rooms.iter().map(|room| &room.hold));
        let kept = kept.flat_map(|hold| hold.members.iter().map(|m| (hold.job, m.node, &m.held)));
        for (job, node, held) in placed.map(|(job, m)| (job, m.node, &m.held)).chain(kept) {
            let Some(job) = state.job(job) else { continue };
            left.claims.push((job.spec.tenant.to_string(), amounts(state, node, held)));
        }
        let loans = taken.iter().filter_map(|uid| state.claim(*uid)).flat_map(|c| &c.loans);
        // What the asker's own levels borrowed is not taken back from them.
        for loan in loans.filter(|loan| !under(asker, &loan.tenant)) {
            for (level, resource, hard, _) in left.limits.iter().filter(|l| *l.0 == *loan.tenant) {
                let used = left.used(level, resource);
                if loan.amounts.get(resource) > 0 && used < *hard {
                    return Err(format!("{level} is left {used} of its {hard} {resource}"));
                }
            }
        }
        Ok(())
    }

    fn add(&mut self, state: &State, claim: &Claim) {
        if let Some(job) = state.job(claim.job) {
            let tenant = job.spec.tenant.to_string();
            self.claims.push((tenant, amounts(state, claim.node, &claim.held)));
        }
    }

    fn used(&self, level: &str, resource: &Resource) -> u64 {
        let of_level = self.claims.iter().filter(|(tenant, _)| under(tenant, level));
        of_level.filter_map(|(_, amounts)| amounts.get(resource)).sum()
    }

    /// Charges a member, or says which limit that breaks.
    pub fn take(
        &mut self,
        state: &State,
        tenant: &str,
        node: NodeUid,
        held: &Held,
        borrow: bool,
    ) -> Result<(), String> {
        let amounts = amounts(state, node, held);
        self.allows(tenant, &amounts, borrow)?;
        self.claims.push((tenant.to_owned(), amounts));
        Ok(())
    }

    fn allows(&self, tenant: &str, amounts: &Amounts, borrow: bool) -> Result<(), String> {
        for (level, resource, hard, soft) in self.limits.iter().filter(|(l, ..)| under(tenant, l)) {
            let asked = amounts.get(resource).copied().unwrap_or(0);
            let (used, limit) = (self.used(level, resource), if borrow { soft } else { hard });
            if asked > 0 && used + asked > *limit {
                return Err(format!("{level}: {resource} {used} and {asked} are above {limit}"));
            }
        }
        Ok(())
    }

    /// Whether a member could be held so.
    pub fn allow(
        &self,
        state: &State,
        tenant: &str,
        node: NodeUid,
        held: &Held,
        borrow: bool,
    ) -> bool {
        self.allows(tenant, &amounts(state, node, held), borrow).is_ok()
    }

    /// Claims that are in the books already were admitted: no limit on
    /// something that they hold may be broken.
    pub fn admitted(&self, state: &State, claims: &[Claim]) -> Result<(), String> {
        for claim in claims {
            let Some(job) = state.job(claim.job) else { continue };
            let tenant = job.spec.tenant.as_str();
            let held = amounts(state, claim.node, &claim.held);
            let borrow = may_borrow(state, &job.spec);
            for (level, resource, hard, soft) in
                self.limits.iter().filter(|(l, ..)| under(tenant, l))
            {
                // What others borrowed beside it is not of its admission.
                let lent = state.level(level).map_or(0, |l| l.borrowed.get(resource));
                let lent = if borrow { 0 } else { lent };
                let used = self.used(level, resource).saturating_sub(lent);
                let limit = if borrow { soft } else { hard };
                if held.get(resource).is_some_and(|n| *n > 0) && used > *limit {
                    return Err(format!(
                        "{} was admitted though {level} uses {used} of {limit} {resource}",
                        claim.job
                    ));
                }
            }
        }
        Ok(())
    }

    /// Whether a refusal's figures are right.
    pub fn right(&self, tenant: &str, over: &OverQuota, borrow: bool) -> Result<(), String> {
        let used = self.used(&over.tenant, &over.resource);
        let known = self.limits.iter().any(|(level, resource, hard, soft)| {
            *level == *over.tenant
                && *resource == over.resource
                && over.hard == if borrow { *soft } else { *hard }
        });
        let above = over.used.saturating_add(over.asked) > over.hard && over.asked > 0;
        if under(tenant, &over.tenant) && known && used == over.used && above {
            return Ok(());
        }
        Err(format!("{tenant} is told \"{over}\", but {used} are used of {:?}", self.limits))
    }
}
