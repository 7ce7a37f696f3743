//! What tenants held, by day and queue.

use crate::app::App;
use crate::auth::{Caller, Role};
use crate::extract::Query;
use crate::problem::Problem;
use axum::Json;
use axum::extract::State as Shared;
use crater_model::TenantPath;
use crater_server::now;
use crater_store::{DAY_MS, UsageKey, UsageSum};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// Whose usage, since when.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
#[into_params(parameter_in = Query)]
pub struct Which {
    /// Of this tenant and those below it.
    pub tenant: Option<String>,
    /// How far back, whole days (UTC) such as 7d, which it is without.
    pub since: Option<String>,
    /// At most so many rows, 1 to 1000.
    pub limit: Option<u32>,
    /// Where the last page ended.
    pub cursor: Option<String>,
}

/// A page of usage, by day, tenant and queue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Usages {
    /// The rows.
    pub usage: Vec<UsageView>,
    /// Ask with this for the next page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// What a tenant held on a day in a queue, from each claim until it was gone.
/// What is held now is counted up to some seconds ago.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct UsageView {
    /// The day, UTC: 2026-12-01.
    pub day: String,
    /// The tenant.
    pub tenant: String,
    /// The queue.
    pub queue: String,
    /// Cards times seconds.
    pub gpu_seconds: f64,
    /// GiB of GPU memory times seconds.
    pub gpu_memory_gib_seconds: f64,
    /// Cores times seconds.
    pub cpu_seconds: f64,
    /// GiB times seconds.
    pub memory_gib_seconds: f64,
}

impl UsageView {
    fn of(key: &UsageKey, sum: &UsageSum) -> Self {
        // Thousandths times milliseconds; MiB times milliseconds.
        let units = |n: u64| n as f64 / 1e6;
        let gib = |n: u64| n as f64 / 1024.0 / 1e3;
        let start = crate::types::rfc3339(crater_model::Time(key.day * DAY_MS));
        Self {
            day: start.chars().take_while(|c| *c != 'T').collect(),
            tenant: key.tenant.to_string(),
            queue: key.queue.to_string(),
            gpu_seconds: units(sum.gpu),
            gpu_memory_gib_seconds: gib(sum.gpu_memory),
            cpu_seconds: units(sum.cpu),
            memory_gib_seconds: gib(sum.memory),
        }
    }
}

fn cursor(key: &UsageKey) -> String {
    format!("{} {} {}", key.day, key.tenant, key.queue)
}

fn parse(text: &str) -> Option<UsageKey> {
    let mut parts = text.splitn(3, ' ');
    let day = parts.next()?.parse().ok()?;
    Some(UsageKey { day, tenant: parts.next()?.into(), queue: parts.next()?.into() })
}

/// What tenants held, by day, tenant and queue.
#[utoipa::path(get, path = "/api/v1/usage", tag = "quotas", params(Which),
    responses((status = 200, body = Usages), (status = 422, body = Problem)))]
pub async fn list(
    Shared(app): Shared<App>,
    caller: Caller,
    Query(which): Query<Which>,
) -> Result<Json<Usages>, Problem> {
    let limit = which.limit.unwrap_or(100);
    if !(1..=1000).contains(&limit) {
        let detail = format!("limit: {limit} is refused: expected 1 to 1000");
        return Err(Problem::field("limit", detail));
    }
    let span = crater_server::config::span("since", which.since.as_deref().unwrap_or("7d"))?;
    let from = now().0.saturating_sub(span.as_millis() as u64) / DAY_MS;
    let tenant = match &which.tenant {
        // A token that holds for one tenant sees that one.
        None => caller.root().and_then(|mut root| root.pop()),
        Some(text) => {
            let known = app.system.books.view().state.quotas().resolve("tenant", text)?;
            let path = match known {
                Some(path) => path,
                None => TenantPath::parse("tenant", text)?,
            };
            caller.must(Role::Viewer, path.as_str())?;
            Some(path)
        }
    };
    let after = match &which.cursor {
        None => None,
        Some(text) => Some(parse(text).ok_or_else(|| {
            Problem::field("cursor", "cursor: expected what `next` said on the page before")
        })?),
    };
    let mut rows = app
        .look(move |reader| reader.usage(from, tenant.as_ref(), after.as_ref(), limit + 1))
        .await?;
    let more = rows.len() > limit as usize;
    rows.truncate(limit as usize);
    let next = rows.last().filter(|_| more).map(|(key, _)| cursor(key));
    Ok(Json(Usages {
        usage: rows.iter().map(|(key, sum)| UsageView::of(key, sum)).collect(),
        next,
    }))
}
