//! Copies of a whole store, and back.

use crate::convert::at;
use crate::error::StoreError;
use crate::folder::{FILE, io, parent, private_dir, sync_parent};
use crate::migrate::check_tables;
use crate::reader::Reader;
use crate::recover::recover;
use rusqlite::{Connection, OpenFlags};
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

impl Reader {
    /// Copies everything that is durable now into a new file that only its owner
    /// may read. The server goes on writing meanwhile. The file appears when it
    /// is whole; an existing one is not touched.
    pub fn backup(&self, to: &Path) -> Result<(), StoreError> {
        copy(&self.conn, &self.path, to)
    }
}

/// Puts a backup into a new or empty data folder, once it was found to be whole:
/// the file, its schema, and that the books can be made of it.
pub fn restore(from: &Path, dir: &Path) -> Result<(), StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    fs::metadata(from).map_err(io(from, "read"))?;
    let conn = Connection::open_with_flags(from, flags).map_err(at(from, "open the backup"))?;
    conn.busy_timeout(Duration::from_secs(10)).map_err(at(from, "open the backup"))?;
    check_tables(&conn, from)?;
    let verdict: String = conn
        .query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))
        .map_err(at(from, "check the backup"))?;
    if verdict != "ok" {
        return Err(StoreError::Damaged { path: from.to_owned(), what: verdict });
    }
    recover(&conn, from)?.books(Arc::default())?;
    private_dir(dir)?;
    if fs::read_dir(dir).map_err(io(dir, "list"))?.next().is_some() {
        return Err(StoreError::NotEmpty { path: dir.to_owned() });
    }
    copy(&conn, from, &dir.join(FILE))
}

/// Copies a database into a new file that appears when it is whole and durable.
fn copy(conn: &Connection, path: &Path, to: &Path) -> Result<(), StoreError> {
    let exists = || StoreError::Exists { path: to.to_owned() };
    if to.symlink_metadata().is_ok() {
        return Err(exists());
    }
    // Only its owner may read a file made by this.
    let part = tempfile::Builder::new()
        .prefix(".crater-")
        .suffix(".part")
        .tempfile_in(parent(to))
        .map_err(io(to, "make"))?;
    let name = part.path().to_string_lossy();
    conn.execute("VACUUM INTO ?1", [&*name]).map_err(at(path, "copy everything"))?;
    part.as_file().sync_all().map_err(io(to, "sync"))?;
    part.persist_noclobber(to).map_err(|error| match error.error.kind() {
        std::io::ErrorKind::AlreadyExists => exists(),
        _ => io(to, "make")(error.error),
    })?;
    sync_parent(to)
}
