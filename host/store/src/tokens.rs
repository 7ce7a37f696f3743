//! Access tokens by their hash; the store never sees a token itself.

use crate::convert::{digest, int, maybe_time, time, uint};
use crate::error::StoreError;
use crate::reader::Reader;
use crate::store::Store;
use crater_model::{Digest, TenantPath, Time};
use rusqlite::{OptionalExtension as _, Row, params};

/// A token that is to be kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewToken {
    /// Hash of the token.
    pub hash: Digest,
    /// For people.
    pub name: String,
    /// What it may do.
    pub role: String,
    /// Where it may do it; `None` everywhere.
    pub tenant: Option<TenantPath>,
    /// When it ends; `None` never.
    pub expires: Option<Time>,
}

/// A token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// Number, never given twice.
    pub id: u64,
    /// Hash of the token.
    pub hash: Digest,
    /// For people.
    pub name: String,
    /// What it may do.
    pub role: String,
    /// Where it may do it; `None` everywhere.
    pub tenant: Option<TenantPath>,
    /// When it was made.
    pub created: Time,
    /// When it ends; `None` never.
    pub expires: Option<Time>,
    /// When it was taken back.
    pub revoked: Option<Time>,
    /// When it was last used, as far as that was written.
    pub last_used: Option<Time>,
}

impl Token {
    /// Whether it opens anything at a moment.
    pub fn valid(&self, now: Time) -> bool {
        self.revoked.is_none() && self.expires.is_none_or(|end| now < end)
    }
}

const COLUMNS: &str = "id, hash, name, role, tenant, created, expires, revoked, last_used";

fn token(row: &Row<'_>) -> rusqlite::Result<Token> {
    let tenant: Option<String> = row.get("tenant")?;
    let tenant = match tenant {
        None => None,
        Some(_) => Some(crate::convert::parsed(row, "tenant", |t| TenantPath::parse("tenant", t))?),
    };
    Ok(Token {
        id: uint(row, "id")?,
        hash: digest(row, "hash")?,
        name: row.get("name")?,
        role: row.get("role")?,
        tenant,
        created: time(row, "created")?,
        expires: maybe_time(row, "expires")?,
        revoked: maybe_time(row, "revoked")?,
        last_used: maybe_time(row, "last_used")?,
    })
}

impl Reader {
    /// The token of a hash, valid or not.
    pub fn token(&self, hash: &Digest) -> Result<Option<Token>, StoreError> {
        self.read("look up a token", |conn| {
            conn.prepare_cached(&format!("SELECT {COLUMNS} FROM tokens WHERE hash = ?1"))?
                .query_row([hash.0], token)
                .optional()
        })
    }

    /// All tokens, oldest first.
    pub fn tokens(&self) -> Result<Vec<Token>, StoreError> {
        self.read("list tokens", |conn| {
            conn.prepare_cached(&format!("SELECT {COLUMNS} FROM tokens ORDER BY id"))?
                .query_map([], token)?
                .collect()
        })
    }
}

impl Store {
    /// Keeps a token, and gives its number.
    pub fn add_token(&mut self, token: &NewToken, now: Time) -> Result<u64, StoreError> {
        self.write("keep a token", |conn| {
            conn.execute(
                "INSERT INTO tokens (hash, name, role, tenant, created, expires)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                params![
                    token.hash.0,
                    token.name,
                    token.role,
                    token.tenant.as_ref().map(TenantPath::as_str),
                    int(now.0),
                    token.expires.map(|at| int(at.0)),
                ],
            )?;
            Ok(conn.last_insert_rowid().unsigned_abs())
        })
    }

    /// Takes a token back: `false` if it is unknown or was before.
    pub fn revoke_token(&mut self, id: u64, now: Time) -> Result<bool, StoreError> {
        self.write("revoke a token", |conn| {
            let sql = "UPDATE tokens SET revoked = ?2 WHERE id = ?1 AND revoked IS NULL";
            Ok(conn.execute(sql, params![int(id), int(now.0)])? > 0)
        })
    }

    /// Notes when a token was used. For now and then, not for each request.
    pub fn token_used(&mut self, id: u64, now: Time) -> Result<(), StoreError> {
        self.write("note the use of a token", |conn| {
            conn.prepare_cached("UPDATE tokens SET last_used = ?2 WHERE id = ?1")?
                .execute(params![int(id), int(now.0)])
        })?;
        Ok(())
    }
}
