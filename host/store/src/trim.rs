//! What is older than the retention goes.

use crate::convert::{int, uint};
use crate::error::StoreError;
use crate::samples;
use crate::store::Store;
use crate::submissions::oldest;
use crate::usage::DAY_MS;
use crater_model::Time;
use rusqlite::{Connection, params};
use std::time::Duration;

/// At most so many jobs in one call.
const JOBS: u32 = 1000;
/// At most so many entries in one call.
const ENTRIES: u32 = 10_000;

/// How much was trimmed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Trimmed {
    /// Jobs that ended before the retention, with their decisions.
    pub jobs: u64,
    /// Entries of the journal.
    pub entries: u64,
    /// Clients' keys and tokens that open nothing any more.
    pub keys: u64,
    /// Samples of what was used.
    pub samples: u64,
    /// There is more: call again when there is time.
    pub more: bool,
}

impl Store {
    /// Trims jobs that ended before the retention, entries that are older and
    /// that no kept snapshot needs, and old keys: some milliseconds' worth of
    /// it, within the open transaction.
    pub fn trim(&mut self, now: Time, retention: Duration) -> Result<Trimmed, StoreError> {
        let retention = u64::try_from(retention.as_millis()).unwrap_or(u64::MAX);
        let cutoff = int(now.0.saturating_sub(retention));
        self.write("trim what is old", |conn| {
            let jobs = jobs(conn, cutoff)?;
            let entries = entries(conn, cutoff)?;
            let keys = conn.execute("DELETE FROM submissions WHERE at < ?1", [int(oldest(now))])?;
            let tokens =
                conn.execute("DELETE FROM tokens WHERE revoked < ?1 OR expires < ?1", [cutoff])?;
            let samples = samples::trim(conn, now, cutoff)?;
            // A day is kept until all of it is past the retention.
            let day = cutoff / int(DAY_MS);
            conn.execute("DELETE FROM usage WHERE day < ?1", [day])?;
            Ok(Trimmed {
                samples,
                jobs,
                entries,
                keys: (keys + tokens) as u64,
                more: jobs == u64::from(JOBS) || entries == u64::from(ENTRIES),
            })
        })
    }
}

fn jobs(conn: &Connection, cutoff: i64) -> rusqlite::Result<u64> {
    let uids: Vec<u64> = conn
        .prepare_cached("SELECT uid FROM jobs WHERE ended < ?1 ORDER BY ended LIMIT ?2")?
        .query_map(params![cutoff, JOBS], |row| uint(row, "uid"))?
        .collect::<Result<_, _>>()?;
    for uid in &uids {
        for sql in [
            "DELETE FROM job_entries WHERE job = ?1",
            "DELETE FROM decisions WHERE job = ?1",
            "DELETE FROM jobs WHERE uid = ?1",
        ] {
            conn.prepare_cached(sql)?.execute([int(*uid)])?;
        }
    }
    Ok(uids.len() as u64)
}

/// The journal's time never goes back, so what is old is at its beginning.
/// Entries after the older of two snapshots stay, however old they are, and all
/// of them while there are fewer.
fn entries(conn: &Connection, cutoff: i64) -> rusqlite::Result<u64> {
    let deleted = conn
        .prepare_cached(
            "DELETE FROM entries WHERE seq <= (
               SELECT max(seq) FROM (SELECT seq, at FROM entries ORDER BY seq LIMIT ?2)
               WHERE at < ?1
                 AND seq <= (SELECT iif(count(*) > 1, min(seq), 0) FROM snapshots))",
        )?
        .execute(params![cutoff, ENTRIES])?;
    Ok(deleted as u64)
}
