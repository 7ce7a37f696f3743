//! What can be wrong with a scenario, or with what it tests.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use thiserror::Error;

/// A line of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file, as it was named.
    pub file: Arc<str>,
    /// The line, from 1.
    pub line: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// Why a scenario did not pass.
#[derive(Debug, Error)]
pub enum ScenarioError {
    /// The file or folder cannot be read.
    #[error("{} cannot be read", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// The system's words.
        #[source]
        source: std::io::Error,
    },
    /// A line is not understood.
    #[error("{place}: expected {expected}")]
    Syntax {
        /// Where.
        place: Place,
        /// What it should be.
        expected: String,
    },
    /// Something was refused that the scenario does not expect to be.
    #[error("{place}: {what} was refused: {why}")]
    Refused {
        /// Where it was asked for.
        place: Place,
        /// What was asked for.
        what: String,
        /// Why not.
        why: String,
    },
    /// An expectation does not hold.
    #[error("{place}: expected {expected}\n  found {found}\ntimeline:\n{timeline}")]
    Expectation {
        /// Where.
        place: Place,
        /// What was expected.
        expected: String,
        /// What there was.
        found: String,
        /// What happened until then.
        timeline: String,
    },
    /// Something that must always hold does not.
    #[error("{place}: what must always hold does not: {what}\ntimeline:\n{timeline}")]
    Broken {
        /// The last line that was carried out.
        place: Place,
        /// What does not hold.
        what: String,
        /// What happened until then.
        timeline: String,
    },
}
