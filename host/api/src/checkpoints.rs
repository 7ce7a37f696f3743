//! Progress that a job has saved, as its owner or its executor reports it.

use crate::app::App;
use crate::auth::{Caller, Role};
use crate::extract::Path;
use crate::jobs::{find, job_uid};
use crate::problem::Problem;
use crate::types::JobView;
use axum::Json;
use axum::extract::State as Shared;
use crater_engine::ledger::Refusal;

/// Notes that a job saved its progress: it goes on from there when it has to
/// start again, so less of its work would be lost if it were preempted.
#[utoipa::path(post, path = "/api/v1/jobs/{id}/checkpoint", tag = "jobs", params(("id" = String, Path)),
    responses((status = 200, body = JobView), (status = 404, body = Problem), (status = 409, body = Problem)))]
pub async fn checkpoint(
    Shared(app): Shared<App>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<JobView>, Problem> {
    let uid = job_uid(&id)?;
    let found = find(&app, &caller, uid).await?;
    caller.must(Role::Member, &found.tenant)?;
    let done = app.system.books.change(move |writer| writer.ledger.checkpointed(writer.now, uid));
    match done.await? {
        Err(Refusal::Over { state, .. }) => {
            let text = format!("{uid} is {state}: only a job that runs saves its progress");
            Err(Problem::conflict(text))
        }
        Err(Refusal::Unknown { .. }) => Err(Problem::conflict(format!("{uid} is over already"))),
        done => {
            done?;
            Ok(Json(find(&app, &caller, uid).await?))
        }
    }
}
