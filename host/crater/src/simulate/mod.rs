//! `crater simulate`.

mod demo;
mod mixes;
mod pooling;
mod scenario;
mod steady;
mod table;
mod yardstick;

use crate::cli::Simulate;
use crate::exit::input;
use anyhow::{Context, anyhow};
use crater_sim::report::Report;
use std::ops::RangeInclusive;
use std::path::Path;

/// Runs a simulation.
pub fn run(command: Simulate) -> anyhow::Result<()> {
    match command {
        Simulate::Demo(args) => demo::run(&args),
        Simulate::Yardstick(args) => yardstick::run(&args),
        Simulate::Mix(args) => mixes::print(&args),
        Simulate::Mixes(args) => mixes::run(&args),
        Simulate::Table(args) => table::run(&args),
        Simulate::Steady(args) => steady::run(&args),
        Simulate::Pooling(args) => pooling::run(&args),
        Simulate::Scenario(args) => scenario::run(&args),
    }
}

/// `42` or `42-51`.
fn seeds(text: &str) -> anyhow::Result<RangeInclusive<u64>> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let number = |s: &str| s.parse::<u64>().ok();
    match (number(first), number(last)) {
        (Some(a), Some(b)) if a <= b && b - a < 100_000 => Ok(a..=b),
        _ => Err(input(anyhow!(
            "--seeds: {text:?} is refused: expected a number or a range such as 42-51"
        ))),
    }
}

/// Columns of the terminal, for tables.
fn width() -> u16 {
    std::env::var("COLUMNS").ok().and_then(|c| c.parse().ok()).unwrap_or(100)
}

/// Writes a report's page whole or not at all.
fn write_page(path: &Path, report: &Report) -> anyhow::Result<()> {
    let name = || format!("{}", path.display());
    let part = path.with_extension("part");
    std::fs::write(&part, report.html()).with_context(name).map_err(input)?;
    std::fs::rename(&part, path).with_context(name).map_err(input)?;
    eprintln!("crater: wrote {}", path.display());
    Ok(())
}
