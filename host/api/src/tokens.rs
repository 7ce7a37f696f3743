//! Access tokens.

use crate::app::App;
use crate::auth::{Caller, Role, hash, secret};
use crate::extract::{Body, Path};
use crate::problem::Problem;
use crate::types::rfc3339;
use axum::Json;
use axum::extract::State as Shared;
use axum::http::StatusCode;
use crater_model::TenantPath;
use crater_server::now;
use crater_store::NewToken;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A token, without its secret.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct TokenView {
    /// Number.
    pub id: u64,
    /// Name.
    pub name: String,
    /// Role.
    pub role: String,
    /// Where it holds; none everywhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// When it was made, RFC 3339.
    pub created: String,
    /// When it ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires: Option<String>,
    /// When it was taken back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revoked: Option<String>,
    /// When it was last used, to about a minute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_used: Option<String>,
}

fn view(app: &App, token: &crater_store::Token) -> TokenView {
    TokenView {
        id: token.id,
        name: token.name.clone(),
        role: token.role.clone(),
        tenant: token.tenant.as_ref().map(|tenant| tenant.as_str().to_owned()),
        created: rfc3339(token.created),
        expires: token.expires.map(rfc3339),
        revoked: token.revoked.map(rfc3339),
        last_used: app.tokens.last_used(token).map(rfc3339),
    }
}

/// A token that is wanted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct TokenAsk {
    /// Name, for people.
    #[schema(max_length = 100)]
    pub name: String,
    /// What it allows.
    pub role: Role,
    /// Where: a tenant and all below it. An administrator has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// How long it holds, such as 90d; for ever without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<String>,
}

/// A new token. Its secret is shown this once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct TokenMade {
    /// Number.
    pub id: u64,
    /// The secret.
    pub token: String,
}

/// Makes a token. A manager makes those below its own tenant.
#[utoipa::path(post, path = "/api/v1/tokens", tag = "tokens", request_body = TokenAsk,
    responses((status = 201, body = TokenMade), (status = 403, body = Problem), (status = 422, body = Problem)))]
pub async fn create(
    Shared(app): Shared<App>,
    caller: Caller,
    Body(ask): Body<TokenAsk>,
) -> Result<(StatusCode, Json<TokenMade>), Problem> {
    if ask.name.is_empty() || ask.name.len() > 100 || ask.name.chars().any(char::is_control) {
        return Err(Problem::field("name", "name: expected 1 to 100 printable characters"));
    }
    let tenant = match (&ask.tenant, ask.role) {
        (None, Role::Admin) => None,
        (Some(_), Role::Admin) => {
            return Err(Problem::field(
                "tenant",
                "tenant: an administrator's token holds everywhere; leave it out",
            ));
        }
        (None, _) => {
            return Err(Problem::field(
                "tenant",
                "tenant: expected a department, department/project or department/project/person",
            ));
        }
        (Some(path), _) => Some(TenantPath::parse("tenant", path)?),
    };
    match &tenant {
        None => caller.admin()?,
        Some(tenant) => caller.must(Role::Manager, tenant.as_str())?,
    }
    let expires = match &ask.expires {
        None => None,
        Some(text) => Some(now() + crater_server::config::span("expires", text)?),
    };
    let secret = secret().map_err(|error| {
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, "random", error.to_string())
    })?;
    let new = NewToken {
        hash: hash(&secret),
        name: ask.name,
        role: ask.role.name().to_owned(),
        tenant,
        expires,
    };
    let done = app.system.books.change(move |writer| {
        let at = writer.now;
        writer.store().add_token(&new, at)
    });
    let id = done.await??;
    reload(&app).await?;
    Ok((StatusCode::CREATED, Json(TokenMade { id, token: secret })))
}

async fn reload(app: &App) -> Result<(), Problem> {
    let all = app.look(crater_store::Reader::tokens).await?;
    app.tokens.load(all);
    Ok(())
}

/// Lists the tokens at or below the caller's tenant.
#[utoipa::path(get, path = "/api/v1/tokens", tag = "tokens", responses((status = 200, body = Vec<TokenView>)))]
pub async fn list(
    Shared(app): Shared<App>,
    caller: Caller,
) -> Result<Json<Vec<TokenView>>, Problem> {
    let all = app.look(crater_store::Reader::tokens).await?;
    let mine = |token: &&crater_store::Token| {
        caller.role == Role::Admin
            || token
                .tenant
                .as_ref()
                .is_some_and(|tenant| caller.role >= Role::Manager && caller.sees(tenant.as_str()))
            || token.id == caller.token
    };
    Ok(Json(all.iter().filter(mine).map(|token| view(&app, token)).collect()))
}

/// Takes a token back.
#[utoipa::path(delete, path = "/api/v1/tokens/{id}", tag = "tokens", params(("id" = u64, Path)),
    responses((status = 204), (status = 404, body = Problem)))]
pub async fn revoke(
    Shared(app): Shared<App>,
    caller: Caller,
    Path(id): Path<u64>,
) -> Result<StatusCode, Problem> {
    let all = app.look(crater_store::Reader::tokens).await?;
    let unknown = || Problem::unknown("token", &id.to_string());
    let token = all.iter().find(|token| token.id == id).ok_or_else(unknown)?;
    match &token.tenant {
        _ if token.id == caller.token => {}
        None => caller.admin()?,
        Some(tenant) => caller.must(Role::Manager, tenant.as_str()).map_err(|_| unknown())?,
    }
    let done = app.system.books.change(move |writer| {
        let at = writer.now;
        writer.store().revoke_token(id, at)
    });
    done.await??;
    reload(&app).await?;
    Ok(StatusCode::NO_CONTENT)
}
