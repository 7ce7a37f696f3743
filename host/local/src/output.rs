//! What a job prints, kept in segments.
//!
//! A stream is a folder of files, each named by the offset of its first byte in
//! the stream. Members append under a lock, whole lines where there are several
//! of them; the oldest segments go when there are more bytes than are kept.
//! Offsets never change, so a reader goes on where it was.

use rustix::fs::FlockOperation;
use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// Segments of a stream; the oldest goes when another is begun.
const SEGMENTS: u64 = 4;

/// A stream that is written and read.
#[derive(Clone, Debug)]
pub struct Output {
    folder: PathBuf,
    segment: u64,
}

/// A part of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// Offset of its first byte.
    pub from: u64,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Where the stream ends now.
    pub end: u64,
}

impl Output {
    /// The stream in a folder of which at most about so many bytes are kept.
    pub fn new(folder: &Path, bytes: u64) -> Self {
        Self { folder: folder.to_owned(), segment: (bytes / SEGMENTS).max(1) }
    }

    /// The offsets at which its segments begin, in order.
    fn segments(&self) -> io::Result<Vec<u64>> {
        let entries = match fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(vec![]),
            Err(error) => return Err(error),
        };
        let mut all = vec![];
        for entry in entries {
            all.extend(entry?.file_name().to_str().and_then(|name| name.parse::<u64>().ok()));
        }
        all.sort_unstable();
        Ok(all)
    }

    fn file(&self, from: u64) -> PathBuf {
        // Of one width, so that people see them in order.
        self.folder.join(format!("{from:020}"))
    }

    /// Appends bytes.
    pub fn append(&self, bytes: &[u8]) -> io::Result<()> {
        crate::folder::private(&self.folder)?;
        let lock =
            File::options().append(true).create(true).mode(0o600).open(self.folder.join("lock"))?;
        rustix::fs::flock(&lock, FlockOperation::LockExclusive)?;
        let mut segments = self.segments()?;
        let mut last = segments.last().copied().unwrap_or(0);
        let size = fs::metadata(self.file(last)).map_or(0, |meta| meta.len());
        if size >= self.segment {
            last += size;
            segments.push(last);
        }
        let mut file =
            File::options().append(true).create(true).mode(0o600).open(self.file(last))?;
        file.write_all(bytes)?;
        let over = segments.len().saturating_sub(SEGMENTS as usize);
        for old in &segments[..over] {
            fs::remove_file(self.file(*old))?;
        }
        Ok(())
    }

    /// At most `most` bytes from an offset on; later ones if those are gone.
    pub fn read(&self, offset: u64, most: usize) -> io::Result<Part> {
        let segments = self.segments()?;
        let (Some(first), Some(last)) = (segments.first(), segments.last()) else {
            return Ok(Part::default());
        };
        let size = |from: u64| fs::metadata(self.file(from)).map_or(0, |meta| meta.len());
        let end = last + size(*last);
        let from = offset.max(*first);
        if from >= end {
            return Ok(Part { from: offset, bytes: vec![], end });
        }
        let at = segments.iter().rev().find(|start| **start <= from).unwrap_or(first);
        let mut bytes = vec![];
        match File::open(self.file(*at)) {
            Ok(mut file) => {
                file.seek(SeekFrom::Start(from - at))?;
                file.take(most as u64).read_to_end(&mut bytes)?;
            }
            // It was rotated away meanwhile: the next look begins later.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        Ok(Part { from, bytes, end })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_kept_is_the_end_of_what_was_printed(
            parts in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..40), 1..40),
            at in 0usize..400,
        ) {
            let folder = tempfile::tempdir().unwrap();
            let output = Output::new(&folder.path().join("stdout"), 64);
            let mut all: Vec<u8> = vec![];
            for part in &parts {
                output.append(part).unwrap();
                all.extend(part);
            }
            prop_assert_eq!(output.read(u64::MAX, 0).unwrap().end, all.len() as u64);
            let mut offset = at.min(all.len()) as u64;
            let mut read = vec![];
            loop {
                let part = output.read(offset, 7).unwrap();
                if read.is_empty() {
                    offset = part.from;
                }
                if part.bytes.is_empty() {
                    break;
                }
                offset += part.bytes.len() as u64;
                read.extend(part.bytes);
            }
            prop_assert_eq!(&read[..], &all[all.len() - read.len()..]);
            // Asked from early on, at least three quarters of the bound are there.
            if at == 0 {
                prop_assert!(read.len() >= all.len().min(48));
            }
        }
    }
}
