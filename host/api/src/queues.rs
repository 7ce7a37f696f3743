//! Queues and the policies that decide them.

use crate::app::App;
use crate::auth::{Caller, Role};
use crate::extract::{Body, Path};
use crate::problem::Problem;
use crate::types::rfc3339;
use axum::Json;
use axum::extract::State as Shared;
use crater_model::{Fallback, QueueName};
use crater_server::{Source, Wanted};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A queue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct QueueView {
    /// Name.
    pub name: String,
    /// Kind of the jobs that do not say theirs.
    pub kind: String,
    /// Greater goes first.
    pub priority: u16,
    /// Who decides when the policy cannot.
    pub fallback: String,
    /// Nothing of it starts.
    pub paused: bool,
    /// The tenant that it belongs to; none for the platform's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// Jobs that wait.
    pub waiting: u64,
    /// Jobs that hold something.
    pub running: u64,
    /// How its jobs make room for others, and have room kept for them.
    #[serde(default)]
    pub room: QueueRoom,
    /// Its policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<PolicyView>,
}

/// How a queue's jobs make room for others, and have room kept for them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default, rename_all = "kebab-case")]
pub struct QueueRoom {
    /// A job that has run for less, in seconds, is not preempted.
    pub minimum_run: u32,
    /// Most preemptions of its jobs in an hour; 0 for any number.
    pub preemptions_per_hour: u32,
    /// A job that was preempted this often is not preempted again; 0 for any
    /// number.
    pub preemptions_per_job: u32,
    /// Seconds after which the first job that finds no room has room kept for
    /// it; 0 for never.
    pub reserve_after: u32,
    /// Preemptions of its jobs in the last hour.
    pub preemptions_last_hour: u64,
}

/// What decides a queue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct PolicyView {
    /// Where it comes from: a built-in name or a file.
    pub source: String,
    /// Its configuration.
    pub config: serde_json::Value,
    /// The version that is live.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub live: Option<LiveView>,
    /// Why the last replacement was refused; the last good one stays live.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<RefusedView>,
    /// Versions that went live since the server started.
    pub swaps: u64,
    /// Versions that were refused.
    pub refusals: u64,
}

/// A live version.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct LiveView {
    /// What it calls itself.
    pub name: String,
    /// Its author's version.
    pub version: String,
    /// Digest of code, configuration and prepared data.
    pub digest: String,
    /// Since when, RFC 3339.
    pub since: String,
    /// Decision calls.
    pub calls: u64,
    /// Calls that failed: traps, deadlines, memory, bad answers.
    pub faults: u64,
    /// Its last words for the queue's owner.
    pub log: Vec<String>,
}

/// A refused version.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct RefusedView {
    /// When, RFC 3339.
    pub at: String,
    /// Where: read, verify, compile, check, describe, prepare, configure,
    /// golden checks.
    pub stage: String,
    /// Why.
    pub reason: String,
}

/// What decides each queue, where one has a policy.
pub fn policy_view(app: &App, queue: &str) -> Option<PolicyView> {
    let all = app.system.policies.status();
    let (_, wanted, status) = all.into_iter().find(|(name, _, _)| &**name == queue)?;
    let live = status.live.map(|(live, counters)| {
        let manifest = live.policy.manifest();
        let faults = counters.traps
            + counters.deadlines
            + counters.memory
            + counters.bad_answers
            + counters.unavailable;
        let lines = live.policy.logs();
        let last = lines.len().saturating_sub(20);
        LiveView {
            name: manifest.name.clone(),
            version: manifest.version.clone(),
            digest: live.policy.digest().to_string(),
            since: rfc3339(live.since),
            calls: counters.calls,
            faults,
            log: lines[last..]
                .iter()
                .map(|l| format!("{:?} in {}: {}", l.level, l.during, l.text))
                .collect(),
        }
    });
    let refused = status.refusal.map(|refusal| RefusedView {
        at: rfc3339(refusal.at),
        stage: refusal.stage.to_string(),
        reason: refusal.text,
    });
    Some(PolicyView {
        source: wanted.source.to_string(),
        config: serde_json::from_str(&wanted.config).unwrap_or_default(),
        live,
        refused,
        swaps: status.swaps,
        refusals: status.refusals,
    })
}

/// Preemptions are counted over this long, in seconds.
const HOUR: u64 = 3600;

fn owner(app: &App, queue: &str) -> Option<String> {
    let config = app.system.config();
    config.queues.iter().find(|known| known.name == queue)?.tenant.clone()
}

fn view(app: &App, caller: &Caller, name: &QueueName) -> Option<QueueView> {
    let books = app.system.books.view();
    let queue = books.state.queues().get(name)?;
    let tenant = owner(app, name);
    // Another tenant's policy and its words are its own; the line is common.
    let mine = tenant.as_deref().is_none_or(|tenant| caller.sees(tenant));
    let mut policy = policy_view(app, name).filter(|_| mine);
    if !(caller.role >= Role::Manager && mine)
        && let Some(live) = policy.as_mut().and_then(|policy| policy.live.as_mut())
    {
        live.log.clear();
    }
    let now = crater_server::now();
    let recent = queue.evictions.iter().filter(|at| now.secs_since(**at) < HOUR).count() as u64;
    Some(QueueView {
        name: queue.spec.name.to_string(),
        kind: queue.spec.kind.to_string(),
        priority: queue.spec.priority,
        fallback: queue.spec.fallback.to_string(),
        paused: queue.spec.paused,
        tenant,
        waiting: queue.waiting.len() as u64,
        running: queue.running.len() as u64,
        room: QueueRoom {
            minimum_run: queue.spec.room.minimum_run,
            preemptions_per_hour: queue.spec.room.preemptions_per_hour,
            preemptions_per_job: queue.spec.room.preemptions_per_job,
            reserve_after: queue.spec.room.reserve_after,
            preemptions_last_hour: recent,
        },
        policy,
    })
}

/// Lists queues.
#[utoipa::path(get, path = "/api/v1/queues", tag = "queues", responses((status = 200, body = Vec<QueueView>)))]
pub async fn list(Shared(app): Shared<App>, caller: Caller) -> Json<Vec<QueueView>> {
    let names: Vec<QueueName> = app.system.books.view().state.queues().keys().cloned().collect();
    Json(names.iter().filter_map(|name| view(&app, &caller, name)).collect())
}

/// One queue.
#[utoipa::path(get, path = "/api/v1/queues/{name}", tag = "queues", params(("name" = String, Path)),
    responses((status = 200, body = QueueView), (status = 404, body = Problem)))]
pub async fn get(
    Shared(app): Shared<App>,
    caller: Caller,
    Path(name): Path<String>,
) -> Result<Json<QueueView>, Problem> {
    let found = view(&app, &caller, &name.as_str().into());
    found.map(Json).ok_or_else(|| Problem::unknown("queue", &name))
}

/// Changes of a queue. What is left out stays.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct QueueChange {
    /// Its policy: a built-in name, or a file that the server reads
    /// (administrators only). `none` takes it away.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// The policy's configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub config: Option<serde_json::Map<String, serde_json::Value>>,
    /// binpack, spread or hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fallback: Option<String>,
    /// Greater goes first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<u16>,
    /// Nothing of it starts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused: Option<bool>,
}

/// Changes a queue. It takes the role manager at its tenant, admin for one of
/// the platform's. A reload of the configuration file sets what the file says.
#[utoipa::path(patch, path = "/api/v1/queues/{name}", tag = "queues", params(("name" = String, Path)), request_body = QueueChange,
    responses((status = 200, body = QueueView), (status = 403, body = Problem), (status = 422, body = Problem)))]
pub async fn change(
    Shared(app): Shared<App>,
    caller: Caller,
    Path(name): Path<String>,
    Body(change): Body<QueueChange>,
) -> Result<Json<QueueView>, Problem> {
    let books = app.system.books.view();
    let known = books.state.queues().get(name.as_str());
    let known = known.ok_or_else(|| Problem::unknown("queue", &name))?;
    match owner(&app, &name) {
        Some(tenant) => caller.must(Role::Manager, &tenant)?,
        None => caller.admin()?,
    }
    if change.priority.is_some() {
        // Order between queues is the platform's.
        caller.admin()?;
    }
    let mut spec = (*known.spec).clone();
    if let Some(fallback) = &change.fallback {
        spec.fallback = Fallback::parse("fallback", fallback)?;
    }
    spec.priority = change.priority.unwrap_or(spec.priority);
    spec.paused = change.paused.unwrap_or(spec.paused);
    if change.policy.is_some() || change.config.is_some() {
        set_policy(&app, &caller, &name, &change).await?;
    }
    if spec != *known.spec {
        let done = app.system.books.change(move |writer| writer.ledger.set_queue(writer.now, spec));
        done.await??;
    }
    get(Shared(app), caller, Path(name)).await
}

async fn set_policy(
    app: &App,
    caller: &Caller,
    name: &str,
    change: &QueueChange,
) -> Result<(), Problem> {
    let known = app.system.policies.status();
    let known =
        known.into_iter().find(|(queue, _, _)| &**queue == name).map(|(_, wanted, _)| wanted);
    let source = match change.policy.as_deref() {
        Some("none") => None,
        Some(text) => Some(Source::parse(text)),
        None => known.as_ref().map(|wanted| wanted.source.clone()),
    };
    if matches!(source, Some(Source::File(_))) && change.policy.is_some() {
        // The server reads it with its own rights.
        caller.admin()?;
    }
    let config = match &change.config {
        Some(config) => serde_json::Value::Object(config.clone()).to_string(),
        // Another policy does not know the last one's settings.
        None if change.policy.is_some() => "{}".into(),
        None => known.map_or_else(|| "{}".into(), |wanted| wanted.config),
    };
    let wanted = source.map(|source| Wanted { source, config });
    let (system, queue) = (app.system.clone(), QueueName::from(name));
    let done = tokio::task::spawn_blocking(move || {
        if let Some(wanted) = &wanted {
            // Tried first: a refused one must not become what a later reload wants.
            system.policies.check(wanted, &system.books.view().state)?;
        }
        system.set_policy(&queue, wanted.as_ref())
    });
    match done.await {
        Ok(result) => result.map_err(|text| Problem::field("policy", text)),
        Err(_) => Err(Problem::conflict("the policy could not be tried; try again")),
    }
}
