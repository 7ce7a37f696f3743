//! The last decisions on each job, for `job describe` and replay.

use crate::convert::{int, json, time, uint};
use crate::error::StoreError;
use crate::reader::Reader;
use crater_engine::{Plan, Record};
use crater_model::{JobUid, Time};
use rusqlite::{Connection, params};

/// How many decisions on a job are kept.
pub const DECISIONS_KEPT: u32 = 8;

/// A decision with what it takes to make it again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The books that it was made on: their last entry.
    pub seq: u64,
    /// The time that was given.
    pub at: Time,
    /// The seed that was given.
    pub seed: u64,
    /// Version of the engine.
    pub engine: String,
    /// What was decided.
    pub record: Record,
}

impl Reader {
    /// The last decisions on a job, newest first.
    pub fn decisions(&self, job: JobUid) -> Result<Vec<Decision>, StoreError> {
        self.read("read decisions", |conn| {
            conn.prepare_cached(
                "SELECT seq, at, seed, engine, record FROM decisions WHERE job = ?1
                 ORDER BY seq DESC",
            )?
            .query_map([int(job.0)], |row| {
                Ok(Decision {
                    seq: uint(row, "seq")?,
                    at: time(row, "at")?,
                    seed: row.get::<_, i64>("seed")?.cast_unsigned(),
                    engine: row.get("engine")?,
                    record: json(row, "record")?,
                })
            })?
            .collect()
        })
    }
}

/// A decision that is to be written.
#[derive(Debug)]
pub struct Pending {
    seq: u64,
    at: Time,
    seed: u64,
    engine: String,
    record: Record,
}

impl Pending {
    /// Of a plan and one of its records.
    pub fn new(plan: &Plan, record: &Record) -> Self {
        let (seq, at, seed, engine) = (plan.seq, plan.now, plan.seed, plan.engine.clone());
        Self { seq, at, seed, engine, record: record.clone() }
    }

    /// Writes it in the place of the oldest.
    pub fn write(&self, conn: &Connection, job: JobUid) -> rusqlite::Result<()> {
        let record = serde_json::to_string(&self.record)
            .map_err(|e| rusqlite::Error::ToSqlConversionFailure(Box::new(e)))?;
        conn.prepare_cached(
            "INSERT OR REPLACE INTO decisions (job, seq, at, seed, engine, record)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?
        .execute(params![
            int(job.0),
            int(self.seq),
            int(self.at.0),
            self.seed.cast_signed(),
            self.engine,
            record
        ])?;
        conn.prepare_cached(
            "DELETE FROM decisions WHERE job = ?1 AND seq <
             (SELECT min(seq) FROM
              (SELECT seq FROM decisions WHERE job = ?1 ORDER BY seq DESC LIMIT ?2))",
        )?
        .execute(params![int(job.0), DECISIONS_KEPT])?;
        Ok(())
    }
}
