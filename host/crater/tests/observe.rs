//! What a person sees of running jobs: measurements, output, usage, metrics.
#![allow(missing_docs)]
#![allow(clippy::float_cmp, reason = "counts are whole numbers")]

mod common;
#[path = "common/exposition.rs"]
mod exposition;

use common::{Server, text, until, words};
use serde_json::Value;
use std::process::Stdio;

const QUICK: &str = "cluster: {run: 1d}\nmetrics: {interval: 1s}";

const INFERENCE: &str = "crater job submit --name llm-inference-7b --tenant team-nlp \
  --gpu 1 --gpu-memory 40960 --cpu 8 --memory 32Gi --disk-io 100 --queue inference --priority high \
  --command 'python serve.py --port 8080'";

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// The points of a metric.
fn points<'a>(history: &'a Value, metric: &str) -> &'a Vec<Value> {
    let series = history["series"].as_array().unwrap();
    let series = series.iter().find(|series| series["metric"] == metric).unwrap();
    series["points"].as_array().unwrap()
}

#[test]
fn jobs_and_the_cluster_are_measured_over_time() {
    let server = Server::start(QUICK);
    let admin = server.admin();
    let run = |script: &str| server.run(&admin, script);
    run(INFERENCE);
    let waits = run("crater job metrics job-001 --metric gpu --range 1h -o json");
    assert_eq!(parsed(&waits)["subject"], "job-001");
    let seen = until("three measurements", || {
        let seen = parsed(&run("crater job metrics job-001 -o json"));
        (points(&seen, "gpu-memory").iter().filter(|p| p["used"] != 0).count() >= 3).then_some(seen)
    });
    for point in points(&seen, "gpu-memory") {
        assert_eq!(point["held"], 40960);
        assert!(point["used"].as_u64().unwrap() < 40960, "{point}");
    }
    let number = |value: &Value| value.as_u64().unwrap();
    let last = points(&seen, "cpu").last().unwrap();
    assert!(number(&last["held"]) == 8000 && (1..8000).contains(&number(&last["used"])), "{last}");
    // A disk is shared by weight where nothing of it is reserved.
    assert!(points(&seen, "disk-io").iter().any(|p| number(&p["used"]) > 0));

    let all = run("crater job metrics job-001");
    for metric in ["gpu ", "gpu-memory ", "cpu ", "memory ", "disk-io "] {
        assert!(all.lines().any(|line| line.starts_with(metric)), "{metric}: {all}");
    }
    let one = run("crater job metrics job-001 --metric gpu-memory --range 1h");
    assert!(one.starts_with("METRIC") && words(&one)[1].starts_with("gpu-memory 40Gi "), "{one}");
    assert!(one.contains("40Gi │") && one.contains('█'), "{one}");

    let cluster = run("crater cluster metrics");
    assert!(cluster.contains("8 nodes, 64 cards") && cluster.contains("disk-io"), "{cluster}");
    run("crater cluster metrics --metric disk-io");
    let cluster = parsed(&run("crater cluster metrics --metric gpu -o json"));
    assert!(points(&cluster["history"], "gpu").iter().any(|point| point["held"] == 500));

    // Pages and bounds.
    let page = server.json("/api/v1/jobs/job-001/metrics?metric=gpu&limit=2");
    let next = page["next"].as_str().unwrap();
    let rest = server.json(&format!("/api/v1/jobs/job-001/metrics?metric=gpu&cursor={next}"));
    let (end, begin) = (&points(&page, "gpu")[1]["at"], &points(&rest, "gpu")[0]["at"]);
    assert!(end.as_str() < begin.as_str(), "{end} {begin}");
    for (query, field) in [("limit=2001", "limit"), ("metric=heat", "metric"), ("range=x", "range")]
    {
        let (status, _, body) =
            server.get(&admin, &format!("/api/v1/jobs/job-001/metrics?{query}"));
        assert_eq!((status, &parsed(&body)["field"]), (422, &field.into()), "{query}: {body}");
    }
    let other = run("crater token create --name o --role viewer --tenant other");
    let (status, ..) = server.get(other.trim(), "/api/v1/jobs/job-001/metrics");
    assert_eq!(status, 404);
}

#[test]
fn output_is_followed_until_the_job_is_over() {
    let server = Server::start("cluster: {run: 1d}");
    let admin = server.admin();
    let run = |script: &str| server.run(&admin, script);
    run("crater job submit --name short --tenant t --cpu 1 --memory 1Gi --queue offline \
         --env CRATER_SIMULATE_SECONDS=1 --env CRATER_SIMULATE_EXIT=3 --command 'echo hello'");
    let all = run("crater job logs job-001 -f");
    let lines: Vec<&str> = all.lines().collect();
    for (line, part) in lines.iter().zip(["starting on node gpu-node-0", "runs", "exit code 3"]) {
        assert!(line.contains(part), "{part}: {all}");
    }
    assert_eq!(lines.len(), 3, "{all}");
    assert!(lines[0].contains("would run `echo hello`"), "{all}");
    // The same once more, from the middle, and past the end.
    assert_eq!(run("crater job logs job-001"), all);
    let from = run("crater job logs job-001 --offset 5");
    assert_eq!(from, all[5..]);
    assert_eq!(run("crater job logs job-001 --stream stderr"), "");
    let path = "/api/v1/jobs/job-001/logs";
    let (status, head, body) = server.get(&admin, &format!("{path}?offset=2&limit=4"));
    assert_eq!((status, body.as_str()), (200, &all[2..6]));
    assert_eq!(head["x-crater-log-from"], "2");
    assert_eq!(head["x-crater-log-end"], all.len().to_string().as_str());
    let (status, _, body) = server.get(&admin, &format!("{path}?offset=99999"));
    assert_eq!((status, &parsed(&body)["field"]), (416, &"offset".into()));
    let (status, _, body) = server.get(&admin, &format!("{path}?stream=tty"));
    assert_eq!((status, &parsed(&body)["field"]), (422, &"stream".into()));
    let (code, error) = server.fails(&admin, "crater job logs job-9");
    assert!(code == 1 && error.contains("job-009"), "{error}");

    // A job that waits has printed nothing; who follows it sees it begin.
    run("crater queue pause training
         crater job submit --name later --tenant t --cpu 1 --memory 1Gi --queue training");
    let (code, error) = server.fails(&admin, "crater job logs job-002");
    assert!(code == 1 && error.contains("nothing yet"), "{error}");
    let follow =
        server.shell(&admin, "exec crater job logs job-002 -f").stdout(Stdio::piped()).spawn();
    run("crater queue resume training
         crater job wait job-002 --for running --timeout 30s
         crater job cancel job-002 --reason enough");
    let output = follow.unwrap().wait_with_output().unwrap();
    let all = text(&output.stdout);
    assert!(output.status.success() && all.contains("told to end: Cancelled, enough"), "{all}");
    assert!(all.trim_end().ends_with("ended, as it was told"), "{all}");
}

/// Milliseconds of a moment as RFC 3339.
fn millis(value: &Value) -> i64 {
    value.as_str().unwrap().parse::<jiff::Timestamp>().unwrap().as_millisecond()
}

#[test]
fn usage_is_counted_exactly_once_over_a_kill() {
    let mut server = Server::start("cluster: {run: 1d}");
    let admin = server.admin();
    server.run(
        &admin,
        "crater job submit --name held --tenant ai/nlp --gpu 0.5 --cpu 2 --memory 4Gi --queue training
         crater job submit --name over --tenant ai/nlp --gpu 1 --cpu 1 --memory 1Gi --queue training \
           --env CRATER_SIMULATE_SECONDS=1 --wait --timeout 60s",
    );
    server.restart("KILL");
    server.run(&admin, "crater job cancel job-001");
    let describe =
        |id: &str| parsed(&server.run(&admin, &format!("crater job describe {id} -o json")));
    // From the claim until it is gone, as the journal has it.
    let held = |id: &str| {
        until("its claim is gone", || {
            let job = describe(id);
            let events = job["detail"]["events"].as_array().unwrap().clone();
            let at = |found: &dyn Fn(&Value) -> bool| {
                events.iter().find(|event| found(&event["event"])).map(|event| millis(&event["at"]))
            };
            let begin = at(&|event| event["event"] == "plan-committed")?;
            let end = at(&|event| event["event"] == "member-ended" || event["state"] == "gone")?;
            Some((end - begin) as f64 / 1000.0)
        })
    };
    let (first, second) = (held("job-001"), held("job-002"));
    let usage = parsed(&server.run(&admin, "crater tenant usage --tenant ai --since 2d -o json"));
    let sum = |name: &str| {
        let rows = usage.as_array().unwrap().iter();
        rows.map(|row| row[name].as_f64().unwrap()).sum::<f64>()
    };
    let same = |name: &str, wanted: f64| {
        assert!((sum(name) - wanted).abs() < 1e-6, "{name}: {} is not {wanted}", sum(name));
    };
    same("gpu-seconds", first * 0.5 + second);
    same("cpu-seconds", first * 2.0 + second);
    same("memory-gib-seconds", first * 4.0 + second);
    assert_eq!(usage[0]["tenant"], "ai/nlp");
    let table = server.run(&admin, "crater tenant usage");
    assert!(table.starts_with("DAY") && table.contains("training"), "{table}");
}

#[test]
fn metrics_are_what_a_strict_scraper_takes() {
    let server = Server::start("cluster: {run: 1d}");
    let admin = server.admin();
    let run = |script: &str| server.run(&admin, script);
    run("crater quota set --tenant team-nlp --gpu-hard 2");
    run(INFERENCE);
    run("crater job wait job-001 --for running --timeout 30s
         crater job submit --name big --tenant team-nlp --gpu 4 --cpu 1 --memory 1Gi --queue training
         crater job submit --name 'odd' --tenant t --gpu 9 --cpu 1 --memory 1Gi --queue training
         crater job evict job-001 --reason full");
    let page = |token: &str| {
        let (status, head, body) = server.get(token, "/metrics");
        assert_eq!(status, 200);
        assert_eq!(head["content-type"], "text/plain; version=0.0.4; charset=utf-8");
        exposition::read(&body)
    };
    let families = until("both jobs are decided on", || {
        let families = page(&admin);
        let waiting = &families["crater_waiting_jobs"];
        let n = |reason| {
            waiting.sum("crater_waiting_jobs", &[("queue", "training"), ("reason", reason)])
        };
        (n("quota") + n("impossible") >= 2.0).then_some(families)
    });
    let sum =
        |family: &str, name: &str, labels: &[(&str, &str)]| families[family].sum(name, labels);
    let inference = ("queue", "inference");
    let count =
        |family: &str, labels: &[(&str, &str)]| sum(family, &format!("{family}_count"), labels);
    assert_eq!(count("crater_job_queue_wait_duration_seconds", &[inference]), 1.0);
    assert_eq!(count("crater_job_start_duration_seconds", &[inference]), 1.0);
    assert!(count("crater_policy_call_duration_seconds", &[inference, ("call", "score")]) >= 1.0);
    assert!(count("crater_scheduling_attempt_duration_seconds", &[("result", "scheduled")]) >= 1.0);
    assert!(count("crater_ledger_commit_duration_seconds", &[]) >= 1.0);
    assert!(count("crater_ledger_batch_commands", &[]) >= 1.0);
    let submits = [("method", "POST"), ("route", "/api/v1/jobs"), ("status", "201")];
    assert_eq!(count("crater_api_request_duration_seconds", &submits), 3.0);
    let total = |family: &str, labels: &[(&str, &str)]| sum(family, family, labels);
    assert_eq!(total("crater_evictions_total", &[("cause", "manual")]), 1.0);
    let placed = [inference, ("by", "policy"), ("result", "scheduled")];
    assert_eq!(total("crater_decisions_total", &placed), 1.0);
    assert_eq!(total("crater_capacity", &[("resource", "gpu"), ("unit", "cards")]), 64.0);
    assert_eq!(total("crater_nodes", &[("status", "ready")]), 8.0);
    assert_eq!(total("crater_policy_info", &[]), 3.0);
    assert_eq!(total("crater_quota_hard", &[("tenant", "team-nlp"), ("resource", "gpu")]), 2.0);
    // kube-scheduler's shapes.
    let attempts = families["crater_scheduling_attempt_duration_seconds"].buckets();
    assert_eq!((attempts.len(), attempts[0], attempts[14]), (15, 0.001, 16.384));
    let waits = families["crater_job_queue_wait_duration_seconds"].buckets();
    assert_eq!((waits.len(), waits[0]), (20, 0.01));

    // Without a token nothing of single tenants; with a viewer's its own.
    let open = page("");
    assert!(!open.contains_key("crater_quota_used"));
    let other = run("crater token create --name o --role viewer --tenant other");
    let theirs = page(other.trim());
    // Only tenants below its own: there are none.
    assert!(!theirs.contains_key("crater_quota_used"));
    assert_eq!(server.get("wrong", "/metrics").0, 401);
    // A name for each request, the client's if it gives one.
    let (_, head, _) = server.get(&admin, "/api/v1/server");
    assert_eq!(head["x-request-id"].len(), 16);
}
