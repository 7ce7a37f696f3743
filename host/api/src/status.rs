//! Whether the server is well, and who asks.

use crate::app::App;
use crate::auth::{Caller, Role};
use axum::Json;
use axum::extract::State as Shared;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The server and the caller.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ServerView {
    /// Version.
    pub version: String,
    /// The caller's role.
    pub role: Role,
    /// The caller's tenant, empty for everything.
    pub tenant: String,
    /// When the configuration was last reloaded, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reloaded: Option<String>,
    /// Why the last reload was refused; what was before it holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reload_refused: Option<String>,
    /// A backup takes the store's place at the next start.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub restore_waits: bool,
}

/// The server and the caller.
#[utoipa::path(get, path = "/api/v1/server", tag = "server", responses((status = 200, body = ServerView)))]
pub async fn server(Shared(app): Shared<App>, caller: Caller) -> Json<ServerView> {
    let reload = app.system.reload_status();
    let admin = caller.role == Role::Admin;
    Json(ServerView {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        role: caller.role,
        tenant: caller.tenant.as_str().to_owned(),
        reloaded: reload.applied.map(crate::types::rfc3339),
        reload_refused: reload.refused.filter(|_| admin),
        restore_waits: admin && crater_store::staged(app.system.data()),
    })
}
