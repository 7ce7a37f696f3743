//! The port to what jobs print.
//!
//! Output is bytes at offsets that count from a stream's first byte and never
//! change, so that a reader who lost its connection goes on where it was. An
//! executor keeps as much of it as it likes: what was rotated away is seen by
//! a chunk that begins later than was asked for.

use crater_model::JobUid;
use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};
use thiserror::Error;
use tokio::sync::watch;

/// Which of a job's streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

impl Stream {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
        }
    }

    /// The stream of a name.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Stdout, Self::Stderr].into_iter().find(|stream| stream.name() == text)
    }
}

/// A part of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chunk {
    /// Offset of its first byte; later than what was asked for if that was
    /// rotated away.
    pub from: u64,
    /// The bytes; none at the end of what there is.
    pub bytes: Vec<u8>,
    /// Where the stream ends now.
    pub end: u64,
}

/// Output cannot be had.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LogError {
    /// There never was any, or nothing of it is kept.
    #[error("nothing is kept of what {0} printed")]
    Unknown(JobUid),
    /// It lies beyond the end.
    #[error("the stream ends at {end}")]
    Beyond {
        /// Where it ends.
        end: u64,
    },
    /// It cannot be read.
    #[error("it cannot be read: {0}")]
    Unreadable(String),
}

/// Reads what jobs print.
pub trait Logs: Send + Sync {
    /// At most `most` bytes from an offset on. At the end the chunk is empty.
    fn read(
        &self,
        job: JobUid,
        stream: Stream,
        offset: u64,
        most: usize,
    ) -> Result<Chunk, LogError>;

    /// Changes whenever anything is printed.
    fn changed(&self) -> watch::Receiver<u64>;
}

/// The last bytes of a stream.
#[derive(Clone, Debug, Default)]
pub struct Ring {
    first: u64,
    bytes: VecDeque<u8>,
}

impl Ring {
    /// Appends; what is beyond `most` at the front goes.
    pub fn push(&mut self, bytes: &[u8], most: usize) {
        self.bytes.extend(bytes);
        let over = self.bytes.len().saturating_sub(most);
        self.bytes.drain(..over);
        self.first += over as u64;
    }

    /// Reads from an offset on.
    pub fn read(&self, offset: u64, most: usize) -> Result<Chunk, LogError> {
        let end = self.first + self.bytes.len() as u64;
        if offset > end {
            return Err(LogError::Beyond { end });
        }
        let from = offset.max(self.first);
        let skip = (from - self.first) as usize;
        Ok(Chunk { from, bytes: self.bytes.iter().skip(skip).take(most).copied().collect(), end })
    }
}

/// Output in memory: the last bytes of the last jobs. Gone with the process.
#[derive(Debug)]
pub struct InMemory {
    kept: Mutex<Kept>,
    tell: watch::Sender<u64>,
    jobs: usize,
    bytes: usize,
}

#[derive(Debug, Default)]
struct Kept {
    rings: HashMap<JobUid, HashMap<Stream, Ring>>,
    order: VecDeque<JobUid>,
}

impl InMemory {
    /// Of so many jobs, and of so many bytes a stream.
    pub fn new(jobs: usize, bytes: usize) -> Self {
        Self { kept: Mutex::default(), tell: watch::channel(0).0, jobs, bytes }
    }

    /// A job prints something.
    pub fn print(&self, job: JobUid, stream: Stream, bytes: &[u8]) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if !kept.rings.contains_key(&job) {
            kept.order.push_back(job);
            if kept.order.len() > self.jobs
                && let Some(oldest) = kept.order.pop_front()
            {
                kept.rings.remove(&oldest);
            }
        }
        let streams = kept.rings.entry(job).or_default();
        streams.entry(stream).or_default().push(bytes, self.bytes);
        drop(kept);
        self.tell.send_modify(|n| *n += 1);
    }
}

impl Logs for InMemory {
    fn read(
        &self,
        job: JobUid,
        stream: Stream,
        offset: u64,
        most: usize,
    ) -> Result<Chunk, LogError> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let streams = kept.rings.get(&job).ok_or(LogError::Unknown(job))?;
        streams
            .get(&stream)
            .map_or_else(|| Ring::default().read(offset, most), |ring| ring.read(offset, most))
    }

    fn changed(&self) -> watch::Receiver<u64> {
        self.tell.subscribe()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_last_while_the_front_is_rotated_away() {
        let logs = InMemory::new(2, 8);
        let (job, out) = (JobUid(1), Stream::Stdout);
        assert_eq!(logs.read(job, out, 0, 9), Err(LogError::Unknown(job)));
        logs.print(job, out, b"hello ");
        let chunk = |from, bytes: &[u8], end| Ok(Chunk { from, bytes: bytes.to_vec(), end });
        assert_eq!(logs.read(job, out, 0, 3), chunk(0, b"hel", 6));
        assert_eq!(logs.read(job, out, 6, 3), chunk(6, b"", 6));
        assert_eq!(logs.read(job, out, 7, 3), Err(LogError::Beyond { end: 6 }));
        assert_eq!(logs.read(job, Stream::Stderr, 0, 3), chunk(0, b"", 0));
        logs.print(job, out, b"world");
        assert_eq!(logs.read(job, out, 0, 99), chunk(3, b"lo world", 11));
        // A third job pushes the first out.
        logs.print(JobUid(2), out, b"x");
        logs.print(JobUid(3), out, b"x");
        assert_eq!(logs.read(job, out, 0, 9), Err(LogError::Unknown(job)));
    }
}
