//! Jobs with an image: containers within the same limits.

use super::{HERE, Here, clean, logs, over, possible, printed, submit};
use std::process::{Command, Stdio};

/// An image of nothing but busybox; none where podman or busybox is missing.
fn image() -> Option<String> {
    let busybox = ["/bin/busybox", "/usr/bin/busybox"].into_iter().find(|p| {
        let linked = Command::new("ldd").arg(p).output();
        // One that needs libraries would not start alone.
        std::path::Path::new(p).exists() && linked.is_ok_and(|done| !done.status.success())
    });
    let podman = Command::new("podman").arg("--version").output().is_ok_and(|d| d.status.success());
    let (Some(busybox), true) = (busybox, podman) else {
        eprintln!("skipped: it needs podman and a static busybox");
        return None;
    };
    let root = tempfile::tempdir().unwrap();
    let bin = root.path().join("bin");
    std::fs::create_dir_all(&bin).unwrap();
    std::fs::create_dir_all(root.path().join("tmp")).unwrap();
    std::fs::copy(busybox, bin.join("busybox")).unwrap();
    for name in ["sh", "id", "sleep", "dd", "ls", "cat"] {
        std::os::unix::fs::symlink("busybox", bin.join(name)).unwrap();
    }
    let mut tar = Command::new("tar")
        .args(["-C", &root.path().display().to_string(), "-c", "."])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let name = "crater-test:local";
    let made = Command::new("podman")
        .args(["import", "-", name])
        .stdin(tar.stdout.take().unwrap())
        .output()
        .unwrap();
    assert!(tar.wait().unwrap().success() && made.status.success(), "{made:?}");
    Some(name.to_owned())
}

#[test]
fn an_image_runs_within_the_same_limits_and_leaves_nothing() {
    if !possible() {
        return;
    }
    let Some(image) = image() else { return };
    let shared = tempfile::tempdir_in("/var/tmp").unwrap();
    std::fs::write(shared.path().join("data"), "shared").unwrap();
    let all = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(shared.path(), all).unwrap();
    let folder = shared.path().display();
    let more = format!("processes: 200, runtime: podman, volumes: [{folder}]");
    let server = Here::start(&HERE.replace("processes: 200", &more));
    let with = format!("--image {image} --cpu 0.5");
    let fine = submit(
        &server,
        "fine",
        "id -u; echo $KEY $CRATER_JOB_ID; cat /data/data; echo x > /data/data || echo kept; exit 4",
        &format!("{with} --env KEY=value --volumes {folder}:/data:ro"),
    );
    assert_eq!(over(&server, &fine)["reason"], "exit code 4");
    assert_eq!(logs(&server, &fine), format!("300000\nvalue {fine}\nsharedkept\n"));
    let large = submit(&server, "large", "dd if=/dev/zero of=/dev/null bs=400M count=1", &with);
    assert_eq!(over(&server, &large)["reason"], "out of memory: it may use 64 MiB");
    let long = submit(&server, "long", "echo up; sleep 77091", &format!("{with} --grace 1"));
    printed(&server, &long, "up\n");
    server.run(&server.admin(), &format!("crater job cancel {long}"));
    let refused = format!(
        "crater job submit --name x --queue training --cpu 1 --memory 64Mi {with} \
         --command id --volumes /etc:/data"
    );
    let refused = refused.replace(" --cpu 0.5", "");
    let (_, why) = server.fails(&server.admin(), &refused);
    assert!(why.contains("volumes: ") && why.contains(&folder.to_string()), "{why}");
    clean(&server);
    let left = Command::new("podman").args(["ps", "--all", "--quiet"]).output().unwrap();
    assert_eq!(String::from_utf8(left.stdout).unwrap(), "", "containers");
}
