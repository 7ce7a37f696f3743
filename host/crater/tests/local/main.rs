//! Jobs that really run: on this machine, as processes in cgroups.
//!
//! These need root and writable cgroups, as the server does; elsewhere each
//! says that it is skipped.
#![allow(missing_docs)]

#[path = "../common/mod.rs"]
mod common;

mod adopted;
mod ends;
mod hostile;
mod images;
mod limits;
mod resume;

use common::{Server, until};
use crater_local::Folder;
use crater_local::order::Stop;
use serde_json::Value;
use std::ops::{Deref, DerefMut};

/// Little enough that any machine has it; every job may be preempted at once.
pub const HERE: &str = "
cluster: {local: {reserve-memory: 256Mi, processes: 200}}
metrics: {interval: 1s}
queues:
  - {name: inference, kind: inference, priority: 20, minimum-run: 0s}
  - {name: training, kind: training, priority: 10, minimum-run: 0s}
  - {name: offline, kind: offline, minimum-run: 0s}
";

/// A server on this machine. Nothing of its jobs stays, also when a test fails.
pub struct Here(Server);

impl Here {
    pub fn start(config: &str) -> Self {
        Self(Server::start(config))
    }
}

impl Deref for Here {
    type Target = Server;

    fn deref(&self) -> &Server {
        &self.0
    }
}

impl DerefMut for Here {
    fn deref_mut(&mut self) -> &mut Server {
        &mut self.0
    }
}

impl Drop for Here {
    fn drop(&mut self) {
        self.0.end("KILL");
        let Ok(all) = Folder::all(&self.data().join("local")) else { return };
        for (_, folder) in &all {
            let _ = folder.tell_to_stop(Stop { grace: std::time::Duration::ZERO });
        }
        if !std::thread::panicking() {
            return;
        }
        for (claim, folder) in all {
            until(&format!("{claim} is over"), || match folder.lock() {
                Ok(None) => None,
                _ => Some(()),
            });
        }
    }
}

/// Whether jobs can run on this machine; says so where they cannot.
pub fn possible() -> bool {
    let root = std::process::Command::new("id").arg("-u").output().unwrap().stdout == b"0\n";
    let name = format!("crater/tests-{}", std::process::id());
    let groups = crater_local::Found::look().try_out(&name);
    let mounts = std::process::Command::new("unshare").args(["--mount", "true"]).status();
    match (root, groups) {
        (true, Ok(())) if !mounts.is_ok_and(|done| done.success()) => {
            eprintln!("skipped: it may make no mounts");
            false
        }
        (true, Ok(())) => true,
        (false, _) => {
            eprintln!("skipped: it needs root");
            false
        }
        (_, Err(error)) => {
            eprintln!("skipped: {error}");
            false
        }
    }
}

/// Submits a job that runs a command; gives out its identity.
pub fn submit(server: &Server, name: &str, command: &str, more: &str) -> String {
    let usual = |flag: &str, value: &str| {
        if more.contains(flag) { String::new() } else { format!("{flag} {value}") }
    };
    let (cpu, memory) = (usual("--cpu ", "0.1"), usual("--memory ", "64Mi"));
    let line = format!(
        "crater job submit --name {name} --queue training {cpu} {memory} --command '{command}' \
         {more}"
    );
    let said = server.run(&server.admin(), &line);
    said.split_whitespace().next().unwrap().to_owned()
}

pub fn job(server: &Server, id: &str) -> Value {
    server.json(&format!("/api/v1/jobs/{id}"))
}

pub fn stands(server: &Server, id: &str, status: &str) -> Value {
    until(&format!("{id} is {status}: {}", job(server, id)), || {
        Some(job(server, id)).filter(|job| job["status"] == status)
    })
}

pub fn over(server: &Server, id: &str) -> Value {
    let ends = ["Succeeded", "Failed", "Cancelled", "Evicted"];
    until(&format!("{id} is over: {}", job(server, id)), || {
        Some(job(server, id)).filter(|job| ends.iter().any(|end| job["status"] == *end))
    })
}

/// What a job printed until now; nothing while it waits.
pub fn logs(server: &Server, id: &str) -> String {
    let done = server.shell(&server.admin(), &format!("crater job logs {id}")).output().unwrap();
    String::from_utf8(done.stdout).unwrap()
}

/// Waits until a job has printed these lines and no others.
pub fn printed(server: &Server, id: &str, lines: &str) {
    until(&format!("{id} printed {lines:?}: {:#}", job(server, id)), || {
        (logs(server, id) == lines).then_some(())
    });
}

/// Processes whose command line has these words.
pub fn processes(words: &str) -> Vec<u32> {
    let all = std::fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let entry = entry.ok()?;
        let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
        let line = std::fs::read(entry.path().join("cmdline")).ok()?;
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        // The keeper's child before it becomes the command has other words.
        line.contains(words).then_some(pid)
    });
    all.filter(|pid| *pid != std::process::id()).collect()
}

/// Control groups of a server that are left.
pub fn groups(server: &Server) -> Vec<std::path::PathBuf> {
    use std::os::unix::fs::MetadataExt as _;
    let meta = std::fs::metadata(server.data().join("local")).unwrap();
    let own = format!("crater/{:x}-{:x}", meta.dev(), meta.ino());
    let found = crater_local::Found::look();
    let root = if found.unified { "/sys/fs/cgroup" } else { "/sys/fs/cgroup/memory" };
    let folder = std::path::Path::new(root).join(own);
    let Ok(all) = std::fs::read_dir(folder) else { return vec![] };
    all.filter_map(Result::ok).map(|e| e.path()).filter(|path| path.is_dir()).collect()
}

/// Nothing of a server's jobs is left on the machine.
pub fn clean(server: &Server) {
    until(&format!("nothing is left: {:?}", groups(server)), || {
        groups(server).is_empty().then_some(())
    });
    let claims = server.data().join("local/claims");
    until("no claim's folder is left", || {
        (std::fs::read_dir(&claims).unwrap().count() == 0).then_some(())
    });
}
