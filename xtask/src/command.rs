//! Other programs: finding them, running them, and giving up on them.

use anyhow::{Context as _, Result, bail};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Variables that cargo sets for this program and that would mislead another
/// cargo, compiler or toolchain.
const CARGO_VARIABLES: [&str; 8] = [
    "CARGO",
    "CARGO_ENCODED_RUSTFLAGS",
    "CARGO_MANIFEST_DIR",
    "CARGO_TARGET_DIR",
    "LD_LIBRARY_PATH",
    "RUSTC",
    "RUSTC_WRAPPER",
    "RUSTFLAGS",
];

/// A command in a folder, without the variables of the cargo that runs us.
pub fn clean(program: impl AsRef<Path>, folder: &Path) -> Command {
    let mut command = Command::new(program.as_ref());
    command.current_dir(folder).stdin(Stdio::null());
    for variable in CARGO_VARIABLES {
        command.env_remove(variable);
    }
    command
}

/// The command as a person would type it.
fn line(command: &Command) -> String {
    let mut line = command.get_program().to_string_lossy().into_owned();
    for arg in command.get_args() {
        line.push(' ');
        line.push_str(&arg.to_string_lossy());
    }
    line
}

/// Runs it with its output shown, and fails if it fails.
pub fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("starting {}", line(command)))?;
    if !status.success() {
        bail!("{} ended with {status}", line(command));
    }
    Ok(())
}

/// Runs it with its output kept, and shows that only if it fails.
pub fn run_quietly(command: &mut Command) -> Result<()> {
    let out = command.output().with_context(|| format!("starting {}", line(command)))?;
    if !out.status.success() {
        bail!(
            "{} ended with {}\n{}{}",
            line(command),
            out.status,
            String::from_utf8_lossy(&out.stdout),
            String::from_utf8_lossy(&out.stderr)
        );
    }
    Ok(())
}

/// What it prints, if it can be run and succeeds.
pub fn output(command: &mut Command) -> Option<String> {
    let out = command.output().ok()?;
    out.status.success().then(|| String::from_utf8_lossy(&out.stdout).trim().to_string())
}

/// Runs it for at most so long; `None` when it was ended.
pub fn run_within(command: &mut Command, limit: Duration) -> Result<Option<ExitStatus>> {
    let mut child = command.spawn().with_context(|| format!("starting {}", line(command)))?;
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if start.elapsed() > limit {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        thread::sleep(Duration::from_millis(50));
    }
}

/// The program of that name on the search path.
pub fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file())
}

/// The program of that name in a folder, else on the search path.
pub fn find_in(folder: &Path, program: &str) -> Option<PathBuf> {
    let here = folder.join(program);
    if here.is_file() { Some(here) } else { find(program) }
}

#[cfg(test)]
mod tests {
    use super::{clean, run_within};
    use std::path::Path;
    use std::time::Duration;

    #[test]
    fn what_takes_too_long_is_ended() {
        let run = |seconds: &str, limit| {
            let mut sleep = clean("sleep", Path::new("."));
            run_within(sleep.arg(seconds), Duration::from_millis(limit)).unwrap()
        };
        assert!(run("60", 10).is_none());
        assert!(run("0", 60_000).is_some_and(|status| status.success()));
    }
}
