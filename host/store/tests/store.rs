//! The store as a server and its operators meet it.
#![allow(missing_docs)]

mod common;

use common::{Server, job, tenant};
use crater_engine::Journal as _;
use crater_model::event::Entry;
use crater_model::{Digest, Event, JobState, JobUid, Time};
use crater_store::{
    DECISIONS_KEPT, Filter, KEY_LIFE, NewToken, Page, Reader, Store, StoreError, Submission,
    restore,
};
use rusqlite::Connection;
use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const DAY: Duration = Duration::from_hours(24);

fn data() -> (TempDir, PathBuf) {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("data");
    (temp, dir)
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// Changes the file behind the store's back.
fn meddle(dir: &Path, sql: &str) {
    Connection::open(dir.join("crater.db")).unwrap().execute_batch(sql).unwrap();
}

#[test]
fn what_was_synced_is_there_again_and_what_was_not_is_gone() {
    let (_temp, dir) = data();
    let mut server = Server::open(&dir).unwrap();
    server.run(10);
    server.sync();
    let kept = server.state().clone();
    assert_eq!(server.store().durable(), kept.seq);
    server.submit(job("lost", "q", "ai"));
    assert_eq!(server.store().durable(), kept.seq);
    drop(server);
    let mut server = Server::open(&dir).unwrap();
    assert_eq!(server.state().snapshot(), kept.snapshot());
    assert_eq!(server.store().reader().unwrap().job(kept.next_job()).unwrap(), None);
    // It goes on with the number that was lost.
    assert_eq!(server.submit(job("next", "q", "ai")), kept.next_job());
}

#[test]
fn a_snapshot_spares_the_entries_before_it_and_a_damaged_one_is_done_without() {
    let (_temp, dir) = data();
    let mut server = Server::open(&dir).unwrap();
    let mut covered = vec![];
    for _ in 0..4 {
        server.run(3);
        let snapshot = server.state().snapshot();
        covered.push(snapshot.seq);
        server.store().snapshot(&snapshot).unwrap();
        assert_eq!(server.store().uncovered(), 0);
    }
    server.run(1);
    server.sync();
    let books = server.state().snapshot();
    drop(server);

    let open = || {
        let (_store, recovered) = Store::open(&dir).unwrap();
        let found = (recovered.covered(), recovered.skipped, recovered.last());
        assert_eq!(recovered.books(Arc::default()).unwrap().snapshot(), books);
        found
    };
    assert_eq!(open(), (covered[3], 0, books.seq));
    meddle(
        &dir,
        "UPDATE snapshots SET body = substr(body, 1, 100)
         WHERE seq = (SELECT max(seq) FROM snapshots)",
    );
    assert_eq!(open(), (covered[2], 1, books.seq));
    // It was dropped, so the next one pushes out the right one.
    assert_eq!(open(), (covered[2], 0, books.seq));
    // While the journal reaches back to its beginning, none is needed.
    meddle(&dir, "UPDATE snapshots SET hash = zeroblob(32)");
    assert_eq!(open(), (0, 1, books.seq));
    meddle(&dir, "DELETE FROM entries WHERE seq = 5");
    let error = Store::open(&dir).unwrap_err().to_string();
    assert!(error.contains("damaged: journal entry 5 is missing"), "{error}");
}

#[test]
fn a_folder_or_file_that_others_may_read_is_refused() {
    let (_temp, dir) = data();
    drop(Server::open(&dir).unwrap());
    let file = dir.join("crater.db");
    assert_eq!((mode(&dir), mode(&file), mode(&dir.join("lock"))), (0o700, 0o600, 0o600));
    for entry in fs::read_dir(&dir).unwrap() {
        assert_eq!(mode(&entry.unwrap().path()), 0o600);
    }
    for (path, bad, good) in [(&dir, 0o750, 0o700), (&dir, 0o705, 0o700), (&file, 0o640, 0o600)] {
        set_mode(path, bad);
        let error = Store::open(&dir).unwrap_err();
        assert!(matches!(&error, StoreError::Exposed { path: p, .. } if p == path), "{error}");
        let remedy = format!("chmod {good:o} '{}'", path.display());
        assert!(error.to_string().contains(&remedy), "{error}");
        set_mode(path, good);
    }
    let target = dir.with_file_name("elsewhere.db");
    fs::rename(&file, &target).unwrap();
    std::os::unix::fs::symlink(&target, &file).unwrap();
    assert!(matches!(Store::open(&dir).unwrap_err(), StoreError::Shape { .. }));
    assert!(matches!(Reader::open(&dir).unwrap_err(), StoreError::Shape { .. }));
}

#[test]
fn one_server_at_a_time() {
    let (_temp, dir) = data();
    let server = Server::open(&dir).unwrap();
    let error = Store::open(&dir).unwrap_err();
    let me = std::process::id();
    assert!(matches!(error, StoreError::Locked { pid: Some(pid), .. } if pid == me), "{error}");
    assert!(error.to_string().contains(&format!("in use by process {me}")), "{error}");
    drop(server);
    Store::open(&dir).unwrap();
}

#[test]
fn a_store_of_schema_1_is_read() {
    let (_temp, dir) = data();
    drop(Server::open(&dir).unwrap());
    fs::remove_file(dir.join("crater.db")).unwrap();
    fs::write(dir.join("crater.db"), "").unwrap();
    set_mode(&dir.join("crater.db"), 0o600);
    meddle(&dir, include_str!("fixtures/1.sql"));
    let (store, recovered) = Store::open(&dir).unwrap();
    assert_eq!(store.cluster_id(), "0123456789abcdef0123456789abcdef");
    let state = recovered.books(Arc::default()).unwrap();
    assert_eq!((state.seq, state.next_job()), (9, JobUid(3)));
    let reader = store.reader().unwrap();
    let row = reader.job(JobUid(1)).unwrap().unwrap();
    assert_eq!((row.state, &*row.spec.name), (JobState::Succeeded, "first"));
    assert_eq!(row.nodes, [Arc::from("n0")]);
    assert_eq!(reader.events(JobUid(1)).unwrap().len(), 4);
    assert_eq!(reader.tokens().unwrap()[0].role, "admin");
    assert_eq!(reader.decisions(JobUid(1)).unwrap().len(), 1);
    // Its tables are those that a new store has: a restore compares them.
    let copy = dir.with_file_name("copy.db");
    reader.backup(&copy).unwrap();
    restore(&copy, &dir.with_file_name("again")).unwrap();
}

#[test]
fn files_of_others_and_of_newer_versions_are_left_alone() {
    let (_temp, dir) = data();
    drop(Server::open(&dir).unwrap());
    meddle(&dir, "PRAGMA user_version = 99");
    let error = Store::open(&dir).unwrap_err();
    assert!(matches!(error, StoreError::Newer { found: 99, .. }), "{error}");
    assert!(matches!(Reader::open(&dir).unwrap_err(), StoreError::Newer { .. }));
    meddle(&dir, "PRAGMA user_version = 1; PRAGMA application_id = 7");
    assert!(matches!(Store::open(&dir).unwrap_err(), StoreError::Foreign { .. }));
    fs::write(dir.join("crater.db"), "not a database, but long enough to look at".repeat(100))
        .unwrap();
    for name in ["crater.db-wal", "crater.db-shm"] {
        let _ = fs::remove_file(dir.join(name));
    }
    assert!(matches!(Store::open(&dir).unwrap_err(), StoreError::Foreign { .. }));
}

#[test]
fn after_a_failed_write_nothing_more_is_taken() {
    let (_temp, dir) = data();
    let mut server = Server::open(&dir).unwrap();
    server.run(1);
    server.sync();
    let seq = server.state().seq;
    server.submit(job("half", "q", "ai"));
    // A gap, as only a defect makes it.
    let at = server.now;
    let entry = Entry { seq: seq + 5, at, event: Event::JobsForgotten { jobs: vec![] } };
    assert!(server.store().append(&[entry]).is_err());
    assert!(server.ledger.submit(at, job("more", "q", "ai")).is_err());
    let store = server.store();
    assert!(matches!(store.sync().unwrap_err(), StoreError::Poisoned { .. }));
    assert!(matches!(store.set_setting("a", "b").unwrap_err(), StoreError::Poisoned { .. }));
    assert!(store.trim(at, DAY).is_err());
    drop(server);
    assert_eq!(Server::open(&dir).unwrap().state().seq, seq);
}

#[test]
fn an_entry_that_the_books_refused_does_not_last() {
    let (_temp, dir) = data();
    let mut server = Server::open(&dir).unwrap();
    server.sync();
    let (seq, at) = (server.state().seq, server.now);
    let entry = Entry { seq: seq + 1, at, event: Event::JobsForgotten { jobs: vec![JobUid(9)] } };
    server.store().append(&[entry]).unwrap();
    assert!(matches!(server.store().sync().unwrap_err(), StoreError::Poisoned { .. }));
    drop(server);
    assert_eq!(Server::open(&dir).unwrap().state().seq, seq);
}

#[test]
fn a_full_disk_poisons_and_loses_only_what_was_not_synced() {
    let (_temp, dir) = data();
    let mut server = Server::open(&dir).unwrap();
    server.run(3);
    server.sync();
    let seq = server.state().seq;
    let pages: i64 = 40;
    let reader = server.store().reader().unwrap();
    drop(reader);
    // The file may not grow: what a full disk looks like to SQLite.
    server.store().limit_pages(pages).unwrap();
    let mut refused = false;
    for n in 0..10_000 {
        server.now.0 += 1;
        let now = server.now;
        if server.ledger.submit(now, job(&format!("n{n}"), "q", "ai")).is_err() {
            refused = true;
            break;
        }
    }
    refused |= server.store().sync().is_err();
    assert!(refused);
    assert!(server.store().sync().is_err());
    drop(server);
    assert_eq!(Server::open(&dir).unwrap().state().seq, seq);
}

#[test]
fn pages_are_complete_and_without_duplicates_while_jobs_are_added() {
    let (_temp, dir) = data();
    let mut server = Server::open(&dir).unwrap();
    for n in 0..250 {
        server.submit(job(&format!("old-{n}"), "q", "ai"));
    }
    server.sync();
    let before: BTreeSet<_> = server.state().jobs().map(|j| j.uid).collect();
    let reader = server.store().reader().unwrap();
    let (mut seen, mut after, mut pages) = (vec![], None, 0);
    loop {
        let page = reader.jobs(&Filter::default(), Page { limit: 17, after }).unwrap();
        seen.extend(page.rows.iter().map(|r| r.uid));
        pages += 1;
        server.submit(job("new", "q", "ai"));
        server.round();
        server.sync();
        match page.next {
            Some(next) => after = Some(next.to_string().parse().unwrap()),
            None => break,
        }
    }
    assert!(seen.windows(2).all(|pair| pair[0] > pair[1]), "newest first, none twice");
    assert_eq!(seen.iter().copied().collect::<BTreeSet<_>>(), before);
    assert_eq!(pages, 250usize.div_ceil(17));
}

#[test]
fn filters_find_what_they_name_and_nothing_else() {
    let (_temp, dir) = data();
    let mut server = Server::open(&dir).unwrap();
    for (name, queue, path) in [
        ("a", "q", "ai"),
        ("b", "r", "ai/nlp"),
        ("c", "q", "ai/nlp/mei"),
        ("a", "q", "ai-two"),
        ("d", "q", "ai.x/y"),
        ("e", "r", "bio/fold"),
    ] {
        server.submit(job(name, queue, path));
    }
    let now = server.now;
    server.ledger.end_job(now, JobUid(6), JobState::Cancelled, "not needed").unwrap();
    server.sync();
    let reader = server.store().reader().unwrap();
    let uids = |filter: Filter| -> Vec<u64> {
        reader.jobs(&filter, Page::default()).unwrap().rows.iter().map(|r| r.uid.0).collect()
    };
    let all = Filter::default;
    assert_eq!(uids(all()), [6, 5, 4, 3, 2, 1]);
    assert_eq!(uids(Filter { queue: Some("r".into()), ..all() }), [6, 2]);
    assert_eq!(uids(Filter { name: Some("a".into()), ..all() }), [4, 1]);
    assert_eq!(uids(Filter { tenant: Some(tenant("ai")), ..all() }), [3, 2, 1]);
    assert_eq!(uids(Filter { tenant: Some(tenant("ai/nlp")), ..all() }), [3, 2]);
    assert_eq!(uids(Filter { states: vec![JobState::Cancelled], ..all() }), [6]);
    let two = vec![JobState::Succeeded, JobState::Pending];
    assert_eq!(uids(Filter { states: two, ..all() }), [5, 4, 3, 2, 1]);
    let visible = |paths: &[&str]| Some(paths.iter().map(|p| tenant(p)).collect());
    assert_eq!(uids(Filter { visible: visible(&[]), ..all() }), [0u64; 0]);
    assert_eq!(uids(Filter { visible: visible(&["ai-two", "bio"]), ..all() }), [6, 4]);
    let both = Filter { visible: visible(&["ai/nlp"]), tenant: Some(tenant("ai")), ..all() };
    assert_eq!(uids(both), [3, 2]);
    let since = reader.job(JobUid(5)).unwrap().unwrap().submitted;
    assert_eq!(uids(Filter { since: Some(since), ..all() }), [6, 5]);
    let odd = ["' OR 1=1 --", "%", "训练", "a\0b"];
    for name in odd {
        assert_eq!(uids(Filter { name: Some(name.into()), ..all() }), [0u64; 0]);
    }
    let row = reader.job(JobUid(6)).unwrap().unwrap();
    assert_eq!((&*row.reason, row.ended), ("not needed", Some(now)));
    assert_eq!(row.gpu.map(|g| g.0), Some(500));
}

#[test]
fn what_is_older_than_the_retention_goes_and_what_is_needed_stays() {
    let (_temp, dir) = data();
    let mut server = Server::open(&dir).unwrap();
    server.run(5);
    let keeps = server.submit(job("waits", "q", "ai"));
    let first = server.now;
    let key = Submission { job: keeps, request: Digest([1; 32]) };
    server.store().remember("me", "k", key, first).unwrap();
    let token = |name: &str, n, expires| NewToken {
        hash: Digest([n; 32]),
        name: name.into(),
        role: "viewer".into(),
        tenant: None,
        expires,
    };
    server.store().add_token(&token("short", 1, Some(first)), first).unwrap();
    server.store().add_token(&token("long", 2, None), first).unwrap();
    let plan = server.round();
    for record in &plan.records {
        server.store().record(&plan, record).unwrap();
    }
    server.sync();

    // Nothing is old.
    let none = server.store().trim(first, 30 * DAY).unwrap();
    assert_eq!((none.jobs, none.entries, none.keys, none.more), (0, 0, 0, false));
    server.now = first + 31 * DAY;
    let now = server.now;
    // Old, but no two snapshots could do without them.
    let trimmed = server.store().trim(now, 30 * DAY).unwrap();
    assert_eq!((trimmed.jobs, trimmed.entries, trimmed.keys), (5, 0, 2));
    let old = server.state().seq;
    server.ledger.forget(now, first).unwrap();
    let snapshot = server.state().snapshot();
    server.store().snapshot(&snapshot).unwrap();
    server.run(2);
    let snapshot = server.state().snapshot();
    server.store().snapshot(&snapshot).unwrap();
    let trimmed = server.store().trim(now, 30 * DAY).unwrap();
    assert_eq!((trimmed.jobs, trimmed.entries), (0, old));
    server.sync();

    let reader = server.store().reader().unwrap();
    let uids: Vec<_> = reader
        .jobs(&Filter::default(), Page::default())
        .unwrap()
        .rows
        .iter()
        .map(|r| r.uid.0)
        .collect();
    assert_eq!(uids, [8, 7, 6]);
    assert_eq!(reader.events(JobUid(1)).unwrap(), []);
    assert_eq!(reader.decisions(JobUid(1)).unwrap(), []);
    assert_eq!(reader.recall("me", "k", now).unwrap(), None);
    assert_eq!(reader.tokens().unwrap().len(), 1);
    let books = server.state().snapshot();
    drop(server);
    assert_eq!(Server::open(&dir).unwrap().state().snapshot(), books);
}

#[test]
fn a_long_history_is_trimmed_in_parts() {
    let (_temp, dir) = data();
    let mut server = Server::open(&dir).unwrap();
    for n in 0..2500 {
        let uid = server.submit(job(&format!("n{n}"), "q", "ai"));
        let now = server.now;
        server.ledger.end_job(now, uid, JobState::Cancelled, "").unwrap();
    }
    server.sync();
    let later = server.now + 31 * DAY;
    let mut calls = vec![];
    loop {
        let trimmed = server.store().trim(later, 30 * DAY).unwrap();
        server.sync();
        calls.push(trimmed.jobs);
        if !trimmed.more {
            break;
        }
    }
    assert_eq!(calls, [1000, 1000, 500]);
}

#[test]
fn the_last_decisions_on_a_job_are_kept() {
    let (_temp, dir) = data();
    let mut server = Server::open(&dir).unwrap();
    let uid = server.submit(job("a", "q", "ai"));
    let plan = server.round();
    let record = plan.record(uid).unwrap().clone();
    for n in 0..20 {
        let mut plan = plan.clone();
        plan.seq = 100 + n;
        plan.seed = u64::MAX - n;
        server.store().record(&plan, &record).unwrap();
        // The second on the same books replaces the first.
        server.store().record(&plan, &record).unwrap();
        server.sync();
    }
    let found = server.store().own().decisions(uid).unwrap();
    assert_eq!(found.len(), DECISIONS_KEPT as usize);
    let (last, first) = (&found[0], found.last().unwrap());
    assert_eq!((last.seq, last.seed, first.seq), (119, u64::MAX - 19, 112));
    assert_eq!((&last.record, last.at, &last.engine), (&record, plan.now, &plan.engine));
}

#[test]
fn tokens_are_found_by_hash_and_can_be_taken_back() {
    let (_temp, dir) = data();
    let mut server = Server::open(&dir).unwrap();
    let now = server.now;
    let new = NewToken {
        hash: Digest([9; 32]),
        name: "laptop".into(),
        role: "member".into(),
        tenant: Some(tenant("ai/nlp")),
        expires: Some(now + DAY),
    };
    let store = server.store();
    let id = store.add_token(&new, now).unwrap();
    // Readers do not see it before it is durable.
    let reader = store.reader().unwrap();
    assert_eq!(reader.token(&new.hash).unwrap(), None);
    store.token_used(id, now).unwrap();
    server.sync();
    let found = reader.token(&new.hash).unwrap().unwrap();
    assert_eq!((found.id, &found.tenant, found.last_used), (id, &new.tenant, Some(now)));
    assert!(found.valid(now) && !found.valid(now + DAY));
    assert_eq!(reader.token(&Digest([8; 32])).unwrap(), None);
    let store = server.store();
    assert!(store.revoke_token(id, now).unwrap());
    assert!(!store.revoke_token(id, now).unwrap());
    assert!(!store.revoke_token(99, now).unwrap());
    server.sync();
    let found = reader.token(&new.hash).unwrap().unwrap();
    assert!(!found.valid(now));
    assert_eq!(reader.tokens().unwrap(), [found]);
}

#[test]
fn a_client_key_is_remembered_for_a_day() {
    let (_temp, dir) = data();
    let mut server = Server::open(&dir).unwrap();
    let now = server.now;
    let store = server.store();
    let submission = Submission { job: JobUid(4), request: Digest([3; 32]) };
    store.remember("mei", "k", submission, now).unwrap();
    // Within the same transaction already, by its own scope only.
    assert_eq!(store.recall("mei", "k", now).unwrap(), Some(submission));
    assert_eq!(store.recall("li", "k", now).unwrap(), None);
    let reader = store.reader().unwrap();
    assert_eq!(reader.recall("mei", "k", now).unwrap(), None);
    store.sync().unwrap();
    assert_eq!(reader.recall("mei", "k", now + KEY_LIFE).unwrap(), Some(submission));
    let later = now + KEY_LIFE + Duration::from_millis(1);
    assert_eq!(reader.recall("mei", "k", later).unwrap(), None);
}

#[test]
fn settings_and_the_cluster_id_last() {
    let (_temp, dir) = data();
    let (mut store, _) = Store::open(&dir).unwrap();
    let id = store.cluster_id().to_owned();
    assert!(id.len() == 32 && id.bytes().all(|b| b.is_ascii_hexdigit()), "{id}");
    store.set_setting("a", "1").unwrap();
    store.set_setting("a", "2").unwrap();
    store.sync().unwrap();
    drop(store);
    let (store, _) = Store::open(&dir).unwrap();
    assert_eq!(store.cluster_id(), id);
    let reader = store.reader().unwrap();
    assert_eq!(reader.cluster_id().unwrap(), id);
    assert_eq!(reader.setting("a").unwrap().as_deref(), Some("2"));
    assert_eq!(reader.setting("b").unwrap(), None);
}

#[test]
fn a_backup_while_writing_is_whole_and_can_be_restored() {
    let (temp, dir) = data();
    let mut server = Server::open(&dir).unwrap();
    server.run(20);
    server.sync();
    let reader = Reader::open(&dir).unwrap();
    let stop = AtomicBool::new(false);
    let to = |n: usize| temp.path().join(format!("backup-{n}"));
    std::thread::scope(|scope| {
        let (to, stop) = (&to, &stop);
        let backups = scope.spawn(move || {
            let done: Result<(), StoreError> = (0..5).try_for_each(|n| reader.backup(&to(n)));
            // Also after a failure, so that the writer ends.
            stop.store(true, Ordering::Relaxed);
            done
        });
        while !stop.load(Ordering::Relaxed) {
            server.run(3);
            let snapshot = server.state().snapshot();
            server.store().snapshot(&snapshot).unwrap();
        }
        backups.join().unwrap().unwrap();
    });
    let mut last = 0;
    for n in 0..5 {
        assert_eq!(mode(&to(n)), 0o600);
        let back = temp.path().join(format!("restored-{n}"));
        restore(&to(n), &back).unwrap();
        assert_eq!((mode(&back), mode(&back.join("crater.db"))), (0o700, 0o600));
        let mut again = Server::open(&back).unwrap();
        again.state().audit().unwrap();
        let seq = again.state().seq;
        assert!(seq >= last && seq > 0);
        last = seq;
        let rows = again.store().reader().unwrap();
        for uid in (1..again.state().next_job().0).map(JobUid) {
            let row = rows.job(uid).unwrap().unwrap();
            assert_eq!(row.state, again.state().job(uid).unwrap().state);
        }
        assert_eq!(again.store().cluster_id(), server.ledger.journal().cluster_id());
    }
    assert!(
        !fs::read_dir(temp.path())
            .unwrap()
            .any(|e| { e.unwrap().file_name().to_string_lossy().ends_with(".part") })
    );
}

#[test]
fn a_backup_overwrites_nothing_and_a_restore_checks_first() {
    let (temp, dir) = data();
    let mut server = Server::open(&dir).unwrap();
    server.run(5);
    let file = temp.path().join("copy.db");
    server.store().backup(&file).unwrap();
    let error = server.store().backup(&file).unwrap_err();
    assert!(matches!(error, StoreError::Exists { .. }), "{error}");
    let error = server.store().backup(&temp.path().join("no/such/folder")).unwrap_err();
    assert!(matches!(error, StoreError::Io { .. }), "{error}");

    assert!(matches!(restore(&file, &dir).unwrap_err(), StoreError::NotEmpty { .. }));
    let new = temp.path().join("new");
    let absent = temp.path().join("absent");
    assert!(matches!(restore(&absent, &new).unwrap_err(), StoreError::Io { .. }));
    let refused = |change: &str| {
        let bad = temp.path().join("bad.db");
        fs::copy(&file, &bad).unwrap();
        Connection::open(&bad).unwrap().execute_batch(change).unwrap();
        let error = restore(&bad, &new).unwrap_err();
        assert!(!new.exists(), "nothing was made");
        error
    };
    assert!(matches!(refused("PRAGMA user_version = 99"), StoreError::Newer { .. }));
    assert!(matches!(refused("PRAGMA application_id = 1"), StoreError::Foreign { .. }));
    let spy = "CREATE TRIGGER t AFTER INSERT ON jobs BEGIN DELETE FROM tokens; END";
    assert!(matches!(refused(spy), StoreError::Foreign { .. }));
    assert!(matches!(refused("DROP TABLE jobs"), StoreError::Foreign { .. }));
    let hole = "DELETE FROM entries WHERE seq = 3";
    assert!(matches!(refused(hole), StoreError::Damaged { .. }));
    let oversold = "UPDATE entries SET event = replace(event, '\"milli\":500', '\"milli\":5000')";
    assert!(matches!(refused(oversold), StoreError::Damaged { .. }));
    // A page that the disk garbled.
    let garbled = temp.path().join("garbled.db");
    let mut bytes = fs::read(&file).unwrap();
    bytes[4096..8192].fill(0xa5);
    fs::write(&garbled, bytes).unwrap();
    let error = restore(&garbled, &new).unwrap_err();
    assert!(matches!(error, StoreError::Damaged { .. } | StoreError::Sqlite { .. }), "{error}");
    restore(&file, &new).unwrap();
    assert_eq!(Server::open(&new).unwrap().state().seq, server.state().seq);
}

/// Finished jobs that the books have forgotten cost a restart nothing. Rows are
/// put in as the store would, since to run 100,000 jobs is no quick test.
#[test]
fn a_restart_does_not_read_the_history() {
    let (_temp, dir) = data();
    let mut server = Server::open(&dir).unwrap();
    server.run(1);
    for n in 0..20 {
        server.submit(job(&format!("live-{n}"), "q", "ai/nlp/mei"));
    }
    server.round();
    let snapshot = server.state().snapshot();
    server.store().snapshot(&snapshot).unwrap();
    server.submit(job("last", "q", "ai"));
    server.sync();
    let books = server.state().snapshot();
    drop(server);
    meddle(
        &dir,
        "BEGIN;
         WITH RECURSIVE n(n) AS (SELECT 1000 UNION ALL SELECT n + 1 FROM n WHERE n < 100999)
         INSERT INTO jobs SELECT n, 'old-' || n, queue, tenant, kind, priority, state, submitted,
           placed, started, ended, attempts, preemptions, reason, gpu, nodes, spec
           FROM jobs, n WHERE uid = 1;
         WITH RECURSIVE n(n) AS (SELECT 1000 UNION ALL SELECT n + 1 FROM n WHERE n < 100999)
         INSERT INTO job_entries SELECT n, seq FROM job_entries, n WHERE job = 1;
         COMMIT;",
    );
    let start = Instant::now();
    let (store, recovered) = Store::open(&dir).unwrap();
    let entries = recovered.entries.len();
    let state = recovered.books(Arc::default()).unwrap();
    let taken = start.elapsed();
    assert_eq!((state.snapshot(), entries), (books, 1));
    let reader = store.reader().unwrap();
    let start = Instant::now();
    let filter = Filter { states: vec![JobState::Succeeded], ..Filter::default() };
    let page = reader.jobs(&filter, Page::default()).unwrap();
    assert_eq!((page.rows.len(), page.rows[0].uid), (100, JobUid(100_999)));
    println!("100,000 jobs in history: open {taken:?}, first page {:?}", start.elapsed());
    let filter = Filter { name: Some("old-50000".into()), ..Filter::default() };
    assert_eq!(reader.jobs(&filter, Page::default()).unwrap().rows.len(), 1);
    assert!(reader.job(JobUid(1)).unwrap().unwrap().started > Some(Time(0)));
}
