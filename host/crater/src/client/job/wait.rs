//! `crater job wait`.

use super::over;
use crate::client::args::{For, Output};
use crate::client::error::Unreachable;
use crate::client::http::{Api, path};
use crate::client::print;
use anyhow::anyhow;
use crater_api::JobView;
use std::time::{Duration, Instant};

/// How long a server may be away, as while it restarts.
const AWAY: Duration = Duration::from_mins(1);

/// Waits until a job is what is waited for, or never will be.
pub fn until(api: &Api, id: &str, goal: For, timeout: Option<Duration>) -> anyhow::Result<JobView> {
    let end = timeout.map(|timeout| Instant::now() + timeout);
    let mut pause = Duration::from_millis(100);
    let mut seen: Option<Instant> = None;
    loop {
        let reason = match api.get::<JobView>(&path(&["jobs", id])) {
            Ok(job) if over(&job) || goal == For::Running && job.status == "Running" => {
                return Ok(job);
            }
            Ok(job) => {
                seen = Some(Instant::now());
                let why =
                    if job.reason.is_empty() { String::new() } else { format!(": {}", job.reason) };
                format!("{} is still {}{why}", job.id, job.status)
            }
            Err(error)
                if error.is::<Unreachable>() && seen.is_some_and(|seen| seen.elapsed() < AWAY) =>
            {
                error.to_string()
            }
            Err(error) => return Err(error),
        };
        let left = end.map_or(pause, |end| end.saturating_duration_since(Instant::now()));
        if left.is_zero() {
            return Err(anyhow!(
                "waited for {}s; {}",
                timeout.unwrap_or_default().as_secs(),
                print::clean(&reason)
            ));
        }
        std::thread::sleep(pause.min(left));
        pause = (pause * 3 / 2).min(Duration::from_secs(2));
    }
}

/// Says how the wait ended; an error where not as wished.
pub fn end(output: Output, job: &JobView, goal: For) -> anyhow::Result<()> {
    let good = job.status == "Succeeded" || goal == For::Running && job.status == "Running";
    let why = if job.reason.is_empty() { String::new() } else { format!(": {}", job.reason) };
    let line = print::clean(&format!("{} {} {}{why}", job.id, job.name, job.status));
    if matches!(output, Output::Json | Output::Yaml) {
        print::answer(output, job, |_| String::new())?;
    } else if good {
        print::text(&line)?;
    }
    if good { Ok(()) } else { Err(anyhow!(line)) }
}
