//! The real program in a process of its own, and what the kernel says of it.

use super::client::Client;
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A running `crater serve`, killed with the value.
pub struct Server {
    child: Child,
    /// Address and port.
    pub address: String,
    /// An administrator's token.
    pub token: String,
    folder: tempfile::TempDir,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The program beside this one.
fn program() -> PathBuf {
    let own = std::env::current_exe().expect("a path of its own");
    let program = own.with_file_name("crater");
    assert!(program.is_file(), "{}: run `make build` first", program.display());
    program
}

/// Starts it on a folder; its address, once it listens.
fn begin(folder: &Path) -> (Child, String) {
    let mut command = Command::new(program());
    command.args(["serve", "--listen", "127.0.0.1:0", "--data"]).arg(folder.join("data"));
    command.arg("--config").arg(folder.join("crater.yaml")).env("CRATER_LOG", "warn");
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("a start");
    let mut lines = BufReader::new(child.stderr.take().expect("its log")).lines();
    let address = loop {
        let line = lines.next().expect("it listens").expect("its log");
        if let Some(rest) = line.strip_prefix("crater: listening on http://") {
            break rest.split_whitespace().next().unwrap_or_default().to_owned();
        }
    };
    // Read on, or the server would wait for room in the pipe.
    std::thread::spawn(move || {
        for line in lines.map_while(Result::ok) {
            if line.contains("ERROR") {
                eprintln!("{line}");
            }
        }
    });
    (child, address.trim_end_matches('/').to_owned())
}

impl Server {
    /// With a configuration, in a new folder.
    pub fn start(config: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("crater.yaml"), config).expect("a configuration");
        let (child, address) = begin(folder.path());
        let token = std::fs::read_to_string(folder.path().join("data/admin-token"));
        let token = token.expect("its token").trim().to_owned();
        Self { child, address, token, folder }
    }

    /// Another connection.
    pub fn client(&self) -> Client {
        Client::new(&self.address, &self.token).expect("a connection")
    }

    /// Kills it without warning and starts it again: how long until it is ready.
    pub fn kill_and_restart(&mut self) -> Duration {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it ran");
        let begun = Instant::now();
        (self.child, self.address) = begin(self.folder.path());
        let (status, text) = self.client().ask("GET", "/readyz", "").expect("an answer");
        assert_eq!(status, 200, "{text}");
        begun.elapsed()
    }

    /// Bytes of its database with the write-ahead log.
    pub fn stored(&self) -> u64 {
        let size = |name: &str| {
            std::fs::metadata(self.folder.path().join("data").join(name)).map_or(0, |m| m.len())
        };
        size("crater.db") + size("crater.db-wal")
    }

    /// Memory in MiB.
    pub fn resident(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()));
        let status = status.unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
        kib.unwrap_or(0) / 1024
    }

    /// Seconds of processor time of each of its threads' names, numbers left out.
    pub fn threads(&self) -> BTreeMap<String, f64> {
        let mut seconds = BTreeMap::new();
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.child.id()));
        for task in tasks.into_iter().flatten().flatten() {
            let stat = std::fs::read_to_string(task.path().join("stat")).unwrap_or_default();
            let Some((name, used)) = name_and_time(&stat) else { continue };
            *seconds.entry(name).or_default() += used;
        }
        seconds
    }

    /// The sum of a metric over the labels that hold these parts.
    pub fn metric(&self, name: &str, parts: &[&str]) -> f64 {
        let (_, page) = self.client().ask("GET", "/metrics", "").expect("its metrics");
        let lines = page.lines().filter(|line| {
            let rest = line.strip_prefix(name);
            rest.is_some_and(|rest| rest.starts_with(['{', ' ']))
                && parts.iter().all(|part| line.contains(part))
        });
        lines
            .filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
            .fold(0.0, |sum, n| sum + n)
    }
}

/// A thread's name and its seconds of processor time, from its `stat`.
pub fn name_and_time(stat: &str) -> Option<(String, f64)> {
    let (head, tail) = stat.rsplit_once(')')?;
    let name = head.split_once('(')?.1;
    let name = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '-').to_owned();
    let fields: Vec<&str> = tail.split_whitespace().collect();
    // utime and stime are the 14th and 15th fields; two were cut off.
    let ticks: u64 = fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?;
    Some((name, ticks as f64 / rustix::param::clock_ticks_per_second() as f64))
}
