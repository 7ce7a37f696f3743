//! A program that was started here and is ended by its id.

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A running program. Dropped, it is asked to end, then ended.
#[derive(Debug)]
pub struct Running {
    child: Child,
    name: String,
}

/// What a program has used.
#[derive(Clone, Copy, Debug, Default)]
pub struct Used {
    /// CPU seconds, of the program and the kernel for it.
    pub cpu: f64,
    /// Most memory that was resident at once, MiB.
    pub peak_mib: u64,
    /// Resident memory now, MiB.
    pub now_mib: u64,
}

impl Running {
    /// Starts it; what it prints goes to `log`.
    pub fn start(name: &str, command: &mut Command, log: &Path) -> Result<Self> {
        let out = File::options().create(true).append(true).open(log)?;
        let err = out.try_clone()?;
        let child = command
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(err)
            .spawn()
            .with_context(|| format!("starting {name}"))?;
        Ok(Self { child, name: name.to_owned() })
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        let id = i32::try_from(self.child.id())?;
        let pid = Pid::from_raw(id).context("no process has the number 0")?;
        kill_process(pid, signal).with_context(|| format!("{}: {signal:?}", self.name))
    }

    /// Whether it still runs.
    pub fn runs(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Ends it without asking.
    pub fn kill(mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Asks it to end and waits.
    pub fn end(&mut self, within: Duration) -> bool {
        if !self.runs() {
            return true;
        }
        let _ = self.signal(Signal::TERM);
        let until = Instant::now() + within;
        while Instant::now() < until {
            if !self.runs() {
                return true;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        false
    }

    /// What it has used so far.
    pub fn used(&self) -> Used {
        let read = |file| std::fs::read_to_string(format!("/proc/{}/{file}", self.child.id()));
        let mut used = Used::default();
        if let Ok(stat) = read("stat")
            && let Some((_, rest)) = stat.rsplit_once(") ")
        {
            let fields: Vec<f64> = rest.split(' ').map(|f| f.parse().unwrap_or(0.0)).collect();
            let ticks = fields.get(11).unwrap_or(&0.0) + fields.get(12).unwrap_or(&0.0);
            used.cpu = ticks / rustix::param::clock_ticks_per_second() as f64;
        }
        if let Ok(status) = read("status") {
            let kib = |key: &str| {
                let line = status.lines().find(|l| l.starts_with(key))?;
                line.split_whitespace().nth(1)?.parse::<u64>().ok()
            };
            used.peak_mib = kib("VmHWM").unwrap_or(0) / 1024;
            used.now_mib = kib("VmRSS").unwrap_or(0) / 1024;
        }
        used
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // A paused program hears nothing but this.
        let _ = self.signal(Signal::CONT);
        if !self.end(Duration::from_secs(5)) {
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
    }
}
