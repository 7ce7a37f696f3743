//! What programs and people get wrong is refused with the field's name, and
//! nothing of it is done.
#![allow(missing_docs)]

#[path = "common/ask.rs"]
mod ask;
mod common;

use ask::Client;
use common::{Server, until};
use serde_json::{Value, json};

fn job(change: &Value) -> Value {
    let mut job =
        json!({"name": "a", "queue": "training", "tenant": "team", "cpu": 1, "memory": "1Gi"});
    for (key, value) in change.as_object().unwrap() {
        job[key] = value.clone();
    }
    job
}

#[test]
fn each_wrong_value_is_refused_by_its_name() {
    let server = Server::start("cluster: {run: 1d}");
    let admin = Client::new(&server.address, &server.admin());
    for (change, field) in [
        (json!({"gpus": 1}), "gpus"),
        (json!({"cpu": "1GB"}), "cpu"),
        (json!({"cpu": -1}), "cpu"),
        (json!({"cpu": "١"}), "cpu"),
        (json!({"cpu": true}), "cpu"),
        (json!({"memory": "32GiB?"}), "memory"),
        (json!({"memory": "1e400"}), "memory"),
        (json!({"memory": "99999999999999999999Ti", "members": 2}), "memory"),
        (json!({"cpu": "99999999999999999999", "members": 2}), "cpu"),
        (json!({"memory": [1]}), "memory"),
        (json!({"gpu": 0.05}), "gpu"),
        (json!({"gpu": "two"}), "gpu"),
        (json!({"gpu": 1e300}), "gpu"),
        (json!({"gpu": 1, "gpu-memory": "40 buckets"}), "gpu-memory"),
        (json!({"disk-io": 10_001}), "disk-io"),
        (json!({"disk-bandwidth": "fast"}), "disk-bandwidth"),
        (json!({"priority": "urgent"}), "priority"),
        (json!({"priority": 1001}), "priority"),
        (json!({"members": 0}), "members"),
        (json!({"members": -1}), "members"),
        (json!({"members": 4_294_967_296_u64}), "members"),
        (json!({"members": 2, "min": 3}), "min"),
        (json!({"nvlink": "maybe"}), "nvlink"),
        (json!({"kind": "batch"}), "kind"),
        (json!({"queue": "nowhere"}), "queue"),
        (json!({"queue": null}), "queue"),
        (json!({"tenant": "a/b/c/d"}), "tenant"),
        (json!({"ports": [70_000]}), "ports[0]"),
        (json!({"env": {"A": 1}}), "env.A"),
        (json!({"run-limit": 1.5}), "run-limit"),
        (json!({"name": ""}), "name"),
        (json!({"name": {}}), "name"),
    ] {
        let body = job(&change);
        admin.post("/api/v1/jobs", &body).refused(&body.to_string(), 422, Some(field));
    }
    for (method, path, body, field) in [
        ("PATCH", "/api/v1/queues/training", json!({"fallback": "hope"}), "fallback"),
        ("PATCH", "/api/v1/queues/training", json!({"policy": "no-such"}), "policy"),
        ("PATCH", "/api/v1/queues/training", json!({"policy": "../x.wasm"}), "policy"),
        ("PATCH", "/api/v1/queues/training", json!({"priority": 70_000}), "priority"),
        ("PATCH", "/api/v1/queues/training", json!({"colour": "red"}), "colour"),
        ("PATCH", "/api/v1/nodes/gpu-node-01", json!({"cordoned": "yes"}), "cordoned"),
        ("PUT", "/api/v1/tenants/team", json!({"hard": {"gpu": "many"}}), "hard.gpu"),
        ("PUT", "/api/v1/tenants/team", json!({"hard": {"gold": 1}}), "hard.gold"),
        ("PUT", "/api/v1/tenants/team", json!({"ceiling": "top"}), "ceiling"),
        ("POST", "/api/v1/tokens", json!({"name": "", "role": "viewer", "tenant": "t"}), "name"),
        ("POST", "/api/v1/tokens", json!({"name": "x", "role": "king", "tenant": "t"}), "role"),
        ("POST", "/api/v1/tokens", json!({"name": "x", "role": "viewer"}), "tenant"),
        (
            "POST",
            "/api/v1/tokens",
            json!({"name": "x", "role": "viewer", "tenant": "t", "expires": "soon"}),
            "expires",
        ),
    ] {
        let answer = admin.send(method, path, body.to_string().as_bytes());
        answer.refused(&format!("{method} {path} {body}"), 422, Some(field));
    }
    for (query, field) in [
        ("limit=0", "limit"),
        ("limit=1001", "limit"),
        ("status=lost", "status"),
        ("since=yesterday", "since"),
        ("cursor=x", "cursor"),
        ("tenant=..%2Fx", "tenant"),
    ] {
        let path = format!("/api/v1/jobs?{query}");
        admin.send("GET", &path, b"").refused(&path, 422, Some(field));
    }
    assert_eq!(admin.get("/api/v1/jobs")["jobs"], json!([]), "nothing of it was done");
}

#[test]
fn bodies_and_paths_that_are_nothing_at_all() {
    let server = Server::start("cluster: {run: 1d}");
    let admin = Client::new(&server.address, &server.admin());
    let jobs = "/api/v1/jobs";
    // An empty body is an empty object: it lacks a queue, or changes nothing.
    admin.send("POST", jobs, b"").refused("empty", 422, Some("queue"));
    admin.send("POST", "/api/v1/tokens", b"").refused("empty", 422, None);
    for (what, body) in [
        ("half", &b"{\"name\":"[..]),
        ("text", b"gpu=1"),
        ("no text", b"\xff\xfe\x00"),
        ("two", b"{}{}"),
    ] {
        admin.send("POST", jobs, body).refused(what, 400, None);
    }
    for (what, body) in [("a list", &b"[]"[..]), ("nothing", b"null"), ("a number", b"1")] {
        admin.send("POST", jobs, body).refused(what, 422, None);
    }
    let deep = "[".repeat(100_000);
    admin.send("POST", jobs, deep.as_bytes()).refused("deep", 422, None);
    let long = job(&json!({"command": "x".repeat(300 << 10)})).to_string();
    admin.send("POST", jobs, long.as_bytes()).refused("huge", 413, None);
    let long = job(&json!({"name": "n".repeat(200 << 10)})).to_string();
    admin.send("POST", jobs, long.as_bytes()).refused("a long name", 422, Some("name"));
    for path in [
        "/api/v1/jobs/job-",
        "/api/v1/jobs/%2e%2e%2fx",
        "/api/v1/jobs/-1",
        "/api/v1/jobs/99999999999999999999999",
    ] {
        admin.send("GET", path, b"").refused(path, 404, None);
    }
    admin.send("GET", "/api/v1/jobs/%ff", b"").refused("no text in the path", 400, None);
    admin.send("GET", "/api/v1/jobs?limit=x", b"").refused("no number", 400, None);
    admin.send("GET", "/api/v1/jobs?colour=red", b"").refused("unknown", 400, None);
    admin.send("GET", "/api/v1/nothing", b"").refused("no such path", 404, None);
    admin.send("DELETE", jobs, b"").refused("no such method", 405, None);
    assert_eq!(admin.get(jobs)["jobs"], json!([]));
}

#[test]
fn tokens_that_are_over_and_what_belongs_to_others() {
    let server = Server::start("cluster: {run: 1d}");
    let admin = Client::new(&server.address, &server.admin());
    let token = |tenant: &str, expires: &str| {
        let body = json!({"name": tenant, "role": "manager", "tenant": tenant, "expires": expires});
        let made = admin.post("/api/v1/tokens", &body).done("a token", 201);
        (made["id"].as_u64().unwrap(), made["token"].as_str().unwrap().to_owned())
    };
    let (first, second) = (token("ai/nlp", "1h"), token("bio", "1h"));
    let (mine, theirs) =
        (Client::new(&server.address, &first.1), Client::new(&server.address, &second.1));
    let body = json!({"name": "a", "queue": "training", "cpu": 1, "memory": "1Gi"});
    let made = mine.post("/api/v1/jobs", &body).done("mine", 201);
    let id = made["id"].as_str().unwrap();

    for (method, path, body) in [
        ("GET", format!("/api/v1/jobs/{id}"), "{}"),
        ("GET", format!("/api/v1/jobs/{id}/logs"), "{}"),
        ("GET", format!("/api/v1/jobs/{id}/metrics"), "{}"),
        ("PATCH", format!("/api/v1/jobs/{id}"), r#"{"priority":1}"#),
        ("POST", format!("/api/v1/jobs/{id}/cancel"), "{}"),
        ("POST", format!("/api/v1/jobs/{id}/evict"), r#"{"reason":"x"}"#),
        ("POST", format!("/api/v1/jobs/{id}/retry"), "{}"),
        ("GET", "/api/v1/tenants/ai~nlp".into(), "{}"),
        ("PUT", "/api/v1/tenants/ai~nlp".into(), r#"{"hard":{"gpu":1}}"#),
        ("DELETE", format!("/api/v1/tokens/{}", first.0), ""),
    ] {
        let answer = theirs.send(method, &path, body.as_bytes());
        answer.refused(&format!("{method} {path}"), 404, None);
    }
    let stolen =
        json!({"name": "a", "queue": "training", "tenant": "ai", "cpu": 1, "memory": "1Gi"});
    theirs.post("/api/v1/jobs", &stolen).refused("for another", 404, None);
    assert_eq!(theirs.get("/api/v1/jobs")["jobs"], json!([]));
    let detail = theirs.send("GET", "/api/v1/jobs?tenant=ai", b"");
    detail.refused("a filter", 404, None);

    let revoked = format!("/api/v1/tokens/{}", second.0);
    admin.send("DELETE", &revoked, b"").done("revoke", 204);
    for (what, token) in
        [("revoked", second.1.as_str()), ("unknown", "crater_0"), ("none", ""), ("odd", "a b")]
    {
        let client = Client::new(&server.address, token);
        client.send("GET", "/api/v1/jobs", b"").refused(what, 401, None);
        client.post("/api/v1/jobs", &body).refused(what, 401, None);
    }
    let short = Client::new(&server.address, &token("bio", "1s").1);
    until("the token expires", || {
        let answer = short.send("GET", "/api/v1/jobs", b"");
        (answer.status != 200).then(|| answer.refused("expired", 401, None))
    });
    assert_eq!(mine.get("/api/v1/jobs")["jobs"][0]["id"], *id);
}
