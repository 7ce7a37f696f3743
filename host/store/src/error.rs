//! What can go wrong with the store; each names the file and what to do.

use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// The store could not do what it was asked.
#[derive(Debug, Error)]
pub enum StoreError {
    /// A file or folder could not be made, opened, locked or written.
    #[error("cannot {doing} {path}: check the disk and the rights on it")]
    Io {
        /// Which.
        path: PathBuf,
        /// What was tried.
        doing: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// Others than the owner may get at it.
    #[error("{path} is open to others (mode {mode:03o}); run: chmod {wanted:o} '{path}'")]
    Exposed {
        /// Which.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
        /// What they should be.
        wanted: u32,
    },
    /// It belongs to another user.
    #[error(
        "{path} belongs to user {owner} and this is user {user}; run as that user, or choose another data folder"
    )]
    Stranger {
        /// Which.
        path: PathBuf,
        /// Whose it is.
        owner: u32,
        /// Who runs this.
        user: u32,
    },
    /// It is a link or a device where a plain file or folder should be.
    #[error("{path} is not a {wanted}; choose another data folder")]
    Shape {
        /// Which.
        path: PathBuf,
        /// What it should be.
        wanted: &'static str,
    },
    /// Another server uses the folder.
    #[error("{path} is in use by {}; stop that server, or choose another data folder", who(*.pid))]
    Locked {
        /// The folder.
        path: PathBuf,
        /// The other process, if it said.
        pid: Option<u32>,
    },
    /// The file is not Crater's.
    #[error("{path} is not a store of Crater: {why}")]
    Foreign {
        /// Which.
        path: PathBuf,
        /// How that is seen.
        why: String,
    },
    /// A newer program wrote it.
    #[error(
        "{path} has schema {found} and this version knows up to {known}; run the newer version, or restore a backup of this one"
    )]
    Newer {
        /// Which.
        path: PathBuf,
        /// Its schema.
        found: i64,
        /// The latest schema known here.
        known: i64,
    },
    /// `SQLite` refused.
    #[error("cannot {doing} in {path}: check the disk, or restore a backup with `crater restore`")]
    Sqlite {
        /// The file.
        path: PathBuf,
        /// What was tried.
        doing: &'static str,
        /// What it said.
        source: rusqlite::Error,
    },
    /// What it holds makes no sense.
    #[error("{path} is damaged: {what}; restore a backup with `crater restore`")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// An earlier write failed; this store takes nothing more.
    #[error("{path} takes nothing more since a write failed ({why}); start the server again")]
    Poisoned {
        /// The file.
        path: PathBuf,
        /// What failed.
        why: String,
    },
    /// A backup would overwrite something.
    #[error("{path} exists already; name a file that does not")]
    Exists {
        /// Which.
        path: PathBuf,
    },
    /// A restore would overwrite something.
    #[error("{path} is not empty; restore into a new folder, or move its content away")]
    NotEmpty {
        /// The folder.
        path: PathBuf,
    },
}

fn who(pid: Option<u32>) -> String {
    pid.map_or_else(|| "another process".to_owned(), |pid| format!("process {pid}"))
}
