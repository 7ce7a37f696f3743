//! What a policy writes for its queue's owner.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

/// Lines kept of one configured policy.
const LINES: usize = 1000;
/// Bytes of text kept of one configured policy.
const BYTES: usize = 256 << 10;
/// Bytes kept of one line.
pub(crate) const LINE_BYTES: usize = 1024;

/// How much a line matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Something is wrong.
    Error,
    /// Something may be wrong.
    Warning,
    /// Worth knowing.
    Info,
    /// For the policy's author.
    Debug,
}

impl Level {
    /// The contract's number; what is out of range is the nearest.
    pub(crate) fn of(level: i32) -> Self {
        match level {
            ..=1 => Self::Error,
            2 => Self::Warning,
            3 => Self::Info,
            4.. => Self::Debug,
        }
    }
}

/// One line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Counts the lines of this configured policy from 0, dropped ones
    /// included, so that a gap shows.
    pub number: u64,
    /// The function that wrote it, such as `filter`.
    pub during: &'static str,
    /// Its level.
    pub level: Level,
    /// Its text, cut to 1,024 bytes, without control characters.
    pub text: String,
}

/// The last lines, bounded in number and bytes.
#[derive(Debug, Default)]
pub(crate) struct Ring {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    lines: VecDeque<Line>,
    bytes: usize,
    written: u64,
}

impl Ring {
    /// Keeps a line, and lets the oldest go where it must.
    pub(crate) fn push(&self, during: &'static str, level: Level, text: &str) {
        let mut text: String =
            cut(text).chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        text.shrink_to_fit();
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.bytes += text.len();
        let number = inner.written;
        inner.written += 1;
        inner.lines.push_back(Line { number, during, level, text });
        while inner.lines.len() > LINES || inner.bytes > BYTES {
            let Some(old) = inner.lines.pop_front() else {
                break;
            };
            inner.bytes -= old.text.len();
        }
    }

    /// Counts a line that the meter of its call did not let through.
    pub(crate) fn skip(&self) {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner).written += 1;
    }

    /// The lines that are kept, oldest first.
    pub(crate) fn lines(&self) -> Vec<Line> {
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.lines.iter().cloned().collect()
    }
}

/// At most [`LINE_BYTES`] of a text, whole characters.
fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(LINE_BYTES)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ring_is_bounded_and_shows_what_is_gone() {
        let ring = Ring::default();
        for i in 0..3000 {
            ring.push("filter", Level::of(i % 6), &"ä".repeat(2000));
        }
        ring.skip();
        ring.push("score", Level::Info, "last\nline");
        let lines = ring.lines();
        let bytes: usize = lines.iter().map(|l| l.text.len()).sum();
        assert!(lines.len() <= LINES && bytes <= BYTES);
        let last = lines.last().unwrap();
        assert_eq!((last.number, last.during, last.text.as_str()), (3001, "score", "last line"));
        assert_eq!(lines[lines.len() - 2].number, 2999);
    }
}
