//! Tenants and their quotas.

mod borrowing;

use crate::amount::Amount;
use crate::app::App;
use crate::auth::{Caller, Role};
use crate::extract::{Body, Path, Query};
use crate::problem::Problem;
use axum::Json;
use axum::extract::State as Shared;
use crater_engine::State;
use crater_engine::quota::{Effect, preview};
use crater_model::{FieldError, Priority, Resource, TenantPath, TenantSpec};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::{IntoParams, ToSchema};

/// A tenant and its quota. Amounts are for people, such as 7.5 or 256Gi.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct QuotaView {
    /// department, department/project or department/project/person.
    pub tenant: String,
    /// Highest priority of its jobs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ceiling: Option<u16>,
    /// By resource: gpu, gpu-memory, cpu, memory, disk-mbps, gpu.MODEL.
    pub resources: BTreeMap<String, ResourceView>,
    /// What is worth knowing, such as limits that are not guaranteed.
    pub notes: Vec<String>,
}

/// One resource of a quota.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ResourceView {
    /// Used.
    pub used: String,
    /// Always usable; no limit without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hard: Option<String>,
    /// Usable while there is spare capacity, while borrowing is open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub soft: Option<String>,
    /// What of the use is borrowed: what was above hard when it was admitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub borrowed: Option<String>,
    /// Used, hard and soft as plain numbers, in milli-cards, milli-cores, MiB or
    /// MB/s.
    pub figures: (u64, Option<u64>, Option<u64>),
}

fn view(state: &State, path: &str) -> QuotaView {
    let quotas = state.quotas();
    let level = quotas.levels().find(|level| *level.path == *path);
    let spec = level.and_then(|level| level.spec.clone());
    let used = |resource: &Resource| level.map_or(0, |level| level.used.get(resource));
    let loan = |resource: &Resource| level.map_or(0, |level| level.on_loan(resource));
    let mut resources = BTreeMap::new();
    let models = spec.iter().flat_map(|spec| spec.hard.iter()).map(|(resource, _)| resource);
    let models = models.filter(|resource| matches!(resource, Resource::Model(_)));
    for resource in Resource::COMMON.into_iter().chain(models) {
        let hard = spec.as_ref().and_then(|spec| spec.hard.get(&resource));
        let soft = spec.as_ref().and_then(|spec| spec.soft(&resource, quotas.platform()));
        let figure = ResourceView {
            used: resource.spell(used(&resource)),
            hard: hard.map(|n| resource.spell(n)),
            soft: soft.map(|n| resource.spell(n)),
            borrowed: Some(loan(&resource)).filter(|n| *n > 0).map(|n| resource.spell(n)),
            figures: (used(&resource), hard, soft),
        };
        resources.insert(resource.to_string(), figure);
    }
    let mut notes = vec![];
    if let Some(level) = level {
        for (resource, excess) in level.excess() {
            notes.push(format!(
                "uses {} of {resource} more than hard; nothing is evicted for that",
                resource.spell(excess)
            ));
        }
    }
    if resources.values().any(|r| r.hard.is_some()) && !quotas.platform().borrowing {
        notes.push("borrowing is off: soft is not used".into());
    } else if resources.values().any(|r| r.borrowed.is_some()) {
        notes.push("what is borrowed can be reclaimed by tenants below their hard quota".into());
    }
    QuotaView {
        tenant: path.to_owned(),
        ceiling: spec.and_then(|spec| spec.ceiling).map(|ceiling| ceiling.0),
        resources,
        notes,
    }
}

/// Lists the tenants that have a quota or use anything.
#[utoipa::path(get, path = "/api/v1/tenants", tag = "tenants", responses((status = 200, body = Vec<QuotaView>)))]
pub async fn list(Shared(app): Shared<App>, caller: Caller) -> Json<Vec<QuotaView>> {
    let books = app.system.books.view();
    let mut paths: Vec<_> = books
        .state
        .quotas()
        .levels()
        .filter(|level| level.spec.is_some() || !level.used.is_empty())
        .map(|level| level.path.clone())
        .filter(|path| caller.sees(path))
        .collect();
    paths.sort_unstable();
    Json(paths.iter().map(|path| view(&books.state, path)).collect())
}

/// The tenant that a name in a path means: `-` stands for the caller's own and
/// `~` between the parts for a slash.
fn tenant(state: &State, caller: &Caller, text: &str) -> Result<TenantPath, Problem> {
    if text == "-" {
        if caller.tenant.as_str().is_empty() {
            return Err(Problem::field(
                "tenant",
                "tenant: this token belongs to no tenant: say which",
            ));
        }
        return Ok(caller.tenant.clone());
    }
    let text = text.replace('~', "/");
    match state.quotas().resolve("tenant", &text)? {
        Some(path) => Ok(path),
        None => Ok(TenantPath::parse("tenant", &text)?),
    }
}

/// One tenant's quota. In the path `~` stands for a slash, and `-` for the
/// caller's own tenant.
#[utoipa::path(get, path = "/api/v1/tenants/{tenant}", tag = "tenants", params(("tenant" = String, Path)),
    responses((status = 200, body = QuotaView), (status = 404, body = Problem)))]
pub async fn get(
    Shared(app): Shared<App>,
    caller: Caller,
    Path(name): Path<String>,
) -> Result<Json<QuotaView>, Problem> {
    let books = app.system.books.view();
    let path = tenant(&books.state, &caller, &name)?;
    caller.must(Role::Viewer, path.as_str())?;
    let known = books.state.quotas().levels().any(|level| *level.path == *path.as_str());
    if !known && caller.tenant != path {
        return Err(Problem::unknown("tenant", path.as_str()));
    }
    Ok(Json(view(&books.state, path.as_str())))
}

/// A tenant's quota. What is left out stays; `none` takes a limit away.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct QuotaChange {
    /// By resource: always usable.
    pub hard: BTreeMap<String, Amount>,
    /// By resource: usable while there is spare capacity.
    pub soft: BTreeMap<String, Amount>,
    /// Highest priority of its jobs: low, medium, high, 0 to 1000, or none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ceiling: Option<Amount>,
}

/// Whether to change anything.
#[derive(Clone, Copy, Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
#[into_params(parameter_in = Query)]
pub struct Trial {
    /// Only say what it would do.
    pub dry_run: bool,
}

/// What a change did, or would do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct QuotaChanged {
    /// The quota as it is now; with dry-run as it stays.
    pub quota: QuotaView,
    /// Who exceeds, waits or could start, and what is not guaranteed.
    pub effects: Vec<String>,
}

fn spell(effect: &Effect) -> String {
    match effect {
        Effect::Exceeds { tenant, resource, hard, used, excess, claims } => format!(
            "{tenant} would exceed {resource}: {} used, {} hard, {} over (the youngest {} claims); nothing is evicted",
            resource.spell(*used),
            resource.spell(*hard),
            resource.spell(*excess),
            claims.len()
        ),
        Effect::WouldWait { job, over } => format!("{job} would wait: {over}"),
        Effect::WouldBorrow { job, over } => format!("{job} would borrow: {over}"),
        Effect::CouldStart { job, over } => format!("{job} could start (it waits now: {over})"),
        Effect::AboveCeiling { job, priority, ceiling } => format!(
            "{job} has priority {}, above the ceiling {}; it keeps it",
            priority.0, ceiling.0
        ),
        Effect::NotGuaranteed { tenant, resource, available, promised } => format!(
            "{} of {resource} are promised and {} have {}: not guaranteed",
            resource.spell(*promised),
            if tenant.is_empty() {
                "the cluster's nodes".to_owned()
            } else {
                format!("{tenant}'s limits")
            },
            resource.spell(*available)
        ),
    }
}

impl QuotaChange {
    fn apply(&self, spec: &mut TenantSpec) -> Result<(), FieldError> {
        for (part, amounts, limits) in
            [("hard", &self.hard, &mut spec.hard), ("soft", &self.soft, &mut spec.soft)]
        {
            for (name, amount) in amounts {
                let field = format!("{part}.{name}");
                let resource = Resource::parse(name).ok_or_else(|| {
                    FieldError::new(
                        &field,
                        name,
                        "gpu, gpu-memory, cpu, memory, disk-mbps or gpu.MODEL",
                    )
                })?;
                let amount = match amount.0.as_str() {
                    "none" => None,
                    text => Some(resource.amount(&field, text)?),
                };
                limits.set(&resource, amount);
            }
        }
        match self.ceiling.as_ref().map(|ceiling| ceiling.0.as_str()) {
            None => {}
            Some("none") => spec.ceiling = None,
            Some(text) => spec.ceiling = Some(Priority::parse("ceiling", text)?),
        }
        Ok(())
    }
}

/// Makes a tenant or changes its quota. Departments are an administrator's; a
/// manager sets those below its own tenant.
#[utoipa::path(put, path = "/api/v1/tenants/{tenant}", tag = "tenants", params(("tenant" = String, Path), Trial), request_body = QuotaChange,
    responses((status = 200, body = QuotaChanged), (status = 403, body = Problem), (status = 422, body = Problem)))]
pub async fn set(
    Shared(app): Shared<App>,
    caller: Caller,
    Path(name): Path<String>,
    Query(trial): Query<Trial>,
    Body(change): Body<QuotaChange>,
) -> Result<Json<QuotaChanged>, Problem> {
    let books = app.system.books.view();
    let path = tenant(&books.state, &caller, &name)?;
    caller.must(Role::Manager, path.as_str())?;
    if caller.tenant == path {
        // Nobody widens their own.
        caller.admin()?;
    }
    let with = |state: &State| {
        let known = state.quotas().tenants().get(&path);
        let mut spec = known.map_or_else(|| TenantSpec::new(path.clone()), |spec| (**spec).clone());
        change.apply(&mut spec)?;
        let spec = spec.rounded();
        spec.check().map(|()| spec)
    };
    let wanted = with(&books.state)?;
    let mut effects: Vec<String> = preview(&books.state, &wanted).iter().map(spell).collect();
    effects.extend(borrowing::would_borrow(&books.state, &wanted));
    if !trial.dry_run {
        let (path, change) = (path.clone(), change.clone());
        // Read again in the thread that writes: what is left out stays as it is then.
        let done = app.system.books.change(move |writer| {
            let known = writer.state().quotas().tenants().get(&path);
            let mut spec =
                known.map_or_else(|| TenantSpec::new(path.clone()), |spec| (**spec).clone());
            change.apply(&mut spec)?;
            writer.ledger.set_tenant(writer.now, spec)
        });
        done.await??;
    }
    let books = app.system.books.view();
    Ok(Json(QuotaChanged { quota: view(&books.state, path.as_str()), effects }))
}
