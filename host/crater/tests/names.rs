//! C63: a name that does not fit somewhere is refused on submit with the rule.
//! What was taken can move, whatever it is called.
#![allow(missing_docs)]

#[path = "common/ask.rs"]
mod ask;
mod common;

use ask::Client;
use common::{Server, until};
use serde_json::json;
use std::collections::BTreeSet;

/// Names that do not fit where they are copied to.
fn odd() -> Vec<String> {
    let mut all: Vec<String> = [
        "训练-任务",
        "🚀",
        "../x",
        "a b",
        "Upper",
        "UPPER",
        "-a",
        "a-",
        ".",
        "..",
        ".a",
        "a.",
        "a_b",
        "a\u{0}b",
        "a\nb",
        " a",
        "a/b",
        "é",
        "a%2fb",
        "'; drop table jobs; --",
    ]
    .map(str::to_owned)
    .to_vec();
    all.extend([64, 253].map(|n| "n".repeat(n)));
    all
}

#[test]
fn a_name_is_taken_and_moves_or_is_refused_with_the_rule() {
    let server = Server::start("cluster: {run: 1s}");
    let admin = Client::new(&server.address, &server.admin());
    let submit = |name: &str, tenant: &str, queue: &str| {
        let body =
            json!({"name": name, "queue": queue, "tenant": tenant, "cpu": 1, "memory": "1Gi"});
        admin.post("/api/v1/jobs", &body)
    };
    for name in odd() {
        let says = submit(&name, "t", "training");
        says.refused(&name, 422, Some("name"));
        let detail = says.body["detail"].as_str().unwrap();
        assert!(detail.contains("1 to 63 lower-case letters"), "{name}: {detail}");
        submit("a", "t", &name).refused(&name, 422, Some("queue"));
        if name != "a/b" {
            submit("a", &name, "training").refused(&name, 422, Some("tenant"));
        }
        submit("a", &format!("t/p/{name}"), "training").refused(&name, 422, Some("tenant"));
    }
    // The longest ones, and two that a shortening would make equal.
    let (first, second) = (format!("{}a", "n".repeat(62)), format!("{}b", "n".repeat(62)));
    let tenant = format!("{first}/{second}/{first}");
    let mut ids = BTreeSet::new();
    for name in [&first, &second, &first, &"a.b".to_owned(), &"0".to_owned()] {
        let made = submit(name, &tenant, "training").done(name, 201);
        assert_eq!((&made["name"], &made["tenant"]), (&json!(name), &json!(tenant)));
        assert!(ids.insert(made["id"].to_string()), "no two jobs share an id");
    }
    // Exactly these are there, and each comes to its end.
    let jobs = until("all have run", || {
        let page = admin.get("/api/v1/jobs");
        let jobs = page["jobs"].as_array().unwrap().clone();
        jobs.iter().all(|job| job["status"] == "Succeeded").then_some(jobs)
    });
    let there: BTreeSet<_> = jobs.iter().map(|job| job["id"].to_string()).collect();
    assert_eq!((there, jobs.len()), (ids, 5));
    let shown = server.run(&server.admin(), "crater job list --status succeeded -o wide");
    assert!(shown.contains(&first) && shown.contains(&second), "{shown}");
}

#[test]
fn a_configuration_with_an_odd_queue_or_tenant_is_refused_whole() {
    let server = Server::start("cluster: {run: 1s}");
    let admin = Client::new(&server.address, &server.admin());
    let queues = admin.get("/api/v1/queues").as_array().unwrap().len();
    // A person's path may have slashes.
    for (n, name) in odd().iter().filter(|name| *name != "a/b").enumerate() {
        let name = json!(name);
        let place = if n % 2 == 0 {
            format!("queues: [{{name: good, kind: training}}, {{name: {name}, kind: offline}}]\n")
        } else {
            format!("tenants: [{{path: good}}, {{path: {name}}}]\n")
        };
        let path = server.folder.path().join("crater.yaml");
        std::fs::write(path.with_extension("new"), &place).unwrap();
        std::fs::rename(path.with_extension("new"), &path).unwrap();
        // The running server takes nothing of it, and another one does not start.
        let (other, path) = (server.folder.path().join("other"), path.display());
        let refused = server.fails(
            &server.admin(),
            &format!(
                "crater serve --listen 127.0.0.1:0 --data {} --config {path}",
                other.display()
            ),
        );
        let word = if n % 2 == 0 { "queues" } else { "tenants" };
        assert!(refused.1.contains(word), "{name}: {}", refused.1);
    }
    assert_eq!(admin.get("/api/v1/queues").as_array().unwrap().len(), queues);
    assert!(admin.get("/api/v1/tenants").as_array().unwrap().is_empty(), "nothing was applied");
}
