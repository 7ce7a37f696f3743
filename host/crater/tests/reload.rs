//! A running server whose files change under it.
#![allow(missing_docs)]

#[path = "../../policy/tests/runtime/guest.rs"]
#[allow(dead_code)]
mod guest;

use guest::{Guest, KEEP, SUM};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

struct Server {
    child: Child,
    url: String,
    token: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Server {
    fn start(folder: &Path) -> Self {
        let data = folder.join("data");
        let mut child = Command::new(env!("CARGO_BIN_EXE_crater"))
            .args(["serve", "--listen", "127.0.0.1:0", "--data"])
            .arg(&data)
            .arg("--config")
            .arg(folder.join("crater.yaml"))
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let url = loop {
            let line = lines.next().expect("it listens").unwrap();
            if let Some(rest) = line.strip_prefix("crater: listening on ") {
                break rest.split_whitespace().next().unwrap().to_owned();
            }
        };
        // Whoever stops reading would stop the server's logging.
        std::thread::spawn(move || lines.for_each(drop));
        let token = std::fs::read_to_string(data.join("admin-token")).unwrap();
        Self { child, url, token: token.trim().to_owned() }
    }

    fn get(&self, path: &str) -> Value {
        let url = format!("{}/api/v1/{path}", self.url);
        let bearer = format!("Bearer {}", self.token);
        let mut answer = ureq::get(url).header("authorization", bearer).call().unwrap();
        serde_json::from_str(&answer.body_mut().read_to_string().unwrap()).unwrap()
    }

    /// Waits until an answer is as wanted, and says how long that took.
    fn until(&self, path: &str, wanted: impl Fn(&Value) -> bool) -> (Value, Duration) {
        let start = Instant::now();
        loop {
            let value = self.get(path);
            if wanted(&value) {
                return (value, start.elapsed());
            }
            assert!(start.elapsed() < Duration::from_secs(30), "{path} stays {value}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

fn good(version: &str) -> Vec<u8> {
    Guest::default().with("score", SUM).named("own", version).build()
}

const CONFIG: &str = "
cluster: {run: 1s}
queues:
  - {name: own, kind: training, policy: ./own.wasm}
  - {name: other, kind: offline, policy: binpack}
";

#[test]
fn a_recompiled_policy_is_live_and_a_broken_one_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (policy, config) = (folder.path().join("own.wasm"), folder.path().join("crater.yaml"));
    std::fs::write(&policy, good("1")).unwrap();
    std::fs::write(&config, CONFIG).unwrap();
    let server = Server::start(folder.path());
    let other = server.get("queues/other")["policy"]["live"]["digest"].clone();
    let version = |v: &'static str| move |q: &Value| q["policy"]["live"]["version"] == v;
    let (first, _) = server.until("queues/own", version("1"));

    std::fs::write(&policy, good("2")).unwrap();
    let (second, took) = server.until("queues/own", version("2"));
    println!("live after {took:?}");
    assert_ne!(first["policy"]["live"]["digest"], second["policy"]["live"]["digest"]);

    std::fs::write(&policy, b"half a file").unwrap();
    let (broken, _) = server.until("queues/own", |q| q["policy"]["refused"].is_object());
    assert_eq!(broken["policy"]["live"], second["policy"]["live"], "the last good one stays");
    assert!(broken["policy"]["refused"]["reason"].as_str().unwrap().contains("WebAssembly"));

    std::fs::write(&policy, good("3")).unwrap();
    let (third, _) = server.until("queues/own", version("3"));
    assert!(third["policy"]["refused"].is_null(), "a good one ends the refusal");
    assert_eq!(server.get("queues/other")["policy"]["live"]["digest"], other);

    // The configuration: whole or not at all.
    let wrong =
        CONFIG.replace("kind: offline", "kind: sometimes") + "  - {name: new, kind: training}\n";
    std::fs::write(&config, wrong).unwrap();
    let (status, _) = server.until("server", |s| s["reload-refused"].is_string());
    let refused = status["reload-refused"].as_str().unwrap();
    assert!(refused.contains("queues[1]") && refused.contains("sometimes"), "{refused}");
    assert_eq!(server.get("queues").as_array().unwrap().len(), 2);

    std::fs::write(
        &config,
        CONFIG.to_owned() + "  - {name: new, kind: training, policy: spread}\n",
    )
    .unwrap();
    let (queues, _) = server.until("queues", |q| q.as_array().unwrap().len() == 3);
    assert!(queues.as_array().unwrap().iter().any(|q| q["name"] == "new"));
    server.until("queues/new", |q| q["policy"]["live"]["name"] == "spread");
    assert!(server.get("server")["reload-refused"].is_null());
}

/// Some milliseconds of computing before it keeps all nodes.
const SLOW: &str = "
  (local $out i32) (local $n i32)
  (loop $burn
    (local.set $n (i32.add (local.get $n) (i32.const 1)))
    (br_if $burn (i32.lt_u (local.get $n) (i32.const 8000000))))";

#[test]
fn a_round_that_is_past_its_budget_is_decided_by_the_fallback() {
    let folder = tempfile::tempdir().unwrap();
    let keep = KEEP.replacen("(local $out i32)", SLOW, 1);
    let slow = Guest::default().with("filter", &keep).with("score", SUM);
    std::fs::write(folder.path().join("own.wasm"), slow.named("slow", "1").build()).unwrap();
    let config = CONFIG.replace("policy: ./own.wasm", "policy: ./own.wasm, round-budget: 1");
    std::fs::write(folder.path().join("crater.yaml"), config).unwrap();
    let server = Server::start(folder.path());
    let job = r#"{"name":"a","tenant":"t","queue":"own","cpu":1,"memory":"1Gi"}"#;
    ureq::post(format!("{}/api/v1/jobs", server.url))
        .header("authorization", format!("Bearer {}", server.token))
        .send(job)
        .unwrap();
    let (job, _) = server.until("jobs/1", |job| job["detail"]["decision"].is_object());
    let decision = &job["detail"]["decision"];
    assert_eq!(decision["by"], "fallback", "{decision}");
    assert!(decision["fault"].as_str().unwrap().contains("of this round"), "{decision}");
    let mut page = ureq::get(format!("{}/metrics", server.url)).call().unwrap();
    let page = page.body_mut().read_to_string().unwrap();
    let counted = page.lines().any(|line| {
        line.starts_with("crater_policy_faults_total{queue=\"own\"")
            && line.contains("cause=\"unavailable\"} ")
    });
    assert!(counted, "{page}");
}
