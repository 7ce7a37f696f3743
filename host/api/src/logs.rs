//! What jobs print.

use crate::app::App;
use crate::auth::Caller;
use crate::extract::{Path, Query};
use crate::problem::Problem;
use axum::body::{Body, Bytes};
use axum::extract::State as Shared;
use axum::http::{HeaderName, StatusCode, header};
use axum::response::{IntoResponse, Response};
use crater_model::JobUid;
use crater_server::logs::{Chunk, LogError, Stream};
use futures_util::stream;
use serde::Deserialize;
use std::time::Duration;
use utoipa::IntoParams;

/// Offset of the answer's first byte.
pub const FROM: HeaderName = HeaderName::from_static("x-crater-log-from");
/// Where the stream ended when the answer began.
pub const END: HeaderName = HeaderName::from_static("x-crater-log-end");

/// Most bytes of one answer that does not follow.
const MOST: usize = 1 << 20;
/// Bytes that are read at once while following.
const PIECE: usize = 64 << 10;
/// Where nothing tells that a job is over, it is looked at this often.
const LOOK: Duration = Duration::from_secs(1);

/// Which part of what was printed.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
#[into_params(parameter_in = Query)]
pub struct Which {
    /// stdout, which it is without, or stderr.
    pub stream: Option<String>,
    /// From this byte on; offsets never change.
    pub offset: Option<u64>,
    /// At most so many bytes, 1 to 1048576.
    pub limit: Option<usize>,
    /// Go on until the job is over.
    pub follow: bool,
}

/// What a job printed. `X-Crater-Log-From` is the offset of the first byte: a
/// later one than was asked for means that what was before it is not kept.
#[utoipa::path(get, path = "/api/v1/jobs/{id}/logs", tag = "jobs", params(("id" = String, Path), Which),
    responses((status = 200, content_type = "text/plain", body = String), (status = 404, body = Problem),
              (status = 416, body = Problem, description = "The offset is beyond the end")))]
pub async fn logs(
    Shared(app): Shared<App>,
    caller: Caller,
    Path(id): Path<String>,
    Query(which): Query<Which>,
) -> Result<Response, Problem> {
    let uid = crate::jobs::job_uid(&id)?;
    let found = crate::jobs::find(&app, &caller, uid).await?;
    let stream = which.stream.as_deref().unwrap_or("stdout");
    let stream = Stream::parse(stream).ok_or_else(|| {
        Problem::field(
            "stream",
            format!("stream: {stream:?} is refused: expected stdout or stderr"),
        )
    })?;
    let limit = which.limit.unwrap_or(MOST);
    if !(1..=MOST).contains(&limit) {
        return Err(Problem::field("limit", format!("limit: expected 1 to {MOST}")));
    }
    let reading = Reading { app, job: uid, stream, at: which.offset.unwrap_or(0) };
    let first = match reading.read(if which.follow { PIECE } else { limit }).await {
        // It may print yet.
        Err(LogError::Unknown(_)) if which.follow && !reading.over() => Chunk::default(),
        Err(LogError::Unknown(_)) if found.status == "Pending" => {
            let detail = format!("{uid} has printed nothing yet: {}", found.reason);
            return Err(Problem::new(StatusCode::NOT_FOUND, "unknown", detail));
        }
        // It starts.
        Err(LogError::Unknown(_)) if !reading.over() => Chunk::default(),
        read => read.map_err(|error| problem(&error))?,
    };
    let head = [
        (header::CONTENT_TYPE, "text/plain; charset=utf-8".to_owned()),
        (FROM, first.from.to_string()),
        (END, first.end.to_string()),
    ];
    if !which.follow {
        return Ok((head, first.bytes).into_response());
    }
    Ok((head, Body::from_stream(reading.follow(first))).into_response())
}

fn problem(error: &LogError) -> Problem {
    match error {
        LogError::Unknown(_) => Problem::new(StatusCode::NOT_FOUND, "unknown", error.to_string()),
        LogError::Beyond { .. } => Problem {
            field: Some("offset".into()),
            ..Problem::new(StatusCode::RANGE_NOT_SATISFIABLE, "offset", format!("offset: {error}"))
        },
        LogError::Unreadable(_) => {
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, "logs", error.to_string())
        }
    }
}

/// A reader of a stream.
struct Reading {
    app: App,
    job: JobUid,
    stream: Stream,
    at: u64,
}

impl Reading {
    async fn read(&self, most: usize) -> Result<Chunk, LogError> {
        let (logs, job, stream, at) =
            (self.app.system.logs.clone(), self.job, self.stream, self.at);
        // An executor may have to read a file for it.
        let read = tokio::task::spawn_blocking(move || logs.read(job, stream, at, most));
        read.await.unwrap_or_else(|error| Err(LogError::Unreadable(error.to_string())))
    }

    /// Whether nothing more can come: the job is over, and its last process has
    /// stopped.
    fn over(&self) -> bool {
        let view = self.app.system.books.view();
        let job = view.state.job(self.job);
        job.is_none_or(|job| job.state.ended() && job.claims.is_empty())
    }

    /// The first chunk and all that comes, until the job is over. Ends where
    /// bytes were rotated away: the client asks again and sees the gap.
    fn follow(mut self, first: Chunk) -> impl stream::Stream<Item = Result<Bytes, std::io::Error>> {
        self.at = first.from + first.bytes.len() as u64;
        let first = (!first.bytes.is_empty()).then(|| Bytes::from(first.bytes));
        stream::unfold((self, first), |(mut reading, first)| async move {
            if let Some(bytes) = first {
                return Some((Ok(bytes), (reading, None)));
            }
            let mut printed = reading.app.system.logs.changed();
            let mut changed = reading.app.system.books.changed();
            loop {
                // Before the reading: what was printed last is not missed.
                printed.borrow_and_update();
                changed.borrow_and_update();
                let over = reading.over();
                match reading.read(PIECE).await {
                    Ok(chunk) if chunk.from > reading.at => return None,
                    Ok(chunk) if !chunk.bytes.is_empty() => {
                        reading.at += chunk.bytes.len() as u64;
                        return Some((Ok(Bytes::from(chunk.bytes)), (reading, None)));
                    }
                    Ok(_) | Err(LogError::Unknown(_)) if !over => {}
                    Err(LogError::Unreadable(error)) => {
                        return Some((Err(std::io::Error::other(error)), (reading, None)));
                    }
                    _ => return None,
                }
                tokio::select! {
                    alive = printed.changed() => alive.ok()?,
                    alive = changed.changed() => alive.ok()?,
                    () = tokio::time::sleep(LOOK) => {}
                }
            }
        })
    }
}
