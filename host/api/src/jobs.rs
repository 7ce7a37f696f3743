//! Jobs: submit, list, look at, change, end.

use crate::app::App;
use crate::auth::{Caller, Role};
use crate::extract::{Body, Path, Query};
use crate::problem::Problem;
use crate::room::RoomView;
use crate::types::{
    CardView, ClaimView, EventView, JobDetail, JobView, Submit, constraints, decision, of_row,
    rfc3339,
};
use axum::Json;
use axum::extract::State as Shared;
use axum::http::{HeaderMap, StatusCode};
use crater_engine::{Job, State};
use crater_model::event::Entry;
use crater_model::{Cause, Digest, JobChanges, JobSpec, JobState, JobUid, TenantPath, Time};
use crater_server::{System, now};
use crater_store::{Filter, Page, Submission};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// Reads job-2, job-002 or 2.
pub fn job_uid(text: &str) -> Result<JobUid, Problem> {
    let digits = text.strip_prefix("job-").unwrap_or(text);
    let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    let number = digits.parse().ok().filter(|_| plain);
    number.map(JobUid).ok_or_else(|| Problem::unknown("job", text))
}

/// Why a job waits, or how it ended.
pub fn reason(system: &System, job: &Job) -> String {
    if job.state == JobState::Pending {
        let board = system.books.board();
        return board
            .reasons(job.uid)
            .map_or_else(|| "not decided on yet".to_owned(), |reasons| reasons.to_string());
    }
    job.reason.to_string()
}

/// Submits a job. With an `Idempotency-Key` header, a second submission with
/// the same key and body gives the first one's job.
#[utoipa::path(post, path = "/api/v1/jobs", tag = "jobs", request_body = Submit,
    params(("Idempotency-Key" = Option<String>, Header, description = "At most 128 characters; kept for a day")),
    responses((status = 201, body = JobView), (status = 200, body = JobView, description = "Known by its key"),
              (status = 422, body = Problem), (status = 409, body = Problem)))]
pub async fn submit(
    Shared(app): Shared<App>,
    caller: Caller,
    headers: HeaderMap,
    Body(body): Body<Submit>,
) -> Result<(StatusCode, Json<JobView>), Problem> {
    let view = app.system.books.view();
    let spec = body.spec(&view.state, &own(&caller)?)?;
    caller.must(Role::Member, spec.tenant.as_str())?;
    app.system.accepts(&spec)?;
    let key = match headers.get("idempotency-key") {
        None => None,
        Some(key) => {
            let text = key.to_str().ok().filter(|key| (1..=128).contains(&key.len()));
            Some(text.map(str::to_owned).ok_or_else(|| {
                Problem::field(
                    "Idempotency-Key",
                    "Idempotency-Key: expected 1 to 128 plain characters",
                )
            })?)
        }
    };
    let bytes = serde_json::to_vec(&body).unwrap_or_default();
    let body_hash = Digest(*blake3::hash(&bytes).as_bytes());
    let scope = caller.token.to_string();
    let asked = body.priority.is_some();
    let starts_over = starts_over(&body);
    let done = app
        .system
        .books
        .change(move |writer| {
            let at = writer.now;
            if let Some(key) = &key
                && let Some(known) = writer.store().recall(&scope, key, at)?
            {
                if known.request != body_hash {
                    return Err(Problem::conflict(
                        "this Idempotency-Key came with another body before",
                    ));
                }
                return Ok((known.job, false, None));
            }
            let mut spec = spec;
            let lowered = if asked { None } else { lower(writer.state(), &mut spec) };
            let job = writer.ledger.submit(at, spec)?;
            if let Some(key) = &key {
                let submission = Submission { job, request: body_hash };
                writer.store().remember(&scope, key, submission, at)?;
            }
            Ok((job, true, lowered))
        })
        .await?;
    let (job, new, lowered) = done?;
    let status = if new { StatusCode::CREATED } else { StatusCode::OK };
    let mut found = find(&app, &caller, job).await?;
    found.notes.extend(lowered);
    found.notes.extend(starts_over);
    Ok((status, Json(found)))
}

/// What the owner of a job that may be preempted should know. That the simulated
/// executor saves its progress is known; of others it is not.
fn starts_over(body: &Submit) -> Option<String> {
    let saves = body.env.contains_key("CRATER_SIMULATE_CHECKPOINT");
    (body.preemptible && !saves).then(|| {
        "it may be preempted and starts over then, unless it saves its progress when it is \
         signalled and goes on from there; `crater job checkpoint` tells the scheduler that it did"
            .to_owned()
    })
}

/// Lowers a priority that nobody asked for to the tenant's ceiling, and says so.
fn lower(state: &State, spec: &mut JobSpec) -> Option<String> {
    let (tenant, ceiling) = state.quotas().ceiling(&spec.tenant)?;
    if spec.priority <= ceiling {
        return None;
    }
    let note = format!(
        "priority is {} instead of {}, since that is the ceiling of {tenant}",
        ceiling.0, spec.priority.0
    );
    spec.priority = ceiling;
    Some(note)
}

/// Where jobs belong that do not say it: the caller's tenant, for a token that
/// holds everywhere `default`.
fn own(caller: &Caller) -> Result<TenantPath, Problem> {
    if caller.tenant.as_str().is_empty() {
        return Ok(TenantPath::parse("tenant", "default")?);
    }
    Ok(caller.tenant.clone())
}

/// A job in the books or the history, if the caller may see it.
pub async fn find(app: &App, caller: &Caller, uid: JobUid) -> Result<JobView, Problem> {
    let view = app.system.books.view();
    let unknown = || Problem::unknown("job", &uid.to_string());
    if let Some(job) = view.state.job(uid).filter(|job| !job.state.ended()) {
        if !caller.sees(job.spec.tenant.as_str()) {
            return Err(unknown());
        }
        return Ok(JobView::of(&view.state, job, reason(&app.system, job)));
    }
    let row = app.look(move |reader| reader.job(uid)).await?;
    let row = row.filter(|row| caller.sees(row.spec.tenant.as_str())).ok_or_else(unknown)?;
    Ok(of_row(&row))
}

/// Which jobs.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
#[into_params(parameter_in = Query)]
pub struct Which {
    /// Of this queue.
    pub queue: Option<String>,
    /// In this status; several with commas.
    pub status: Option<String>,
    /// Of this tenant and those below it.
    pub tenant: Option<String>,
    /// Of this name.
    pub name: Option<String>,
    /// Submitted or changed within this time, such as 1h.
    pub since: Option<String>,
    /// At most so many, 1 to 1000.
    pub limit: Option<u32>,
    /// Where the last page ended.
    pub cursor: Option<String>,
}

/// A page of jobs, newest first.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Jobs {
    /// The jobs.
    pub jobs: Vec<JobView>,
    /// Ask with this for the next page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

fn job_state(text: &str) -> Result<JobState, Problem> {
    use JobState::{Cancelled, Evicted, Failed, Pending, Preempting, Running, Starting, Succeeded};
    let all = [Pending, Starting, Running, Preempting, Succeeded, Failed, Cancelled, Evicted];
    let found = all.into_iter().find(|state| state.to_string().eq_ignore_ascii_case(text));
    found.ok_or_else(|| {
        let names = all.map(|state| state.to_string().to_lowercase()).join(", ");
        Problem::field("status", format!("status: {text:?} is refused: expected {names}"))
    })
}

/// Lists jobs, newest first.
#[utoipa::path(get, path = "/api/v1/jobs", tag = "jobs", params(Which),
    responses((status = 200, body = Jobs), (status = 422, body = Problem)))]
pub async fn list(
    Shared(app): Shared<App>,
    caller: Caller,
    Query(which): Query<Which>,
) -> Result<Json<Jobs>, Problem> {
    let limit = which.limit.unwrap_or(100);
    if !(1..=1000).contains(&limit) {
        return Err(Problem::field(
            "limit",
            format!("limit: {limit} is refused: expected 1 to 1000"),
        ));
    }
    let states = which.status.iter().flat_map(|text| text.split(','));
    let states = states.map(job_state).collect::<Result<Vec<_>, _>>()?;
    let since = match &which.since {
        None => None,
        Some(text) => {
            let span = crater_server::config::span("since", text)?;
            Some(Time(now().0.saturating_sub(span.as_millis() as u64)))
        }
    };
    let tenant = match &which.tenant {
        None => None,
        Some(tenant) => {
            let known = app.system.books.view().state.quotas().resolve("tenant", tenant)?;
            let path = match known {
                Some(path) => path,
                None => TenantPath::parse("tenant", tenant)?,
            };
            caller.must(Role::Viewer, path.as_str())?;
            Some(path)
        }
    };
    let visible = caller.root();
    let filter = Filter { queue: which.queue, states, tenant, visible, name: which.name, since };
    let cursor = match which.cursor {
        None => None,
        Some(text) => Some(text.parse().map_err(|_| {
            Problem::field("cursor", "cursor: expected what `next` said on the page before")
        })?),
    };
    let page = Page { after: cursor, limit };
    let found = app.look(move |reader| reader.jobs(&filter, page)).await?;
    let view = app.system.books.view();
    let jobs = found
        .rows
        .iter()
        .map(|row| match view.state.job(row.uid) {
            Some(job) if !job.state.ended() => {
                JobView::of(&view.state, job, reason(&app.system, job))
            }
            _ => of_row(row),
        })
        .collect();
    Ok(Json(Jobs { jobs, next: found.next.map(|cursor| cursor.to_string()) }))
}

/// Everything about a job.
#[utoipa::path(get, path = "/api/v1/jobs/{id}", tag = "jobs", params(("id" = String, Path)),
    responses((status = 200, body = JobView), (status = 404, body = Problem)))]
pub async fn get(
    Shared(app): Shared<App>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<JobView>, Problem> {
    let uid = job_uid(&id)?;
    let mut found = find(&app, &caller, uid).await?;
    let (row, events, kept) = app
        .look(move |reader| {
            Ok((reader.job(uid)?, reader.events(uid)?, reader.decisions(uid)?.pop()))
        })
        .await?;
    let view = app.system.books.view();
    let job = view.state.job(uid);
    let spec = match (job, &row) {
        (Some(job), _) => serde_json::to_value(&*job.spec).unwrap_or_default(),
        (None, Some(row)) => serde_json::to_value(&row.spec).unwrap_or_default(),
        (None, None) => serde_json::Value::Null,
    };
    let last = app.system.books.board().decision(uid);
    let made = match (&last, &kept) {
        (Some(last), _) => Some(decision(&last.record, last.at)),
        (None, Some(kept)) => Some(decision(&kept.record, kept.at)),
        (None, None) => None,
    };
    let waits = job.is_some_and(|job| job.state == JobState::Pending);
    let why = last.as_ref().filter(|_| waits).map(|last| constraints(&last.record));
    let room = job.map(|job| RoomView::of(&view.state, job, &events)).unwrap_or_default();
    let event = |entry: Entry| EventView {
        at: rfc3339(entry.at),
        event: serde_json::to_value(entry.event).unwrap_or_default(),
    };
    found.detail = Some(JobDetail {
        spec,
        claims: job.map_or_else(Vec::new, |job| claims(&view.state, job)),
        constraints: why.unwrap_or_default(),
        room,
        decision: made,
        events: events.into_iter().map(event).collect(),
    });
    Ok(Json(found))
}

fn claims(state: &State, job: &Job) -> Vec<ClaimView> {
    let claims = job.claims.iter().filter_map(|uid| state.claim(*uid));
    claims
        .map(|claim| ClaimView {
            member: claim.member,
            state: format!("{:?}", claim.state).to_lowercase(),
            node: state.node(claim.node).map(|n| n.spec.name.to_string()).unwrap_or_default(),
            cards: claim
                .held
                .cards
                .iter()
                .map(|card| CardView {
                    card: card.card,
                    milli: card.milli.0,
                    memory_mib: card.memory.0,
                    mig: card.instance.as_ref().map(|i| format!("{}@{}", i.profile, i.start)),
                })
                .collect(),
            isolation: match () {
                () if claim.held.cards.is_empty() => "none",
                () if claim.held.whole => "whole card",
                () if claim.held.cards.iter().all(|card| card.instance.is_some()) => "mig",
                () => "shared (soft)",
            }
            .to_owned(),
        })
        .collect()
}

/// Why a job is ended.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Why {
    /// For people.
    #[schema(max_length = 500)]
    pub reason: String,
}

/// How a job is evicted.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Eviction {
    /// For people; needed.
    #[schema(max_length = 500)]
    pub reason: String,
    /// It waits and starts again; else it is over.
    pub requeue: bool,
}

async fn end(
    app: &App,
    caller: &Caller,
    id: &str,
    role: Role,
    state: JobState,
    why: String,
) -> Result<JobView, Problem> {
    let uid = job_uid(id)?;
    let found = find(app, caller, uid).await?;
    caller.must(role, &found.tenant)?;
    if why.chars().count() > 500 {
        return Err(Problem::field("reason", "reason: expected at most 500 characters"));
    }
    let done =
        app.system.books.change(move |writer| writer.ledger.end_job(writer.now, uid, state, &why));
    match done.await? {
        // Over and forgotten by the books since: the same as over.
        Err(crater_engine::ledger::Refusal::Unknown { .. }) => {
            return Err(Problem::conflict(format!("{uid} is over already")));
        }
        done => done?,
    }
    find(app, caller, uid).await
}

/// Cancels a job.
#[utoipa::path(post, path = "/api/v1/jobs/{id}/cancel", tag = "jobs", params(("id" = String, Path)), request_body = Why,
    responses((status = 200, body = JobView), (status = 404, body = Problem), (status = 409, body = Problem)))]
pub async fn cancel(
    Shared(app): Shared<App>,
    caller: Caller,
    Path(id): Path<String>,
    Body(why): Body<Why>,
) -> Result<Json<JobView>, Problem> {
    let reason =
        if why.reason.is_empty() { format!("cancelled by {}", caller.name) } else { why.reason };
    Ok(Json(end(&app, &caller, &id, Role::Member, JobState::Cancelled, reason).await?))
}

/// Evicts a job: ends it, or sends it back to its queue.
#[utoipa::path(post, path = "/api/v1/jobs/{id}/evict", tag = "jobs", params(("id" = String, Path)), request_body = Eviction,
    responses((status = 200, body = JobView), (status = 403, body = Problem), (status = 409, body = Problem)))]
pub async fn evict(
    Shared(app): Shared<App>,
    caller: Caller,
    Path(id): Path<String>,
    Body(why): Body<Eviction>,
) -> Result<Json<JobView>, Problem> {
    if why.reason.is_empty() {
        return Err(Problem::field("reason", "reason: an eviction needs one"));
    }
    if why.requeue {
        return Ok(Json(requeue(&app, &caller, &id, &why.reason).await?));
    }
    Ok(Json(end(&app, &caller, &id, Role::Manager, JobState::Evicted, why.reason).await?))
}

/// Sends a job back to its queue, whoever it is: a manager's word is enough.
async fn requeue(app: &App, caller: &Caller, id: &str, why: &str) -> Result<JobView, Problem> {
    let uid = job_uid(id)?;
    let found = find(app, caller, uid).await?;
    caller.must(Role::Manager, &found.tenant)?;
    if why.len() > 500 {
        return Err(Problem::field("reason", "reason: expected at most 500 characters"));
    }
    let reason = why.to_owned();
    let done = app
        .system
        .books
        .change(move |writer| writer.ledger.evict(writer.now, uid, Cause::Manual, Some(&reason)));
    match done.await? {
        Ok(true) => tracing::info!(job = %uid, by = %caller.name, why, "sent back to its queue"),
        Ok(false) => {
            let now = find(app, caller, uid).await?.status;
            let text = format!("{uid} is {now}: only what starts or runs goes back to its queue");
            return Err(Problem::conflict(text));
        }
        Err(crater_engine::ledger::Refusal::Unknown { .. }) => {
            return Err(Problem::conflict(format!("{uid} is over already")));
        }
        Err(error) => return Err(error.into()),
    }
    find(app, caller, uid).await
}

/// Submits a job again that is over.
#[utoipa::path(post, path = "/api/v1/jobs/{id}/retry", tag = "jobs", params(("id" = String, Path)),
    responses((status = 201, body = JobView), (status = 409, body = Problem)))]
pub async fn retry(
    Shared(app): Shared<App>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<(StatusCode, Json<JobView>), Problem> {
    let uid = job_uid(&id)?;
    let found = find(&app, &caller, uid).await?;
    caller.must(Role::Member, &found.tenant)?;
    let over = ["Succeeded", "Failed", "Cancelled", "Evicted"].contains(&found.status.as_str());
    if !over {
        return Err(Problem::conflict(format!("{uid} is {}, not over", found.status)));
    }
    let row = app.look(move |reader| reader.job(uid)).await?;
    let spec = row.map(|row| row.spec);
    let spec = spec.ok_or_else(|| Problem::unknown("job", &id))?;
    let done = app.system.books.change(move |writer| writer.ledger.submit(writer.now, spec));
    let job = done.await??;
    Ok((StatusCode::CREATED, Json(find(&app, &caller, job).await?)))
}

/// Changes of a job that is not over. What is left out stays.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct JobChange {
    /// low, medium, high or 0 to 1000.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<crate::Amount>,
    /// It may be preempted; not for inference.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preemptible: Option<bool>,
    /// Disk IO weight, 1 to 10000.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk_io: Option<u16>,
}

/// Changes a job that is not over.
#[utoipa::path(patch, path = "/api/v1/jobs/{id}", tag = "jobs", params(("id" = String, Path)), request_body = JobChange,
    responses((status = 200, body = JobView), (status = 409, body = Problem), (status = 422, body = Problem)))]
pub async fn update(
    Shared(app): Shared<App>,
    caller: Caller,
    Path(id): Path<String>,
    Body(change): Body<JobChange>,
) -> Result<Json<JobView>, Problem> {
    let uid = job_uid(&id)?;
    let found = find(&app, &caller, uid).await?;
    caller.must(Role::Member, &found.tenant)?;
    let priority =
        change.priority.as_ref().map(|p| crater_model::Priority::parse("priority", &p.0));
    let changes = JobChanges {
        priority: priority.transpose()?,
        preemptible: change.preemptible,
        disk_weight: change.disk_io,
    };
    let done =
        app.system.books.change(move |writer| writer.ledger.update_job(writer.now, uid, changes));
    match done.await? {
        Err(crater_engine::ledger::Refusal::Unknown { .. }) => {
            return Err(Problem::conflict(format!("{uid} is over already")));
        }
        done => done?,
    };
    Ok(Json(find(&app, &caller, uid).await?))
}
