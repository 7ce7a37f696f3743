//! Errors as RFC 9457 problems.

use axum::extract::rejection::{BytesRejection, PathRejection, QueryRejection};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use crater_engine::ledger::Refusal;
use crater_model::FieldError;
use crater_server::Unavailable;
use crater_store::StoreError;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Why a request was not done. Nothing of it was.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema, PartialEq, Eq)]
pub struct Problem {
    /// Names the sort of problem.
    #[serde(rename = "type")]
    pub kind: String,
    /// The sort of problem in words.
    pub title: String,
    /// HTTP status.
    pub status: u16,
    /// What is wrong, and what to do.
    pub detail: String,
    /// The field that is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// What the field may hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
}

impl Problem {
    /// A problem of a status and a short name.
    pub fn new(status: StatusCode, kind: &str, detail: impl Into<String>) -> Self {
        Self {
            kind: format!("urn:crater:{kind}"),
            title: status.canonical_reason().unwrap_or("error").to_owned(),
            status: status.as_u16(),
            detail: detail.into(),
            field: None,
            expected: None,
        }
    }

    /// Something that is not there, or not for this person to know of.
    pub fn unknown(what: &str, name: &str) -> Self {
        let name: String = name.chars().take(64).collect();
        Self::new(StatusCode::NOT_FOUND, "unknown", format!("{what} {name:?} is unknown"))
    }

    /// A right that is missing.
    pub fn forbidden(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "forbidden", detail)
    }

    /// A field's value.
    pub fn field(field: &str, detail: impl Into<String>) -> Self {
        let problem = Self::new(StatusCode::UNPROCESSABLE_ENTITY, "field", detail);
        Self { field: Some(field.to_owned()), ..problem }
    }

    /// Something that does not go with how things stand.
    pub fn conflict(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, "conflict", detail)
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let body = serde_json::to_string(&self).unwrap_or_default();
        (status, [(header::CONTENT_TYPE, "application/problem+json")], body).into_response()
    }
}

impl From<FieldError> for Problem {
    fn from(error: FieldError) -> Self {
        let expected = Some(error.expected.clone());
        Self { expected, ..Self::field(&error.field, error.to_string()) }
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Field(error) => error.into(),
            Refusal::Unknown { what, name } => Self {
                field: Some(what.to_owned()),
                ..Self::new(
                    StatusCode::UNPROCESSABLE_ENTITY,
                    "unknown",
                    format!("{what} {name:?} is unknown"),
                )
            },
            Refusal::Journal(error) => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "journal", error.to_string())
            }
            Refusal::Defect(error) => {
                Self::new(StatusCode::INTERNAL_SERVER_ERROR, "defect", error.to_string())
            }
            refusal @ Refusal::Over { .. } => Self::conflict(refusal.to_string()),
        }
    }
}

impl From<Unavailable> for Problem {
    fn from(error: Unavailable) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "busy", error.to_string())
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        tracing::error!(%error, "the store failed");
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "store", "the history cannot be read; try again")
    }
}

impl From<BytesRejection> for Problem {
    fn from(rejection: BytesRejection) -> Self {
        Self::new(rejection.status(), "body", rejection.body_text())
    }
}

impl From<QueryRejection> for Problem {
    fn from(rejection: QueryRejection) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "query", rejection.body_text())
    }
}

impl From<PathRejection> for Problem {
    fn from(rejection: PathRejection) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "path", rejection.body_text())
    }
}
