//! A policy in Python on one queue of 5,000 nodes, and those who submit to the
//! other queues.

use super::server::Server;
use super::{at_once, list, placed, short, spent};
use crater_bench::component_file;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Nodes.
const NODES: u64 = 5000;
/// Clients of the other queues.
const CLIENTS: u64 = 8;
/// How long they submit, without and with the slow queue.
const TIME: Duration = Duration::from_secs(8);
/// Pause of each between two jobs: they are people's programs, no flood.
const PAUSE: Duration = Duration::from_millis(4);

/// Runs the measurement.
pub fn run() {
    // No two nodes are alike, or Python would be asked about one for all of them.
    let nodes = (0..NODES).fold(String::new(), |text, i| {
        let cards = "{count: 8, model: H100, memory: 80Gi}";
        text + &format!(
            "\n    - {{name: n-{i}, cpu: {}m, memory: 1Ti, cards: {cards}}}",
            64_000 + i
        )
    });
    let policy = component_file("tight-cpu-py");
    let server = Server::start(&format!(
        "cluster:
  nodes:{nodes}
queues:
  - {{name: others, kind: training, policy: spread}}
  - {{name: more, kind: offline, policy: binpack}}
  - {{name: slow, kind: training, policy: '{}'}}
",
        policy.display()
    ));
    println!(
        "\n{NODES} nodes, {CLIENTS} clients submit to two queues; a third has a policy in Python"
    );
    println!(
        "{:>28} {:>10} {:>10} {:>10} {:>12} {:>14} {:>12}",
        "", "p50 ms", "p99 ms", "submits/s", "placements/s", "Python calls/s", "of the time"
    );
    for busy in [false, true] {
        phase(&server, busy);
    }
}

fn phase(server: &Server, busy: bool) {
    let slow = |name: &str| server.metric(name, &["queue=\"slow\""]);
    let calls = || slow("crater_policy_call_duration_seconds_count");
    let computed = || slow("crater_policy_call_duration_seconds_sum");
    let (stop, begin) = (AtomicBool::new(false), Instant::now());
    let (before, placed_before) = (server.threads(), placed(server));
    let (calls_before, computed_before) = (calls(), computed());
    let mut times = std::thread::scope(|scope| {
        if busy {
            scope.spawn(|| {
                let mut client = server.client();
                for n in 0.. {
                    if stop.load(Relaxed) {
                        return;
                    }
                    // Nor two jobs.
                    let cpu = format!("\"cpu\":\"{}m\"", 1000 + n);
                    let body = short("slow").replace("\"cpu\":1", &cpu);
                    client.timed("POST", "/api/v1/jobs", &body, 201);
                    std::thread::sleep(2 * PAUSE);
                }
            });
        }
        let times = at_once(server, CLIENTS, |n, client| {
            let body = short(["others", "more"][n as usize % 2]);
            let mut times = vec![];
            while begin.elapsed() < TIME {
                times.push(client.timed("POST", "/api/v1/jobs", &body, 201).0);
                std::thread::sleep(PAUSE);
            }
            times
        });
        stop.store(true, Relaxed);
        times
    });
    let seconds = begin.elapsed().as_secs_f64();
    println!(
        "{:>28} {:>10.1} {:>10.1} {:>10.0} {:>12.0} {:>14.1} {:>11.0}%",
        if busy { "Python decides, too" } else { "nothing for Python" },
        times.at(0.5),
        times.at(0.99),
        times.0.len() as f64 / seconds,
        (placed(server) - placed_before) / seconds,
        (calls() - calls_before) / seconds,
        (computed() - computed_before) / seconds * 100.0,
    );
    if busy {
        let faults = slow("crater_policy_faults_total");
        let spent = spent(&before, &server.threads());
        println!("{:>28} {faults:>10}; CPU s by thread: {}", "faults of it", list(&spent));
    }
}
