//! One row for each job that ever was, for as long as the retention.

use crate::convert::{int, json, maybe_time, parsed, time, uint};
use crate::error::StoreError;
use crate::reader::Reader;
use crater_engine::{Job, State};
use crater_model::event::Entry;
use crater_model::{
    Event, FieldError, JobSpec, JobState, JobUid, Kind, MilliCards, Priority, Share, TenantPath,
    Time,
};
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension as _, Row, ToSql, named_params};
use std::fmt;
use std::fmt::Write as _;
use std::str::FromStr;
use std::sync::Arc;

/// A job as history has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobRow {
    /// Identity.
    pub uid: JobUid,
    /// Where it stands, or how it ended.
    pub state: JobState,
    /// When it was submitted.
    pub submitted: Time,
    /// When it was last given room.
    pub placed: Option<Time>,
    /// When it last began to run, if it did since it was placed.
    pub started: Option<Time>,
    /// When it was over.
    pub ended: Option<Time>,
    /// Starts so far.
    pub attempts: u32,
    /// Times that it was preempted.
    pub preemptions: u32,
    /// Why it ended.
    pub reason: Arc<str>,
    /// Share of GPUs that all members hold, or held last; before that what they
    /// ask for, where that is known without a card.
    pub gpu: Option<MilliCards>,
    /// Names of the nodes that it is on, or was on last.
    pub nodes: Vec<Arc<str>>,
    /// What was submitted.
    pub spec: JobSpec,
}

/// Which jobs; the default is all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// In this queue.
    pub queue: Option<String>,
    /// In one of these states; none means any.
    pub states: Vec<JobState>,
    /// Of this tenant or below it.
    pub tenant: Option<TenantPath>,
    /// Of these tenants or below them, besides; `Some(vec![])` is nobody's.
    pub visible: Option<Vec<TenantPath>>,
    /// Of this name.
    pub name: Option<String>,
    /// Submitted at this moment or later.
    pub since: Option<Time>,
}

/// Which part of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// How many rows, 1 to 1000.
    pub limit: u32,
    /// After the page that gave this; `None` for the first.
    pub after: Option<Cursor>,
}

impl Default for Page {
    fn default() -> Self {
        Self { limit: 100, after: None }
    }
}

/// Where a page ended. Its text means nothing to clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor(u64);

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "j{:x}", self.0)
    }
}

impl FromStr for Cursor {
    type Err = FieldError;
    fn from_str(text: &str) -> Result<Self, FieldError> {
        let digits = text.strip_prefix('j').filter(|d| !d.starts_with('+'));
        let number = digits.and_then(|d| u64::from_str_radix(d, 16).ok());
        let bad = || FieldError::new("cursor", text, "the cursor that the page before gave");
        number.map(Self).ok_or_else(bad)
    }
}

/// A page of jobs, newest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobPage {
    /// The jobs.
    pub rows: Vec<JobRow>,
    /// Where the next page begins; `None` if this is the last.
    pub next: Option<Cursor>,
}

const COLUMNS: &str = "uid, state, submitted, placed, started, ended, attempts, preemptions, \
                       reason, gpu, nodes, spec";

impl Reader {
    /// Jobs, newest first. Pages follow each other without a gap and without
    /// naming a job twice, whatever is submitted meanwhile.
    pub fn jobs(&self, filter: &Filter, page: Page) -> Result<JobPage, StoreError> {
        let limit = page.limit.clamp(1, 1000) as usize;
        let (sql, values) = query(filter, page.after, limit + 1);
        let mut rows = self.read("list jobs", |conn| {
            let values = rusqlite::params_from_iter(values);
            conn.prepare_cached(&sql)?.query_map(values, job_row)?.collect::<Result<Vec<_>, _>>()
        })?;
        let more = rows.len() > limit;
        rows.truncate(limit);
        let next = rows.last().filter(|_| more).map(|row| Cursor(row.uid.0));
        Ok(JobPage { rows, next })
    }

    /// A job.
    pub fn job(&self, uid: JobUid) -> Result<Option<JobRow>, StoreError> {
        self.read("read a job", |conn| {
            conn.prepare_cached(&format!("SELECT {COLUMNS} FROM jobs WHERE uid = ?1"))?
                .query_row([int(uid.0)], job_row)
                .optional()
        })
    }

    /// What happened to a job, in order, as far back as the retention. A
    /// committed plan has its own claims only.
    pub fn events(&self, job: JobUid) -> Result<Vec<Entry>, StoreError> {
        let mut entries = self.read("read a job's events", |conn| {
            conn.prepare_cached(
                "SELECT e.seq AS seq, e.at AS at, e.event AS event
                 FROM job_entries j JOIN entries e ON e.seq = j.seq
                 WHERE j.job = ?1 ORDER BY j.seq",
            )?
            .query_map([int(job.0)], crate::recover::entry)?
            .collect::<Result<Vec<_>, _>>()
        })?;
        for entry in &mut entries {
            if let Event::PlanCommitted { claims } = &mut entry.event {
                claims.retain(|claim| claim.job == job);
            }
            // Who else goes, or who it is for, may be of other tenants.
            if let Event::RoomMade { evictions, hold } = &mut entry.event {
                evictions.retain(|eviction| eviction.job == job);
                *hold = hold.take().filter(|hold| hold.job == job);
            }
        }
        Ok(entries)
    }
}

impl Reader {
    /// All entries after one, in order.
    pub fn entries_after(&self, seq: u64) -> Result<Vec<Entry>, StoreError> {
        self.read("read the journal", |conn| {
            conn.prepare_cached("SELECT seq, at, event FROM entries WHERE seq > ?1 ORDER BY seq")?
                .query_map([int(seq)], crate::recover::entry)?
                .collect()
        })
    }
}

fn query(filter: &Filter, after: Option<Cursor>, limit: usize) -> (String, Vec<Value>) {
    let mut sql = format!("SELECT {COLUMNS} FROM jobs WHERE 1");
    let mut values = vec![];
    let text = |text: &str| Value::Text(text.to_owned());
    if let Some(queue) = &filter.queue {
        sql.push_str(" AND queue = ?");
        values.push(text(queue));
    }
    if let Some(name) = &filter.name {
        sql.push_str(" AND name = ?");
        values.push(text(name));
    }
    if !filter.states.is_empty() {
        // Most jobs of a history ended well: to sort all of them for each page
        // would cost more than to walk from the newest.
        let common = filter.states.len() > 1 && filter.states.contains(&JobState::Succeeded);
        let marks = vec!["?"; filter.states.len()].join(", ");
        let plus = if common { "+" } else { "" };
        let _ = write!(sql, " AND {plus}state IN ({marks})");
        values.extend(filter.states.iter().map(|s| text(state_text(*s))));
    }
    let mut below = |paths: &[TenantPath]| {
        let one = "tenant = ? OR (tenant > ? AND tenant < ?)";
        let all = vec![one; paths.len()].join(" OR ");
        let _ = write!(sql, " AND ({})", if paths.is_empty() { "0" } else { &all });
        for path in paths {
            // `0` comes after `/`.
            let (first, end) = (format!("{path}/"), format!("{path}0"));
            values.extend([text(path.as_str()), text(&first), text(&end)]);
        }
    };
    if let Some(path) = &filter.tenant {
        below(std::slice::from_ref(path));
    }
    if let Some(paths) = &filter.visible {
        below(paths);
    }
    if let Some(since) = filter.since {
        sql.push_str(" AND submitted >= ?");
        values.push(Value::Integer(int(since.0)));
    }
    if let Some(Cursor(uid)) = after {
        sql.push_str(" AND uid < ?");
        values.push(Value::Integer(int(uid)));
    }
    sql.push_str(" ORDER BY uid DESC LIMIT ?");
    values.push(Value::Integer(int(limit as u64)));
    (sql, values)
}

fn job_row(row: &Row<'_>) -> rusqlite::Result<JobRow> {
    let small = |column| uint(row, column).map(|n| n as u32);
    Ok(JobRow {
        uid: JobUid(uint(row, "uid")?),
        state: parsed(row, "state", parse_state)?,
        submitted: time(row, "submitted")?,
        placed: maybe_time(row, "placed")?,
        started: maybe_time(row, "started")?,
        ended: maybe_time(row, "ended")?,
        attempts: small("attempts")?,
        preemptions: small("preemptions")?,
        reason: row.get_ref("reason")?.as_str()?.into(),
        gpu: row.get::<_, Option<i64>>("gpu")?.map(|n| MilliCards(n.unsigned_abs())),
        nodes: json(row, "nodes")?,
        spec: json(row, "spec")?,
    })
}

const STATES: [JobState; 8] = [
    JobState::Pending,
    JobState::Starting,
    JobState::Running,
    JobState::Preempting,
    JobState::Succeeded,
    JobState::Failed,
    JobState::Cancelled,
    JobState::Evicted,
];

const fn state_text(state: JobState) -> &'static str {
    match state {
        JobState::Pending => "pending",
        JobState::Starting => "starting",
        JobState::Running => "running",
        JobState::Preempting => "preempting",
        JobState::Succeeded => "succeeded",
        JobState::Failed => "failed",
        JobState::Cancelled => "cancelled",
        JobState::Evicted => "evicted",
    }
}

fn parse_state(text: &str) -> Result<JobState, FieldError> {
    let found = STATES.into_iter().find(|s| state_text(*s) == text);
    found.ok_or_else(|| FieldError::new("state", text, "the state of a job"))
}

/// What changed about a job since the transaction began.
#[derive(Debug, Default)]
pub struct Pending {
    /// As the books have it now.
    job: Option<Arc<Job>>,
    /// The whole row is written: it is new, or its description changed.
    whole: bool,
    placed: Option<Time>,
    /// When it began to run, if that changed.
    started: Option<Start>,
    /// What it was placed on.
    held: Option<Held>,
    /// Entries that concern it.
    entries: Vec<u64>,
}

#[derive(Clone, Copy, Debug)]
enum Start {
    /// It was placed again and does not run yet.
    NotYet,
    At(Time),
}

#[derive(Debug)]
struct Held {
    nodes: Vec<Arc<str>>,
    gpu: MilliCards,
}

impl Pending {
    /// Follows an entry that the books just took.
    pub fn note(&mut self, state: &State, job: &Arc<Job>, entry: &Entry) {
        self.entries.push(entry.seq);
        self.whole |= !matches!(
            entry.event,
            Event::PlanCommitted { .. }
                | Event::ClaimMoved { .. }
                | Event::MemberEnded { .. }
                | Event::JobEnded { .. }
                | Event::NodeRemoved { .. }
        );
        match job.state {
            JobState::Starting => {
                self.placed = Some(job.since);
                self.started = Some(Start::NotYet);
            }
            JobState::Running => self.started = Some(Start::At(job.since)),
            _ => {}
        }
        if let Event::PlanCommitted { .. } = entry.event {
            self.held = Some(Held::of(state, job));
        }
        self.job = Some(job.clone());
    }

    /// Writes the row and what leads to its events.
    pub fn write(&self, conn: &Connection, uid: JobUid) -> rusqlite::Result<()> {
        let mut link = conn.prepare_cached("INSERT INTO job_entries (job, seq) VALUES (?1, ?2)")?;
        for seq in &self.entries {
            link.execute([int(uid.0), int(*seq)])?;
        }
        let Some(job) = &self.job else { return Ok(()) };
        if self.whole {
            write_whole(conn, job)?;
        }
        let nodes = self.held.as_ref().map(|held| to_json(&held.nodes)).transpose()?;
        conn.prepare_cached(
            "UPDATE jobs SET
               state = :state, attempts = :attempts, preemptions = :preemptions,
               reason = :reason, ended = :ended,
               placed = coalesce(:placed, placed),
               started = iif(:restarted, :started, started),
               gpu = coalesce(:gpu, gpu), nodes = coalesce(:nodes, nodes)
             WHERE uid = :uid",
        )?
        .execute(named_params! {
            ":uid": int(uid.0),
            ":state": state_text(job.state),
            ":attempts": job.attempts,
            ":preemptions": job.preemptions,
            ":reason": &*job.reason,
            ":ended": job.state.ended().then_some(int(job.since.0)),
            ":placed": self.placed.map(|at| int(at.0)),
            ":restarted": self.started.is_some(),
            ":started": match self.started {
                Some(Start::At(at)) => Some(int(at.0)),
                _ => None,
            },
            ":gpu": self.held.as_ref().map(|held| int(held.gpu.0)),
            ":nodes": nodes,
        })?;
        Ok(())
    }
}

impl Held {
    fn of(state: &State, job: &Job) -> Self {
        let claims = || job.claims.iter().filter_map(|claim| state.claim(*claim));
        let mut nodes: Vec<Arc<str>> =
            claims().filter_map(|c| state.node(c.node)).map(|n| n.spec.name.clone()).collect();
        nodes.sort_unstable();
        nodes.dedup();
        Self { nodes, gpu: claims().map(|c| c.held.milli()).sum() }
    }
}

/// Writes what follows from the description, and makes the row.
fn write_whole(conn: &Connection, job: &Job) -> rusqlite::Result<()> {
    let spec = &job.spec;
    conn.prepare_cached(
        "INSERT INTO jobs (uid, name, queue, tenant, kind, priority, state, submitted, attempts,
                           preemptions, reason, gpu, nodes, spec)
         VALUES (:uid, :name, :queue, :tenant, :kind, :priority, :state, :submitted, 0, 0, '',
                 :gpu, '[]', :spec)
         ON CONFLICT (uid) DO UPDATE SET
           name = excluded.name, queue = excluded.queue, tenant = excluded.tenant,
           kind = excluded.kind, priority = excluded.priority, spec = excluded.spec",
    )?
    .execute(named_params! {
        ":uid": int(job.uid.0),
        ":name": &*spec.name,
        ":queue": &*spec.queue,
        ":tenant": spec.tenant.as_str(),
        ":kind": kind_text(spec.kind),
        ":priority": priority(spec.priority),
        ":state": state_text(job.state),
        ":submitted": int(job.submitted.0),
        ":gpu": asked(spec).map(|gpu| int(gpu.0)),
        ":spec": to_json(&**spec)?,
    })?;
    Ok(())
}

fn to_json<T: serde::Serialize>(value: &T) -> rusqlite::Result<String> {
    serde_json::to_string(value).map_err(|e| rusqlite::Error::ToSqlConversionFailure(Box::new(e)))
}

const fn kind_text(kind: Kind) -> &'static str {
    match kind {
        Kind::Inference => "inference",
        Kind::Training => "training",
        Kind::Offline => "offline",
    }
}

fn priority(priority: Priority) -> impl ToSql {
    i64::from(priority.0)
}

/// What all members ask for, where that does not depend on the card.
fn asked(spec: &JobSpec) -> Option<MilliCards> {
    let each = match &spec.request.gpu {
        None => 0,
        Some(ask) => match &ask.share {
            Share::Whole => ask.cards.saturating_mul(1000),
            Share::Part { milli, .. } => milli.0.saturating_mul(ask.cards),
            Share::Memory { .. } | Share::Mig { .. } => return None,
        },
    };
    Some(MilliCards(each.saturating_mul(u64::from(spec.members))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_and_cursors_come_back_from_their_text() {
        for state in STATES {
            assert_eq!(parse_state(state_text(state)), Ok(state));
            let json = serde_json::to_string(&state).unwrap();
            assert_eq!(json, format!("\"{}\"", state_text(state)));
        }
        assert_eq!(Cursor(987).to_string().parse(), Ok(Cursor(987)));
        for bad in ["", "j", "3db", "j+1", "j-1", "jx", "j11112222333344445"] {
            assert_eq!(bad.parse::<Cursor>().unwrap_err().field, "cursor", "{bad}");
        }
    }
}
