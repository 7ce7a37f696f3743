//! `crater serve --cluster kubernetes` as a process.

use crate::child::Running;
use crate::plane::{Plane, tail};
use crate::programs;
use anyhow::{Context, Result, anyhow, bail};
use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

/// How it is started.
#[derive(Clone, Debug, Default)]
pub struct How {
    /// Port of a proxy to go through.
    pub by: Option<u16>,
    /// Further arguments.
    pub args: Vec<String>,
}

impl How {
    /// With these arguments.
    pub fn with(args: &[&str]) -> Self {
        Self { by: None, args: args.iter().map(|a| (*a).to_owned()).collect() }
    }
}

/// Times of the lease in tests: 3 s, 2 s, 0.3 s.
pub const SHORT_LEASE: &str = "--lease=3000,2000,300";

/// A scheduler that runs.
#[derive(Debug)]
pub struct Crater {
    /// The process.
    pub process: Running,
    name: String,
    log: PathBuf,
    books: PathBuf,
}

impl Crater {
    /// Starts one.
    pub fn start(plane: &Plane, name: &str, how: &How) -> Result<Self> {
        let binary = programs::crater().map_err(|e| anyhow!(e))?;
        let (log, books) =
            (plane.file(&format!("{name}.log")), plane.file(&format!("{name}.books")));
        let _ = std::fs::remove_file(&books);
        let kubeconfig = match how.by {
            Some(port) => plane.kubeconfig_by("crater", port)?,
            None => plane.kubeconfig("crater"),
        };
        let mut command = Command::new(binary);
        command
            .args(["serve", "--cluster", "kubernetes", "--identity", name, "--kubeconfig"])
            .arg(kubeconfig)
            .arg("--books")
            .arg(&books)
            .args(&how.args);
        let process = Running::start(name, &mut command, &log)?;
        Ok(Self { process, name: name.to_owned(), log, books })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it has printed.
    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Waits until it decides, for the `times`-th time.
    pub async fn decides(&mut self, times: usize, within: Duration) -> Result<()> {
        let until = Instant::now() + within;
        while self.log().matches("decides: ").count() < times {
            if !self.process.runs() || Instant::now() > until {
                bail!("{} does not decide: {}", self.name, tail(&self.log));
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    }

    /// Ends it well; what its books held and its counts.
    pub fn end(mut self) -> Result<(Value, Value)> {
        if !self.process.end(Duration::from_secs(20)) {
            bail!("{} does not end", self.name);
        }
        let books = std::fs::read(&self.books).context("it wrote no books: it did not lead")?;
        Ok((serde_json::from_slice(&books)?, self.counts()?))
    }

    /// The counts that it printed at its end.
    pub fn counts(&self) -> Result<Value> {
        let log = self.log();
        let line = log.lines().rev().find_map(|l| l.split_once(" counts "));
        let (_, counts) = line.with_context(|| format!("no counts: {}", tail(&self.log)))?;
        Ok(serde_json::from_str(counts)?)
    }
}
