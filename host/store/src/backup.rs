//! Copies of a whole store, and back.
//!
//! A running server's store is never replaced under it. A backup that is to be
//! restored into its folder is checked and put beside the database; the next
//! start swaps the two before it reads anything, by renames that may be cut off
//! at any point and are then finished by the start after.

use crate::convert::at;
use crate::error::StoreError;
use crate::folder::{FILE, check_file, io, parent, private_dir, sync_parent};
use crate::migrate::check_tables;
use crate::reader::Reader;
use crate::recover::recover;
use rusqlite::{Connection, OpenFlags};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
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

/// Looks whether a file is a whole backup: the file, its schema, and that the
/// books can be made of it. Says how far its journal goes.
pub fn check(from: &Path) -> Result<u64, StoreError> {
    checked(from).map(|(_, last)| last)
}

fn checked(from: &Path) -> Result<(Connection, u64), StoreError> {
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
    let recovered = recover(&conn, from)?;
    let last = recovered.last();
    recovered.books(Arc::default())?;
    Ok((conn, last))
}

/// Puts a backup into a new or empty data folder, once it was found to be whole.
pub fn restore(from: &Path, dir: &Path) -> Result<(), StoreError> {
    let (conn, _) = checked(from)?;
    private_dir(dir)?;
    if fs::read_dir(dir).map_err(io(dir, "list"))?.next().is_some() {
        return Err(StoreError::NotEmpty { path: dir.to_owned() });
    }
    copy(&conn, from, &dir.join(FILE))
}

/// A checked backup that takes the database's place at the next start.
const STAGED: &str = "restore.db";
/// What was the database before that.
const REPLACED: &str = "before-restore.db";

/// Puts an uploaded backup, which lies in the data folder, beside the database
/// once it was found to be whole. Says how far its journal goes.
pub fn stage(from: &Path, dir: &Path) -> Result<u64, StoreError> {
    let last = check(from)?;
    File::open(from).and_then(|file| file.sync_all()).map_err(io(from, "sync"))?;
    let to = dir.join(STAGED);
    fs::rename(from, &to).map_err(io(&to, "make"))?;
    sync_parent(&to)?;
    Ok(last)
}

/// Whether the next start puts a backup in the database's place.
pub fn staged(dir: &Path) -> bool {
    dir.join(STAGED).symlink_metadata().is_ok()
}

/// Lets a backup go that was to be restored; `false` if there was none.
pub fn unstage(dir: &Path) -> Result<bool, StoreError> {
    let path = dir.join(STAGED);
    match fs::remove_file(&path) {
        Ok(()) => sync_parent(&path).map(|()| true),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(io(&path, "remove")(error)),
    }
}

/// A file's name with `SQLite`'s ending for what belongs to it.
fn beside(dir: &Path, file: &str, ending: &str) -> PathBuf {
    dir.join(format!("{file}{ending}"))
}

/// Puts a staged backup in the database's place. Whoever calls holds the lock.
pub(crate) fn swap(dir: &Path) -> Result<bool, StoreError> {
    if !staged(dir) {
        return Ok(false);
    }
    let (new, old) = (dir.join(STAGED), dir.join(FILE));
    check_file(&new)?;
    check(&new)?;
    if old.symlink_metadata().is_ok() {
        for ending in ["", "-wal", "-shm"] {
            let gone = beside(dir, REPLACED, ending);
            if gone.symlink_metadata().is_ok() {
                fs::remove_file(&gone).map_err(io(&gone, "remove"))?;
            }
        }
        fs::rename(&old, dir.join(REPLACED)).map_err(io(&old, "rename"))?;
    }
    // The journal of the old database must never be read as the new one's.
    for ending in ["-wal", "-shm"] {
        let journal = beside(dir, FILE, ending);
        if journal.symlink_metadata().is_ok() {
            let to = beside(dir, REPLACED, ending);
            fs::rename(&journal, to).map_err(io(&journal, "rename"))?;
        }
    }
    sync_parent(&old)?;
    fs::rename(&new, &old).map_err(io(&new, "rename"))?;
    sync_parent(&old)?;
    Ok(true)
}

/// A new name in a data folder for a file that is not whole yet.
pub fn part(dir: &Path) -> Result<tempfile::TempPath, StoreError> {
    let made = tempfile::Builder::new().prefix(PART.0).suffix(PART.1).tempfile_in(dir);
    Ok(made.map_err(io(dir, "make a file in"))?.into_temp_path())
}

/// How names of files begin and end that are not whole yet.
const PART: (&str, &str) = (".crater-", ".part");

/// Removes what a process left half done that ended suddenly.
pub(crate) fn sweep(dir: &Path) -> Result<(), StoreError> {
    for entry in fs::read_dir(dir).map_err(io(dir, "list"))? {
        let path = entry.map_err(io(dir, "list"))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with(PART.0) && name.ends_with(PART.1) {
            fs::remove_file(&path).map_err(io(&path, "remove"))?;
        }
    }
    Ok(())
}

/// Copies a database into a new file that appears when it is whole and durable.
fn copy(conn: &Connection, path: &Path, to: &Path) -> Result<(), StoreError> {
    let exists = || StoreError::Exists { path: to.to_owned() };
    if to.symlink_metadata().is_ok() {
        return Err(exists());
    }
    // Only its owner may read a file made by this.
    let part = tempfile::Builder::new()
        .prefix(PART.0)
        .suffix(PART.1)
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
