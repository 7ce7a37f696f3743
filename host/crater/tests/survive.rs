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
}

#[test]
fn acknowledged_work_outlives_any_death_exactly_once() {
    let kills: u64 = std::env::var("CRATER_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(12);
    let folder = tempfile::tempdir().unwrap();
    let (data, config) = (folder.path().join("data"), folder.path().join("crater.yaml"));
    std::fs::write(&config, "cluster: {run: 1s, nodes: [{name: n, count: 64, cpu: 64, memory: 512Gi, cards: {count: 8, model: T4, memory: 16Gi}}]}\n").unwrap();
    let mut server = start(&data, &config);
    let token = std::fs::read_to_string(data.join("admin-token")).unwrap().trim().to_owned();
    let told = Mutex::new(Told { quota: (1000, 1000), ..Told::default() });
    let number = AtomicU64::new(0);
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
        server = start(&data, &config);
        check(&server.url, &agent, &token, &told.lock().unwrap());
    }
    assert!(told.lock().unwrap().jobs.len() as u64 > kills, "nothing was submitted");
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
    let (_, quota) =
        ask(agent, token, "GET", &format!("{url}/api/v1/tenants/team"), "g", &Value::Null).unwrap();
    let hard = quota["resources"]["gpu"]["figures"][1].as_u64().unwrap() / 1000;
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
