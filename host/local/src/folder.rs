//! What lies where in the runner's folder.
//!
//! ```text
//! claims/<claim>/  order.json, running.json, stop.json, end.json, env, lock, control, keeper.log
//! jobs/<job>/      the job's own: checkpoint/, tmp/
//! output/<job>/    what it printed: stdout/, stderr/
//! gone/            what is being removed
//! users.json       who is which user
//! ```

use crate::order::{End, Order, Running, Stop};
use crater_model::{ClaimUid, JobUid};
use rustix::fs::{FlockOperation, Mode, OFlags};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// Makes a folder, and those above it, that only this user may enter.
pub fn private(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Writes a file whole or not at all, and durably.
pub fn write_whole(path: &Path, value: &impl Serialize) -> io::Result<()> {
    let text = serde_json::to_vec(value)?;
    let next = path.with_extension("next");
    let mut file =
        File::options().write(true).create(true).truncate(true).mode(0o600).open(&next)?;
    file.write_all(&text)?;
    file.sync_all()?;
    fs::rename(&next, path)?;
    let parent = path.parent().unwrap_or(Path::new("/"));
    File::open(parent)?.sync_all()
}

/// Reads such a file; none if it was not written yet.
pub fn read_whole<T: DeserializeOwned>(path: &Path) -> io::Result<Option<T>> {
    match fs::read(path) {
        Ok(text) => Ok(Some(serde_json::from_slice(&text)?)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// The folder of one claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folder(PathBuf);

impl Folder {
    /// That of a claim in a runner's folder.
    pub fn of(base: &Path, claim: ClaimUid) -> Self {
        Self(base.join("claims").join(claim.0.to_string()))
    }

    /// That at a path.
    pub fn at(path: &Path) -> Self {
        Self(path.to_owned())
    }

    /// All there are, with the claims that they are for.
    pub fn all(base: &Path) -> io::Result<Vec<(ClaimUid, Self)>> {
        let mut all = vec![];
        for entry in fs::read_dir(base.join("claims"))? {
            let entry = entry?;
            let name = entry.file_name().to_str().and_then(|name| name.parse().ok());
            if let Some(number) = name {
                all.push((ClaimUid(number), Self(entry.path())));
            }
        }
        all.sort_by_key(|(claim, _)| *claim);
        Ok(all)
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Whether there is an order in it.
    pub fn ordered(&self) -> bool {
        self.0.join("order.json").exists()
    }

    /// Makes it, with the order in it.
    pub fn make(&self, order: &Order) -> io::Result<()> {
        private(&self.0)?;
        let control = self.0.join("control");
        match rustix::fs::mknodat(
            rustix::fs::CWD,
            &control,
            rustix::fs::FileType::Fifo,
            Mode::RUSR | Mode::WUSR,
            0,
        ) {
            Ok(()) | Err(rustix::io::Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        if order.runtime.is_some() {
            let mut options = File::options();
            options.write(true).create(true).truncate(true).mode(0o600);
            let mut env = options.open(self.env())?;
            env.write_all(crate::image::env_file(order).as_bytes())?;
        }
        // Last: what has an order is whole.
        write_whole(&self.0.join("order.json"), order)
    }

    /// The order.
    pub fn order(&self) -> io::Result<Option<Order>> {
        read_whole(&self.0.join("order.json"))
    }

    /// What runs, once it does.
    pub fn running(&self) -> io::Result<Option<Running>> {
        read_whole(&self.0.join("running.json"))
    }

    /// Notes that it runs.
    pub fn runs(&self, running: Running) -> io::Result<()> {
        write_whole(&self.0.join("running.json"), &running)
    }

    /// Whether it was told to end.
    pub fn stop(&self) -> io::Result<Option<Stop>> {
        read_whole(&self.0.join("stop.json"))
    }

    /// Tells it to end: the keeper that is there, and any that comes.
    pub fn tell_to_stop(&self, stop: Stop) -> io::Result<()> {
        write_whole(&self.0.join("stop.json"), &stop)?;
        self.poke()
    }

    /// Wakes the keeper, if there is one.
    pub fn poke(&self) -> io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        match rustix::fs::open(self.control(), flags, Mode::empty()) {
            Ok(pipe) => match rustix::io::write(&pipe, b"!") {
                // A full pipe wakes it, too; one that went read the file.
                Ok(_) | Err(rustix::io::Errno::AGAIN | rustix::io::Errno::PIPE) => Ok(()),
                Err(error) => Err(error.into()),
            },
            // Nobody reads: it is gone, or not there yet.
            Err(rustix::io::Errno::NXIO | rustix::io::Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// The environment of a member in a container.
    pub fn env(&self) -> PathBuf {
        self.0.join("env")
    }

    /// The pipe that wakes the keeper.
    pub fn control(&self) -> PathBuf {
        self.0.join("control")
    }

    /// How it ended, once it has.
    pub fn end(&self) -> io::Result<Option<End>> {
        read_whole(&self.0.join("end.json"))
    }

    /// Notes how it ended; the first word stays.
    pub fn ended(&self, end: &End) -> io::Result<()> {
        if self.end()?.is_some() {
            return Ok(());
        }
        write_whole(&self.0.join("end.json"), end)
    }

    /// Holds the lock for as long as the file is open; none if another does.
    pub fn lock(&self) -> io::Result<Option<File>> {
        let file =
            File::options().append(true).create(true).mode(0o600).open(self.0.join("lock"))?;
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(file)),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Takes it away.
    pub fn remove(&self) -> io::Result<()> {
        match fs::remove_dir_all(&self.0) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

/// A job's own folder.
pub fn room(base: &Path, job: JobUid) -> PathBuf {
    base.join("jobs").join(job.0.to_string())
}

/// Where what a job prints is kept.
pub fn output(base: &Path, job: JobUid) -> PathBuf {
    base.join("output").join(job.0.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_end_stays_and_a_lock_has_one_holder() {
        let base = tempfile::tempdir().unwrap();
        let folder = Folder::of(base.path(), ClaimUid(7));
        private(folder.path()).unwrap();
        assert_eq!(folder.end().unwrap(), None);
        folder.ended(&End::Exit { code: 1 }).unwrap();
        folder.ended(&End::Exit { code: 2 }).unwrap();
        assert_eq!(folder.end().unwrap(), Some(End::Exit { code: 1 }));
        let held = folder.lock().unwrap().expect("nobody holds it");
        assert!(folder.lock().unwrap().is_none());
        drop(held);
        assert!(folder.lock().unwrap().is_some());
        assert_eq!(Folder::all(base.path()).unwrap(), [(ClaimUid(7), folder)]);
    }
}
