//! Notifications that are to be delivered.
//!
//! A row is written in the transaction of what it tells of, and goes when it
//! was delivered or given up: at least once, over restarts, too.

use crate::convert::{int, maybe_time, time, uint};
use crate::error::StoreError;
use crate::reader::Reader;
use crate::store::Store;
use crater_model::{JobUid, Time};
use rusqlite::{Connection, params};

/// Most undelivered notifications of one webhook: a receiver that is gone for
/// good must not fill the disk. Beyond it the oldest are given up.
pub const OUTBOX_MOST: u32 = 10_000;

/// A notification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Letter {
    /// Number; the same whenever it is sent again.
    pub id: u64,
    /// To which webhook.
    pub webhook: String,
    /// When it was written.
    pub at: Time,
    /// When it is to be sent next.
    pub due: Time,
    /// How often it was tried.
    pub attempts: u32,
    /// `start`, `preempt` or `end`.
    pub event: String,
    /// The job.
    pub job: JobUid,
    /// What is sent.
    pub body: String,
}

/// How deliveries to a webhook went.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Deliveries {
    /// Delivered.
    pub delivered: u64,
    /// Given up.
    pub given_up: u64,
    /// In the outbox.
    pub waiting: u64,
    /// When the last one was delivered.
    pub last: Option<Time>,
    /// Why the last failure failed.
    pub error: Option<String>,
    /// When.
    pub error_at: Option<Time>,
}

impl Reader {
    /// The notifications to a webhook that are due first.
    pub fn letters(&self, webhook: &str, limit: u32) -> Result<Vec<Letter>, StoreError> {
        self.read("read the outbox", |conn| {
            conn.prepare_cached(
                "SELECT id, webhook, at, due, attempts, event, job, body FROM outbox
                 WHERE webhook = ?1 ORDER BY due, id LIMIT ?2",
            )?
            .query_map(params![webhook, limit], |row| {
                Ok(Letter {
                    id: uint(row, "id")?,
                    webhook: row.get("webhook")?,
                    at: time(row, "at")?,
                    due: time(row, "due")?,
                    attempts: row.get("attempts")?,
                    event: row.get("event")?,
                    job: JobUid(uint(row, "job")?),
                    body: row.get("body")?,
                })
            })?
            .collect()
        })
    }

    /// How deliveries to a webhook went.
    pub fn deliveries(&self, webhook: &str) -> Result<Deliveries, StoreError> {
        self.read("read deliveries", |conn| {
            conn.prepare_cached(
                "SELECT coalesce(max(delivered), 0) AS delivered,
                        coalesce(max(given_up), 0) AS given_up,
                        max(last) AS last, max(error) AS error, max(error_at) AS error_at,
                        (SELECT count(*) FROM outbox WHERE webhook = ?1) AS waiting
                 FROM webhooks WHERE webhook = ?1",
            )?
            .query_row([webhook], |row| {
                Ok(Deliveries {
                    delivered: uint(row, "delivered")?,
                    given_up: uint(row, "given_up")?,
                    waiting: uint(row, "waiting")?,
                    last: maybe_time(row, "last")?,
                    error: row.get("error")?,
                    error_at: maybe_time(row, "error_at")?,
                })
            })
        })
    }
}

impl Store {
    /// Puts a notification into the outbox.
    pub fn post(
        &mut self,
        webhook: &str,
        event: &str,
        job: JobUid,
        at: Time,
        body: &str,
    ) -> Result<(), StoreError> {
        self.write("write to the outbox", |conn| {
            conn.prepare_cached(
                "INSERT INTO outbox (webhook, at, due, attempts, event, job, body)
                 VALUES (?1, ?2, ?2, 0, ?3, ?4, ?5)",
            )?
            .execute(params![webhook, int(at.0), event, int(job.0), body])
        })?;
        Ok(())
    }

    /// Notes that a notification was delivered, and lets it go.
    pub fn delivered(&mut self, letter: &Letter, now: Time) -> Result<(), StoreError> {
        self.write("note a delivery", |conn| {
            let gone = remove(conn, letter)?;
            tally(conn, &letter.webhook, gone, 0)?;
            conn.prepare_cached("UPDATE webhooks SET last = ?2 WHERE webhook = ?1")?
                .execute(params![letter.webhook, int(now.0)])
        })?;
        Ok(())
    }

    /// Notes that a delivery failed: it is tried again at `again`, or given up.
    pub fn undelivered(
        &mut self,
        letter: &Letter,
        error: &str,
        now: Time,
        again: Option<Time>,
    ) -> Result<(), StoreError> {
        self.write("note a failed delivery", |conn| {
            let mut given_up = 0;
            if let Some(due) = again {
                conn.prepare_cached(
                    "UPDATE outbox SET attempts = attempts + 1, due = ?2 WHERE id = ?1",
                )?
                .execute(params![int(letter.id), int(due.0)])?;
            } else {
                given_up = remove(conn, letter)?;
            }
            tally(conn, &letter.webhook, 0, given_up)?;
            conn.prepare_cached("UPDATE webhooks SET error = ?2, error_at = ?3 WHERE webhook = ?1")?
                .execute(params![letter.webhook, error, int(now.0)])
        })?;
        Ok(())
    }

    /// Gives up what is beyond [`OUTBOX_MOST`] and what is for webhooks that
    /// are not configured any more.
    pub fn trim_outbox(&mut self, webhooks: &[String]) -> Result<(), StoreError> {
        self.write("trim the outbox", |conn| {
            for webhook in webhooks {
                let gone = conn
                    .prepare_cached(
                        "DELETE FROM outbox WHERE webhook = ?1 AND id <=
                         (SELECT id FROM outbox WHERE webhook = ?1 ORDER BY id DESC
                          LIMIT 1 OFFSET ?2)",
                    )?
                    .execute(params![webhook, OUTBOX_MOST])?;
                if gone > 0 {
                    tally(conn, webhook, 0, gone)?;
                }
            }
            let known = serde_json::Value::from(webhooks).to_string();
            for sql in [
                "DELETE FROM outbox WHERE webhook NOT IN (SELECT value FROM json_each(?1))",
                "DELETE FROM webhooks WHERE webhook NOT IN (SELECT value FROM json_each(?1))",
            ] {
                conn.prepare_cached(sql)?.execute([&known])?;
            }
            Ok(())
        })
    }
}

fn remove(conn: &Connection, letter: &Letter) -> rusqlite::Result<usize> {
    conn.prepare_cached("DELETE FROM outbox WHERE id = ?1")?.execute([int(letter.id)])
}

fn tally(conn: &Connection, webhook: &str, delivered: usize, lost: usize) -> rusqlite::Result<()> {
    conn.prepare_cached(
        "INSERT INTO webhooks (webhook, delivered, given_up) VALUES (?1, ?2, ?3)
         ON CONFLICT (webhook) DO UPDATE SET
           delivered = delivered + excluded.delivered, given_up = given_up + excluded.given_up",
    )?
    .execute(params![webhook, int(delivered as u64), int(lost as u64)])?;
    Ok(())
}
