//! Samples, usage, the outbox, and backups that take a store's place.
#![allow(missing_docs)]

mod common;

use common::{Server, job};
use crater_model::{JobUid, Time};
use crater_store::{
    Counted, DAY_MS, Letter, OUTBOX_MOST, RAW_LIFE, ROLLED, Reader, Sample, Store, StoreError,
    Subject, UsageKey, UsageSum, check, part, stage, staged, unstage,
};
use rusqlite::Connection;
use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

fn data() -> (TempDir, PathBuf) {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("data");
    (temp, dir)
}

fn open(dir: &Path) -> (Store, Reader) {
    let (store, _) = Store::open(dir).unwrap();
    let reader = store.reader().unwrap();
    (store, reader)
}

fn sample(subject: Subject, metric: &'static str, used: u64) -> Sample {
    Sample { subject, metric, held: 100, used }
}

#[test]
fn a_store_of_schema_2_is_read() {
    let (_temp, dir) = data();
    drop(Server::open(&dir).unwrap());
    fs::remove_file(dir.join("crater.db")).unwrap();
    let conn = Connection::open(dir.join("crater.db")).unwrap();
    conn.execute_batch(include_str!("fixtures/2.sql")).unwrap();
    drop(conn);
    fs::set_permissions(dir.join("crater.db"), Permissions::from_mode(0o600)).unwrap();
    let (_store, reader) = open(&dir);
    let points = reader.points(Subject::Job(JobUid(1)), "gpu", Time(0), 10).unwrap();
    assert_eq!(points.len(), 1, "the rolled-up row reaches into the measurement");
    assert_eq!(reader.usage(0, None, None, 10).unwrap()[0].1.gpu, 10_000);
    assert_eq!(reader.usage_counted().unwrap().unwrap().seq, 9);
    assert_eq!(reader.letters("http://127.0.0.1:1/", 10).unwrap()[0].attempts, 2);
    assert_eq!(reader.deliveries("http://127.0.0.1:1/").unwrap().delivered, 3);
    assert_eq!(check(&dir.join("crater.db")).unwrap(), 9);
}

/// The beginning of five minutes.
const BEGIN: Time = Time(1_800_000_000_000);

fn at(seconds: u64) -> Time {
    BEGIN + Duration::from_secs(seconds)
}

#[test]
fn samples_are_rolled_up_once_however_often_it_is_done() {
    let (_temp, dir) = data();
    let (mut store, reader) = open(&dir);
    let job = Subject::Job(JobUid(7));
    assert_eq!(reader.rolled_up().unwrap(), None);
    for (seconds, used) in [(0, 10), (15, 30), (299, 50), (300, 70)] {
        let both = [sample(Subject::Cluster, "gpu", 2 * used), sample(job, "gpu", used)];
        store.add_samples(at(seconds), &both).unwrap();
    }
    store.sync().unwrap();
    assert_eq!(reader.rolled_up().unwrap(), Some(BEGIN));
    for _ in 0..2 {
        store.roll_up(BEGIN).unwrap();
        store.sync().unwrap();
    }
    assert_eq!(reader.rolled_up().unwrap(), Some(at(ROLLED)));
    // Single measurements where there are some, each time once.
    let points = reader.points(job, "gpu", BEGIN, 100).unwrap();
    let seen: Vec<_> = points.iter().map(|p| (p.at, p.span, p.total)).collect();
    assert_eq!(seen, [(at(0), 0, 10), (at(15), 0, 30), (at(299), 0, 50), (at(300), 0, 70)]);
    assert_eq!(reader.points(job, "gpu", at(15), 2).unwrap(), points[1..3]);
    assert_eq!(reader.points(job, "cpu", BEGIN, 9).unwrap(), []);

    // Measurements go with their five minutes, whose row stays; it goes with
    // the retention.
    let day = Duration::from_hours(24);
    assert_eq!(store.trim(at(299) + RAW_LIFE, day).unwrap().samples, 0);
    assert_eq!(store.trim(at(300) + RAW_LIFE, day).unwrap().samples, 6);
    store.sync().unwrap();
    let points = reader.points(job, "gpu", BEGIN, 100).unwrap();
    let seen: Vec<_> = points.iter().map(|p| (p.at, p.span, p.n, p.low, p.total, p.high)).collect();
    assert_eq!(seen, [(BEGIN, ROLLED, 3, 10, 90, 50), (at(300), 0, 1, 70, 70, 70)]);
    store.trim(at(900), Duration::ZERO).unwrap();
    store.sync().unwrap();
    assert_eq!(reader.points(job, "gpu", BEGIN, 100).unwrap(), []);
}

#[test]
fn usage_adds_up_by_day_tenant_and_queue() {
    let (_temp, dir) = data();
    let (mut store, reader) = open(&dir);
    assert_eq!(reader.usage_counted().unwrap(), None);
    let key = |day, tenant: &str, queue: &str| UsageKey {
        day,
        tenant: tenant.into(),
        queue: queue.into(),
    };
    let sum = |n| UsageSum { gpu: n, gpu_memory: 2 * n, cpu: 3 * n, memory: 4 * n };
    let rows = [
        (key(1, "ai", "q"), sum(1)),
        (key(1, "ai/nlp", "q"), sum(2)),
        (key(1, "ai2", "q"), sum(4)),
        (key(2, "ai/nlp", "q"), sum(8)),
        (key(2, "ai/nlp", "r"), sum(16)),
    ];
    for _ in 0..2 {
        store.add_usage(&BTreeMap::from(rows.clone())).unwrap();
    }
    let counted = Counted { seq: 9, at: Time(2 * DAY_MS) };
    store.set_usage_counted(counted).unwrap();
    store.sync().unwrap();
    assert_eq!(reader.usage_counted().unwrap(), Some(counted));
    let twice = |rows: &[(UsageKey, UsageSum)]| -> Vec<(UsageKey, UsageSum)> {
        rows.iter().map(|(key, sum)| (key.clone(), sum.times(2))).collect()
    };
    let all = reader.usage(0, None, None, 100).unwrap();
    assert_eq!(all, twice(&rows));
    assert_eq!(reader.usage(0, None, Some(&rows[1].0), 2).unwrap(), twice(&rows[2..4]));
    assert_eq!(reader.usage(2, None, None, 100).unwrap(), twice(&rows[3..]));
    let ai = common::tenant("ai");
    let of_ai = reader.usage(0, Some(&ai), None, 100).unwrap();
    assert_eq!(of_ai.iter().map(|(_, sum)| sum.gpu).sum::<u64>(), 2 * (1 + 2 + 8 + 16));
    // A day goes when all of it is past the retention.
    store.trim(Time(3 * DAY_MS - 1), Duration::from_millis(DAY_MS)).unwrap();
    store.sync().unwrap();
    assert_eq!(reader.usage(0, None, None, 100).unwrap(), all);
    store.trim(Time(3 * DAY_MS), Duration::from_millis(DAY_MS)).unwrap();
    store.sync().unwrap();
    assert_eq!(reader.usage(0, None, None, 100).unwrap(), all[3..]);
}

#[test]
fn the_outbox_keeps_what_was_not_delivered_and_no_more_than_it_may() {
    let (_temp, dir) = data();
    let (mut store, reader) = open(&dir);
    let (a, b) = ("http://a/", "http://b/");
    for n in 1..=3 {
        store.post(a, "end", JobUid(n), Time(n), "{}").unwrap();
        store.post(b, "end", JobUid(n), Time(n), "{}").unwrap();
    }
    store.sync().unwrap();
    let ids = |url: &str| -> Vec<u64> {
        reader.letters(url, 100).unwrap().iter().map(|letter| letter.id).collect()
    };
    let letters: Vec<Letter> = reader.letters(a, 100).unwrap();
    assert_eq!(ids(a), [1, 3, 5]);
    store.delivered(&letters[0], Time(10)).unwrap();
    store.undelivered(&letters[1], "it answered 500", Time(11), Some(Time(99))).unwrap();
    store.undelivered(&letters[2], "it answered 410", Time(12), None).unwrap();
    store.sync().unwrap();
    drop(store);
    let (mut store, _) = Store::open(&dir).unwrap();
    let left = reader.letters(a, 100).unwrap();
    assert_eq!(
        left.iter().map(|l| (l.id, l.due, l.attempts)).collect::<Vec<_>>(),
        [(3, Time(99), 1)]
    );
    let went = reader.deliveries(a).unwrap();
    assert_eq!((went.delivered, went.given_up, went.waiting), (1, 1, 1));
    assert_eq!((went.last, went.error_at), (Some(Time(10)), Some(Time(12))));
    assert_eq!(went.error.as_deref(), Some("it answered 410"));
    assert_eq!(reader.deliveries("http://c/").unwrap().delivered, 0);

    // Beyond what it may keep, the oldest go; those of nobody go, too.
    for n in 0..u64::from(OUTBOX_MOST) {
        store.post(a, "end", JobUid(n), Time(n), "{}").unwrap();
    }
    store.trim_outbox(&[a.to_owned()]).unwrap();
    store.sync().unwrap();
    let went = reader.deliveries(a).unwrap();
    assert_eq!((went.waiting, went.given_up), (u64::from(OUTBOX_MOST), 2));
    assert!(!ids(a).contains(&3));
    assert!(ids(b).is_empty());
}

/// A server's folder with some work, and a backup of an earlier moment that
/// lies in it like an upload.
fn with_upload(dir: &Path) -> (PathBuf, u64, u64) {
    let mut server = Server::open(dir).unwrap();
    server.run(5);
    server.sync();
    let then = server.state().seq;
    let place = part(dir).unwrap().keep().unwrap();
    fs::remove_file(&place).unwrap();
    server.store().backup(&place).unwrap();
    server.submit(job("later", "q", "ai"));
    server.sync();
    let now = server.state().seq;
    assert!(now > then);
    (place, then, now)
}

fn seq(dir: &Path) -> u64 {
    Server::open(dir).unwrap().state().seq
}

#[test]
fn a_staged_backup_takes_the_stores_place_at_the_next_start() {
    let (_temp, dir) = data();
    let (place, then, now) = with_upload(&dir);
    assert_eq!(stage(&place, &dir).unwrap(), then);
    assert!(staged(&dir) && !place.exists());
    // A change of mind.
    assert!(unstage(&dir).unwrap() && !unstage(&dir).unwrap() && !staged(&dir));
    assert_eq!(seq(&dir), now);

    let (place, then, now) = with_upload(&dir);
    stage(&place, &dir).unwrap();
    assert_eq!(seq(&dir), then);
    assert!(!staged(&dir));
    let mut names: Vec<_> = fs::read_dir(&dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| !name.starts_with("crater.db-"))
        .collect();
    names.sort();
    assert_eq!(names, ["before-restore.db", "crater.db", "lock"]);
    // What was there is whole, too: back again.
    let old = part(&dir).unwrap().keep().unwrap();
    fs::copy(dir.join("before-restore.db"), &old).unwrap();
    assert_eq!(check(&old).unwrap(), now);
}

#[test]
fn a_swap_that_was_cut_off_is_finished_by_the_next_start() {
    // Renames in their order; the process may end after any of them.
    for done in 0..3 {
        let (_temp, dir) = data();
        let (place, then, _) = with_upload(&dir);
        stage(&place, &dir).unwrap();
        // A journal of the old database that the new one must not see.
        fs::write(dir.join("crater.db-wal"), "not of the new one").unwrap();
        fs::write(dir.join("before-restore.db"), "of an earlier time").unwrap();
        if done > 0 {
            fs::rename(dir.join("crater.db"), dir.join("before-restore.db")).unwrap();
        }
        if done > 1 {
            fs::rename(dir.join("crater.db-wal"), dir.join("before-restore.db-wal")).unwrap();
        }
        assert_eq!(seq(&dir), then, "after {done} renames");
        assert!(!staged(&dir));
        let wal = fs::read_to_string(dir.join("before-restore.db-wal")).unwrap();
        assert_eq!(wal, "not of the new one");
    }
}

#[test]
fn a_damaged_upload_is_refused_and_what_was_left_half_done_is_swept() {
    let (_temp, dir) = data();
    let (place, _, now) = with_upload(&dir);
    let whole = fs::read(&place).unwrap();
    for (what, bytes) in [
        ("cut off", whole[..whole.len() / 2].to_vec()),
        ("empty", vec![]),
        ("something else", b"hello".repeat(1000)),
    ] {
        fs::write(&place, bytes).unwrap();
        let error = stage(&place, &dir).unwrap_err();
        let known = matches!(
            error,
            StoreError::Damaged { .. } | StoreError::Foreign { .. } | StoreError::Sqlite { .. }
        );
        assert!(known && !staged(&dir), "{what}: {error}");
    }
    assert!(place.exists());
    assert_eq!(seq(&dir), now);
    assert!(!place.exists(), "the next start sweeps it");
}
