//! Between the words of Crater and `SQLite`'s columns.

use crate::error::StoreError;
use crater_model::{Digest, Time};
use rusqlite::Row;
use rusqlite::types::Type;
use std::path::Path;

/// A number as a column holds it. Identities, times and amounts stay far below
/// 2⁶³.
pub fn int(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

/// A column's number.
pub fn uint(row: &Row<'_>, column: &str) -> rusqlite::Result<u64> {
    Ok(row.get::<_, i64>(column)?.unsigned_abs())
}

/// A column's moment.
pub fn time(row: &Row<'_>, column: &str) -> rusqlite::Result<Time> {
    uint(row, column).map(Time)
}

/// A column's moment, if it has one.
pub fn maybe_time(row: &Row<'_>, column: &str) -> rusqlite::Result<Option<Time>> {
    Ok(row.get::<_, Option<i64>>(column)?.map(|n| Time(n.unsigned_abs())))
}

/// A column's hash.
pub fn digest(row: &Row<'_>, column: &str) -> rusqlite::Result<Digest> {
    row.get::<_, [u8; 32]>(column).map(Digest)
}

/// A text column read as JSON.
pub fn json<T: serde::de::DeserializeOwned>(row: &Row<'_>, column: &str) -> rusqlite::Result<T> {
    let text = row.get_ref(column)?.as_str()?;
    serde_json::from_str(text).map_err(|error| bad(column, error))
}

/// A text column parsed by the model.
pub fn parsed<T, E: std::error::Error + Send + Sync + 'static>(
    row: &Row<'_>,
    column: &str,
    parse: impl FnOnce(&str) -> Result<T, E>,
) -> rusqlite::Result<T> {
    parse(row.get_ref(column)?.as_str()?).map_err(|error| bad(column, error))
}

fn bad(column: &str, error: impl std::error::Error + Send + Sync + 'static) -> rusqlite::Error {
    let named = Named { column: column.to_owned(), source: Box::new(error) };
    rusqlite::Error::FromSqlConversionFailure(0, Type::Text, Box::new(named))
}

/// A column that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("column {column}")]
struct Named {
    column: String,
    source: Box<dyn std::error::Error + Send + Sync>,
}

/// Says in which file what failed.
pub fn at<'a>(
    path: &'a Path,
    doing: &'static str,
) -> impl Fn(rusqlite::Error) -> StoreError + use<'a> {
    move |source| StoreError::Sqlite { path: path.to_owned(), doing, source }
}
