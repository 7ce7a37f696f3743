//! Reading requests such that whatever is wrong names its field.

use crate::problem::Problem;
use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::StatusCode;
use axum::http::request::Parts;
use serde::de::DeserializeOwned;

/// A JSON body. An empty one counts as `{}`.
pub struct Body<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Body<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let bytes = Bytes::from_request(request, state).await?;
        let bytes: &[u8] = if bytes.is_empty() { b"{}" } else { &bytes };
        let mut json = serde_json::Deserializer::from_slice(bytes);
        let value = serde_path_to_error::deserialize(&mut json).map_err(|error| {
            let inner = error.inner();
            if inner.is_syntax() || inner.is_eof() {
                let detail = format!("the body is not JSON: {inner}");
                return Problem::new(StatusCode::BAD_REQUEST, "json", detail);
            }
            let path = error.path().to_string();
            Problem::field(&path, format!("{path}: {inner}"))
        })?;
        let end = json.end();
        end.map_err(|error| Problem::new(StatusCode::BAD_REQUEST, "json", error.to_string()))?;
        Ok(Self(value))
    }
}

/// The query string.
pub struct Query<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Query<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let query = axum::extract::Query::<T>::from_request_parts(parts, state).await?;
        Ok(Self(query.0))
    }
}

/// A part of the path.
pub struct Path<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for Path<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let path = axum::extract::Path::<T>::from_request_parts(parts, state).await?;
        Ok(Self(path.0))
    }
}
