//! `crater simulate demo`.
use crate::cli::Demo;
/// Runs the command.
pub fn run(_args: &Demo) -> anyhow::Result<()> { Ok(()) }
