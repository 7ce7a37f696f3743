//! A server and its client as people start them.
#![allow(dead_code, missing_docs)]

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Waits until something is there; what it waits for is said when it is not.
pub fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + Duration::from_mins(1);
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < end, "it never came: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Starts `crater serve` and waits until it listens.
pub fn begin(home: &Path, data: &str, more: &[(&str, &str)]) -> (Child, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_crater"));
    clean(&mut command, home);
    command.args(["serve", "--listen", "127.0.0.1:0", "--data"]).arg(home.join(data));
    command.arg("--config").arg(home.join("crater.yaml")).envs(more.iter().copied());
    let mut child = command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut said = String::new();
    let address = loop {
        let Some(Ok(line)) = lines.next() else { panic!("the server does not start:\n{said}") };
        if let Some(rest) = line.strip_prefix("crater: listening on ") {
            break rest.split_whitespace().next().unwrap().to_owned();
        }
        said += &(line + "\n");
    };
    // Read on, or the server would wait for room in the pipe.
    std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
    (child, address)
}

/// A server with a folder of its own, ended with the value.
pub struct Server {
    child: Child,
    pub address: String,
    pub folder: tempfile::TempDir,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The binary in a home of its own, with nothing of the caller's.
pub fn clean(command: &mut Command, home: &Path) {
    let binary = Path::new(env!("CARGO_BIN_EXE_crater")).parent().unwrap();
    let path = format!("{}:{}", binary.display(), std::env::var("PATH").unwrap());
    for (name, value) in [
        ("HOME", "home"),
        ("XDG_CONFIG_HOME", "config"),
        ("XDG_STATE_HOME", "state"),
        ("XDG_CACHE_HOME", "cache"),
    ] {
        command.env(name, home.join(value));
    }
    for name in ["CRATER_SERVER", "CRATER_TOKEN", "CRATER_CA"] {
        command.env_remove(name);
    }
    command.env("PATH", path);
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Words of each line, so that columns may be as wide as they like.
pub fn words(text: &str) -> Vec<String> {
    text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

impl Server {
    /// A server in a folder of its own.
    pub fn start(config: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("crater.yaml"), config).unwrap();
        let (child, address) = begin(folder.path(), "data", &[]);
        Self { child, address, folder }
    }

    /// The server's process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The data folder.
    pub fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// Ends it by a signal and starts it again: `KILL` leaves it no time.
    pub fn restart(&mut self, signal: &str) {
        self.end(signal);
        (self.child, self.address) = begin(self.folder.path(), "data", &[]);
    }

    /// Ends it by a signal and waits until it has.
    pub fn end(&mut self, signal: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-s", signal, &pid]).status().unwrap().success());
        self.child.wait().unwrap();
    }

    /// The same server on another data folder.
    pub fn restart_on(&mut self, data: &str) {
        self.end("TERM");
        (self.child, self.address) = begin(self.folder.path(), data, &[]);
    }

    /// An answer of the API as it comes: status, headers and body.
    pub fn get(&self, token: &str, path: &str) -> (u16, ureq::http::HeaderMap, String) {
        let agent: ureq::Agent =
            ureq::Agent::config_builder().http_status_as_error(false).build().into();
        let mut request = agent.get(format!("{}{path}", self.address));
        if !token.is_empty() {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let mut answer = request.call().unwrap();
        let body = answer.body_mut().read_to_string().unwrap();
        (answer.status().as_u16(), answer.headers().clone(), body)
    }

    /// An answer that must be JSON.
    pub fn json(&self, path: &str) -> serde_json::Value {
        let (status, _, body) = self.get(&self.admin(), path);
        assert_eq!(status, 200, "{path}: {body}");
        serde_json::from_str(&body).unwrap()
    }

    pub fn admin(&self) -> String {
        let token = std::fs::read_to_string(self.folder.path().join("data/admin-token")).unwrap();
        token.trim().to_owned()
    }

    pub fn shell(&self, token: &str, script: &str) -> Command {
        let mut command = Command::new("sh");
        clean(&mut command, self.folder.path());
        command.args(["-c", script]).env("CRATER_SERVER", &self.address).env("CRATER_TOKEN", token);
        command
    }

    /// Runs lines as a person types them; gives out what they print.
    pub fn run(&self, token: &str, script: &str) -> String {
        let output = self.shell(token, script).output().unwrap();
        assert!(output.status.success(), "{script}: {}", text(&output.stderr));
        text(&output.stdout)
    }

    /// Runs what fails: exit code and the one line of why.
    pub fn fails(&self, token: &str, script: &str) -> (i32, String) {
        let output = self.shell(token, script).output().unwrap();
        let error = text(&output.stderr);
        assert!(!output.status.success(), "{script}: {}", text(&output.stdout));
        assert_eq!(error.lines().count(), 1, "{script}: one line: {error}");
        assert!(error.starts_with("crater: "), "{script}: {error}");
        (output.status.code().unwrap(), error)
    }

    pub fn token(&self, role: &str) -> String {
        let script = format!(
            "crater token create --name {role} --role {role} --tenant team-nlp --expires 1h"
        );
        self.run(&self.admin(), &script).trim().to_owned()
    }
}
