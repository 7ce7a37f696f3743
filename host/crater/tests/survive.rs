//! A server that is killed at any moment loses nothing that it acknowledged:
//! real process, real files, SIGKILL.
//!
//! `CRATER_KILLS` sets how often (12 unless set).

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

struct Server {
    child: Child,
    url: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn start(data: &Path, config: &Path) -> Server {
    let mut child = Command::new(env!("CARGO_BIN_EXE_crater"))
        .args(["serve", "--listen", "127.0.0.1:0", "--data"])
        .arg(data)
        .arg("--config")
        .arg(config)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut seen = vec![];
    let url = loop {
        let line = lines.next().unwrap_or_else(|| panic!("it ended: {seen:#?}")).unwrap();
        if let Some(rest) = line.strip_prefix("crater: listening on ") {
            break rest.split_whitespace().next().unwrap().to_owned();
        }
        seen.push(line);
    };
    // Whoever stops reading would stop the server's logging.
    std::thread::spawn(move || lines.for_each(drop));
    Server { child, url }
}

fn agent() -> ureq::Agent {
    let config = ureq::Agent::config_builder()
        .timeout_global(Some(Duration::from_secs(10)))
        .http_status_as_error(false);
    config.build().into()
}

/// One request; nothing if the connection broke.
fn ask(
    agent: &ureq::Agent,
    token: &str,
    method: &str,
    url: &str,
    key: &str,
    body: &Value,
) -> Option<(u16, Value)> {
    let request = ureq::http::Request::builder()
        .method(method)
        .uri(url)
        .header("authorization", format!("Bearer {token}"))
        .header("idempotency-key", key)
        .header("content-type", "application/json");
    let body = if method == "GET" { String::new() } else { body.to_string() };
    let mut response = agent.run(request.body(body).ok()?).ok()?;
    let text = response.body_mut().read_to_string().ok()?;
    Some((response.status().as_u16(), serde_json::from_str(&text).unwrap_or(Value::Null)))
}

/// What a client knows for certain, because it was told.
#[derive(Default)]
struct Told {
    /// Job by the name that was submitted.
    jobs: BTreeMap<String, String>,
    /// Jobs whose cancelling was acknowledged.
    cancelled: Vec<String>,
    /// The last limit that was acknowledged, and the last that was asked for:
    /// one between them may have been set without an answer.
    quota: (u64, u64),
    /// What the configuration file says of another tenant.
    filed: u64,
}

/// The configuration: `n` of a tenant's quota and of a queue's policy changes.
fn config(n: u64) -> String {
    let policy = ["binpack", "spread"][n as usize % 2];
    format!(
        "cluster: {{run: 1s, nodes: [{{name: n, count: 64, cpu: 64, memory: 512Gi, cards: {{count: 8, model: T4, memory: 16Gi}}}}]}}
queues:
  - {{name: training, kind: training, policy: shadow-price}}
  - {{name: offline, kind: offline, policy: {policy}}}
tenants:
  - {{path: filed, hard: {{gpu: {n}}}}}
"
    )
}

/// Puts a file in place as a whole, as editors do.
fn write(path: &Path, text: &str) {
    let new = path.with_extension("new");
    std::fs::write(&new, text).unwrap();
    std::fs::rename(new, path).unwrap();
}

#[test]
fn acknowledged_work_outlives_any_death_exactly_once() {
    let kills: u64 = std::env::var("CRATER_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(12);
    let folder = tempfile::tempdir().unwrap();
    let (data, file) = (folder.path().join("data"), folder.path().join("crater.yaml"));
    write(&file, &config(1));
    let mut server = start(&data, &file);
    let token = std::fs::read_to_string(data.join("admin-token")).unwrap().trim().to_owned();
    let told = Mutex::new(Told { quota: (1000, 1000), filed: 1, ..Told::default() });
    let (number, reloads) = (AtomicU64::new(0), AtomicU64::new(0));
    let agent = agent();
    let put = |url: &str, gpu: u64| {
        let body = json!({"hard": {"gpu": gpu}});
        ask(&agent, &token, "PUT", &format!("{url}/api/v1/tenants/team"), "q", &body)
    };
    assert_eq!(put(&server.url, 1000).unwrap().0, 200);
    for kill in 0..kills {
        let stop = AtomicBool::new(false);
        let url = server.url.clone();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    while !stop.load(Ordering::Relaxed) {
                        let n = number.fetch_add(1, Ordering::Relaxed);
                        let name = format!("job-of-{n}");
                        let body = json!({"name": name, "queue": "training", "tenant": "team", "gpu": 0.5, "cpu": 1, "memory": "1Gi"});
                        let sent = ask(&agent, &token, "POST", &format!("{url}/api/v1/jobs"), &name, &body);
                        let Some((201, job)) = sent else { continue };
                        let id = job["id"].as_str().unwrap().to_owned();
                        told.lock().unwrap().jobs.insert(name, id.clone());
                        if n.is_multiple_of(5) {
                            let url = format!("{url}/api/v1/jobs/{id}/cancel");
                            if let Some((200, _)) = ask(&agent, &token, "POST", &url, "c", &json!({})) {
                                told.lock().unwrap().cancelled.push(id);
                            }
                        }
                    }
                });
            }
            scope.spawn(|| {
                let mut gpu = 1000 + 1000 * kill;
                while !stop.load(Ordering::Relaxed) {
                    gpu += 1;
                    told.lock().unwrap().quota.1 = gpu;
                    if let Some((200, _)) = put(&url, gpu) {
                        told.lock().unwrap().quota = (gpu, gpu);
                    }
                }
            });
            scope.spawn(|| {
                let applied = || {
                    let url = format!("{url}/api/v1/tenants/filed");
                    let (_, quota) = ask(&agent, &token, "GET", &url, "f", &Value::Null)?;
                    Some(quota["resources"]["gpu"]["figures"][1].as_u64()? / 1000)
                };
                while !stop.load(Ordering::Relaxed) {
                    let n = {
                        let mut told = told.lock().unwrap();
                        told.filed += 1;
                        told.filed
                    };
                    write(&file, &config(n));
                    // The next one when this one is in force.
                    while applied().is_some_and(|now| now < n) && !stop.load(Ordering::Relaxed) {
                        std::thread::yield_now();
                    }
                    reloads.fetch_add(u64::from(applied() == Some(n)), Ordering::Relaxed);
                }
            });
            // Any moment is as good as another; this is no pause for something
            // to happen in, but the random moment itself.
            let until = Instant::now() + Duration::from_millis(30 + (kill * 7919) % 400);
            while Instant::now() < until {
                std::thread::yield_now();
            }
            server.child.kill().unwrap();
            server.child.wait().unwrap();
            stop.store(true, Ordering::Relaxed);
        });
        server = start(&data, &file);
        check(&server.url, &agent, &token, &told.lock().unwrap());
    }
    let told = told.into_inner().unwrap();
    let (jobs, cancelled, reloads) = (told.jobs.len(), told.cancelled.len(), reloads.into_inner());
    println!("{kills} kills: {jobs} jobs and {cancelled} cancels acknowledged, {reloads} reloads");
    assert!(jobs as u64 > kills, "nothing was submitted");
    assert!(cancelled > 0 && reloads > 0, "nothing was cancelled or reloaded");
    settles(&server.url, &agent, &token);
}

/// All that was told is there, once.
fn check(url: &str, agent: &ureq::Agent, token: &str, told: &Told) {
    let mut by_name: BTreeMap<String, Vec<(String, String)>> = BTreeMap::new();
    let mut next = String::new();
    loop {
        let page = format!("{url}/api/v1/jobs?limit=1000{next}");
        let (status, page) = ask(agent, token, "GET", &page, "l", &Value::Null).unwrap();
        assert_eq!(status, 200, "{page}");
        for job in page["jobs"].as_array().unwrap() {
            let text = |field: &str| job[field].as_str().unwrap().to_owned();
            by_name.entry(text("name")).or_default().push((text("id"), text("status")));
        }
        match page["next"].as_str() {
            Some(cursor) => next = format!("&cursor={cursor}"),
            None => break,
        }
    }
    for (name, found) in &by_name {
        assert_eq!(found.len(), 1, "{name} is there {} times", found.len());
    }
    for (name, id) in &told.jobs {
        let found = by_name.get(name).unwrap_or_else(|| panic!("{name} ({id}) is lost"));
        assert_eq!(&found[0].0, id);
        if told.cancelled.contains(id) {
            assert_eq!(found[0].1, "Cancelled", "{id}");
        }
    }
    let hard = |tenant: &str| {
        let url = format!("{url}/api/v1/tenants/{tenant}");
        let (_, quota) = ask(agent, token, "GET", &url, "g", &Value::Null).unwrap();
        quota["resources"]["gpu"]["figures"][1].as_u64().unwrap() / 1000
    };
    // A start applies the file as it is, however far a reload had come.
    assert_eq!(hard("filed"), told.filed);
    let hard = hard("team");
    assert!((told.quota.0..=told.quota.1).contains(&hard), "{hard}: {:?}", told.quota);
}

/// In the end everything has run and no claim is left.
fn settles(url: &str, agent: &ureq::Agent, token: &str) {
    let until = Instant::now() + Duration::from_mins(2);
    loop {
        let (_, cluster) =
            ask(agent, token, "GET", &format!("{url}/api/v1/cluster"), "g", &Value::Null).unwrap();
        let figure = |name: &str| cluster[name].as_u64().unwrap();
        if figure("waiting") == 0 && figure("running") == 0 {
            assert_eq!((figure("gpu-used-milli"), figure("cpu-used-milli")), (0, 0));
            return;
        }
        assert!(Instant::now() < until, "it does not come to rest: {cluster}");
        std::thread::sleep(Duration::from_millis(100));
    }
}
