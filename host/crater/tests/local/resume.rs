//! Training that is preempted saves its progress, and ends with the result it
//! would have had.

use super::{HERE, Here, clean, job, logs, over, possible, printed, stands, submit};
use crate::common::until;

#[test]
fn training_preempted_three_times_ends_with_the_same_result() {
    if !possible() {
        return;
    }
    let server = Here::start(HERE);
    let admin = server.admin();
    // Where other users can read it: everything of /tmp is hidden from jobs.
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let script = folder.path().join("train.py");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples/train.py");
    std::fs::copy(source, &script).unwrap();
    for path in [folder.path(), &script] {
        let all = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(path, all).unwrap();
    }
    let cpu = server.json("/api/v1/nodes")[0]["cpu-milli"].as_u64().unwrap();
    let train = |name: &str| {
        let line = format!(
            "crater job submit --name {name} --queue training --preemptible true --cpu {cpu}m \
             --memory 128Mi --command '/usr/bin/python3 {} 3000'",
            script.display()
        );
        server.run(&admin, &line).split_whitespace().next().unwrap().to_owned()
    };
    let result = |text: &str| text.lines().find(|l| l.starts_with("result")).map(str::to_owned);

    let calm = train("undisturbed");
    assert_eq!(over(&server, &calm)["status"], "Succeeded", "{}", logs(&server, &calm));
    let expected = result(&logs(&server, &calm)).unwrap();

    let train = train("disturbed");
    for time in 1..=3 {
        stands(&server, &train, "Running");
        until("it saved its progress in this run", || {
            let job = job(&server, &train);
            let room = &job["detail"]["room"];
            let saved = room["checkpoint"].as_str()?.to_owned();
            (saved.as_str() > job["since"].as_str()?).then_some(())
        });
        let serve = server.run(
            &admin,
            &format!(
                "crater job submit --name serve-{time} --queue inference --cpu {cpu}m \
                 --memory 16Mi --command 'echo serving'"
            ),
        );
        let serve = serve.split_whitespace().next().unwrap();
        assert_eq!(over(&server, serve)["status"], "Succeeded");
        assert_eq!(job(&server, &train)["preemptions"], time);
    }
    let end = over(&server, &train);
    let text = logs(&server, &train);
    assert_eq!((&end["status"], &end["attempts"]), (&"Succeeded".into(), &4.into()), "{text}");
    assert_eq!(text.matches("goes on after step").count(), 3, "{text}");
    assert_eq!(text.matches("told to end, saved step").count(), 3, "{text}");
    assert_eq!(result(&text), Some(expected), "{text}");
    clean(&server);
}

#[test]
fn who_saves_only_when_it_is_told_to_end_goes_on_from_there() {
    if !possible() {
        return;
    }
    let server = Here::start(HERE);
    let admin = server.admin();
    let cpu = server.json("/api/v1/nodes")[0]["cpu-milli"].as_u64().unwrap();
    let late = submit(
        &server,
        "late",
        "trap \"touch $CRATER_CHECKPOINT_DIR/.done; exit 0\" TERM; echo resume $CRATER_RESUME; \
         [ $CRATER_RESUME = 1 ] && exit 0; while :; do sleep 0.1; done",
        &format!("--cpu {cpu}m --preemptible true"),
    );
    printed(&server, &late, "resume 0\n");
    let serve = format!(
        "crater job submit --name serve --queue inference --cpu {cpu}m --memory 16Mi \
         --command 'echo serving'"
    );
    server.run(&admin, &serve);
    assert_eq!(over(&server, &late)["status"], "Succeeded");
    assert_eq!(logs(&server, &late), "resume 0\nresume 1\n");
    clean(&server);
}
