//! What a hostile job tries, and does not get.

use super::{HERE, Here, clean, logs, over, possible, printed, stands, submit};

#[test]
fn neither_the_servers_files_nor_another_tenants_are_reached() {
    if !possible() {
        return;
    }
    let server = Here::start(HERE);
    let data = server.data();
    let data = data.display();
    let mine = submit(
        &server,
        "mine",
        "echo treasure > $HOME/secret; echo treasure; exec sleep 77061",
        "--tenant ai/nlp --env KEY=treasure",
    );
    stands(&server, &mine, "Running");
    printed(&server, &mine, "treasure\n");
    let (number, pid) = (mine.trim_start_matches("job-").trim_start_matches('0'), {
        super::processes("sleep 77061")[0]
    });
    let job = std::fs::read_dir(format!("{data}/local/jobs")).unwrap().next().unwrap().unwrap();
    assert_eq!(job.file_name().to_str().unwrap(), number);

    let keeper = super::processes("local keep").first().copied().unwrap();
    let tries = [
        format!("cat {data}/admin-token"),
        format!("ls {data}/*"),
        format!("cat {data}/crater.db"),
        format!("cat {data}/local/output/{number}/stdout/*"),
        format!("cat {data}/local/jobs/{number}/secret"),
        format!("cat {data}/local/claims/*/order.json"),
        format!("echo x > {data}/policies/x"),
        format!("mkdir {data}/policies/y"),
        format!("cat /proc/{pid}/environ"),
        format!("cat /proc/{pid}/root/run/crater/job/secret"),
        format!("ls /proc/{keeper}/cwd/ /proc/{keeper}/fd/"),
        format!("cat /proc/{keeper}/root{data}/admin-token"),
        format!("kill -9 {pid}"),
        format!("kill -9 {keeper}"),
        format!("kill -9 {}", server.pid()),
        "echo 1 > /proc/sys/kernel/sysrq".to_owned(),
        "mount -t tmpfs none /mnt".to_owned(),
        format!("umount -l {data}"),
        "echo $$ > /sys/fs/cgroup/memory/cgroup.procs".to_owned(),
        "echo $$ > /sys/fs/cgroup/cgroup.procs".to_owned(),
        "echo -1000 > /proc/self/oom_score_adj".to_owned(),
        "touch /etc/crater-was-here".to_owned(),
        "su -c true".to_owned(),
        // What anybody may: that what is reached is told.
        "cat /proc/self/environ".to_owned(),
    ];
    // One job a try would take long: each says whether it came through.
    let each = |(i, line): (usize, &String)| {
        format!("if ( {line} ) >/dev/null 2>&1; then echo reached {i}; fi; ")
    };
    let script: Vec<String> = tries.iter().enumerate().map(each).collect();
    let script = script.concat();
    let script = format!("{script} echo tried");
    let tried = submit(&server, "hostile", &script, "--tenant bio/cells");
    assert_eq!(over(&server, &tried)["status"], "Succeeded");
    let said = logs(&server, &tried);
    let reached: Vec<&str> = said
        .lines()
        .filter_map(|line| line.strip_prefix("reached "))
        .map(|i| tries[i.parse::<usize>().unwrap()].as_str())
        .collect();
    assert_eq!(reached, ["cat /proc/self/environ"], "reached by a hostile job");
    assert!(said.ends_with("tried\n"), "{said}");
    stands(&server, &mine, "Running");
    server.run(&server.admin(), &format!("crater job cancel {mine}"));
    clean(&server);
}

#[test]
fn a_link_in_the_jobs_folder_leads_nowhere() {
    if !possible() {
        return;
    }
    let server = Here::start(HERE);
    let outside = tempfile::tempdir_in("/var/tmp").unwrap();
    let kept = outside.path().join("kept");
    std::fs::write(&kept, "kept").unwrap();
    // Folders of the platform replaced by links to somebody else's.
    let script = format!(
        "rm -rf $HOME/tmp/* ; rmdir $HOME/checkpoint; ln -s {} $HOME/checkpoint; \
         ln -s {} /tmp/link; mv $HOME/tmp $HOME/was; ln -s {} $HOME/tmp; exit 1",
        outside.path().display(),
        outside.path().display(),
        outside.path().display()
    );
    let first = submit(&server, "first", &script, "");
    assert_eq!(over(&server, &first)["status"], "Failed");
    clean(&server);
    assert_eq!(std::fs::read_to_string(&kept).unwrap(), "kept");
    let owner = std::os::unix::fs::MetadataExt::uid(&std::fs::metadata(outside.path()).unwrap());
    assert_eq!(owner, 0, "nothing was given to the job's user");
}

#[test]
fn what_a_job_says_of_libraries_is_not_heard_while_its_process_is_root() {
    if !possible() {
        return;
    }
    let server = Here::start(HERE);
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let all = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(folder.path(), all).unwrap();
    // The loader writes what it does as whoever the process is.
    let env = format!(
        "--env LD_DEBUG=libs --env LD_DEBUG_OUTPUT={}/said --env LD_PRELOAD=/no/such.so",
        folder.path().display()
    );
    let tried = submit(&server, "loader", "echo up", &env);
    assert_eq!(over(&server, &tried)["status"], "Succeeded");
    let owners = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|file| std::os::unix::fs::MetadataExt::uid(&file.unwrap().metadata().unwrap()));
    let owners: Vec<u32> = owners.collect();
    assert!(!owners.is_empty(), "the loader of this machine says nothing");
    assert!(owners.iter().all(|uid| *uid == 300_000), "{owners:?}");
    clean(&server);
}
