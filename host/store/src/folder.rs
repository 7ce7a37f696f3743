//! The data folder: private to its owner, and one server's at a time.

use crate::error::StoreError;
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The database's name in a data folder.
pub const FILE: &str = "crater.db";
const LOCK: &str = "lock";
/// How long the lock of a process that is gone is waited for.
const PATIENCE: Duration = Duration::from_secs(5);
const DIR_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;

/// Turns an error of the system into one that names the file.
pub fn io(path: &Path, doing: &'static str) -> impl FnOnce(io::Error) -> StoreError {
    let path = path.to_owned();
    move |source| StoreError::Io { path, doing, source }
}

/// Makes the folder where it is missing, and refuses one that others may enter.
pub fn private_dir(dir: &Path) -> Result<(), StoreError> {
    let made = DirBuilder::new().recursive(true).mode(DIR_MODE).create(dir);
    made.map_err(io(dir, "make the data folder"))?;
    let meta = fs::metadata(dir).map_err(io(dir, "look at"))?;
    if !meta.is_dir() {
        return Err(StoreError::Shape { path: dir.to_owned(), wanted: "folder" });
    }
    private(dir, &meta, DIR_MODE)
}

/// Makes the file where it is missing, and refuses one that others may read.
pub fn private_file(path: &Path) -> Result<(), StoreError> {
    match OpenOptions::new().write(true).create_new(true).mode(FILE_MODE).open(path) {
        Ok(_) => return sync_parent(path),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(io(path, "make")(error)),
    }
    check_file(path)
}

/// Refuses a file that others may read, or that is none.
pub fn check_file(path: &Path) -> Result<(), StoreError> {
    let meta = fs::symlink_metadata(path).map_err(io(path, "look at"))?;
    if !meta.is_file() {
        return Err(StoreError::Shape { path: path.to_owned(), wanted: "plain file" });
    }
    private(path, &meta, FILE_MODE)
}

fn private(path: &Path, meta: &Metadata, wanted: u32) -> Result<(), StoreError> {
    let (owner, user) = (meta.uid(), rustix::process::geteuid().as_raw());
    if owner != user {
        return Err(StoreError::Stranger { path: path.to_owned(), owner, user });
    }
    let mode = meta.mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(StoreError::Exposed { path: path.to_owned(), mode, wanted });
    }
    Ok(())
}

/// Makes a file's name durable.
pub fn sync_parent(path: &Path) -> Result<(), StoreError> {
    let parent = parent(path);
    File::open(&parent).and_then(|dir| dir.sync_all()).map_err(io(&parent, "sync the folder"))
}

/// The folder that a file is in.
pub fn parent(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if parent != Path::new("") => parent.to_owned(),
        _ => PathBuf::from("."),
    }
}

/// Held as long as the store is open; the system lets go of it when the process
/// ends, however it ends.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

impl Lock {
    /// Takes the folder for this process.
    pub fn take(dir: &Path) -> Result<Self, StoreError> {
        let path = dir.join(LOCK);
        private_file(&path)?;
        let mut file =
            OpenOptions::new().read(true).write(true).open(&path).map_err(io(&path, "open"))?;
        let until = Instant::now() + PATIENCE;
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) => {
                    let mut text = String::new();
                    let read = file.rewind().and_then(|()| file.read_to_string(&mut text)).ok();
                    let pid: Option<u32> = read.and_then(|_| text.trim().parse().ok());
                    // A server that was killed while it started a process: until
                    // that is another program it has what the server had open.
                    let gone = pid.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists());
                    if !gone || Instant::now() > until {
                        return Err(StoreError::Locked { path: dir.to_owned(), pid });
                    }
                    std::thread::sleep(Duration::from_millis(5));
                }
                Err(TryLockError::Error(error)) => return Err(io(&path, "lock")(error)),
            }
        }
        let pid = format!("{}\n", std::process::id());
        file.set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| file.write_all(pid.as_bytes()))
            .map_err(io(&path, "write"))?;
        Ok(Self { _file: file })
    }
}
