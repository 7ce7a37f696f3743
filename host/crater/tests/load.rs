//! Many at once, and jobs that vanish at the worst moment (C55): the server
//! lives, and its books add up.
#![allow(missing_docs)]

#[path = "common/ask.rs"]
mod ask;
mod common;

use ask::Client;
use common::{Server, until};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Mutex;

/// A job of training that runs until somebody ends it.
fn job(name: &str, gpu: u64, more: &Value) -> Value {
    let mut job = json!({"name": name, "queue": "training", "tenant": "t", "gpu": gpu, "cpu": 1, "memory": "1Gi"});
    for (key, value) in more.as_object().unwrap() {
        job[key] = value.clone();
    }
    job
}

/// Nothing is left over, and what a restart makes of the disk adds up: it
/// audits the books before it listens.
fn comes_to_rest(mut server: Server) {
    let rest = |server: &Server| {
        until("nothing runs or waits", || {
            let cluster = server.json("/api/v1/cluster");
            let zero = |name: &str| cluster[name] == 0;
            (zero("waiting") && zero("running") && zero("gpu-used-milli") && zero("cpu-used-milli"))
                .then_some(())
        });
    };
    rest(&server);
    server.restart("KILL");
    rest(&server);
}

#[test]
fn ten_threads_submit_and_cancel() {
    let server = Server::start("cluster: {run: 1s}");
    let ids = Mutex::new(BTreeSet::new());
    std::thread::scope(|scope| {
        for thread in 0..10 {
            let (ids, server) = (&ids, &server);
            scope.spawn(move || {
                let client = Client::new(&server.address, &server.admin());
                for n in 0..60 {
                    let body = job(&format!("j-{thread}-{n}"), 1 + n % 3, &json!({}));
                    let made = client.post("/api/v1/jobs", &body).done("submit", 201);
                    let id = made["id"].as_str().unwrap().to_owned();
                    // Every second one of its own, and at the same time what
                    // another thread may be cancelling.
                    for id in [id.as_str(), "job-1", "job-007"].iter().skip(n as usize % 2) {
                        let path = format!("/api/v1/jobs/{id}/cancel");
                        let answer = client.post(&path, &json!({}));
                        assert!([200, 404, 409].contains(&answer.status), "{id}: {}", answer.body);
                    }
                    assert!(ids.lock().unwrap().insert(id), "no two jobs share an id");
                }
            });
        }
    });
    let commands = metric(&server, "crater_ledger_batch_commands_sum");
    let commits = metric(&server, "crater_ledger_commit_duration_seconds_count");
    assert_eq!(ids.lock().unwrap().len(), 600);
    // One sync of the disk serves all that waited for it.
    assert!(commands > 1.2 * commits, "{commands} commands took {commits} commits");
    comes_to_rest(server);
}

fn metric(server: &Server, name: &str) -> f64 {
    let (_, _, page) = server.get("", "/metrics");
    let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap().parse().unwrap()
}

#[test]
fn gangs_vanish_while_room_is_made_of_them() {
    let server = Server::start("cluster: {run: 1d}");
    let admin = Client::new(&server.address, &server.admin());
    let state = |id: &str| admin.get(&format!("/api/v1/jobs/{id}"))["status"].clone();
    for round in 0..6 {
        // It takes all cards there are, and may be taken away.
        let gang = json!({"members": 8, "preemptible": true, "priority": "low"});
        let gang = admin.post("/api/v1/jobs", &job("gang", 8, &gang)).done("a gang", 201);
        let gang = gang["id"].as_str().unwrap().to_owned();
        until("it runs", || (state(&gang) == "Running").then_some(()));
        let made = Mutex::new(vec![]);
        std::thread::scope(|scope| {
            let (made, server, gang) = (&made, &server, &gang);
            for _ in 0..4 {
                scope.spawn(move || {
                    let client = Client::new(&server.address, &server.admin());
                    let more =
                        json!({"queue": "inference", "kind": "inference", "priority": "high"});
                    let urgent = client.post("/api/v1/jobs", &job("urgent", 8, &more));
                    let urgent = urgent.done("urgent", 201);
                    made.lock().unwrap().push(urgent["id"].as_str().unwrap().to_owned());
                });
            }
            scope.spawn(move || {
                let client = Client::new(&server.address, &server.admin());
                // In half of the rounds once it is decided on, else before.
                if round % 2 == 0 {
                    until("somebody wants its place", || {
                        let urgent = made.lock().unwrap().first().cloned()?;
                        let urgent = client.get(&format!("/api/v1/jobs/{urgent}"));
                        (urgent["reason"] != "not decided on yet").then_some(())
                    });
                }
                let path = format!("/api/v1/jobs/{gang}/cancel");
                client.post(&path, &json!({})).done("cancel", 200);
            });
        });
        for id in made.into_inner().unwrap() {
            until("it gets its place", || (state(&id) == "Running").then_some(()));
            admin.post(&format!("/api/v1/jobs/{id}/cancel"), &json!({})).done("cancel", 200);
        }
        assert_eq!(state(&gang), "Cancelled");
    }
    comes_to_rest(server);
}

#[test]
fn a_start_without_nodes_waits_for_them() {
    let tenants = "tenants: [{path: t, hard: {gpu: 32, cpu: 64, memory: 1Ti}}]\n";
    let mut server = Server::start(&format!("cluster: {{run: 1s, nodes: []}}\n{tenants}"));
    let submit = |server: &Server| {
        let admin = Client::new(&server.address, &server.admin());
        for n in 0..30 {
            admin.post("/api/v1/jobs", &job(&format!("j-{n}"), 1, &json!({}))).done("submit", 201);
        }
    };
    submit(&server);
    // Started again with jobs and guaranteed amounts, but no node to count.
    server.restart("KILL");
    submit(&server);
    until("all are decided on", || {
        let jobs = server.json("/api/v1/jobs");
        let jobs = jobs["jobs"].as_array().unwrap();
        assert!(jobs.iter().all(|job| job["status"] == "Pending"), "{jobs:?}");
        let decided = |job: &Value| job["reason"] != "not decided on yet";
        (jobs.len() == 60 && jobs.iter().all(decided)).then_some(())
    });
    let node =
        "{name: n, count: 4, cpu: 64, memory: 512Gi, cards: {count: 8, model: T4, memory: 16Gi}}";
    let config = format!("cluster: {{run: 1s, nodes: [{node}]}}\n{tenants}");
    let path = server.folder.path().join("crater.yaml");
    std::fs::write(path.with_extension("new"), config).unwrap();
    std::fs::rename(path.with_extension("new"), path).unwrap();
    until("all have run", || {
        let jobs = server.json("/api/v1/jobs?status=succeeded");
        (jobs["jobs"].as_array().unwrap().len() == 60).then_some(())
    });
    comes_to_rest(server);
}
