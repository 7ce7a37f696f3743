//! `crater simulate scenario`.
use crate::cli::Scenario;
/// Runs the command.
pub fn run(_args: &Scenario) -> anyhow::Result<()> { Ok(()) }
