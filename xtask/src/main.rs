//! `cargo xtask`: everything that building and checking Crater needs beyond
//! cargo itself.

mod command;
mod contract;
mod guest_toolchain;
mod kubernetes;
mod lint;
mod policies;
mod setup;
mod tidy;
mod tree;

use anyhow::{Result, bail};
use std::process::ExitCode;

const HELP: &str = "\
cargo xtask <task>

  setup [--build]     install what building and testing need, where it is missing
  policies            build every policy as a component into target/policies
  kubernetes          build a control plane for tests into the user's cache
  lint                formatting, clippy, licences, the crate graph, generated files
  contract [--check]  write the constants and docs/contract.md from wit/
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match task(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn task(words: &[&str]) -> Result<()> {
    let root = tree::root();
    match words {
        [] | ["help" | "--help" | "-h", ..] => print!("{HELP}"),
        ["setup", "--build"] => setup::for_build(&root)?,
        ["setup"] => setup::run_all(&root)?,
        ["policies"] => policies::build(&root)?,
        ["kubernetes"] => kubernetes::run(&root),
        ["lint"] => lint::run_all(&root)?,
        ["contract"] => contract::run(&root, false)?,
        ["contract", "--check"] => contract::run(&root, true)?,
        _ => bail!("unknown task: {}\n\n{HELP}", words.join(" ")),
    }
    Ok(())
}
