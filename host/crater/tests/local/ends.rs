//! How jobs end, and that nothing of them stays.

use super::{HERE, Here, clean, job, logs, over, possible, printed, processes, stands, submit};

#[test]
fn exit_codes_output_and_environment_are_the_jobs_own() {
    if !possible() {
        return;
    }
    let server = Here::start(HERE);
    let said = submit(
        &server,
        "env",
        "echo id $(id -u) groups $(id -G); pwd; echo $MINE $CRATER_JOB_ID $CRATER_RESUME; \
         echo cards:$CUDA_VISIBLE_DEVICES:; ls -d $CRATER_CHECKPOINT_DIR; env | grep -c TOKEN; \
         echo oops >&2; exit 3",
        "--env MINE=yes",
    );
    let end = over(&server, &said);
    assert_eq!((&end["status"], &end["reason"]), (&"Failed".into(), &"exit code 3".into()));
    let text = logs(&server, &said);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines,
        [
            "id 300000 groups 300000",
            "/run/crater/job",
            &format!("yes {said} 0"),
            "cards::",
            "/run/crater/job/checkpoint",
            "0",
        ]
    );
    let errors = server.run(&server.admin(), &format!("crater job logs {said} --stream stderr"));
    assert_eq!(errors, "oops\n");

    let fine = submit(&server, "fine", "true", "");
    assert_eq!(over(&server, &fine)["status"], "Succeeded");
    let killed = submit(&server, "killed", "kill -SEGV $$", "");
    assert_eq!(over(&server, &killed)["reason"], "ended by SIGSEGV");
    clean(&server);
}

#[test]
fn a_member_that_cannot_start_says_why() {
    if !possible() {
        return;
    }
    let server = Here::start(HERE);
    let nowhere = submit(&server, "nowhere", "true", "--workdir /no/such/folder");
    let end = over(&server, &nowhere);
    let reason = end["reason"].as_str().unwrap();
    assert!(reason.contains("workdir /no/such/folder: No such file"), "{reason}");
    let refused = [
        ("--image a:b --command true", "image"),
        ("", "command"),
        ("--command true --volumes /a:/b", "volumes"),
    ];
    for (more, field) in refused {
        let line =
            format!("crater job submit --name x --queue training --cpu 1 --memory 64Mi {more}");
        let (_, why) = server.fails(&server.admin(), &line);
        assert!(why.contains(&format!("{field}: ")), "{why}");
    }
    clean(&server);
}

#[test]
fn a_cancelled_job_has_its_grace_and_then_none_of_it_is_left() {
    if !possible() {
        return;
    }
    let server = Here::start(HERE);
    let kind = submit(
        &server,
        "kind",
        "trap \"echo saved; exit 0\" TERM; echo up; while :; do sleep 0.1; done",
        "--grace 60",
    );
    let deaf = submit(
        &server,
        "deaf",
        "trap : TERM; setsid sleep 77001 & echo up; while :; do sleep 77002; done",
        "--grace 1",
    );
    for id in [&kind, &deaf] {
        stands(&server, id, "Running");
        printed(&server, id, "up\n");
        server.run(&server.admin(), &format!("crater job cancel {id}"));
    }
    printed(&server, &kind, "up\nsaved\n");
    clean(&server);
    assert_eq!(processes("sleep 7700"), [0_u32; 0]);
    for id in [&kind, &deaf] {
        assert_eq!(job(&server, id)["status"], "Cancelled");
    }
}

#[test]
fn what_a_job_leaves_behind_ends_with_it() {
    if !possible() {
        return;
    }
    let server = Here::start(HERE);
    let left = submit(
        &server,
        "left",
        "setsid sh -c \"setsid sleep 77011 & sleep 77012\" & (sleep 77013 &) ; sleep 0.2; exit 0",
        "",
    );
    assert_eq!(over(&server, &left)["status"], "Succeeded");
    clean(&server);
    assert_eq!(processes("sleep 7701"), [0_u32; 0]);
    // A bomb fills its own group and nothing else.
    let bomb = submit(&server, "bomb", "f() { f | f & }; f; sleep 77020", "--run-limit 2");
    let end = over(&server, &bomb);
    assert!(end["reason"].as_str().unwrap().contains("as long as it may"), "{end}");
    clean(&server);
    let after = submit(&server, "after", "echo still here", "");
    assert_eq!(over(&server, &after)["status"], "Succeeded");
}

#[test]
fn c18_cores_are_free_when_the_last_process_is_gone() {
    if !possible() {
        return;
    }
    let server = Here::start(HERE);
    let cpu = server.json("/api/v1/nodes")[0]["cpu-milli"].as_u64().unwrap();
    let all = format!("--cpu {cpu}m");
    let first = submit(
        &server,
        "first",
        "trap : TERM; echo up; sleep 77031; sleep 77032",
        &format!("{all} --grace 3"),
    );
    printed(&server, &first, "up\n");
    let second = submit(
        &server,
        "second",
        "grep -qs \"7703[12]\" /proc/[0-9]*/cmdline && echo beside || echo alone",
        &all,
    );
    server.run(&server.admin(), &format!("crater job cancel {first}"));
    assert_eq!(over(&server, &second)["status"], "Succeeded");
    assert_eq!(logs(&server, &second), "alone\n", "the first was gone before");
    clean(&server);
}
