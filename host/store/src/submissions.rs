//! Clients' own keys, so that a submission that is sent again is the same one.

use crate::convert::{digest, int, uint};
use crate::error::StoreError;
use crate::reader::Reader;
use crate::store::Store;
use crater_model::{Digest, JobUid, Time};
use rusqlite::{OptionalExtension as _, params};
use std::time::Duration;

/// How long a key is remembered.
pub const KEY_LIFE: Duration = Duration::from_hours(24);

/// What a key led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Submission {
    /// The job.
    pub job: JobUid,
    /// Hash of the request: another request under the same key is a mistake of
    /// the client.
    pub request: Digest,
}

impl Reader {
    /// What a key led to within the last [`KEY_LIFE`]. `scope` is who sent it.
    pub fn recall(
        &self,
        scope: &str,
        key: &str,
        now: Time,
    ) -> Result<Option<Submission>, StoreError> {
        self.read("look up a client's key", |conn| {
            conn.prepare_cached(
                "SELECT job, request FROM submissions WHERE scope = ?1 AND key = ?2 AND at >= ?3",
            )?
            .query_row(params![scope, key, int(oldest(now))], |row| {
                Ok(Submission { job: JobUid(uint(row, "job")?), request: digest(row, "request")? })
            })
            .optional()
        })
    }
}

impl Store {
    /// Remembers what a key led to, in the transaction of the submission.
    pub fn remember(
        &mut self,
        scope: &str,
        key: &str,
        submission: Submission,
        now: Time,
    ) -> Result<(), StoreError> {
        self.write("remember a client's key", |conn| {
            conn.prepare_cached(
                "INSERT OR REPLACE INTO submissions (scope, key, request, job, at)
                 VALUES (?1, ?2, ?3, ?4, ?5)",
            )?
            .execute(params![
                scope,
                key,
                submission.request.0,
                int(submission.job.0),
                int(now.0)
            ])
        })?;
        Ok(())
    }

    /// What a key led to, with those of the open transaction.
    pub fn recall(
        &self,
        scope: &str,
        key: &str,
        now: Time,
    ) -> Result<Option<Submission>, StoreError> {
        self.own().recall(scope, key, now)
    }
}

/// The earliest moment of which keys are remembered.
pub fn oldest(now: Time) -> u64 {
    now.0.saturating_sub(KEY_LIFE.as_millis() as u64)
}
