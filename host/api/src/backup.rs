//! Backups of the whole store, and back.

use crate::app::App;
use crate::auth::Caller;
use crate::problem::Problem;
use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::State as Shared;
use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use axum::response::{IntoResponse, Response};
use crater_store::StoreError;
use futures_util::{StreamExt as _, stream};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::Path;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use utoipa::ToSchema;

/// BLAKE3 of a backup in hexadecimal digits: both ends compare it.
pub const HASH: HeaderName = HeaderName::from_static("x-crater-blake3");
/// Bytes that are read at once.
const PIECE: usize = 256 << 10;

/// One backup or upload at a time: each needs the disk for itself.
fn alone(app: &App) -> Result<OwnedSemaphorePermit, Problem> {
    let taken = app.copying.clone().try_acquire_owned();
    taken.map_err(|_| Problem::conflict("another backup or restore is under way; try again"))
}

/// What cannot be used, without the server's own name for it.
fn refused(error: &StoreError, path: &Path) -> Problem {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(source) = cause {
        text = format!("{text}: {source}");
        cause = source.source();
    }
    let text = text.replace(&path.display().to_string(), "the backup");
    Problem::field("body", format!("the backup is refused: {text}"))
}

fn failed(error: impl std::fmt::Display) -> Problem {
    tracing::error!(%error, "a backup failed");
    Problem::new(StatusCode::INSUFFICIENT_STORAGE, "disk", format!("the server's disk: {error}"))
}

/// Everything that is durable now, as one `SQLite` file. The server goes on
/// meanwhile. `X-Crater-Blake3` tells whether all of it arrived.
#[utoipa::path(get, path = "/api/v1/backup", tag = "server",
    responses((status = 200, content_type = "application/vnd.sqlite3", body = Vec<u8>), (status = 403, body = Problem)))]
pub async fn backup(Shared(app): Shared<App>, caller: Caller) -> Result<Response, Problem> {
    caller.admin()?;
    let permit = alone(&app)?;
    let made = tokio::task::spawn_blocking(move || copy(&app));
    let (file, length, hash) = made.await.map_err(failed)?.map_err(failed)?;
    let pieces = stream::unfold((Some(file), permit), |(file, permit)| async move {
        let mut file = file?;
        let piece = tokio::task::spawn_blocking(move || {
            let mut bytes = vec![0; PIECE];
            let read = file.read(&mut bytes)?;
            bytes.truncate(read);
            Ok::<_, std::io::Error>((bytes, file))
        });
        match piece.await.map_err(std::io::Error::other).and_then(|piece| piece) {
            Ok((bytes, _)) if bytes.is_empty() => None,
            Ok((bytes, file)) => Some((Ok(Bytes::from(bytes)), (Some(file), permit))),
            // Ends the answer before its length: the client sees that.
            Err(error) => Some((Err(error), (None, permit))),
        }
    });
    let head = [
        (header::CONTENT_TYPE, "application/vnd.sqlite3".to_owned()),
        (header::CONTENT_LENGTH, length.to_string()),
        (HASH, hash),
    ];
    Ok((head, Body::from_stream(pieces)).into_response())
}

/// A copy that has no name any more: nothing stays of it, however this ends.
fn copy(app: &App) -> Result<(File, u64, String), StoreError> {
    let dir = app.system.data();
    let place = crater_store::part(dir)?;
    let io = |source| StoreError::Io { path: place.to_path_buf(), doing: "read back", source };
    std::fs::remove_file(&place).map_err(io)?;
    app.reader()?.backup(&place)?;
    let file = File::open(&place).map_err(io)?;
    let mut hash = blake3::Hasher::new();
    let length = std::io::copy(&mut &file, &mut hash).map_err(io)?;
    std::io::Seek::rewind(&mut &file).map_err(io)?;
    Ok((file, length, hash.finalize().to_string()))
}

/// A backup that waits to be restored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Staged {
    /// Entries of its journal.
    pub entries: u64,
    /// What happens next, for people.
    pub next: String,
}

/// Takes a backup that the next start of the server puts in the place of what
/// it has. It is checked as a whole first; until then nothing changes.
#[utoipa::path(put, path = "/api/v1/restore", tag = "server",
    request_body(content = Vec<u8>, content_type = "application/vnd.sqlite3"),
    responses((status = 202, body = Staged), (status = 403, body = Problem), (status = 422, body = Problem)))]
pub async fn restore(
    Shared(app): Shared<App>,
    caller: Caller,
    headers: HeaderMap,
    body: Body,
) -> Result<(StatusCode, Json<Staged>), Problem> {
    caller.admin()?;
    let _permit = alone(&app)?;
    let told = headers.get(&HASH).and_then(|hash| hash.to_str().ok()).map(str::to_owned);
    let place = crater_store::part(app.system.data()).map_err(failed)?;
    let path = place.to_path_buf();
    let (send, mut pieces) = mpsc::channel::<Bytes>(4);
    let writing = tokio::task::spawn_blocking(move || {
        let mut file = File::options().write(true).open(&path)?;
        let mut hash = blake3::Hasher::new();
        while let Some(piece) = pieces.blocking_recv() {
            hash.update(&piece);
            file.write_all(&piece)?;
        }
        file.sync_all()?;
        Ok::<_, std::io::Error>(hash.finalize().to_string())
    });
    let mut stream = body.into_data_stream();
    let mut broken = None;
    while let Some(piece) = stream.next().await {
        match piece {
            Ok(piece) => {
                if send.send(piece).await.is_err() {
                    // The writer says why.
                    break;
                }
            }
            Err(error) => {
                broken = Some(error.to_string());
                break;
            }
        }
    }
    drop(send);
    let hash = writing.await.map_err(failed)?.map_err(failed)?;
    if let Some(error) = broken {
        return Err(Problem::field("body", format!("the backup did not arrive whole: {error}")));
    }
    if told.is_some_and(|told| told != hash) {
        return Err(Problem::field(
            "body",
            "the backup did not arrive as it was sent: its hash is another one; send it again",
        ));
    }
    let dir = app.system.data().to_owned();
    let checked = tokio::task::spawn_blocking(move || {
        let staged = crater_store::stage(&place, &dir);
        staged.map_err(|error| refused(&error, &place))
    });
    let entries = checked.await.map_err(failed)??;
    tracing::warn!(by = %caller.name, entries, "a backup takes the store's place at the next start");
    let next = "the server goes on with what it has; its next start puts the backup in its place \
                and keeps what was there as before-restore.db";
    Ok((StatusCode::ACCEPTED, Json(Staged { entries, next: next.into() })))
}

/// Lets a backup go that waits to be restored.
#[utoipa::path(delete, path = "/api/v1/restore", tag = "server",
    responses((status = 204), (status = 404, body = Problem)))]
pub async fn forget(Shared(app): Shared<App>, caller: Caller) -> Result<StatusCode, Problem> {
    caller.admin()?;
    if crater_store::unstage(app.system.data()).map_err(failed)? {
        return Ok(StatusCode::NO_CONTENT);
    }
    Err(Problem::new(StatusCode::NOT_FOUND, "unknown", "no backup waits to be restored"))
}
