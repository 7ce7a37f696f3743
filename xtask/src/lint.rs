//! `cargo xtask lint`: every check that is not a test. All of them run; what
//! failed is said at the end.

use crate::command::{clean, run};
use crate::setup::bin;
use crate::{contract, tidy};
use anyhow::{Result, bail};
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

/// Runs them.
pub fn run_all(root: &Path) -> Result<()> {
    type Check = (&'static str, fn(&Path) -> Result<()>);
    let checks: [Check; 5] = [
        ("contract", |root| contract::run(root, true)),
        ("tidy", tidy::check),
        ("format (`cargo fmt --all` puts it right)", |root| {
            run(cargo(root).args(["fmt", "--all", "--check", "--", "--files-with-diff"]))
        }),
        ("licences, bans and sources", |root| {
            // The advisory database is fetched from elsewhere; a job that has
            // the network asks it.
            let checks = ["deny", "--log-level", "error", "check", "bans", "licenses", "sources"];
            run(cargo(root).args(checks))
        }),
        ("clippy", |root| {
            // In the profile of the tests: build scripts and macros are shared.
            let what =
                ["clippy", "--release", "--quiet", "--workspace", "--all-targets", "--keep-going"];
            run(cargo(root).args(what).args(["--", "-D", "warnings"]))
        }),
    ];
    let mut failed = Vec::new();
    for (name, check) in checks {
        println!("lint: {name}");
        if let Err(error) = check(root) {
            eprintln!("{error:#}");
            failed.push(name);
        }
    }
    if !failed.is_empty() {
        bail!("lint failed: {}", failed.join(", "));
    }
    Ok(())
}

/// Cargo on the host's target folder, with the tools of set-up in reach.
fn cargo(root: &Path) -> Command {
    let mut command = clean("cargo", root);
    if let Some(folder) = std::env::var_os("CARGO_TARGET_DIR") {
        command.env("CARGO_TARGET_DIR", folder);
    }
    let mut path = OsString::from(bin(root));
    if let Some(rest) = std::env::var_os("PATH") {
        path.push(":");
        path.push(rest);
    }
    command.env("PATH", path);
    command
}
