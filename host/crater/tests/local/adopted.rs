//! Jobs outlive the server: what runs is taken up again, and every end is
//! recorded once.
//!
//! `CRATER_KILLS` sets how often the server is killed (8 unless set).

use super::{HERE, Here, clean, job, logs, over, possible, printed, processes, stands, submit};
use crate::common::until;
use std::collections::BTreeMap;

#[test]
fn jobs_run_on_while_the_server_is_killed_and_end_once() {
    if !possible() {
        return;
    }
    let kills: u64 = std::env::var("CRATER_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(8);
    let mut server = Here::start(HERE);
    let mut jobs: BTreeMap<String, u64> = BTreeMap::new();
    let mut number = 0_u64;
    let mut ended = 0;
    for kill in 0..kills {
        // Twenty at a time, of which some end while nobody looks.
        let running = |id: &String| job(&server, id)["status"] == "Running";
        let left = jobs.keys().filter(|id| running(id)).count();
        for _ in left..20 {
            number += 1;
            let time = 0.05 * (number * 7 % 40) as f64;
            let code = number % 3;
            let command = format!("echo begun; sleep {time}; echo over; exit {code}");
            let more = "--cpu 0.02 --memory 16Mi";
            jobs.insert(submit(&server, &format!("j{number}"), &command, more), code);
        }
        // At once, or when some have started.
        if kill % 3 > 0 {
            let newest = jobs.keys().next_back().unwrap().clone();
            until("the newest has started", || {
                (job(&server, &newest)["attempts"] != 0).then_some(())
            });
        }
        server.restart("KILL");
        ended = jobs.len();
    }
    for (id, code) in &jobs {
        let end = over(&server, id);
        let (status, reason) = if *code == 0 {
            ("Succeeded", String::new())
        } else {
            ("Failed", format!("exit code {code}"))
        };
        assert_eq!((&end["status"], &end["reason"]), (&status.into(), &reason.into()), "{id}");
        assert_eq!(end["attempts"], 1, "{id}: nothing is run twice");
        assert_eq!(logs(&server, id), "begun\nover\n", "{id}");
        let events = end["detail"]["events"].as_array().unwrap();
        let ends = events.iter().filter(|e| e["event"]["event"] == "member-ended").count();
        assert_eq!(ends, 1, "{id}: its end is recorded once");
    }
    clean(&server);
    let keepers = processes(&server.data().join("local").display().to_string());
    assert_eq!(keepers, [0_u32; 0], "keepers");
    eprintln!("{kills} kills, {ended} jobs: each ran once and ended once");
}

#[test]
fn what_loses_its_keeper_is_ended_and_runs_again() {
    if !possible() {
        return;
    }
    let server = Here::start(HERE);
    let lost = submit(&server, "lost", "echo run $CRATER_RESTART_COUNT; sleep 77071", "--grace 0");
    stands(&server, &lost, "Running");
    until("it runs", || (!processes("sleep 77071").is_empty()).then_some(()));
    let first = processes("sleep 77071")[0];
    for keeper in processes(&format!("{}/local/claims", server.data().display())) {
        let gone = std::process::Command::new("kill").args(["-9", &keeper.to_string()]).status();
        assert!(gone.unwrap().success());
    }
    until("it runs again", || {
        let now = processes("sleep 77071");
        (now.first().is_some_and(|pid| *pid != first)).then_some(())
    });
    printed(&server, &lost, "run 0\nrun 1\n");
    let about = stands(&server, &lost, "Running").to_string();
    assert!(about.contains("lost-node"), "{about}");
    server.run(&server.admin(), &format!("crater job cancel {lost}"));
    clean(&server);
}

#[test]
fn a_job_that_was_told_to_end_ends_while_the_server_is_away() {
    if !possible() {
        return;
    }
    let mut server = Here::start(HERE);
    let slow = submit(
        &server,
        "slow",
        "trap \"sleep 1; echo saved; exit 0\" TERM; echo up; while :; do sleep 0.1; done",
        "",
    );
    printed(&server, &slow, "up\n");
    server.run(&server.admin(), &format!("crater job cancel {slow}"));
    server.restart("KILL");
    clean(&server);
    assert_eq!(logs(&server, &slow), "up\nsaved\n");
    assert_eq!(job(&server, &slow)["status"], "Cancelled");
}

#[test]
fn c19_a_finished_job_stays_finished() {
    if !possible() {
        return;
    }
    let mut server = Here::start(HERE);
    let done = submit(&server, "done", "echo done", "");
    assert_eq!(over(&server, &done)["status"], "Succeeded");
    let cpu = server.json("/api/v1/nodes")[0]["cpu-milli"].as_u64().unwrap();
    let all = submit(&server, "all", "echo up; exec sleep 77081", &format!("--cpu {cpu}m"));
    printed(&server, &all, "up\n");
    let before = processes("sleep 77081");
    for signal in ["KILL", "TERM"] {
        server.restart(signal);
        let known = job(&server, &done);
        assert_eq!((&known["status"], &known["attempts"]), (&"Succeeded".into(), &1.into()));
        let known = stands(&server, &all, "Running");
        assert_eq!(known["attempts"], 1);
        assert_eq!(server.json("/api/v1/nodes")[0]["cpu-free-milli"], 0);
        assert_eq!(processes("sleep 77081"), before, "the same process");
    }
    server.run(&server.admin(), &format!("crater job cancel {all}"));
    clean(&server);
}
