//! A policy that computes for long keeps nobody waiting but its
//! own queue. Judged by what comes first, so that a busy machine changes nothing.
#![allow(missing_docs)]

#[path = "common/ask.rs"]
mod ask;
mod common;
#[path = "../../policy/tests/runtime/guest.rs"]
#[allow(dead_code)]
mod guest;

use ask::Client;
use common::{Server, until};
use guest::{Guest, KEEP, SUM};
use serde_json::json;

const CONFIG: &str = "
cluster: {run: 1d, nodes: [{name: n, count: 100, cpu: 64, memory: 512Gi}]}
queues:
  - {name: slow, kind: training, policy: ./slow.wasm}
  - {name: fast, kind: training, policy: binpack}
";

/// Jobs of the slow queue. No two are alike, so that each is asked about.
const SLOW: u64 = 1000;
/// Jobs of the other one.
const FAST: u64 = 50;

/// Some milliseconds of computing before it keeps all nodes: far from the limit
/// of a call, or it would not go live at all.
const BURN: &str = "
  (local $out i32) (local $n i32)
  (loop $burn
    (local.set $n (i32.add (local.get $n) (i32.const 1)))
    (br_if $burn (i32.lt_u (local.get $n) (i32.const 16000000))))";

#[test]
fn others_submit_and_start_while_one_policy_computes() {
    let keep = KEEP.replacen("(local $out i32)", BURN, 1);
    let policy = Guest::default().with("filter", &keep).with("score", SUM);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("slow.wasm");
    std::fs::write(&file, policy.build()).unwrap();
    let server = Server::start(&CONFIG.replace("./slow.wasm", file.to_str().unwrap()));
    let admin = Client::new(&server.address, &server.admin());
    let submit = |queue: &str, cpu: u64| {
        let body = json!({"name": queue, "queue": queue, "tenant": "t", "cpu": format!("{cpu}m"), "memory": "1Mi"});
        admin.post("/api/v1/jobs", &body).done(queue, 201)["id"].as_str().unwrap().to_owned()
    };
    admin.send("PATCH", "/api/v1/queues/slow", br#"{"paused":true}"#).done("pause", 200);
    for n in 0..SLOW {
        submit("slow", 1000 + n);
    }
    admin.send("PATCH", "/api/v1/queues/slow", br#"{"paused":false}"#).done("go on", 200);
    let calls = || {
        let (_, _, page) = server.get("", "/metrics");
        let name = "crater_policy_call_duration_seconds_count{queue=\"slow\"";
        let lines = page.lines().filter(|line| line.starts_with(name));
        lines.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum::<u64>()
    };
    let before = until("it computes", || Some(calls()).filter(|calls| *calls > 0));
    for _ in 0..FAST {
        submit("fast", 100);
    }
    let running = |queue: &str| {
        let path = format!("/api/v1/jobs?limit=1000&queue={queue}&status=starting,running");
        admin.get(&path)["jobs"].as_array().unwrap().len() as u64
    };
    until("the others run", || (running("fast") == FAST).then_some(()));
    let during = calls() - before;
    println!("{during} of {SLOW} slow decisions meanwhile");
    assert!(running("slow") < SLOW, "the slow queue was not done first");
    assert!(4 * during < SLOW, "{FAST} jobs of others took as long as {during} slow decisions");
}
