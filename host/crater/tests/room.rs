//! One pool, as people see it: preemption, reclaim, borrowing, kept room,
//! elastic jobs and refused starts on a real server with simulated machines.
#![allow(missing_docs)]

mod common;

use common::{Server, until};
use serde_json::Value;

/// One machine of four cards. Use is what is promised: nothing is measured
/// within the time of a test.
const ONE: &str = "
cluster: {run: 1d, nodes: [{name: n, cpu: 64, memory: 512Gi, cards: {count: 4, model: T4, memory: 16Gi}}]}
metrics: {interval: 5m}
queues:
  - {name: inference, kind: inference, priority: 20, minimum-run: 0s}
  - {name: training, kind: training, priority: 10, minimum-run: 0s, preemptions-per-hour: 9}
  - {name: offline, kind: offline, minimum-run: 0s}
";

/// A job with everything about it.
fn job(server: &Server, id: &str) -> Value {
    server.json(&format!("/api/v1/jobs/{id}"))
}

fn room<'a>(job: &'a Value, field: &str) -> &'a Value {
    &job["detail"]["room"][field]
}

/// Submits a job of so many cards; gives out its identity.
fn submit(server: &Server, name: &str, queue: &str, gpu: u32, more: &str) -> String {
    let line = format!(
        "crater job submit --name {name} --queue {queue} --gpu {gpu} --gpu-exclusive true \
         --cpu 1 --memory 1Gi {more}"
    );
    let said = server.run(&server.admin(), &line);
    said.split_whitespace().next().unwrap().to_owned()
}

fn stands(server: &Server, id: &str, status: &str) {
    until(&format!("{id} is {status}: {}", job(server, id)), || {
        (job(server, id)["status"] == status).then_some(())
    });
}

/// Waits until a job's part in the pool has a field, and gives it out.
fn has(server: &Server, id: &str, field: &str) -> Value {
    until(&format!("{id} has {field}"), || {
        let job = job(server, id);
        Some(room(&job, field).clone()).filter(|value| !value.is_null())
    })
}

fn counted(server: &Server, line: &str) {
    let (_, _, text) = server.get(&server.admin(), "/metrics");
    assert!(text.lines().any(|known| known == line), "{line}: {text}");
}

/// How often a job was placed, by its own events.
fn placed(job: &Value) -> usize {
    let events = job["detail"]["events"].as_array().unwrap();
    events.iter().filter(|event| event["event"]["event"] == "plan-committed").count()
}

#[test]
fn inference_takes_the_room_of_training_which_goes_on_from_its_checkpoint() {
    let server = Server::start(ONE);
    let train = submit(
        &server,
        "train",
        "training",
        4,
        "--preemptible true --env CRATER_SIMULATE_SECONDS=6 --env CRATER_SIMULATE_CHECKPOINT=0.5",
    );
    has(&server, &train, "checkpoint");
    let serve = submit(&server, "serve", "inference", 4, "--env CRATER_SIMULATE_SECONDS=3");
    stands(&server, &serve, "Running");
    let about = job(&server, &train);
    assert_eq!((&about["status"], &about["cause"]), (&"Pending".into(), &"preempt".into()));
    assert_eq!(room(&about, "evicted")["cause"], "preempt");
    let list = server.run(&server.admin(), "crater job list");
    assert!(list.contains("Pending (preempted)"), "{list}");
    let wide = server.run(&server.admin(), "crater queue list -o wide");
    assert!(wide.contains("PREEMPTED/H") && wide.contains("1/9"), "{wide}");
    counted(&server, "crater_evictions_total{cause=\"preempt\"} 1");

    stands(&server, &train, "Running");
    let text = server.run(&server.admin(), &format!("crater job describe {train}"));
    for part in
        ["In the Pool", "preempted by a job of higher priority", "checkpoint", "CRATER_RESUME=1"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    stands(&server, &train, "Succeeded");
    let logs = server.run(&server.admin(), &format!("crater job logs {train}"));
    for part in ["saves its progress", "CRATER_RESTART_COUNT=1", "goes on after "] {
        assert!(logs.contains(part), "{part}: {logs}");
    }
    assert_eq!(job(&server, &train)["preemptions"], 1);
}

#[test]
fn what_one_project_borrowed_the_other_gets_back() {
    let tenants = "tenants: [{path: ai/a, hard: {gpu: 2}}, {path: ai/b, hard: {gpu: 2}}]\n";
    let server = Server::start(&format!("{ONE}{tenants}"));
    let admin = server.admin();
    let own = submit(&server, "own", "training", 2, "--tenant ai/a --preemptible true");
    stands(&server, &own, "Running");
    let more = submit(&server, "more", "training", 2, "--tenant ai/a --preemptible true");
    stands(&server, &more, "Running");
    assert_eq!(has(&server, &more, "borrowed")["ai/a"]["gpu"], "2");
    let quota = server.run(&admin, "crater quota get --tenant ai/a");
    assert!(quota.contains("gpu-borrowed") && !quota.contains("borrowing is off"), "{quota}");

    let back = submit(&server, "back", "training", 2, "--tenant ai/b");
    stands(&server, &back, "Running");
    assert_eq!(job(&server, &own)["status"], "Running", "only what was borrowed goes");
    let gone = job(&server, &more);
    assert_eq!((&gone["status"], &gone["cause"]), (&"Pending".into(), &"reclaim".into()));
    counted(&server, "crater_evictions_total{cause=\"reclaim\"} 1");
    let quota = server.run(&admin, "crater quota get --tenant ai/a");
    assert!(!quota.contains("gpu-borrowed"), "{quota}");
}

#[test]
fn borrowing_opens_when_little_is_in_use_and_closes_when_much_is() {
    let server = Server::start(&format!("{ONE}tenants: [{{path: ai/a, hard: {{gpu: 1}}}}]\n"));
    let admin = server.admin();
    let other = submit(&server, "other", "offline", 3, "--tenant ai/b");
    stands(&server, &other, "Running");
    let wish = submit(&server, "wish", "training", 2, "--tenant ai/a --preemptible true");
    until("it waits while much is in use", || {
        let job = job(&server, &wish);
        job["reason"].as_str().unwrap().contains("borrowing is closed").then_some(())
    });
    let asked = server.run(&admin, "crater quota set --tenant ai/a --gpu-hard 1 --dry-run");
    assert!(asked.contains("would borrow once borrowing opens: 1 of gpu"), "{asked}");
    let stays = submit(&server, "stays", "training", 2, "--tenant ai/a");
    server.run(&admin, &format!("crater job cancel {other}"));
    stands(&server, &wish, "Running");
    assert_eq!(has(&server, &wish, "borrowed")["ai/a"]["gpu"], "1");
    assert!(
        job(&server, &stays)["reason"].as_str().unwrap().contains("only preemptible jobs borrow")
    );
}

#[test]
fn an_elastic_job_gives_up_one_member_and_has_it_back() {
    let server = Server::start(ONE);
    let elastic =
        submit(&server, "elastic", "training", 1, "--members 4 --min 2 --preemptible true");
    let now = |n: u64| {
        until(&format!("{n} members: {}", job(&server, &elastic)), || {
            (room(&job(&server, &elastic), "elastic")["now"] == n).then_some(())
        });
    };
    stands(&server, &elastic, "Running");
    now(4);
    let serve = submit(&server, "serve", "inference", 1, "");
    stands(&server, &serve, "Running");
    now(3);
    let about = job(&server, &elastic);
    assert_eq!((&about["status"], &about["preemptions"]), (&"Running".into(), &0.into()));
    counted(&server, "crater_members_given_up_total{cause=\"preempt\"} 1");
    server.run(&server.admin(), &format!("crater job cancel {serve}"));
    now(4);
}

#[test]
fn a_refused_start_waits_longer_each_time_and_keeps_nobody_waiting() {
    let server = Server::start(ONE);
    let refused =
        submit(&server, "refused", "training", 4, "--env CRATER_SIMULATE_REFUSE='no such image'");
    let first = has(&server, &refused, "refused");
    assert_eq!(first["words"], "no such image");
    let other = submit(&server, "other", "training", 4, "--env CRATER_SIMULATE_SECONDS=1");
    stands(&server, &other, "Succeeded");
    until("it is tried again", || {
        let job = job(&server, &refused);
        (room(&job, "refused")["times"].as_u64()? >= 2).then_some(())
    });
    let text = server.run(&server.admin(), &format!("crater job describe {refused}"));
    assert!(text.contains("start refused") && text.contains("next try"), "{text}");
    counted(&server, "crater_starts_refused_total{queue=\"training\"} 2");
}

/// C42. Spans are far longer than anything takes that happens within them.
#[test]
fn small_jobs_fill_what_a_large_one_waits_for_and_do_not_delay_it() {
    let server = Server::start(&ONE.replace("preemptions-per-hour: 9", "reserve-after: 1s"));
    let play = |seconds: u32| format!("--env CRATER_SIMULATE_SECONDS={seconds}");
    let first = submit(&server, "first", "training", 3, &format!("--run-limit 20s {}", play(12)));
    stands(&server, &first, "Running");
    let large = submit(&server, "large", "training", 4, &play(600));
    let kept = has(&server, &large, "kept");
    assert!(kept["until"].as_str().unwrap().starts_with("20"), "planned: {kept}");
    let late = submit(&server, "late", "training", 1, "--run-limit 600s");
    let small = submit(&server, "small", "training", 1, &format!("--run-limit 3s {}", play(1)));
    // Submitted after them, it goes where they may not, and has ended in time.
    stands(&server, &small, "Succeeded");
    for waits in [&large, &late] {
        assert_eq!(job(&server, waits)["status"], "Pending");
    }
    stands(&server, &large, "Running");
    assert_eq!(
        (job(&server, &large)["attempts"].clone(), placed(&job(&server, &late))),
        (1.into(), 0)
    );
}

#[test]
fn room_is_still_kept_after_the_server_was_killed() {
    let mut server = Server::start(ONE);
    let train = submit(
        &server,
        "train",
        "training",
        4,
        "--preemptible true --env CRATER_SIMULATE_STOP=4 --env CRATER_SIMULATE_CHECKPOINT=0.5",
    );
    has(&server, &train, "checkpoint");
    let serve = submit(&server, "serve", "inference", 3, "--env CRATER_SIMULATE_SECONDS=2");
    let kept = has(&server, &serve, "kept");
    assert_eq!((&kept["nodes"][0], &kept["members"]), (&"n".into(), &1.into()));
    // Wants the same room, and comes too late for it.
    let late = submit(&server, "late", "offline", 2, "--env CRATER_SIMULATE_SECONDS=1");

    server.restart("KILL");
    let about = job(&server, &serve);
    assert_eq!(room(&about, "kept"), &kept, "{about}");
    assert_eq!(job(&server, &train)["status"], "Preempting");
    stands(&server, &serve, "Running");
    assert_eq!(job(&server, &late)["status"], "Pending");
    let about = job(&server, &serve);
    assert_eq!((placed(&about), &about["attempts"]), (1, &1.into()));
    assert!(room(&about, "kept").is_null());
    stands(&server, &serve, "Succeeded");
    stands(&server, &train, "Running");
    assert_eq!(placed(&job(&server, &train)), 2);
    assert_eq!(job(&server, &train)["preemptions"], 1);
    server.run(&server.admin(), &format!("crater job cancel {train}"));
    stands(&server, &late, "Succeeded");
    until("nothing is held any more", || {
        let cluster = server.json("/api/v1/cluster");
        (cluster["gpu-used-milli"] == 0).then_some(())
    });
}

#[test]
fn a_person_sends_a_job_back_and_says_that_it_saved_its_progress() {
    let server = Server::start(ONE);
    let admin = server.admin();
    let id = submit(&server, "train", "training", 1, "--together domain:preferred");
    stands(&server, &id, "Running");
    server.run(&admin, &format!("crater job checkpoint {id}"));
    server.run(&admin, &format!("crater job evict {id} --requeue --reason repair"));
    until("it starts again", || {
        let job = job(&server, &id);
        (job["attempts"] == 2 && job["status"] == "Running").then_some(())
    });
    let about = job(&server, &id);
    assert_eq!(about["detail"]["spec"]["together"]["level"], "domain");
    let evicted = room(&about, "evicted");
    assert_eq!((&evicted["cause"], &evicted["reason"]), (&"manual".into(), &"repair".into()));
    // Twice: what it has to do with the pool, and what happened to it.
    let text = server.run(&admin, &format!("crater job describe {id}"));
    assert_eq!(text.matches("evicted by a person: repair").count(), 2, "{text}");
    assert!(!room(&about, "checkpoint").is_null());
    counted(&server, "crater_evictions_total{cause=\"manual\"} 1");
    server.run(&admin, &format!("crater job cancel {id}"));
    stands(&server, &id, "Cancelled");
    let (code, error) = server.fails(&admin, &format!("crater job checkpoint {id}"));
    assert!(code == 1 && error.contains("only a job that runs"), "{error}");
}

#[test]
fn a_job_that_ran_for_as_long_as_it_may_is_ended() {
    let server = Server::start(ONE);
    let long = submit(&server, "long", "training", 1, "--run-limit 1");
    stands(&server, &long, "Failed");
    assert_eq!(job(&server, &long)["reason"], "it ran for as long as it may: 1 s (--run-limit)");
    let free = submit(&server, "free", "training", 4, "");
    stands(&server, &free, "Running");
}
