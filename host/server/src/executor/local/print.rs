//! What members printed, read from where their keepers write it.

use crate::logs::{Chunk, LogError, Logs, Stream};
use crater_local::{Output, folder};
use crater_model::JobUid;
use std::path::{Path, PathBuf};
use tokio::sync::watch;

/// The runner's output folder.
#[derive(Debug)]
pub struct Printed {
    base: PathBuf,
    bytes: u64,
    tell: watch::Sender<u64>,
}

impl Printed {
    /// That of a runner, of which so many bytes are kept a stream.
    pub fn new(base: &Path, bytes: u64) -> Self {
        Self { base: base.to_owned(), bytes, tell: watch::channel(0).0 }
    }

    /// Has whoever follows a stream look again: the keepers, which write, are
    /// processes of their own.
    pub fn look(&self) {
        if self.tell.receiver_count() > 0 {
            self.tell.send_modify(|n| *n += 1);
        }
    }
}

impl Logs for Printed {
    fn read(
        &self,
        job: JobUid,
        stream: Stream,
        offset: u64,
        most: usize,
    ) -> Result<Chunk, LogError> {
        let folder = folder::output(&self.base, job);
        if !folder.exists() {
            return Err(LogError::Unknown(job));
        }
        let output = Output::new(&folder.join(stream.name()), self.bytes);
        let unreadable = |error: std::io::Error| LogError::Unreadable(error.to_string());
        let part = output.read(offset, most).map_err(unreadable)?;
        if offset > part.end {
            return Err(LogError::Beyond { end: part.end });
        }
        Ok(Chunk { from: part.from, bytes: part.bytes, end: part.end })
    }

    fn changed(&self) -> watch::Receiver<u64> {
        self.tell.subscribe()
    }
}
