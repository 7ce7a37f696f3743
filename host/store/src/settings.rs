//! Small values under names.

use crate::convert::at;
use crate::error::StoreError;
use crate::reader::Reader;
use crate::store::Store;
use rusqlite::{Connection, OptionalExtension as _, params};
use std::fmt::Write as _;
use std::path::Path;

const CLUSTER: &str = "cluster-id";

impl Reader {
    /// The value under a name.
    pub fn setting(&self, key: &str) -> Result<Option<String>, StoreError> {
        self.read("read a setting", |conn| get(conn, key))
    }

    /// Names the cluster: 32 hexadecimal digits, drawn when the store was made.
    pub fn cluster_id(&self) -> Result<String, StoreError> {
        Ok(self.setting(CLUSTER)?.unwrap_or_default())
    }
}

impl Store {
    /// Puts a value under a name.
    pub fn set_setting(&mut self, key: &str, value: &str) -> Result<(), StoreError> {
        self.write("write a setting", |conn| set(conn, key, value))
    }
}

fn get(conn: &Connection, key: &str) -> rusqlite::Result<Option<String>> {
    conn.prepare_cached("SELECT value FROM meta WHERE key = ?1")?
        .query_row([key], |row| row.get(0))
        .optional()
}

fn set(conn: &Connection, key: &str, value: &str) -> rusqlite::Result<()> {
    conn.execute("INSERT OR REPLACE INTO meta (key, value) VALUES (?1, ?2)", params![key, value])?;
    Ok(())
}

/// The cluster's name, drawn if the store is new.
pub fn cluster(conn: &Connection, path: &Path) -> Result<String, StoreError> {
    let err = at(path, "name the cluster");
    if let Some(known) = get(conn, CLUSTER).map_err(&err)? {
        return Ok(known);
    }
    let mut drawn = [0u8; 16];
    rustix::rand::getrandom(&mut drawn, rustix::rand::GetRandomFlags::empty()).map_err(
        |errno| StoreError::Io {
            path: path.to_owned(),
            doing: "draw a random name for the cluster in",
            source: errno.into(),
        },
    )?;
    let name = drawn.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    });
    set(conn, CLUSTER, &name).map_err(&err)?;
    Ok(name)
}
