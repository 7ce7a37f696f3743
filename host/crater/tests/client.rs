//! The client against a server, both as people start them.
#![allow(missing_docs)]

mod common;

use common::{Server, clean, text, words};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Jobs that run until somebody ends them.
const LONG: &str = "cluster: {run: 1d}";

const SUBMIT: &str = r#"
crater job submit \
  --name llm-inference-7b \
  --image registry.your-domain.com/llm-inference:v1.0 \
  --gpu 1 --gpu-memory 40960 --cpu 8 --memory 32Gi --disk-io 100 \
  --command "python serve.py --model /models/llama-7b --port 8080" \
  --queue inference --priority high
crater job submit \
  --name llm-finetune-7b \
  --image registry.your-domain.com/llm-train:v2.0 \
  --gpu 4 --gpu-memory 327680 --cpu 32 --memory 128Gi --disk-io 500 \
  --command "torchrun --nproc_per_node=4 train.py --model /models/llama-7b --data /data/finetune" \
  --queue training --priority medium --preemptible true
"#;

#[test]
fn the_published_commands_work_as_they_are_written() {
    let server = Server::start(LONG);
    let admin = server.admin();

    let set = server.run(
        &admin,
        "crater quota set --tenant team-nlp --gpu-hard 8 --cpu-hard 64 --memory-hard 256Gi",
    );
    assert!(words(&set).contains(&"gpu-hard 8".to_owned()), "{set}");
    server.run(
        &admin,
        "crater quota set --tenant team-nlp --gpu-soft 16 --cpu-soft 128 --memory-soft 512Gi",
    );
    let member = server.token("member");

    let said = server.run(&member, SUBMIT);
    assert!(said.starts_with("job-001 llm-inference-7b"), "{said}");
    server.run(&member, "crater job wait job-001 --for running --timeout 20s");
    server.run(&member, "crater job wait job-002 --for running --timeout 20s");
    let list = words(&server.run(&member, "crater job list --queue inference"));
    assert_eq!(list[0], "ID NAME STATUS GPU MEMORY NODE");
    assert!(list[1].starts_with("job-001 llm-inference-7b Running 1 40Gi gpu-node-0"), "{list:?}");
    assert_eq!(list.len(), 2);
    let list = server.run(&member, "crater job list -o wide");
    assert!(list.contains("QUEUE") && list.contains("team-nlp"), "{list}");

    let failed = server.run(&member, "crater job list --status failed --since 1h");
    assert_eq!(words(&failed), ["ID NAME STATUS GPU MEMORY NODE"]);
    let about = server.run(&member, "crater job describe job-002");
    for part in [
        "Running",
        "torchrun",
        "80Gi of memory on each of 4 cards",
        "Claims",
        "Events",
        "it is Running",
    ] {
        assert!(about.contains(part), "{part}: {about}");
    }

    // Four cards and a half are used, eight are the quota, four more are asked for.
    server.run(
        &member,
        "crater job submit --name too-much --gpu 4 --gpu-exclusive true --cpu 4 --memory 4Gi --queue training",
    );
    let until = Instant::now() + Duration::from_secs(20);
    let why = loop {
        let why = server
            .run(&member, "crater job describe job-003 | grep -A 10 \"Scheduling Constraints\"");
        if why.contains("gpu") || Instant::now() > until {
            break why;
        }
        std::thread::sleep(Duration::from_millis(100));
    };
    assert!(why.starts_with("Scheduling Constraints\n  ") && why.contains("gpu"), "{why}");
    let list = words(&server.run(&member, "crater job list --status pending"));
    assert_eq!(list[1], "job-003 too-much Pending 4 - -");

    let own = words(&server.run(&member, "crater quota get"));
    for line in [
        "tenant team-nlp",
        "gpu-used 4.5",
        "gpu-hard 8",
        "gpu-soft 16",
        "cpu-used 40",
        "memory-hard 256Gi",
    ] {
        assert!(own.contains(&line.to_owned()), "{line}: {own:?}");
    }
    assert_eq!(own, words(&server.run(&admin, "crater quota get --tenant team-nlp")));
    let all = server.run(&admin, "crater quota get");
    assert!(all.contains("gpu-used") && all.contains("team-nlp"), "{all}");

    let all = server.run(&member, "crater cluster metrics");
    assert!(words(&all).iter().any(|line| line.starts_with("gpu 4.5 64 7.0%")), "{all}");
    let disk = words(&server.run(&member, "crater cluster metrics --metric disk-io"));
    assert!(
        disk[0] == "METRIC PROMISED TOTAL PERCENT" && disk[1].starts_with("disk-io "),
        "{disk:?}"
    );

    let (code, error) = server.fails(&member, "crater job evict job-001 --reason quota-exceeded");
    assert!(code == 1 && error.contains("manager"), "{error}");
    let manager = server.token("manager");
    let evicted = server.run(&manager, "crater job evict job-001 --reason quota-exceeded");
    assert!(evicted.contains("quota-exceeded"), "{evicted}");
    server.run(
        &member,
        "crater job submit --name small --gpu 0.5 --cpu 1 --memory 1Gi --queue offline --priority low --tenant team-nlp
         crater job wait job-004 --for running --timeout 20s",
    );
    let evicted = server.run(&manager, "crater job evict --tenant team-nlp --priority low --all");
    assert!(
        evicted.contains("evicted 1 of 1 running jobs of team-nlp of priority low"),
        "{evicted}"
    );
}

#[test]
fn what_is_wrong_is_said_in_one_line_with_its_exit_code() {
    let server = Server::start(LONG);
    let admin = server.admin();
    let says = |script: &str, code: i32, parts: &[&str]| {
        let (got, error) = server.fails(&admin, script);
        assert_eq!(got, code, "{script}: {error}");
        for part in parts {
            assert!(error.contains(part), "{script}: {part}: {error}");
        }
    };
    says("crater job describe job-9", 1, &["job-009", "crater job list"]);
    says("crater job describe ../x", 1, &["unknown"]);
    let base = "crater job submit --tenant t --name a --queue";
    says(
        &format!("{base} nowhere --cpu 1 --memory 1Gi"),
        1,
        &["queue: \"nowhere\"", "inference, offline, training"],
    );
    says(&format!("{base} training --gpu 1"), 1, &["cpu", "--memory"]);
    says(&format!("{base} training --cpu x"), 1, &["cpu: \"x\""]);
    says("crater job submit -f /nowhere.yaml", 2, &["/nowhere.yaml"]);
    says("echo 'gpus: 1' | crater job submit -f -", 2, &["gpus"]);
    says("crater queue set training --config '{'", 2, &["--config"]);
    says("crater quota set --tenant t", 2, &["--gpu-hard"]);
    says("crater job list --server nonsense", 2, &["server", "http"]);
    says("crater job list --server http://127.0.0.1:1", 3, &["cannot reach", "CRATER_SERVER"]);
    says("CRATER_TOKEN=wrong crater job list", 1, &["unknown", "crater config set --token"]);
    // What clap refuses takes more lines.
    for usage in
        ["crater job evict --tenant t", "crater job list --since soon", "crater job update job-1"]
    {
        let output = server.shell(&admin, usage).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{usage}");
    }
}

#[test]
fn jobs_queues_nodes_tenants_and_tokens_are_run_from_the_command_line() {
    let server = Server::start("cluster: {run: 1s}");
    let admin = server.admin();
    let run = |script: &str| server.run(&admin, script);

    // The same key is the same job.
    let submit = "crater job submit --tenant t/p --name quick --cpu 1 --memory 1Gi --queue offline";
    let twice = run(&format!("{submit} --key k; {submit} --key k"));
    assert!(twice.lines().all(|line| line.starts_with("job-001 ")), "{twice}");
    let waited = run("crater job wait job-001 --timeout 30s");
    assert_eq!(waited, "job-001 quick Succeeded\n");
    let list = words(&run("crater job list"));
    assert_eq!(list, ["ID NAME STATUS GPU MEMORY NODE"]);
    assert!(run("crater job list --all --limit 1").contains("Succeeded"));
    let again = run("crater job retry job-001");
    assert!(again.starts_with("job-002 quick"), "{again}");
    let done = run(&format!("{submit} --wait --timeout 30s"));
    assert!(done.ends_with("Succeeded\n"), "{done}");

    // A file, and flags that go before it.
    let mut child = server
        .shell(&admin, "crater job submit -f - --priority high -o json")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let file =
        "{name: f, tenant: t, queue: offline, cpu: 1, memory: 1Gi, priority: low, env: {A: b}}";
    child.stdin.take().unwrap().write_all(file.as_bytes()).unwrap();
    let job: serde_json::Value =
        serde_json::from_slice(&child.wait_with_output().unwrap().stdout).unwrap();
    assert_eq!((&job["name"], &job["priority"]), (&"f".into(), &100.into()));

    // Queues.
    assert!(run("crater queue list").contains("inference"));
    assert!(run("crater queue drain offline").contains("nothing was cancelled"));
    run(submit);
    assert!(run("crater queue describe offline").contains("paused"));
    assert!(run("crater job list --queue offline").contains("Pending"));
    assert!(run("crater queue resume offline").contains("starts jobs again"));
    let set = run("crater queue set offline --policy spread --fallback hold");
    assert!(set.contains("spread") && set.contains("hold"), "{set}");
    let status = run("crater policy status");
    let spread = words(&status).into_iter().find(|line| line.starts_with("offline spread "));
    assert_eq!(spread.unwrap().split(' ').nth(3).unwrap().len(), 12, "{status}");

    // Nodes.
    assert!(run("crater node cordon gpu-node-01").contains("cordoned"));
    assert!(run("crater cluster nodes").contains("Cordoned"));
    assert!(run("crater node drain gpu-node-02").contains("cordoned"));
    assert!(run("crater node uncordon gpu-node-01").contains("again"));
    assert_eq!(run("crater node list | wc -l").trim(), "9");

    // Tenants.
    run("crater tenant create ai/nlp/lee");
    let tree = run("crater tenant tree");
    assert!(tree.contains("ai") && tree.contains("\n    lee"), "{tree}");
    assert!(run("crater tenant list").contains("ai/nlp/lee"));
    let dry = run("crater quota set --tenant ai/nlp --gpu-hard 1000 --dry-run");
    assert!(dry.contains("Nothing was changed") && dry.contains("gpu"), "{dry}");
    assert!(!run("crater tenant list").lines().any(|line| line.starts_with("ai/nlp ")));

    // Tokens.
    let token = server.token("viewer");
    assert!(token.starts_with("crater_"), "{token}");
    let list = run("crater token list");
    assert!(!list.contains(&token) && list.contains("viewer"), "{list}");
    run("crater token revoke 2");
    let (code, error) = server.fails(&token, "crater job list");
    assert!(code == 1 && error.contains("revoked"), "{error}");

    // For programs.
    let json: serde_json::Value = serde_json::from_str(&run("crater queue list -o json")).unwrap();
    assert_eq!(json.as_array().unwrap().len(), 3);
    assert!(run("crater queue list -o yaml").contains("name: inference"));
    let cut = server.shell(&admin, "crater job list --all | head -n 0").output().unwrap();
    assert_eq!(text(&cut.stderr), "");
}

#[test]
fn watch_prints_a_line_for_each_change() {
    let server = Server::start("cluster: {run: 1s}");
    let admin = server.admin();
    let mut watch = server
        .shell(&admin, "exec crater job list --watch")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(watch.stdout.take().unwrap()).lines();
    server
        .run(&admin, "crater job submit --tenant t --name w --cpu 1 --memory 1Gi --queue offline");
    let (send, got) = std::sync::mpsc::channel();
    std::thread::spawn(move || lines.map_while(Result::ok).try_for_each(|line| send.send(line)));
    let mut all = String::new();
    while let Ok(line) = got.recv_timeout(Duration::from_secs(30)) {
        all += &(line.clone() + "\n");
        if line.contains("Succeeded") {
            break;
        }
    }
    watch.kill().unwrap();
    watch.wait().unwrap();
    assert!(all.contains("job-001  w  Running") && all.contains("job-001  w  Succeeded"), "{all}");
}

fn alone(home: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_crater"));
    clean(&mut command, home);
    command.args(args).output().unwrap()
}

#[test]
fn the_configuration_is_kept_for_its_owner_and_shown_without_the_secret() {
    use std::os::unix::fs::PermissionsExt as _;
    let home = tempfile::tempdir().unwrap();
    let secret = "crater_0123456789abcdef0123456789abcdef";
    let set = ["config", "set", "--server", "https://crater.your-domain.com/", "--token", secret];
    assert!(alone(home.path(), &set).status.success());
    let file = home.path().join("config/crater/config.yaml");
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let view = text(&alone(home.path(), &["config", "view"]).stdout);
    assert!(view.contains("https://crater.your-domain.com  ("), "{view}");
    assert!(view.contains("crater_012…") && !view.contains(secret), "{view}");
    // The token is for that server and no other.
    let other = text(&alone(home.path(), &["config", "view", "--server", "http://other:1"]).stdout);
    assert!(other.contains("is for https://crater.your-domain.com"), "{other}");
    // One setting leaves the other.
    assert!(alone(home.path(), &["config", "set", "--token", "your-api-token"]).status.success());
    let view = text(&alone(home.path(), &["config", "view", "-o", "json"]).stdout);
    assert!(view.contains("your-domain") && !view.contains("your-api-token"), "{view}");
    assert_eq!(alone(home.path(), &["config", "set"]).status.code(), Some(2));
}

#[test]
fn the_token_of_a_server_on_this_machine_is_found() {
    let home = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(home.path().join("state/crater")).unwrap();
    std::fs::write(home.path().join("state/crater/admin-token"), "crater_local\n").unwrap();
    let view = text(&alone(home.path(), &["config", "view"]).stdout);
    assert!(view.contains("state/crater/admin-token"), "{view}");
    let view = text(&alone(home.path(), &["config", "view", "--server", "http://10.0.0.1"]).stdout);
    assert!(view.contains("token   none"), "{view}");
}

#[test]
fn shells_complete_the_commands() {
    let home = tempfile::tempdir().unwrap();
    for shell in ["bash", "zsh", "fish"] {
        let output = alone(home.path(), &["completion", shell]);
        assert!(output.status.success() && text(&output.stdout).contains("describe"), "{shell}");
    }
}
