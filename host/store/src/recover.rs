//! What the books are made of again after a restart.

use crate::convert::{at, int, json, time, uint};
use crate::error::StoreError;
use crater_engine::{Snapshot, State, Strings};
use crater_model::event::Entry;
use rusqlite::{Connection, OptionalExtension as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The last snapshot that is whole, and the entries after it.
#[derive(Clone, Debug, Default)]
pub struct Recovered {
    /// The snapshot, if there is one.
    pub snapshot: Option<Snapshot>,
    /// What was journalled after it, in order.
    pub entries: Vec<Entry>,
    /// Newer snapshots that were damaged and done without.
    pub skipped: usize,
    path: PathBuf,
}

impl Recovered {
    /// The last entry, 0 for none.
    pub fn last(&self) -> u64 {
        self.entries.last().map_or(self.covered(), |e| e.seq)
    }

    /// The last entry that the snapshot covers, 0 without one.
    pub fn covered(&self) -> u64 {
        self.snapshot.as_ref().map_or(0, |s| s.seq)
    }

    /// The books, audited. `strings` is a new table: policies are loaded later.
    pub fn books(self, strings: Arc<Strings>) -> Result<State, StoreError> {
        let damaged = |what| StoreError::Damaged { path: self.path.clone(), what };
        let mut state = match self.snapshot {
            None => State::new(strings),
            Some(snapshot) => State::restore(snapshot, strings)
                .map_err(|error| damaged(format!("its snapshot does not add up: {error}")))?,
        };
        for entry in &self.entries {
            state.apply(entry).map_err(|error| damaged(error.to_string()))?;
        }
        state.audit().map_err(damaged)?;
        Ok(state)
    }
}

/// Reads what the books are made of.
pub fn recover(conn: &Connection, path: &Path) -> Result<Recovered, StoreError> {
    let damaged = |what| StoreError::Damaged { path: path.to_owned(), what };
    let mut statement = conn
        .prepare("SELECT seq FROM snapshots ORDER BY seq DESC")
        .map_err(at(path, "read the snapshots"))?;
    let kept: Vec<u64> = statement
        .query_map([], |row| uint(row, "seq"))
        .and_then(Iterator::collect)
        .map_err(at(path, "read the snapshots"))?;
    let mut found = Recovered { path: path.to_owned(), ..Recovered::default() };
    for seq in &kept {
        found.snapshot = snapshot(conn, *seq);
        if found.snapshot.is_some() {
            break;
        }
        found.skipped += 1;
    }
    let first = found.covered() + 1;
    let mut statement = conn
        .prepare("SELECT seq, at, event FROM entries WHERE seq >= ?1 ORDER BY seq")
        .map_err(at(path, "read the journal"))?;
    let rows = statement.query_map([int(first)], entry).map_err(at(path, "read the journal"))?;
    for (next, row) in (first..).zip(rows) {
        let entry = row.map_err(|error| damaged(format!("journal entry {next}: {error}")))?;
        if entry.seq != next {
            return Err(damaged(format!("journal entry {next} is missing")));
        }
        found.entries.push(entry);
    }
    let newest = kept.first().copied().unwrap_or(0);
    if found.last() < newest {
        return Err(damaged(format!("no snapshot is whole, and the journal ends before {newest}")));
    }
    Ok(found)
}

/// An entry's row.
pub fn entry(row: &rusqlite::Row<'_>) -> rusqlite::Result<Entry> {
    Ok(Entry { seq: uint(row, "seq")?, at: time(row, "at")?, event: json(row, "event")? })
}

/// A snapshot, if it is whole.
fn snapshot(conn: &Connection, seq: u64) -> Option<Snapshot> {
    let sql = "SELECT hash, body FROM snapshots WHERE seq = ?1";
    conn.query_row(sql, [int(seq)], |row| {
        let (hash, body) = (row.get_ref("hash")?.as_blob()?, row.get_ref("body")?.as_blob()?);
        if blake3::hash(body).as_bytes() != hash {
            return Ok(None);
        }
        Ok(serde_json::from_slice(body).ok().filter(|s: &Snapshot| s.seq == seq))
    })
    .optional()
    .ok()
    .flatten()
    .flatten()
}
