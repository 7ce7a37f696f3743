//! Backups of a running server, and back; what tokens and ceilings say.
#![allow(missing_docs)]

mod common;

use common::{Server, words};
use std::os::unix::fs::PermissionsExt as _;

const SUBMIT: &str = "crater job submit --tenant t --cpu 1 --memory 1Gi --queue offline --name";

#[test]
fn a_running_server_is_backed_up_and_restored() {
    let mut server = Server::start("cluster: {run: 1d}");
    let admin = server.admin();
    let at = |name: &str| server.folder.path().join(name).display().to_string();
    let (file, bad, offline) = (at("backup.db"), at("bad.db"), at("again"));
    server.run(
        &admin,
        &format!("{SUBMIT} before; crater job wait job-001 --for running --timeout 30s"),
    );
    let said = server.run(&admin, &format!("crater backup {file}"));
    assert!(said.contains("bytes, blake3 "), "{said}");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let (code, error) = server.fails(&admin, &format!("crater backup {file}"));
    assert!(code == 2 && error.contains("exists already"), "{error}");
    server.run(&admin, &format!("{SUBMIT} after"));

    // Nobody but an administrator; nothing that is not whole.
    let member = server.run(&admin, "crater token create --name m --role manager --tenant t");
    for script in [format!("crater backup {bad}"), format!("crater restore {file}")] {
        let (code, error) = server.fails(member.trim(), &script);
        assert!(code == 1 && error.contains("admin"), "{error}");
    }
    let whole = std::fs::read(&file).unwrap();
    let mut garbled = whole.clone();
    garbled[4096..8192].fill(0xa5);
    for (what, bytes) in [
        ("cut off", whole[..whole.len() / 2].to_vec()),
        ("garbled", garbled),
        ("of another program", b"hello".repeat(2000)),
        ("empty", vec![]),
    ] {
        std::fs::write(&bad, bytes).unwrap();
        let (code, error) = server.fails(&admin, &format!("crater restore {bad}"));
        assert!(code == 1 && error.contains("the backup is refused"), "{what}: {error}");
        assert!(!error.contains(".part"), "{what}: {error}");
        let (code, _) = server.fails(&admin, &format!("crater restore {bad} --data {offline}"));
        assert!(code == 2 && !std::path::Path::new(&offline).exists(), "{what}");
    }
    assert_eq!(server.json("/api/v1/server")["restore-waits"], serde_json::Value::Null);
    let (code, error) = server.fails(&admin, "crater restore --discard");
    assert!(code == 1 && error.contains("no backup waits"), "{error}");

    // Taken at the next start, and not before.
    let said = server.run(&admin, &format!("crater restore {file}"));
    assert!(said.contains("is whole") && said.contains("its next start"), "{said}");
    assert_eq!(server.json("/api/v1/server")["restore-waits"], true);
    assert!(server.run(&admin, "crater job list").contains("after"));
    server.restart("TERM");
    let list = server.run(&admin, "crater job list");
    assert!(list.contains("before") && !list.contains("after"), "{list}");
    assert!(server.data().join("before-restore.db").exists());
    let leftovers = std::fs::read_dir(server.data())
        .unwrap()
        .filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().ends_with(".part"));
    assert_eq!(leftovers.count(), 0);
    // Numbers go on where the backup was.
    assert!(server.run(&admin, &format!("{SUBMIT} next")).starts_with("job-002 next"));

    // A change of mind.
    server.run(&admin, &format!("crater restore {file}; crater restore --discard"));
    server.restart("TERM");
    assert!(server.run(&admin, "crater job list").contains("next"));

    // Into a new folder, without a server.
    let said = server.run(&admin, &format!("crater restore {file} --data {offline}"));
    assert!(said.contains("crater serve --data"), "{said}");
    server.restart_on("again");
    let list = server.run(&admin, "crater job list");
    assert!(list.contains("before") && !list.contains("next"), "{list}");
}

#[test]
fn a_tokens_last_use_is_shown_and_outlives_the_server() {
    let mut server = Server::start("");
    let admin = server.admin();
    let token = server.run(&admin, "crater token create --name ci --role viewer --tenant t");
    let used = |server: &Server| {
        let list = words(&server.run(&admin, "crater token list"));
        assert!(list[0].ends_with("LAST-USED"), "{list:?}");
        let row = list.iter().find(|line| line.contains(" ci ")).unwrap().clone();
        row.rsplit(' ').next().unwrap().to_owned()
    };
    assert_eq!(used(&server), "-");
    server.run(token.trim(), "crater job list");
    let when = used(&server);
    assert!(when.ends_with('Z'), "{when}");
    server.restart("TERM");
    assert_eq!(used(&server), when);
}

#[test]
fn a_priority_that_nobody_asked_for_is_lowered_to_the_ceiling() {
    let server = Server::start("cluster: {run: 1d}");
    let admin = server.admin();
    server.run(&admin, "crater quota set --tenant t --ceiling 40");
    let output = server.shell(&admin, &format!("{SUBMIT} plain -o json")).output().unwrap();
    let job: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(job["priority"], 40);
    let note = "priority is 40 instead of 50, since that is the ceiling of t";
    assert_eq!(job["notes"], serde_json::json!([note]));
    assert!(common::text(&output.stderr).contains(note));
    let (code, error) = server.fails(&admin, &format!("{SUBMIT} loud --priority medium"));
    assert!(code == 1 && error.contains("priority") && error.contains("ceiling of t"), "{error}");
    let quiet = server.run(&admin, &format!("{SUBMIT} quiet --priority low -o json"));
    let job: serde_json::Value = serde_json::from_str(&quiet).unwrap();
    assert_eq!((&job["priority"], &job["notes"]), (&10.into(), &serde_json::Value::Null));
}
