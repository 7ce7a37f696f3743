//! A connection that only reads.

use crate::convert::at;
use crate::error::StoreError;
use crate::folder::{FILE, check_file};
use crate::migrate::{known, version};
use rusqlite::{Connection, OpenFlags};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Reads a store while another process or thread writes it. Each call sees what
/// is durable at that moment. One thread at a time; others open their own.
#[derive(Debug)]
pub struct Reader {
    pub(crate) conn: Connection,
    pub(crate) path: PathBuf,
}

impl Reader {
    /// Opens the store of a data folder. It must be of this version's schema:
    /// the server brings an older one up to date.
    pub fn open(dir: &Path) -> Result<Self, StoreError> {
        let path = dir.join(FILE);
        check_file(&path)?;
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let conn =
            Connection::open_with_flags(&path, flags).map_err(at(&path, "open the database"))?;
        conn.busy_timeout(Duration::from_secs(10)).map_err(at(&path, "set up the database"))?;
        if version(&conn, &path)? != known() {
            let why = "its schema is older; start the server once".to_owned();
            return Err(StoreError::Foreign { path, why });
        }
        let quiet = conn
            .pragma_update(None, "trusted_schema", false)
            .and_then(|()| conn.pragma_update(None, "cache_size", -8192));
        quiet.map_err(at(&path, "set up the database"))?;
        Ok(Self { conn, path })
    }

    /// The database file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn read<T>(
        &self,
        doing: &'static str,
        f: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        f(&self.conn).map_err(at(&self.path, doing))
    }
}
