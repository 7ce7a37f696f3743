//! What a job may use, measured from outside the server.

use super::{HERE, Here, clean, over, possible, processes, stands, submit};
use crate::common::{Server, until};
use std::time::Instant;

/// Seconds of CPU that a process used.
fn cpu(pid: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
    ticks as f64 / rustix::param::clock_ticks_per_second() as f64
}

/// What of a metric a job used, each time that it was measured.
fn used(server: &Server, id: &str, metric: &str) -> Vec<u64> {
    let line = format!("crater job metrics {id} --metric {metric} -o json");
    let all: serde_json::Value = serde_json::from_str(&server.run(&server.admin(), &line)).unwrap();
    let series = all["series"].as_array().unwrap().iter();
    let points = series.flat_map(|series| series["points"].as_array().unwrap().clone());
    points.map(|point| point["used"].as_u64().unwrap()).collect()
}

#[test]
fn half_a_core_is_half_a_core() {
    if !possible() {
        return;
    }
    let server = Here::start(HERE);
    let busy = submit(&server, "busy", "exec awk \"BEGIN { while (77041) {} }\"", "--cpu 0.5");
    stands(&server, &busy, "Running");
    let pid = until("it computes", || processes("while (77041)").first().copied());
    let (begun, before) = (Instant::now(), cpu(pid));
    // However busy the machine is, it has no more than its half; and it gets
    // somewhere.
    until("it had a second of CPU", || (cpu(pid) - before >= 1.0).then_some(()));
    let share = (cpu(pid) - before) / begun.elapsed().as_secs_f64();
    eprintln!("half a core: {share:.3} of one");
    assert!(share < 0.56, "{share}");
    until("it was measured", || {
        let all = used(&server, &busy, "cpu");
        // The first look knows no time before it.
        all.iter().any(|milli| (100..=560).contains(milli)).then_some(())
    });
    server.run(&server.admin(), &format!("crater job cancel {busy}"));
    clean(&server);
}

#[test]
fn who_takes_more_memory_than_it_asked_for_is_ended_and_told_so() {
    if !possible() {
        return;
    }
    let server = Here::start(HERE);
    let large = "dd if=/dev/zero of=/dev/null bs=400M count=1";
    let over_it = submit(&server, "large", large, "--memory 256Mi");
    let end = over(&server, &over_it);
    let reason = "out of memory: it may use 256 MiB";
    assert_eq!((&end["status"], &end["reason"]), (&"Failed".into(), &reason.into()));
    let within = submit(&server, "within", large, "--memory 450Mi");
    assert_eq!(over(&server, &within)["status"], "Succeeded");
    // Some other process of the job, which its first one outlives.
    let child = submit(&server, "child", &format!("{large} || exit 9"), "--memory 256Mi");
    assert_eq!(over(&server, &child)["reason"], reason);
    clean(&server);
}

#[test]
fn a_cap_on_the_disk_holds() {
    if !possible() {
        return;
    }
    let server = Here::start(HERE);
    let write =
        "dd if=/dev/zero of=$HOME/file bs=1M count=60 oflag=direct && stat -c %s $HOME/file";
    let begun = Instant::now();
    let free = submit(&server, "free", write, "");
    if over(&server, &free)["status"] != "Succeeded" {
        eprintln!("skipped: this file system writes nothing past its cache");
        return;
    }
    let without = begun.elapsed().as_secs_f64();
    let begun = Instant::now();
    let capped = submit(&server, "capped", write, "--disk-bandwidth-limit 20");
    assert_eq!(over(&server, &capped)["status"], "Succeeded");
    let rate = 62.9 / begun.elapsed().as_secs_f64();
    eprintln!("capped at 20 MB/s: {rate:.1} MB/s; without a cap {:.1}", 62.9 / without);
    let most = used(&server, &capped, "disk-io").into_iter().max();
    assert!(most.is_some_and(|most| (5..=25).contains(&most)), "measured: {most:?}");
    // Starting and looking takes its time, too, so the rate is a lower bound.
    assert!(rate < 21.0, "{rate} MB/s");
    clean(&server);
}

#[test]
fn c29_every_resource_is_looked_at() {
    if !possible() {
        return;
    }
    let config = HERE.replace("reserve-memory: 256Mi", "reserve-memory: 256Mi, disk: 500");
    let server = Here::start(&config);
    let most = submit(&server, "most", "exec sleep 77051", "--disk-bandwidth 450");
    stands(&server, &most, "Running");
    let memory = submit(&server, "memory", "true", "--memory 1000Gi");
    let disk = submit(&server, "disk", "true", "--disk-bandwidth 100");
    let fits = submit(&server, "fits", "true", "--disk-bandwidth 50");
    assert_eq!(over(&server, &fits)["status"], "Succeeded");
    for (id, word) in [(&memory, "memory"), (&disk, "disk")] {
        let job = stands(&server, id, "Pending");
        let text = job.to_string();
        assert!(text.contains(word), "{word}: {text}");
        server.run(&server.admin(), &format!("crater job cancel {id}"));
    }
    server.run(&server.admin(), &format!("crater job cancel {most}"));
    clean(&server);
}
