//! How notifications to webhooks went.

use crate::app::App;
use crate::auth::Caller;
use crate::problem::Problem;
use crate::types::rfc3339;
use axum::Json;
use axum::extract::State as Shared;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A webhook of the configuration, and how deliveries to it went.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct WebhookView {
    /// Where notifications are sent.
    pub url: String,
    /// What is told: start, preempt, end.
    pub events: Vec<String>,
    /// Of this tenant and those below it; of all without.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// Whether what is sent is signed.
    pub signed: bool,
    /// Delivered so far.
    pub delivered: u64,
    /// To be delivered.
    pub waiting: u64,
    /// Given up after many tries.
    pub given_up: u64,
    /// When one was delivered last, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_delivered: Option<String>,
    /// Why a delivery failed last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
    /// When.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_error_at: Option<String>,
}

/// Lists the webhooks of the configuration: an administrator's to see, since
/// their addresses may hold secrets.
#[utoipa::path(get, path = "/api/v1/webhooks", tag = "server",
    responses((status = 200, body = Vec<WebhookView>), (status = 403, body = Problem)))]
pub async fn list(
    Shared(app): Shared<App>,
    caller: Caller,
) -> Result<Json<Vec<WebhookView>>, Problem> {
    caller.admin()?;
    let hooks = app.system.hooks.all();
    let found = app.look(move |reader| {
        hooks
            .iter()
            .map(|hook| {
                let went = reader.deliveries(&hook.url)?;
                Ok(WebhookView {
                    url: hook.url.clone(),
                    events: hook.events.iter().map(|event| event.name().to_owned()).collect(),
                    tenant: hook.tenant.clone(),
                    signed: hook.secret.is_some(),
                    delivered: went.delivered,
                    waiting: went.waiting,
                    given_up: went.given_up,
                    last_delivered: went.last.map(rfc3339),
                    last_error: went.error,
                    last_error_at: went.error_at.map(rfc3339),
                })
            })
            .collect()
    });
    Ok(Json(found.await?))
}
