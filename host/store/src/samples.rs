//! What jobs and the cluster held and used over time.
//!
//! A measurement is kept as it is for some hours. Rows of five minutes with
//! mean and extremes are made of them and kept for the retention.

use crate::convert::{int, time, uint};
use crate::error::StoreError;
use crate::reader::Reader;
use crate::store::Store;
use crater_model::{JobUid, Time};
use rusqlite::{Connection, params};
use std::time::Duration;

/// Seconds that a rolled-up row stands for.
pub const ROLLED: u64 = 300;
/// How long single measurements are kept.
pub const RAW_LIFE: Duration = Duration::from_hours(6);
/// Most points of one answer.
pub const MOST_POINTS: u32 = 2000;
/// At most so many rows are trimmed in one call.
const ROWS: u32 = 20_000;

/// Whose samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// The whole cluster.
    Cluster,
    /// A job.
    Job(JobUid),
}

impl Subject {
    /// Numbers of jobs begin at 1.
    fn number(self) -> i64 {
        match self {
            Self::Cluster => 0,
            Self::Job(job) => int(job.0),
        }
    }
}

/// One measurement of one metric, in the metric's own unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Whose.
    pub subject: Subject,
    /// Of what: `gpu`, `gpu-memory`, `cpu`, `memory`, `disk-io`.
    pub metric: &'static str,
    /// What was promised.
    pub held: u64,
    /// What was used.
    pub used: u64,
}

/// A point of a curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// Where it begins.
    pub at: Time,
    /// Seconds that it stands for; 0 for a single measurement.
    pub span: u64,
    /// Measurements in it.
    pub n: u64,
    /// Most that was promised.
    pub held: u64,
    /// Sum of what the measurements say is used.
    pub total: u64,
    /// The least.
    pub low: u64,
    /// The most.
    pub high: u64,
}

impl Reader {
    /// A metric's points from a moment on, oldest first, at most `limit` of
    /// them. Those of five minutes are given for what is too old for single
    /// measurements.
    pub fn points(
        &self,
        subject: Subject,
        metric: &str,
        from: Time,
        limit: u32,
    ) -> Result<Vec<Point>, StoreError> {
        self.read("read samples", |conn| {
            // Where single measurements begin, rolled-up rows end.
            let first: Option<i64> = conn
                .prepare_cached(
                    "SELECT min(at) FROM samples
                     WHERE subject = ?1 AND span = 0 AND at >= ?2",
                )?
                .query_row(params![subject.number(), int(from.0)], |row| row.get(0))?;
            conn.prepare_cached(
                "SELECT at, span, n, held, total, low, high FROM samples
                 WHERE subject = ?1 AND metric = ?2 AND at >= ?3
                   AND (span = 0 OR at + 1000 * span <= ?4)
                 ORDER BY at LIMIT ?5",
            )?
            .query_map(
                params![
                    subject.number(),
                    metric,
                    int(from.0),
                    first.unwrap_or(i64::MAX),
                    limit.clamp(1, MOST_POINTS)
                ],
                |row| {
                    Ok(Point {
                        at: time(row, "at")?,
                        span: uint(row, "span")?,
                        n: uint(row, "n")?,
                        held: uint(row, "held")?,
                        total: uint(row, "total")?,
                        low: uint(row, "low")?,
                        high: uint(row, "high")?,
                    })
                },
            )?
            .collect()
        })
    }
}

impl Reader {
    /// Up to when measurements of the cluster are rolled up; from the first of
    /// them where none is yet.
    pub fn rolled_up(&self) -> Result<Option<Time>, StoreError> {
        self.read("read samples", |conn| {
            let edge = |sql: &str, span: u64| -> rusqlite::Result<Option<u64>> {
                let at: Option<i64> =
                    conn.prepare_cached(sql)?.query_row([int(span)], |row| row.get(0))?;
                Ok(at.map(i64::unsigned_abs))
            };
            let done = "SELECT max(at) FROM samples WHERE subject = 0 AND span = ?1";
            let first = "SELECT min(at) FROM samples WHERE subject = 0 AND span = ?1";
            Ok(match edge(done, ROLLED)? {
                Some(at) => Some(Time(at + 1000 * ROLLED)),
                None => edge(first, 0)?.map(|at| Time(at).floor(ROLLED)),
            })
        })
    }
}

impl Store {
    /// Keeps measurements of one moment. Some hundred in a call: the ledger
    /// thread waits for it.
    pub fn add_samples(&mut self, at: Time, samples: &[Sample]) -> Result<(), StoreError> {
        self.write("keep samples", |conn| {
            let mut insert = conn.prepare_cached(
                "INSERT OR REPLACE INTO samples
                   (subject, span, at, metric, n, held, total, low, high)
                 VALUES (?1, 0, ?2, ?3, 1, ?4, ?5, ?5, ?5)",
            )?;
            for sample in samples {
                insert.execute(params![
                    sample.subject.number(),
                    int(at.0),
                    sample.metric,
                    int(sample.held),
                    int(sample.used)
                ])?;
            }
            Ok(())
        })
    }

    /// Makes the rows of the five minutes that begin at a moment from the
    /// measurements in them. Doing it again changes nothing.
    pub fn roll_up(&mut self, from: Time) -> Result<(), StoreError> {
        let span = ROLLED;
        self.write("roll samples up", |conn| {
            conn.prepare_cached(
                "INSERT OR REPLACE INTO samples
                   (subject, span, at, metric, n, held, total, low, high)
                 SELECT subject, ?3, ?1, metric, sum(n), max(held), sum(total), min(low), max(high)
                 FROM samples INDEXED BY samples_by_age
                 WHERE span = 0 AND at >= ?1 AND at < ?2
                 GROUP BY subject, metric",
            )?
            .execute(params![int(from.0), int(from.0 + 1000 * span), int(span)])
        })?;
        Ok(())
    }
}

/// Deletes measurements past [`RAW_LIFE`] and rows past the retention.
pub fn trim(conn: &Connection, now: Time, cutoff: i64) -> rusqlite::Result<u64> {
    // Whole five minutes, so that their row follows without a gap.
    let raw = Time(now.0.saturating_sub(RAW_LIFE.as_millis() as u64)).floor(ROLLED);
    let raw = cutoff.max(int(raw.0));
    let mut gone = 0;
    for (span, before) in [(0, raw), (int(ROLLED), cutoff)] {
        gone += conn
            .prepare_cached(
                "DELETE FROM samples WHERE (subject, span, at, metric) IN
                 (SELECT subject, span, at, metric FROM samples INDEXED BY samples_by_age
                  WHERE span = ?1 AND at < ?2 LIMIT ?3)",
            )?
            .execute(params![span, before, ROWS])? as u64;
    }
    Ok(gone)
}
