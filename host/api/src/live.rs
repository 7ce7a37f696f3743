//! Changes as they happen, as server-sent events.

use crate::app::App;
use crate::auth::Caller;
use crate::hub::{Event as Change, Hub, Listening};
use axum::extract::State as Shared;
use axum::http::HeaderMap;
use axum::response::Sse;
use axum::response::sse::{Event, KeepAlive};
use futures_util::stream::{self, Stream, StreamExt as _};
use std::convert::Infallible;
use std::sync::Arc;
use tokio::sync::broadcast::error::RecvError;

/// Jobs that the caller may see, each whenever something about it changed:
/// events named `job` with a job as data, `gone` with an id once it was
/// forgotten. First come all jobs as they stand; after a pause in the
/// connection, with the header `Last-Event-ID`, only what changed since, if
/// that is known. Who reads too slowly is told of all jobs again.
#[utoipa::path(get, path = "/api/v1/events", tag = "jobs",
    params(("Last-Event-ID" = Option<String>, Header, description = "The last event that was seen")),
    responses((status = 200, content_type = "text/event-stream", description = "Server-sent events")))]
pub async fn events(
    Shared(app): Shared<App>,
    caller: Caller,
    headers: HeaderMap,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let last = headers.get("last-event-id").and_then(|id| id.to_str().ok());
    let hub = app.hub.clone();
    let Listening { first, news } = hub.listen(last);
    let state = (hub.clone(), news, Some(first));
    let changes = stream::unfold(state, |(hub, mut news, first)| async move {
        let next = match first {
            Some(first) => first,
            None => match news.recv().await {
                Ok(change) => vec![change],
                Err(RecvError::Lagged(_)) => {
                    let again = hub.listen(None);
                    news = again.news;
                    again.first
                }
                Err(RecvError::Closed) => return None,
            },
        };
        Some((stream::iter(next), (hub, news, None::<Vec<Arc<Change>>>)))
    });
    let seen = changes.flatten().filter_map(move |change| {
        let event = caller.sees(&change.tenant).then(|| Ok(event(&hub, &change)));
        std::future::ready(event)
    });
    Sse::new(seen).keep_alive(KeepAlive::default())
}

fn event(hub: &Hub, change: &Change) -> Event {
    let event = Event::default().id(hub.id(change));
    match &change.shown {
        Some(shown) => event.event("job").data(shown),
        None => event.event("gone").data(change.job.to_string()),
    }
}
