//! A writer that is killed at any moment: what it said was durable is there,
//! and nothing is there by half.
#![allow(missing_docs)]

mod common;

use common::{Server, job};
use crater_model::{Digest, Event};
use crater_store::Submission;
use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

const FOLDER: &str = "CRATER_STORE_KILL";

/// Not a test of its own: what `kill_safety` starts and kills. It says each
/// batch after it was synced.
#[test]
fn writer() {
    let Ok(dir) = std::env::var(FOLDER) else { return };
    let mut server = Server::open(Path::new(&dir)).unwrap();
    let mut out = std::io::stdout();
    for batch in 0u64.. {
        let mut keys = vec![];
        for n in 0..=batch % 7 {
            let key = format!("{}-{batch}-{n}", std::process::id());
            let uid = server.submit(job("j", "q", "ai/nlp"));
            let now = server.now;
            let submission = Submission { job: uid, request: Digest([7; 32]) };
            server.store().remember("me", &key, submission, now).unwrap();
            keys.push(format!("{key}={}", uid.0));
        }
        let plan = server.round();
        for record in &plan.records {
            server.store().record(&plan, record).unwrap();
        }
        server.finish();
        if batch % 11 == 3 {
            let now = server.now;
            server.ledger.forget(now, now).unwrap();
        }
        if batch % 5 == 4 {
            let snapshot = server.state().snapshot();
            server.store().snapshot(&snapshot).unwrap();
        }
        server.sync();
        writeln!(out, "\nACK {} {}", server.state().seq, keys.join(" ")).unwrap();
        out.flush().unwrap();
    }
}

#[test]
fn kill_safety() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().join("data");
    let mut acknowledged: BTreeSet<(String, u64)> = BTreeSet::new();
    let mut last = 0;
    for round in 0u64..30 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "writer", "--nocapture", "--test-threads=1"])
            .env(FOLDER, &dir)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let chance = crater_engine::mix(round + 1);
        let kill_after = chance % 40 + 1;
        let (mut acks, pid) = (0, child.id());
        for line in out.lines() {
            let Ok(line) = line else { break };
            let Some(ack) = line.strip_prefix("ACK ") else { continue };
            let mut words = ack.split(' ');
            last = words.next().unwrap().parse().unwrap();
            acknowledged.extend(words.filter(|w| !w.is_empty()).map(|word| {
                let (key, uid) = word.split_once('=').unwrap();
                (key.to_owned(), uid.parse().unwrap())
            }));
            acks += 1;
            if acks == kill_after {
                // Somewhere within the next batches, not at their border.
                std::thread::sleep(Duration::from_micros(chance % 3000));
                let pid = rustix::process::Pid::from_raw(pid as i32).unwrap();
                rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
            }
        }
        assert!(!child.wait().unwrap().success(), "it was killed");
        let mut server = Server::open(&dir).unwrap();
        server.state().audit().unwrap();
        assert!(server.state().seq >= last, "{} is less than {last}", server.state().seq);
        let now = server.now;
        let reader = server.store().reader().unwrap();
        for (key, uid) in &acknowledged {
            let found = reader.recall("me", key, now).unwrap().map(|s| s.job.0);
            assert_eq!(found, Some(*uid), "{key} was acknowledged");
        }
        // Each job's history is whole: its rows, its events, its key.
        for uid in (1..server.state().next_job().0).map(crater_model::JobUid) {
            let row = reader.job(uid).unwrap().expect("each job has a row");
            let events = reader.events(uid).unwrap();
            assert!(matches!(events[0].event, Event::JobSubmitted { job, .. } if job == uid));
            if let Some(job) = server.state().job(uid) {
                assert_eq!((row.state, row.attempts), (job.state, job.attempts));
            } else {
                assert!(row.state.ended());
            }
        }
        assert_eq!(reader.job(server.state().next_job()).unwrap(), None);
    }
    assert!(acknowledged.len() > 1000, "too little was written: {}", acknowledged.len());
    println!("{} submissions acknowledged, {last} entries", acknowledged.len());
}
