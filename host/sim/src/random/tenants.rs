//! What tenants use, recounted from the claims alone, and whether their quotas
//! allow more. It shares no code with the engine's own sums.

use crater_engine::State;
use crater_model::{Claim, Held, NodeUid, OverQuota, Resource};
use std::collections::BTreeMap;

/// Amounts by resource.
type Amounts = BTreeMap<Resource, u64>;

/// Every claim with whose it is, and every limit.
#[derive(Clone, Debug, Default)]
pub struct Tenants {
    limits: Vec<(String, Resource, u64)>,
    claims: Vec<(String, Amounts)>,
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
        let tenants = state.quotas().tenants();
        let limits = tenants.iter().flat_map(|(path, spec)| {
            spec.hard.iter().map(|(resource, hard)| (path.to_string(), resource, hard))
        });
        let limits: Vec<_> = limits.collect();
        if limits.is_empty() {
            return None;
        }
        let mut found = Self { limits, claims: vec![] };
        state.claims().for_each(|claim| found.add(state, claim));
        Some(found)
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
    ) -> Result<(), String> {
        let amounts = amounts(state, node, held);
        self.allows(tenant, &amounts)?;
        self.claims.push((tenant.to_owned(), amounts));
        Ok(())
    }

    fn allows(&self, tenant: &str, amounts: &Amounts) -> Result<(), String> {
        for (level, resource, hard) in self.limits.iter().filter(|(l, _, _)| under(tenant, l)) {
            let asked = amounts.get(resource).copied().unwrap_or(0);
            let used = self.used(level, resource);
            if asked > 0 && used + asked > *hard {
                return Err(format!("{level}: {resource} {used} and {asked} are above {hard}"));
            }
        }
        Ok(())
    }

    /// Whether a member could be held so.
    pub fn allow(&self, state: &State, tenant: &str, node: NodeUid, held: &Held) -> bool {
        self.allows(tenant, &amounts(state, node, held)).is_ok()
    }

    /// Claims that are in the books already were admitted: no limit on
    /// something that they hold may be broken.
    pub fn admitted(&self, state: &State, claims: &[Claim]) -> Result<(), String> {
        for claim in claims {
            let Some(job) = state.job(claim.job) else { continue };
            let tenant = job.spec.tenant.as_str();
            let held = amounts(state, claim.node, &claim.held);
            for (level, resource, hard) in self.limits.iter().filter(|(l, _, _)| under(tenant, l)) {
                let used = self.used(level, resource);
                if held.get(resource).is_some_and(|n| *n > 0) && used > *hard {
                    return Err(format!(
                        "{} was admitted though {level} uses {used} of {hard} {resource}",
                        claim.job
                    ));
                }
            }
        }
        Ok(())
    }

    /// Whether a refusal's figures are right.
    pub fn right(&self, tenant: &str, over: &OverQuota) -> Result<(), String> {
        let used = self.used(&over.tenant, &over.resource);
        let limit = (over.tenant.to_string(), over.resource.clone(), over.hard);
        let above = over.used.saturating_add(over.asked) > over.hard && over.asked > 0;
        if under(tenant, &over.tenant) && self.limits.contains(&limit) && used == over.used && above
        {
            return Ok(());
        }
        Err(format!("{tenant} is told \"{over}\", but {used} are used of {:?}", self.limits))
    }
}
