//! Who calls, and what they may do.
//!
//! A token is shown once; the store keeps its BLAKE3 hash. A role holds for a
//! tenant and all below it; an administrator's for everything.

use crate::app::App;
use crate::problem::Problem;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode, header};
use crater_model::{Digest, TenantPath, Time};
use crater_server::now;
use crater_store::{NewToken, StoreError, Token};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{PoisonError, RwLock};
use std::time::Duration;
use utoipa::ToSchema;

/// What a token allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Looks at what belongs to its tenant.
    Viewer,
    /// Submits and ends jobs of its tenant, too.
    Member,
    /// Sets the policies of its tenant's queues, and evicts, too.
    Manager,
    /// Everything.
    Admin,
}

impl Role {
    /// The role's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Member => "member",
            Self::Manager => "manager",
            Self::Admin => "admin",
        }
    }

    /// The role of a name.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Viewer, Self::Member, Self::Manager, Self::Admin]
            .into_iter()
            .find(|role| role.name() == text)
    }
}

/// Who calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The token's number.
    pub token: u64,
    /// The token's name, for the record.
    pub name: String,
    /// What it allows.
    pub role: Role,
    /// Where; an administrator's is everywhere.
    pub tenant: TenantPath,
}

/// Whether a path lies at or below another.
fn within(path: &str, root: &str) -> bool {
    path == root || path.strip_prefix(root).is_some_and(|rest| rest.starts_with('/'))
}

impl Caller {
    /// Whether it may see what belongs to a tenant.
    pub fn sees(&self, tenant: &str) -> bool {
        self.role == Role::Admin || within(tenant, self.tenant.as_str())
    }

    /// Refuses one without a role at a tenant. What it may not see is unknown
    /// to it.
    pub fn must(&self, role: Role, tenant: &str) -> Result<(), Problem> {
        if !self.sees(tenant) {
            return Err(Problem::unknown("tenant", tenant));
        }
        if self.role < role {
            let (has, name) = (self.role.name(), role.name());
            return Err(Problem::forbidden(format!(
                "this takes the role {name} at {tenant}; the token has {has}"
            )));
        }
        Ok(())
    }

    /// Refuses anyone but an administrator.
    pub fn admin(&self) -> Result<(), Problem> {
        if self.role == Role::Admin {
            return Ok(());
        }
        Err(Problem::forbidden("this takes the role admin"))
    }

    /// The tenants to which a listing is narrowed; none for an administrator.
    pub fn root(&self) -> Option<Vec<TenantPath>> {
        (self.role != Role::Admin).then(|| vec![self.tenant.clone()])
    }
}

impl FromRequestParts<App> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        caller(app, parts.headers.get(header::AUTHORIZATION))
    }
}

/// Who sends such a header.
pub fn caller(app: &App, header: Option<&HeaderValue>) -> Result<Caller, Problem> {
    let refuse = |detail: &str| Problem::new(StatusCode::UNAUTHORIZED, "token", detail);
    let header = header.ok_or_else(|| {
        refuse("a token is needed: `Authorization: Bearer TOKEN`, or crater config set --token")
    })?;
    let text = header.to_str().ok().and_then(|text| text.strip_prefix("Bearer "));
    let token = text.ok_or_else(|| refuse("expected `Authorization: Bearer TOKEN`"))?;
    app.tokens.caller(token).map_err(|detail| refuse(&detail))
}

/// A token is noted as used again at the earliest after so long.
const COARSE: Duration = Duration::from_mins(1);

/// The tokens that there are, by hash.
#[derive(Debug, Default)]
pub struct Tokens(RwLock<HashMap<Digest, Known>>);

/// A token and its last use: written down now and then, off the requests' way.
#[derive(Debug)]
struct Known {
    token: Token,
    /// Milliseconds since 1970; 0 for never.
    used: AtomicU64,
    /// As the store has it.
    written: AtomicU64,
}

/// The hash under which a token is kept.
pub fn hash(token: &str) -> Digest {
    Digest(*blake3::hash(token.as_bytes()).as_bytes())
}

/// A new secret: 32 random bytes of the operating system.
pub fn secret() -> std::io::Result<String> {
    let mut bytes = [0_u8; 32];
    let mut filled = 0;
    while filled < bytes.len() {
        let rest = &mut bytes[filled..];
        filled += rustix::rand::getrandom(rest, rustix::rand::GetRandomFlags::empty())?;
    }
    Ok(bytes.iter().fold(String::from("crater_"), |text, byte| format!("{text}{byte:02x}")))
}

impl Tokens {
    /// Those of the store.
    pub fn load(&self, all: Vec<Token>) {
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let fresh = all.into_iter().map(|token| {
            let stored = token.last_used.map_or(0, |at| at.0);
            // What is not written yet must outlive the reading.
            let used = known.get(&token.hash).map_or(0, |known| known.used.load(Relaxed));
            let (used, written) = (used.max(stored).into(), stored.into());
            (token.hash, Known { token, used, written })
        });
        *known = fresh.collect();
    }

    /// When a token was last used, written down or not.
    pub fn last_used(&self, token: &Token) -> Option<Time> {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let used = known.get(&token.hash).map_or(0, |known| known.used.load(Relaxed));
        let stored = token.last_used.map_or(0, |at| at.0);
        Some(Time(used.max(stored))).filter(|at| at.0 > 0)
    }

    /// The uses that are to be written down, each once. With `all` those, too,
    /// of tokens that were written down a moment ago.
    pub fn unwritten(&self, all: bool) -> Vec<(u64, Time)> {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let coarse = if all { 0 } else { COARSE.as_millis() as u64 };
        let due = known.values().filter_map(|known| {
            let (used, written) = (known.used.load(Relaxed), known.written.load(Relaxed));
            (used > written.saturating_add(coarse)).then(|| {
                known.written.store(used, Relaxed);
                (known.token.id, Time(used))
            })
        });
        due.collect()
    }

    /// Whoever holds a token, or why it is refused.
    pub fn caller(&self, token: &str) -> Result<Caller, String> {
        let tokens = self.0.read().unwrap_or_else(PoisonError::into_inner);
        // Found by hash, so the time tells nothing of the secret.
        let found = tokens.get(&hash(token)).ok_or("the token is unknown")?;
        let known = &found.token;
        if known.revoked.is_some() {
            return Err("the token was revoked".into());
        }
        if known.expires.is_some_and(|at| at <= now()) {
            return Err("the token has expired".into());
        }
        let role = Role::parse(&known.role).ok_or("the token's role is unknown")?;
        let tenant = known.tenant.clone().unwrap_or_default();
        found.used.fetch_max(now().0, Relaxed);
        Ok(Caller { token: known.id, name: known.name.clone(), role, tenant })
    }
}

/// Writes down now and then when tokens were last used.
pub async fn note_uses(app: App) {
    loop {
        tokio::time::sleep(COARSE).await;
        write_uses(&app, false).await;
    }
}

/// Writes down when tokens were last used.
pub async fn write_uses(app: &App, all: bool) {
    let uses = app.tokens.unwritten(all);
    if uses.is_empty() {
        return;
    }
    let written = app.system.books.change(move |writer| {
        uses.iter().try_for_each(|(id, at)| writer.store().token_used(*id, *at))
    });
    match written.await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::error!(%error, "the use of tokens is not noted"),
        Err(error) => tracing::warn!(%error, "the use of tokens is not noted"),
    }
}

/// No token could be made for the first administrator.
#[derive(Debug, thiserror::Error)]
pub enum FirstError {
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The ledger thread.
    #[error(transparent)]
    Ledger(#[from] crater_server::Unavailable),
    /// The operating system's randomness.
    #[error("no random bytes: {0}")]
    Random(#[from] std::io::Error),
}

/// Makes a token for the first administrator, if there is no token at all.
/// Gives it out so that it can be shown once.
pub fn first(app: &App) -> Result<Option<String>, FirstError> {
    let reader = app.reader()?;
    let all = reader.tokens()?;
    if !all.is_empty() {
        app.tokens.load(all);
        return Ok(None);
    }
    let secret = secret()?;
    let new = NewToken {
        hash: hash(&secret),
        name: "first administrator".into(),
        role: Role::Admin.name().into(),
        tenant: None,
        expires: None,
    };
    let made = app.system.books.change_blocking(move |writer| {
        let now = writer.now;
        writer.store().add_token(&new, now)
    });
    made??;
    app.tokens.load(app.reader()?.tokens()?);
    Ok(Some(secret))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(role: Role, tenant: &str) -> Caller {
        let tenant = TenantPath::parse("tenant", tenant).unwrap();
        Caller { token: 1, name: "x".into(), role, tenant }
    }

    #[test]
    fn a_role_holds_for_its_tenant_and_below() {
        let nlp = caller(Role::Member, "ai/nlp");
        assert!(nlp.sees("ai/nlp") && nlp.sees("ai/nlp/lee"));
        assert!(!nlp.sees("ai") && !nlp.sees("ai/nlp2") && !nlp.sees("bio"));
        assert_eq!(nlp.must(Role::Member, "ai/nlp/lee"), Ok(()));
        assert_eq!(nlp.must(Role::Manager, "ai/nlp").unwrap_err().status, 403);
        assert_eq!(nlp.must(Role::Viewer, "bio").unwrap_err().status, 404);
        assert!(caller(Role::Admin, "ai").sees("bio"));
    }
}
