//! Figures for Prometheus.

use crate::app::App;
use axum::extract::State as Shared;
use axum::http::header;
use axum::response::IntoResponse;
use std::fmt::Write;

/// A label's value as the text format wants it.
fn quoted(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

struct Page(String);

impl Page {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a text cannot fail.
        let _ = write!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        let labels: Vec<String> =
            labels.iter().map(|(name, value)| format!("{name}=\"{}\"", quoted(value))).collect();
        let labels =
            if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        let _ = writeln!(self.0, "{name}{labels} {value}");
    }
}

/// All figures. Needs no token: it says nothing of single jobs or tenants.
pub async fn metrics(Shared(app): Shared<App>) -> impl IntoResponse {
    let books = app.system.books.view();
    let state = &books.state;
    let sums = crate::cluster::sums(state);
    let mut page = Page(String::new());
    page.family("crater_build_info", "gauge", "The version that runs.");
    page.sample("crater_build_info", &[("version", env!("CARGO_PKG_VERSION"))], 1.0);
    page.family("crater_journal_entries", "counter", "Entries of the journal so far.");
    page.sample("crater_journal_entries", &[], state.seq as f64);
    for (name, help, value) in [
        ("crater_nodes", "Nodes.", sums.nodes as f64),
        ("crater_gpu_capacity_cards", "GPU cards.", sums.gpu_milli as f64 / 1000.0),
        ("crater_gpu_allocated_cards", "GPU cards promised.", sums.gpu_used_milli as f64 / 1000.0),
        (
            "crater_gpu_memory_capacity_bytes",
            "Memory of all cards.",
            sums.gpu_memory_mib as f64 * 1_048_576.0,
        ),
        (
            "crater_gpu_memory_allocated_bytes",
            "Memory of cards promised.",
            sums.gpu_memory_used_mib as f64 * 1_048_576.0,
        ),
        ("crater_cpu_capacity_cores", "Cores.", sums.cpu_milli as f64 / 1000.0),
        ("crater_cpu_allocated_cores", "Cores promised.", sums.cpu_used_milli as f64 / 1000.0),
        (
            "crater_memory_capacity_bytes",
            "Memory of all nodes.",
            sums.memory_mib as f64 * 1_048_576.0,
        ),
        (
            "crater_memory_allocated_bytes",
            "Memory promised.",
            sums.memory_used_mib as f64 * 1_048_576.0,
        ),
    ] {
        page.family(name, "gauge", help);
        page.sample(name, &[], value);
    }
    page.family("crater_pending_jobs", "gauge", "Jobs that wait, by queue.");
    for queue in state.queues().values() {
        page.sample(
            "crater_pending_jobs",
            &[("queue", &queue.spec.name)],
            queue.waiting.len() as f64,
        );
    }
    page.family("crater_active_jobs", "gauge", "Jobs that hold something, by queue.");
    for queue in state.queues().values() {
        page.sample(
            "crater_active_jobs",
            &[("queue", &queue.spec.name)],
            queue.running.len() as f64,
        );
    }
    let tallies = app.system.deciders.tallies();
    for (name, help, value) in [
        (
            "crater_scheduling_rounds_total",
            "Rounds decided, by queue.",
            (|t| t.rounds as f64) as fn(&crater_server::deciders::Tally) -> f64,
        ),
        ("crater_scheduled_jobs_total", "Jobs placed, by queue.", |t| t.placed as f64),
        (
            "crater_stale_placements_total",
            "Placements that no longer fitted when committed, by queue.",
            |t| t.stale as f64,
        ),
        ("crater_scheduling_seconds_total", "Seconds spent deciding, by queue.", |t| t.seconds),
    ] {
        page.family(name, "counter", help);
        for (queue, tally) in &tallies {
            page.sample(name, &[("queue", queue)], value(tally));
        }
    }
    let policies = app.system.policies.status();
    page.family("crater_policy_info", "gauge", "The policy that is live, by queue.");
    for (queue, _, status) in &policies {
        if let Some((live, _)) = &status.live {
            let manifest = live.policy.manifest();
            let digest = live.policy.digest().short();
            let labels = [
                ("queue", &**queue),
                ("policy", &manifest.name),
                ("version", &manifest.version),
                ("digest", &digest),
            ];
            page.sample("crater_policy_info", &labels, 1.0);
        }
    }
    page.family(
        "crater_policy_faults_total",
        "counter",
        "Calls of the live policy that failed, by queue and cause.",
    );
    for (queue, _, status) in &policies {
        let Some((_, counters)) = &status.live else { continue };
        for (cause, n) in [
            ("trap", counters.traps),
            ("deadline", counters.deadlines),
            ("memory", counters.memory),
            ("bad-answer", counters.bad_answers),
            ("unavailable", counters.unavailable),
        ] {
            page.sample(
                "crater_policy_faults_total",
                &[("queue", queue), ("cause", cause)],
                n as f64,
            );
        }
    }
    page.family(
        "crater_policy_refusals_total",
        "counter",
        "Replacements that were refused, by queue.",
    );
    for (queue, _, status) in &policies {
        page.sample("crater_policy_refusals_total", &[("queue", queue)], status.refusals as f64);
    }
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], page.0)
}
