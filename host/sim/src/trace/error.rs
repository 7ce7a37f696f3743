//! What can be wrong with a trace, each in one line that names the place.

use crater_model::FieldError;
use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// A trace that cannot be had. Its message is one line; where there is a
/// source, the message leaves it to the chain.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TraceError {
    /// Nobody said where the traces are.
    #[error(
        "no folder of traces: name one with the flag or in CRATER_TRACES; the files \
         openb_node_list_*.csv and openb_pod_list_*.csv are published as cluster-trace-gpu-v2023 \
         in the repository alibaba/clusterdata on GitHub"
    )]
    NoFolder,
    /// The folder holds none of the files.
    #[error("{}: holds no {wanted}, nor does its folder {below}/", path.display())]
    Empty {
        /// The folder that was named.
        path: PathBuf,
        /// What was looked for.
        wanted: &'static str,
        /// The folder below it that was looked at too.
        below: &'static str,
    },
    /// There is no trace of this name.
    #[error("trace {name:?} is unknown: expected one of {known}")]
    UnknownTrace {
        /// What was asked for.
        name: String,
        /// The names found, separated by commas.
        known: String,
    },
    /// A file or folder could not be opened or read.
    #[error("{}: cannot be read", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The header names a column that this sort of file does not have.
    #[error("{file}:1: column {column:?} is refused: expected {expected}")]
    UnknownColumn {
        /// The file's name.
        file: String,
        /// The column.
        column: String,
        /// The columns that are accepted, separated by commas.
        expected: String,
    },
    /// The header names a column twice.
    #[error("{file}:1: column {column:?} is refused: it is there twice")]
    ColumnTwice {
        /// The file's name.
        file: String,
        /// The column.
        column: String,
    },
    /// The header lacks a column.
    #[error("{file}:1: column {column} is missing: expected {expected}")]
    MissingColumn {
        /// The file's name.
        file: String,
        /// The column.
        column: &'static str,
        /// The columns that are accepted, separated by commas.
        expected: String,
    },
    /// A line has too few or too many values.
    #[error("{file}:{line}: the line has {found} values, its header {expected}")]
    BrokenLine {
        /// The file's name.
        file: String,
        /// The line, from 1.
        line: u64,
        /// Values found.
        found: u64,
        /// Columns of the header.
        expected: u64,
    },
    /// A line is not UTF-8.
    #[error("{file}:{line}: the line is not UTF-8")]
    NotText {
        /// The file's name.
        file: String,
        /// The line, from 1.
        line: u64,
    },
    /// A value is refused.
    #[error("{file}:{line}: {refused}")]
    Refused {
        /// The file's name.
        file: String,
        /// The line, from 1.
        line: u64,
        /// The column, what it held, and what it may hold.
        refused: FieldError,
    },
}
