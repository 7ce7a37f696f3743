//! The books' part on tenants.

use super::tentative::Tentative;
use crate::cow::Cow;
use crate::node::Owner;
use crate::strings::Strings;
use crater_model::{
    Borrow, FieldError, JobSpec, Loan, OverQuota, PlatformSpec, Priority, Resource, TenantPath,
    TenantSpec, Usage,
};
use smallvec::SmallVec;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A department, project or person that uses something or was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Level {
    /// Its path.
    pub path: Arc<str>,
    /// Its quota and ceiling, if it was made.
    pub spec: Option<Arc<TenantSpec>>,
    /// What its claims hold, those being ended included.
    pub used: Usage,
    /// What of that was beyond its hard limit when it was admitted.
    pub borrowed: Usage,
}

impl Level {
    /// What it may use of a resource; `None` for no limit of its own.
    pub fn hard(&self, resource: &Resource) -> Option<u64> {
        self.spec.as_ref()?.hard.get(resource)
    }

    /// What it may still use by its own limit; never below 0.
    pub fn free(&self, resource: &Resource) -> Option<u64> {
        Some(self.hard(resource)?.saturating_sub(self.used.get(resource)))
    }

    /// What it uses above its limit, which was lowered: borrowed from no one.
    pub fn excess(&self) -> Vec<(Resource, u64)> {
        let Some(spec) = &self.spec else { return vec![] };
        let over = |(resource, hard): (Resource, u64)| {
            let excess = self.used.get(&resource).saturating_sub(hard);
            (excess > 0).then_some((resource, excess))
        };
        spec.hard.iter().filter_map(over).collect()
    }

    /// What of a resource is borrowed now: what was borrowed when it was
    /// admitted, as far as the level still uses more than its hard limit.
    pub fn on_loan(&self, resource: &Resource) -> u64 {
        let Some(hard) = self.hard(resource) else { return 0 };
        self.borrowed.get(resource).min(self.used.get(resource).saturating_sub(hard))
    }
}

/// Every tenant, what it may use and what it uses. A clone is cheap.
#[derive(Clone, Debug, Default)]
pub struct Quotas {
    platform: PlatformSpec,
    tenants: Arc<BTreeMap<TenantPath, Arc<TenantSpec>>>,
    /// By the number that `State` gives a path.
    levels: Cow<Level>,
    /// Tenants that limit anything: without one nothing is looked up.
    limiting: usize,
    /// Whether so little of the cluster is used that tenants may borrow.
    open: bool,
}

/// The numbers of an owner's levels, each once, from the department down.
pub(super) fn of_owner(owner: Owner) -> impl Iterator<Item = i32> {
    let Owner { department, project, user, .. } = owner;
    let below = [(project, department), (user, project)];
    std::iter::once(department)
        .chain(below.into_iter().filter(|(level, above)| level != above).map(|(level, _)| level))
}

impl Quotas {
    /// What holds for all tenants.
    pub fn platform(&self) -> &PlatformSpec {
        &self.platform
    }

    /// The tenants that were made, by path.
    pub fn tenants(&self) -> &BTreeMap<TenantPath, Arc<TenantSpec>> {
        &self.tenants
    }

    /// Every level that was made or ever used anything, in no particular order.
    pub fn levels(&self) -> impl Iterator<Item = &Arc<Level>> {
        self.levels.iter().map(|(_, level)| level)
    }

    /// A level by the number of its path.
    pub(crate) fn level(&self, id: i32) -> Option<&Arc<Level>> {
        self.levels.get(usize::try_from(id).ok()?)
    }

    /// Whether so little of the cluster is used that tenants may borrow, if the
    /// platform lets them.
    pub fn open(&self) -> bool {
        self.open
    }

    /// Opens or closes borrowing.
    pub(crate) fn set_open(&mut self, open: bool) {
        self.open = open;
    }

    /// Whether a job may use more than its tenants' hard limits.
    pub fn may_borrow(&self, spec: &JobSpec) -> Borrow {
        let platform = &self.platform;
        if !platform.borrowing {
            Borrow::Off
        } else if !spec.preemptible && !platform.borrow_unpreemptible {
            Borrow::NotPreemptible
        } else if self.open {
            Borrow::Open
        } else {
            Borrow::Closed
        }
    }

    /// Whether any tenant uses what others lent.
    pub(crate) fn any_loans(&self) -> bool {
        self.platform.borrowing && self.levels().any(|level| !level.borrowed.is_empty())
    }

    /// Whether nothing may start because the limits are not known.
    pub fn hold(&self) -> bool {
        !self.platform.quotas_known
    }

    /// Whether anything limits an owner.
    pub(crate) fn binds(&self, owner: Owner) -> bool {
        let limits = |id| self.level(id).and_then(|l| l.spec.as_ref());
        self.limiting > 0 && of_owner(owner).filter_map(limits).any(|s| !s.hard.is_empty())
    }

    /// Whether a resource of an owner's is within every limit with `more` than
    /// what is used and tentatively charged; the first level that says no.
    /// What is not asked for cannot be short, however much is used of it.
    pub(super) fn within(
        &self,
        owner: Owner,
        borrow: Borrow,
        tentative: &Tentative,
        more: &dyn Fn(&Resource) -> u64,
    ) -> Result<(), Box<OverQuota>> {
        for id in of_owner(owner) {
            let Some(level) = self.level(id) else { continue };
            let Some(spec) = &level.spec else { continue };
            for (resource, hard) in spec.hard.iter() {
                let asked = more(&resource);
                if asked == 0 {
                    continue;
                }
                let used = tentative.over(id, &resource, level.used.get(&resource));
                let limit = match borrow {
                    Borrow::Open => spec.soft(&resource, &self.platform).unwrap_or(hard),
                    _ => hard,
                };
                if used.saturating_add(asked) > limit {
                    let tenant = level.path.clone();
                    let hard = limit;
                    return Err(Box::new(OverQuota {
                        tenant,
                        resource,
                        hard,
                        used,
                        asked,
                        borrow,
                    }));
                }
            }
        }
        Ok(())
    }

    /// What of `amounts` each level of an owner borrows, on top of what is
    /// used and tentatively charged.
    pub(crate) fn loans(&self, owner: Owner, tentative: &Tentative, amounts: &Usage) -> Vec<Loan> {
        let mut loans = vec![];
        for id in of_owner(owner) {
            let Some(level) = self.level(id) else { continue };
            let Some(spec) = &level.spec else { continue };
            let mut borrowed = Usage::default();
            for (resource, hard) in spec.hard.iter() {
                let used = tentative.over(id, &resource, level.used.get(&resource));
                let asked = amounts.get(&resource);
                let over = used.saturating_add(asked).saturating_sub(hard.max(used));
                if over > 0 {
                    borrowed.set(&resource, over);
                }
            }
            if !borrowed.is_empty() {
                loans.push(Loan { tenant: level.path.clone(), amounts: borrowed });
            }
        }
        loans
    }

    /// Adds to what a level borrows.
    pub(crate) fn lend(&mut self, id: i32, amounts: &Usage) {
        if let Some(level) = self.levels.get_mut(usize::try_from(id).unwrap_or_default()) {
            level.borrowed.add(amounts);
        }
    }

    /// Takes back what `lend` added.
    pub(crate) fn pay_back(&mut self, id: i32, amounts: &Usage) {
        if let Some(level) = self.levels.get_mut(usize::try_from(id).unwrap_or_default()) {
            level.borrowed.take(amounts);
        }
    }

    /// Compares what every level borrows with a recount, by path.
    pub(crate) fn audit_loans(&self, lent: &BTreeMap<Arc<str>, Usage>) -> Result<(), String> {
        for level in self.levels() {
            let counted = lent.get(&level.path).cloned().unwrap_or_default();
            if level.borrowed != counted {
                let (path, borrowed) = (&level.path, &level.borrowed);
                return Err(format!(
                    "what {path} borrows does not add up: {borrowed:?} against {counted:?}"
                ));
            }
        }
        Ok(())
    }

    /// The least priority that bounds a tenant's jobs, and who sets it.
    pub fn ceiling(&self, tenant: &TenantPath) -> Option<(&TenantPath, Priority)> {
        if self.tenants.is_empty() {
            return None;
        }
        let above = |(path, spec): &(&TenantPath, &Arc<TenantSpec>)| {
            let covers = tenant.department() == path.as_str()
                || tenant.project() == path.as_str()
                || tenant == *path;
            covers && spec.ceiling.is_some()
        };
        let set = self.tenants.iter().filter(above);
        set.filter_map(|(path, spec)| Some((path, spec.ceiling?))).min_by_key(|(_, c)| *c)
    }

    /// What a tenant's name means: a path is itself, a bare name the department
    /// of that name or else the only project of that name. `None` if none is
    /// known; several projects are refused with their paths.
    pub fn resolve(&self, field: &str, text: &str) -> Result<Option<TenantPath>, FieldError> {
        let path = TenantPath::parse(field, text)?;
        if text.contains('/') || self.tenants.keys().any(|p| p.department() == text) {
            return Ok(Some(path));
        }
        let of_name = |p: &&str| p.split_once('/').is_some_and(|(_, project)| project == text);
        let projects: BTreeSet<&str> =
            self.tenants.keys().map(TenantPath::project).filter(of_name).collect();
        let mut projects = projects.into_iter();
        match (projects.next(), projects.next()) {
            (None, _) => Ok(None),
            (Some(only), None) => TenantPath::parse(field, only).map(Some),
            (Some(first), Some(second)) => {
                let candidates: Vec<&str> = [first, second].into_iter().chain(projects).collect();
                let expected = format!("one of the projects {}", candidates.join(", "));
                Err(FieldError::new(field, text, expected))
            }
        }
    }

    pub(crate) fn set_platform(&mut self, spec: PlatformSpec) {
        self.platform = spec;
    }

    /// Makes or changes a tenant. Without a number it has no jobs yet.
    pub(crate) fn set(&mut self, id: Option<i32>, spec: &Arc<TenantSpec>) {
        let before = Arc::make_mut(&mut self.tenants).insert(spec.path.clone(), spec.clone());
        self.limiting -= usize::from(before.is_some_and(|s| !s.hard.is_empty()));
        self.limiting += usize::from(!spec.hard.is_empty());
        let Some(slot) = id.and_then(|id| usize::try_from(id).ok()) else { return };
        if let Some(level) = self.levels.get_mut(slot) {
            level.spec = Some(spec.clone());
        } else {
            let path = spec.path.as_str().into();
            let (used, borrowed) = (Usage::default(), Usage::default());
            let level = Level { path, spec: Some(spec.clone()), used, borrowed };
            self.levels.set(slot, Some(Arc::new(level)));
        }
    }

    /// Takes a tenant's quota and ceiling away, and says whether it had been
    /// made.
    pub(crate) fn remove(&mut self, id: i32, path: &TenantPath) -> bool {
        if !self.tenants.contains_key(path) {
            return false;
        }
        let before = Arc::make_mut(&mut self.tenants).remove(path);
        self.limiting -= usize::from(before.is_some_and(|s| !s.hard.is_empty()));
        let slot = usize::try_from(id).unwrap_or_default();
        if let Some(level) = self.levels.get_mut(slot) {
            level.spec = None;
            if level.used.is_empty() {
                self.levels.set(slot, None);
            }
        }
        true
    }

    /// Adds what a claim holds to each of its owner's levels.
    pub(crate) fn charge(&mut self, owner: Owner, amounts: &Usage, owners: &Strings) {
        for id in of_owner(owner) {
            let slot = usize::try_from(id).unwrap_or_default();
            if let Some(level) = self.levels.get_mut(slot) {
                level.used.add(amounts);
            } else {
                let path = owners.text(id).unwrap_or_default();
                let (used, borrowed) = (amounts.clone(), Usage::default());
                let level = Level { path, spec: None, used, borrowed };
                self.levels.set(slot, Some(Arc::new(level)));
            }
        }
    }

    /// Takes back what `charge` added.
    pub(crate) fn release(&mut self, owner: Owner, amounts: &Usage) {
        for id in of_owner(owner) {
            if let Some(level) = self.levels.get_mut(usize::try_from(id).unwrap_or_default()) {
                level.used.take(amounts);
            }
        }
    }

    /// Compares every level with a recount.
    pub(crate) fn audit(&self, recount: &Tentative) -> Result<(), String> {
        let mut open: SmallVec<[i32; 8]> = recount.levels().collect();
        for (slot, level) in self.levels.iter() {
            let id = i32::try_from(slot).unwrap_or(i32::MAX);
            open.retain(|other| *other != id);
            if *recount.of(id) != level.used {
                let (path, used) = (&level.path, &level.used);
                return Err(format!(
                    "the use of {path} does not add up: {used:?} against {:?}",
                    recount.of(id)
                ));
            }
            if level.spec.as_ref()
                != self.tenants.iter().find(|(p, _)| p.as_str() == &*level.path).map(|(_, s)| s)
            {
                return Err(format!("{} has another quota in the list of tenants", level.path));
            }
        }
        match open.iter().find(|id| !recount.of(**id).is_empty()) {
            Some(id) => Err(format!("the use of tenant number {id} is not counted")),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> TenantPath {
        TenantPath::parse("tenant", text).unwrap()
    }

    fn quotas(tenants: &[(&str, Option<u16>)]) -> Quotas {
        let mut quotas = Quotas::default();
        for (tenant, ceiling) in tenants {
            let mut spec = TenantSpec::new(path(tenant));
            spec.ceiling = ceiling.map(Priority);
            quotas.set(None, &Arc::new(spec));
        }
        quotas
    }

    #[test]
    fn a_bare_name_is_a_department_or_the_only_project_of_that_name() {
        let quotas = quotas(&[("ai/nlp", None), ("ai/vision/mei", None), ("ops/nlp", None)]);
        let resolve = |text| quotas.resolve("tenant", text).map(|p| p.map(|p| p.to_string()));
        assert_eq!(resolve("ai").unwrap().as_deref(), Some("ai"));
        assert_eq!(resolve("vision").unwrap().as_deref(), Some("ai/vision"));
        assert_eq!(resolve("ops/web").unwrap().as_deref(), Some("ops/web"));
        assert_eq!(resolve("mei").unwrap(), None, "a person has no bare name");
        let error = resolve("nlp").unwrap_err().to_string();
        let expected = "tenant: \"nlp\" is refused: expected one of the projects ai/nlp, ops/nlp";
        assert_eq!(error, expected);
        assert!(resolve("../x").is_err());
    }

    #[test]
    fn the_lowest_ceiling_on_the_way_up_counts() {
        let quotas = quotas(&[
            ("ai", Some(100)),
            ("ai/nlp", Some(60)),
            ("ai/nlp/mei", Some(900)),
            ("b", None),
        ]);
        let ceiling = |text| quotas.ceiling(&path(text)).map(|(p, c)| (p.to_string(), c.0));
        assert_eq!(ceiling("ai/nlp/mei"), Some(("ai/nlp".to_owned(), 60)));
        assert_eq!(ceiling("ai/vision"), Some(("ai".to_owned(), 100)));
        assert_eq!(ceiling("b/nlp"), None);
    }
}
