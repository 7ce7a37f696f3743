//! What every request gets: a name to find it by, a line in the log, and its
//! time in the metrics.

use crate::app::App;
use axum::extract::{MatchedPath, Request, State as Shared};
use axum::http::{HeaderName, HeaderValue};
use axum::middleware::Next;
use axum::response::Response;
use std::time::Instant;
use tracing::Instrument as _;

/// The header that names a request.
pub const ID: HeaderName = HeaderName::from_static("x-request-id");
/// Characters of a name that a client gives.
const MOST: usize = 64;

/// The client's name for the request if it is a plain one, or a new one.
fn name(request: &Request) -> String {
    let given = request.headers().get(&ID).and_then(|id| id.to_str().ok());
    let plain = |id: &&str| {
        (1..=MOST).contains(&id.len())
            && id.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
    };
    given.filter(plain).map_or_else(fresh, str::to_owned)
}

fn fresh() -> String {
    let mut bytes = [0_u8; 8];
    // A name that is drawn badly only makes two lines harder to tell apart.
    let _ = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
    format!("{:016x}", u64::from_le_bytes(bytes))
}

/// Follows a request until its answer begins; a stream goes on after that.
pub async fn follow(Shared(app): Shared<App>, request: Request, next: Next) -> Response {
    let start = Instant::now();
    let id = name(&request);
    let method = request.method().clone();
    // The pattern, not the path: identities would make a series each.
    let route = request.extensions().get::<MatchedPath>();
    let route = route.map_or("other", MatchedPath::as_str).to_owned();
    let span = tracing::info_span!("request", id = %id, method = %method, route = %route,
        status = tracing::field::Empty);
    let mut response = next.run(request).instrument(span.clone()).await;
    let (status, took) = (response.status(), start.elapsed());
    span.record("status", status.as_u16());
    span.in_scope(|| tracing::debug!(status = status.as_u16(), ?took, "answered"));
    let method = match method.as_str() {
        known @ ("GET" | "POST" | "PUT" | "PATCH" | "DELETE" | "HEAD" | "OPTIONS") => known,
        _ => "other",
    };
    let labels =
        [("method", method.to_owned()), ("route", route), ("status", status.as_u16().to_string())];
    app.system.metrics.requests.get_or_create(&labels).observe(took.as_secs_f64());
    if let Ok(id) = HeaderValue::from_str(&id) {
        response.headers_mut().insert(ID, id);
    }
    response
}
