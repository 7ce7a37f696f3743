//! `crater-bench serve`: the real server over HTTP, with its disk, on the same
//! processors as its clients.

mod client;
mod crowd;
mod server;
mod slow;

use client::{Client, Times};
use server::Server;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Clients, each with a connection that stays.
const CLIENTS: u64 = 32;
/// Two turns of housekeeping and what they wait for.
const AT_REST: Duration = Duration::from_secs(45);
/// Jobs of the load, all in the history when the server is killed.
const JOBS: u64 = 100_000;
/// The load ends here at the latest, on a machine that is far slower.
const LONGEST: Duration = Duration::from_secs(100);

/// Every part of it, in about three minutes.
pub fn run() {
    let processors = std::thread::available_parallelism().map_or(0, usize::from);
    println!("\ncrater serve on loopback; clients share its {processors} processors");
    load();
    crowd::run();
    slow::run();
}

/// A job that ends as soon as it started.
fn short(queue: &str) -> String {
    format!(
        r#"{{"name":"load","queue":"{queue}","tenant":"load","gpu":0.5,"cpu":1,"memory":"1Gi","env":{{"CRATER_SIMULATE_SECONDS":"0"}}}}"#
    )
}

/// Runs a client's work on so many connections at once; all their times.
fn at_once(
    server: &Server,
    clients: u64,
    work: impl Fn(u64, &mut Client) -> Vec<f64> + Sync,
) -> Times {
    let all = Mutex::new(vec![]);
    std::thread::scope(|scope| {
        for n in 0..clients {
            let (all, work) = (&all, &work);
            scope.spawn(move || {
                let times = work(n, &mut server.client());
                all.lock().expect("no client panicked").extend(times);
            });
        }
    });
    Times(all.into_inner().expect("no client panicked"))
}

/// Durable placements so far.
fn placed(server: &Server) -> f64 {
    server.metric("crater_decisions_total", &["result=\"scheduled\""])
        - server.metric("crater_stale_placements_total", &[])
}

/// Jobs that wait or run.
fn unfinished(server: &Server) -> f64 {
    server.metric("crater_waiting_jobs", &[]) + server.metric("crater_active_jobs", &[])
}

/// Submits and placements as fast as they go, then a kill and a restart.
fn load() {
    let node = "{name: n, count: 1000, cpu: 128, memory: 1Ti, cards: {count: 8, model: H100, memory: 80Gi}}";
    let mut server = Server::start(&format!("cluster: {{nodes: [{node}]}}\n"));
    let (before, memory) = (server.threads(), server.resident());
    let own = own_time();
    let sent = AtomicU64::new(0);
    let begin = Instant::now();
    let mut times = at_once(&server, CLIENTS, |n, client| {
        let body = short(["inference", "training", "offline"][n as usize % 3]);
        let mut times = vec![];
        while sent.fetch_add(1, Relaxed) < JOBS && begin.elapsed() < LONGEST {
            times.push(client.timed("POST", "/api/v1/jobs", &body, 201).0);
        }
        times
    });
    let seconds = begin.elapsed().as_secs_f64();
    let (jobs, during) = (times.0.len(), placed(&server));
    let threads = spent(&before, &server.threads());
    let own = own_time() - own;
    println!("\n{CLIENTS} clients, 1,000 nodes of 8 cards, 3 queues, {jobs} jobs that end at once");
    println!("{:>28} {:>10.0}", "durable submits/s", jobs as f64 / seconds);
    println!("{:>28} {:>10.0}", "durable placements/s", during / seconds);
    println!("{:>28} {:>10.1} {:>10.1}", "acknowledged, ms p50 p99", times.at(0.5), times.at(0.99));
    let commits = server.metric("crater_ledger_commit_duration_seconds_count", &[]);
    let held = server.metric("crater_ledger_commit_duration_seconds_sum", &[]);
    let commands = server.metric("crater_ledger_batch_commands_sum", &[]);
    let entries = server.metric("crater_journal_entries_total", &[]);
    println!(
        "{:>28} {:>10.0} {:>10.1} commands each, {:.2} ms each, {:.0}% of the time; {entries:.0} entries",
        "commits",
        commits,
        commands / commits,
        held / commits * 1e3,
        held / seconds * 100.0
    );
    let all: f64 = threads.values().sum();
    println!("{:>28} {all:>10.1} {own:>10.1}", "CPU s, server clients");
    println!("{:>28} {}", "CPU s by thread", list(&threads));
    println!("{:>28} {memory:>10} {:>10}", "resident MiB, begin end", server.resident());
    let drained = Instant::now();
    while unfinished(&server) > 0.0 && drained.elapsed() < LONGEST {
        std::thread::sleep(Duration::from_millis(20));
    }
    println!("{:>28} {:>10.1}", "all placed and over after s", drained.elapsed().as_secs_f64());
    let took = server.kill_and_restart();
    println!(
        "{:>28} {:>10.2} with {jobs} jobs in {} MiB of history; {} MiB resident then",
        "killed, ready again after s",
        took.as_secs_f64(),
        server.stored() >> 20,
        server.resident()
    );
    // Once housekeeping has put what is over away: the usual case.
    std::thread::sleep(AT_REST);
    let took = server.kill_and_restart();
    println!(
        "{:>28} {:>10.2}; {} MiB resident then",
        "the same at rest after s",
        took.as_secs_f64(),
        server.resident()
    );
}

/// What each thread took since.
fn spent(before: &BTreeMap<String, f64>, after: &BTreeMap<String, f64>) -> BTreeMap<String, f64> {
    let since = |name: &String, now: f64| now - before.get(name).unwrap_or(&0.0);
    after.iter().map(|(name, now)| (name.clone(), since(name, *now))).collect()
}

/// Those that took most, in words.
fn list(threads: &BTreeMap<String, f64>) -> String {
    let mut all: Vec<_> = threads.iter().filter(|(_, seconds)| **seconds >= 0.1).collect();
    all.sort_by(|a, b| b.1.total_cmp(a.1));
    let words: Vec<_> = all.iter().map(|(name, s)| format!("{name} {s:.1}")).collect();
    words.join(", ")
}

/// Seconds of processor time of this process.
fn own_time() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    server::name_and_time(&stat).map_or(0.0, |(_, seconds)| seconds)
}
