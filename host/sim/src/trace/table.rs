//! A CSV file read strictly, by the names of its header.

use super::TraceError;
use crater_model::{FieldError, id::check_name, parse};
use csv::{ErrorKind, Reader, ReaderBuilder, StringRecord};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// The columns of one layout of a file.
pub(super) type Columns = &'static [&'static str];

/// A file whose header was understood.
pub(super) struct Table<R> {
    file: String,
    reader: Reader<R>,
    /// The layout's columns, and where each stands in the file.
    columns: Columns,
    places: Vec<usize>,
}

impl Table<File> {
    /// Opens a file; see [`Table::new`].
    pub fn open(path: &Path, layouts: &[Columns]) -> Result<Self, TraceError> {
        let input = File::open(path)
            .map_err(|source| TraceError::Read { path: path.to_owned(), source })?;
        let name = path.file_name().unwrap_or(path.as_os_str());
        Self::new(&name.to_string_lossy(), input, layouts)
    }
}

impl<R: Read> Table<R> {
    /// Reads the header. The columns may stand in any order, but must be those
    /// of one of the layouts, which are given from the smallest to the largest,
    /// each containing the one before.
    pub fn new(file: &str, input: R, layouts: &[Columns]) -> Result<Self, TraceError> {
        let file = file.to_owned();
        let mut reader = ReaderBuilder::new().from_reader(input);
        let header = match reader.headers() {
            Ok(header) => header.clone(),
            Err(error) => return Err(broken(&file, error)),
        };
        let largest = layouts.last().copied().unwrap_or_default();
        if let Some(column) = header.iter().find(|c| !largest.contains(c)) {
            let (column, expected) = (column.chars().take(64).collect(), largest.join(", "));
            return Err(TraceError::UnknownColumn { file, column, expected });
        }
        let columns = layouts
            .iter()
            .find(|layout| header.iter().all(|c| layout.contains(&c)))
            .copied()
            .unwrap_or(largest);
        let mut places = vec![];
        for column in columns {
            let mut found = header.iter().enumerate().filter(|(_, c)| c == column);
            let Some((place, _)) = found.next() else {
                let expected = columns.join(", ");
                return Err(TraceError::MissingColumn { file, column, expected });
            };
            if found.next().is_some() {
                return Err(TraceError::ColumnTwice { file, column: (*column).to_owned() });
            }
            places.push(place);
        }
        Ok(Self { file, reader, columns, places })
    }

    /// Reads every line with `read`.
    pub fn rows<T>(
        mut self,
        mut read: impl FnMut(&Row<'_>) -> Result<T, TraceError>,
    ) -> Result<Vec<T>, TraceError> {
        let mut record = StringRecord::new();
        let mut out = vec![];
        loop {
            match self.reader.read_record(&mut record) {
                Ok(false) => return Ok(out),
                Ok(true) => {}
                Err(error) => return Err(broken(&self.file, error)),
            }
            let line = record.position().map_or(0, csv::Position::line);
            let (file, columns, places) = (&self.file, self.columns, &self.places);
            out.push(read(&Row { file, line, columns, places, record: &record })?);
        }
    }
}

fn broken(file: &str, error: csv::Error) -> TraceError {
    let file = file.to_owned();
    let line = error.position().map_or(1, csv::Position::line);
    match error.into_kind() {
        ErrorKind::Utf8 { .. } => TraceError::NotText { file, line },
        ErrorKind::UnequalLengths { expected_len, len, .. } => {
            TraceError::BrokenLine { file, line, found: len, expected: expected_len }
        }
        ErrorKind::Io(source) => TraceError::Read { path: file.into(), source },
        other => TraceError::Read {
            path: file.into(),
            source: std::io::Error::other(format!("{other:?}")),
        },
    }
}

/// One line.
pub(super) struct Row<'a> {
    file: &'a str,
    line: u64,
    columns: Columns,
    places: &'a [usize],
    record: &'a StringRecord,
}

impl<'a> Row<'a> {
    /// The text of a column; empty if the file's layout does not have it.
    pub fn text(&self, column: &str) -> &'a str {
        let index = self.columns.iter().position(|c| *c == column);
        index.and_then(|i| self.record.get(self.places[i])).unwrap_or_default()
    }

    /// Whether the file's layout has a column.
    pub fn has(&self, column: &str) -> bool {
        self.columns.contains(&column)
    }

    /// Names the place of a value that was refused.
    pub fn at(&self, refused: FieldError) -> TraceError {
        TraceError::Refused { file: self.file.to_owned(), line: self.line, refused }
    }

    /// Refuses the value of a column.
    pub fn refuse(&self, column: &str, expected: impl Into<String>) -> TraceError {
        self.at(FieldError::new(column, self.text(column), expected))
    }

    /// A whole number between `min` and `max`.
    pub fn integer(&self, column: &str, min: u64, max: u64) -> Result<u64, TraceError> {
        parse::integer(column, self.text(column), min, max).map_err(|e| self.at(e))
    }

    /// A whole number between `min` and `max`, or nothing.
    pub fn maybe_integer(
        &self,
        column: &str,
        min: u64,
        max: u64,
    ) -> Result<Option<u64>, TraceError> {
        if self.text(column).is_empty() {
            return Ok(None);
        }
        self.integer(column, min, max).map(Some)
    }

    /// A name as jobs and nodes have them.
    pub fn name(&self, column: &str) -> Result<&'a str, TraceError> {
        let name = self.text(column);
        check_name(column, name).map_err(|e| self.at(e))?;
        Ok(name)
    }
}
