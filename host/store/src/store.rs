//! The one writer.

use crate::convert::{at, int};
use crate::decisions;
use crate::error::StoreError;
use crate::folder::{FILE, Lock, private_dir, private_file};
use crate::history::Pending;
use crate::migrate::{migrate, version};
use crate::reader::Reader;
use crate::recover::{Recovered, recover};
use crate::settings;
use crater_engine::ledger::JournalError;
use crater_engine::{Journal, Plan, Record, Snapshot, State};
use crater_model::event::Entry;
use crater_model::{JobUid, Time};
use rusqlite::{Connection, OpenFlags, params};
use std::collections::BTreeMap;
use std::error::Error as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A snapshot as it is written, made on whatever thread has the time.
#[derive(Clone, Debug)]
pub struct Packed {
    seq: u64,
    at: Time,
    body: Vec<u8>,
    hash: [u8; 32],
}

impl Packed {
    /// Packs a snapshot. Costs about 5 ms a megabyte.
    pub fn new(snapshot: &Snapshot) -> Result<Self, serde_json::Error> {
        let body = serde_json::to_vec(snapshot)?;
        let hash = blake3::hash(&body).into();
        Ok(Self { seq: snapshot.seq, at: snapshot.at, body, hash })
    }

    /// Bytes that it takes.
    pub fn len(&self) -> usize {
        self.body.len()
    }

    /// Whether it has none, which cannot be.
    pub fn is_empty(&self) -> bool {
        self.body.is_empty()
    }
}

/// The durable store of one server, and its ledger's journal.
///
/// Everything that it is told joins one open transaction, begun by the first
/// write. Nothing of that is durable, and no client may be answered, until
/// [`Store::sync`] has returned. After a write or a sync that failed nothing
/// more is taken: what the transaction held is gone from the file but not from
/// the books in memory, so the server must end and read them back.
#[derive(Debug)]
pub struct Store {
    own: Reader,
    dir: PathBuf,
    cluster: String,
    poison: Option<String>,
    /// A transaction is open.
    open: bool,
    /// The last entry appended.
    appended: u64,
    /// The last entry that the books took.
    applied: u64,
    /// The last entry that is durable.
    durable: u64,
    /// The last entry that a snapshot covers.
    covered: u64,
    /// What changed about jobs since the transaction began.
    jobs: BTreeMap<JobUid, Pending>,
    /// The last decision on each job since the transaction began.
    decisions: BTreeMap<JobUid, decisions::Pending>,
    _lock: Lock,
}

impl Store {
    /// Opens a data folder, or makes it, with what its books are made of. A
    /// backup that waits there to be restored takes the database's place first.
    pub fn open(dir: &Path) -> Result<(Self, Recovered), StoreError> {
        private_dir(dir)?;
        let lock = Lock::take(dir)?;
        crate::backup::sweep(dir)?;
        crate::backup::swap(dir)?;
        let path = dir.join(FILE);
        private_file(&path)?;
        let mut conn = Connection::open_with_flags(
            &path,
            OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
        )
        .map_err(at(&path, "open the database"))?;
        // Before anything is changed: it may be another program's file.
        version(&conn, &path)?;
        settle(&conn).map_err(at(&path, "set up the database"))?;
        migrate(&mut conn, &path)?;
        let cluster = settings::cluster(&conn, &path)?;
        let recovered = recover(&conn, &path)?;
        let (last, covered) = (recovered.last(), recovered.covered());
        if recovered.skipped > 0 {
            // A damaged one must not count as one of the two that are kept.
            conn.execute("DELETE FROM snapshots WHERE seq > ?1", [int(covered)])
                .map_err(at(&path, "drop a damaged snapshot"))?;
        }
        let store = Self {
            own: Reader { conn, path },
            dir: dir.to_owned(),
            cluster,
            poison: None,
            open: false,
            appended: last,
            applied: last,
            durable: last,
            covered,
            jobs: BTreeMap::new(),
            decisions: BTreeMap::new(),
            _lock: lock,
        };
        Ok((store, recovered))
    }

    /// The data folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Names this cluster: 32 hexadecimal digits, drawn when the store was made.
    pub fn cluster_id(&self) -> &str {
        &self.cluster
    }

    /// A connection of its own for another thread. Sees what is durable.
    pub fn reader(&self) -> Result<Reader, StoreError> {
        Reader::open(&self.dir)
    }

    /// Reads on the writer's own connection: what is durable, and of the open
    /// transaction the journal, tokens, settings and clients' keys. Rows of jobs
    /// and decisions join when it is synced.
    pub fn own(&self) -> &Reader {
        &self.own
    }

    /// The last entry that is durable.
    pub fn durable(&self) -> u64 {
        self.durable
    }

    /// Entries that a restart would fold: how much a snapshot would save.
    pub fn uncovered(&self) -> u64 {
        self.appended.saturating_sub(self.covered)
    }

    /// Makes everything so far durable, with one sync of the disk. Costs nothing
    /// if there was no write.
    pub fn sync(&mut self) -> Result<(), StoreError> {
        self.guard()?;
        if !self.open {
            return Ok(());
        }
        if self.appended != self.applied {
            // Read back at the next start it would be refused again, for ever.
            let why = format!("entry {} was not taken by the books", self.appended);
            return Err(self.fail(why));
        }
        let (jobs, decisions) =
            (std::mem::take(&mut self.jobs), std::mem::take(&mut self.decisions));
        self.write("write the history", |conn| {
            jobs.iter().try_for_each(|(uid, job)| job.write(conn, *uid))?;
            decisions.iter().try_for_each(|(job, decision)| decision.write(conn, *job))
        })?;
        self.write("commit", |conn| conn.execute_batch("COMMIT"))?;
        self.open = false;
        self.durable = self.appended;
        Ok(())
    }

    /// Writes a snapshot of the books and syncs. The last two are kept.
    pub fn snapshot(&mut self, snapshot: &Snapshot) -> Result<(), StoreError> {
        match Packed::new(snapshot) {
            Ok(packed) => self.snapshot_packed(&packed),
            Err(error) => Err(self.fail(format!("a snapshot cannot be written: {error}"))),
        }
    }

    /// Writes a snapshot that was packed before and syncs. The last two are
    /// kept, with the entries after the older one, so that one that is damaged
    /// can do without. One that is no newer than the last is ignored.
    pub fn snapshot_packed(&mut self, packed: &Packed) -> Result<(), StoreError> {
        self.guard()?;
        if packed.seq > self.appended {
            let (seq, last) = (packed.seq, self.appended);
            return Err(self.fail(format!("a snapshot of entry {seq}, but the last is {last}")));
        }
        if packed.seq <= self.covered {
            return Ok(());
        }
        self.write("write a snapshot", |conn| {
            conn.execute(
                "INSERT INTO snapshots (seq, at, hash, body) VALUES (?1, ?2, ?3, ?4)",
                params![int(packed.seq), int(packed.at.0), packed.hash, packed.body],
            )?;
            conn.execute(
                "DELETE FROM snapshots WHERE seq NOT IN
                 (SELECT seq FROM snapshots ORDER BY seq DESC LIMIT 2)",
                [],
            )
        })?;
        self.sync()?;
        self.covered = packed.seq;
        Ok(())
    }

    /// Keeps a decision: of each job the last few. Of those in one transaction
    /// the last counts.
    pub fn record(&mut self, plan: &Plan, record: &Record) -> Result<(), StoreError> {
        self.begin()?;
        self.decisions.insert(record.job, decisions::Pending::new(plan, record));
        Ok(())
    }

    /// Syncs and copies everything into a new file that only its owner may
    /// read. A [`Reader`] does the same without holding up the writer.
    pub fn backup(&mut self, to: &Path) -> Result<(), StoreError> {
        self.sync()?;
        self.own.backup(to)
    }

    /// Lets the file grow no further than so many pages, as a full disk would.
    #[doc(hidden)]
    pub fn limit_pages(&self, pages: i64) -> Result<(), StoreError> {
        let limited = self.own.conn.pragma_update(None, "max_page_count", pages);
        limited.map_err(at(&self.own.path, "limit the file"))
    }

    fn guard(&self) -> Result<(), StoreError> {
        match &self.poison {
            None => Ok(()),
            Some(why) => {
                Err(StoreError::Poisoned { path: self.own.path.clone(), why: why.clone() })
            }
        }
    }

    /// Takes nothing more from here on.
    fn fail(&mut self, why: String) -> StoreError {
        // SQLite may have rolled it back already.
        let _ = self.own.conn.execute_batch("ROLLBACK");
        self.open = false;
        self.poison = Some(why.clone());
        StoreError::Poisoned { path: self.own.path.clone(), why }
    }

    fn begin(&mut self) -> Result<(), StoreError> {
        self.guard()?;
        if self.open {
            return Ok(());
        }
        match self.own.conn.execute_batch("BEGIN IMMEDIATE") {
            Ok(()) => {
                self.open = true;
                Ok(())
            }
            Err(source) => Err(self.sqlite("begin a transaction", source)),
        }
    }

    fn sqlite(&mut self, doing: &'static str, source: rusqlite::Error) -> StoreError {
        self.fail(format!("cannot {doing}: {source}"));
        StoreError::Sqlite { path: self.own.path.clone(), doing, source }
    }

    /// Writes within the open transaction; a failure is the last thing that the
    /// store does.
    pub(crate) fn write<T>(
        &mut self,
        doing: &'static str,
        f: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        self.begin()?;
        f(&self.own.conn).map_err(|source| self.sqlite(doing, source))
    }

    fn append_all(&mut self, entries: &[Entry]) -> Result<(), StoreError> {
        self.guard()?;
        for entry in entries {
            if entry.seq != self.appended + 1 {
                let why = format!("entry {} came after {}", entry.seq, self.appended);
                return Err(self.fail(why));
            }
            let text = match serde_json::to_string(&entry.event) {
                Ok(text) => text,
                Err(error) => return Err(self.fail(format!("entry {}: {error}", entry.seq))),
            };
            self.write("append to the journal", |conn| {
                conn.prepare_cached("INSERT INTO entries (seq, at, event) VALUES (?1, ?2, ?3)")?
                    .execute(params![int(entry.seq), int(entry.at.0), text])
            })?;
            self.appended = entry.seq;
        }
        Ok(())
    }
}

impl Journal for Store {
    fn append(&mut self, entries: &[Entry]) -> Result<(), JournalError> {
        self.append_all(entries).map_err(|error| {
            let cause = error.source().map(|source| format!(": {source}"));
            JournalError(format!("{error}{}", cause.unwrap_or_default()))
        })
    }

    fn applied(&mut self, state: &State, entry: &Entry, jobs: &[JobUid]) {
        self.applied = entry.seq;
        for uid in jobs {
            if let Some(job) = state.job(*uid) {
                self.jobs.entry(*uid).or_default().note(state, job, entry);
            }
        }
    }
}

/// How the writer's connection works.
fn settle(conn: &Connection) -> rusqlite::Result<()> {
    conn.busy_timeout(Duration::from_secs(10))?;
    conn.pragma_update_and_check(None, "journal_mode", "wal", |row| {
        let mode: String = row.get(0)?;
        let ok = mode == "wal";
        ok.then_some(()).ok_or(rusqlite::Error::InvalidQuery)
    })?;
    conn.pragma_update(None, "synchronous", "FULL")?;
    conn.pragma_update(None, "foreign_keys", true)?;
    conn.pragma_update(None, "trusted_schema", false)?;
    conn.pragma_update(None, "temp_store", "MEMORY")?;
    // In KiB.
    conn.pragma_update(None, "cache_size", -32768)?;
    // Pages between check-points (16 MiB), and what the WAL shrinks to after.
    conn.pragma_update(None, "wal_autocheckpoint", 4096)?;
    conn.pragma_update(None, "journal_size_limit", 64 << 20)?;
    conn.set_prepared_statement_cache_capacity(64);
    Ok(())
}
