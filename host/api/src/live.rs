//! Changes as they happen, as server-sent events.

use crate::app::App;
use crate::auth::Caller;
use crate::types::JobView;
use axum::extract::State as Shared;
use axum::response::Sse;
use axum::response::sse::{Event, KeepAlive};
use futures_util::stream::{self, Stream};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;

/// Jobs that the caller may see, each whenever something about it changed:
/// events named `job` with a job as data, `gone` with an id once it was
/// forgotten. After a pause in the connection, list the jobs and go on.
#[utoipa::path(get, path = "/api/v1/events", tag = "jobs",
    responses((status = 200, content_type = "text/event-stream", description = "Server-sent events")))]
pub async fn events(
    Shared(app): Shared<App>,
    caller: Caller,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let changed = app.system.books.changed();
    let known: BTreeMap<u64, Arc<crater_engine::Job>> = BTreeMap::new();
    let state = (app, caller, changed, known, true);
    let batches =
        stream::unfold(state, |(app, caller, mut changed, mut known, first)| async move {
            if !first && changed.changed().await.is_err() {
                return None;
            }
            let view = app.system.books.view();
            let mut events = vec![];
            let mut seen = BTreeMap::new();
            for job in view.state.jobs().filter(|job| caller.sees(job.spec.tenant.as_str())) {
                let before = known.remove(&job.uid.0);
                if !before.is_some_and(|before| Arc::ptr_eq(&before, job)) {
                    let shown = JobView::of(&view.state, job, crate::jobs::reason(&app, job));
                    let data = serde_json::to_string(&shown).unwrap_or_default();
                    events.push(Ok(Event::default().event("job").data(data)));
                }
                seen.insert(job.uid.0, job.clone());
            }
            for job in known.values() {
                events.push(Ok(Event::default().event("gone").data(job.uid.to_string())));
            }
            Some((stream::iter(events), (app, caller, changed, seen, false)))
        });
    Sse::new(futures_util::StreamExt::flatten(batches)).keep_alive(KeepAlive::default())
}
