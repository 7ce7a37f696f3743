//! Ten thousand jobs wait, and people look and submit all the same.

use super::server::Server;
use super::{Times, at_once};
use std::sync::Mutex;

/// Jobs that wait.
const WAITING: u64 = 10_000;
/// Clients that look meanwhile, as often each.
const LOOKING: u64 = 8;
const TIMES: u64 = 100;

/// A job that runs for as long as it is let.
fn long(gpu: u64) -> String {
    format!(
        r#"{{"name":"crowd","queue":"training","tenant":"crowd","gpu":{gpu},"cpu":1,"memory":"1Gi","env":{{"CRATER_SIMULATE_SECONDS":"86400"}}}}"#
    )
}

/// Runs the measurement.
pub fn run() {
    // The default cluster: 64 cards, all of them taken by the first jobs.
    let server = Server::start("cluster: {run: 1d}\n");
    let before = server.resident();
    let mut filled = at_once(&server, LOOKING, |n, client| {
        let mut times = vec![];
        for i in 0..WAITING / LOOKING {
            let gpu = if n == 0 && i < 8 { 8 } else { 1 + i % 4 };
            times.push(client.timed("POST", "/api/v1/jobs", &long(gpu), 201).0);
        }
        times
    });
    let waiting = server.metric("crater_waiting_jobs", &[]);
    println!("\n{waiting:.0} waiting jobs on a full cluster, {LOOKING} clients");
    println!("{:>28} {:>10} {:>10}", "", "p50 ms", "p99 ms");
    let row = |what: &str, times: &mut Times| {
        println!("{what:>28} {:>10.1} {:>10.1}", times.at(0.5), times.at(0.99));
    };
    row("submit, while they come", &mut filled);
    let looks = Mutex::new([Times::default(), Times::default(), Times::default()]);
    at_once(&server, LOOKING, |n, client| {
        let mut mine = [vec![], vec![], vec![]];
        for i in 0..TIMES {
            let job = (i * 97 + n * 1213) % WAITING + 1;
            mine[0].push(client.timed("GET", "/api/v1/jobs?status=pending", "", 200).0);
            mine[1].push(client.timed("GET", &format!("/api/v1/jobs/{job}"), "", 200).0);
            mine[2].push(client.timed("POST", "/api/v1/jobs", &long(1), 201).0);
        }
        let mut looks = looks.lock().expect("no client panicked");
        looks.iter_mut().zip(mine).for_each(|(all, mine)| all.0.extend(mine));
        vec![]
    });
    let mut looks = looks.into_inner().expect("no client panicked");
    for (what, times) in ["GET /jobs, 100 a page", "GET /jobs/ID", "submit"].iter().zip(&mut looks)
    {
        row(what, times);
    }
    println!("{:>28} {before:>10} {:>10}", "resident MiB, begin end", server.resident());
}
