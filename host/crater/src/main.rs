//! The one binary of Crater.

#![forbid(unsafe_code)]

mod cli;
mod client;
mod exit;
mod kubernetes;
mod loader;
mod mix;
mod policy;
mod progress;
mod serve;
mod simulate;
mod telemetry;

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    // A child that only compiles a policy does so before anything else.
    crater_policy::child::run_if_asked();
    let cli = cli::Cli::parse();
    let done = match cli.command {
        cli::Command::Simulate(command) => simulate::run(command),
        cli::Command::Policy(command) => policy::run(&command),
        cli::Command::Serve(command) => match command.cluster {
            cli::Cluster::Simulated => serve::run(&command.embedded, false),
            cli::Cluster::Local => serve::run(&command.embedded, true),
            cli::Cluster::Kubernetes => kubernetes::run(&command.kubernetes),
        },
        cli::Command::Local(cli::LocalCommand::Keep { folder }) => {
            crater_local::keeper::run(&folder).map_err(anyhow::Error::from)
        }
        cli::Command::Local(cli::LocalCommand::Enter { folder }) => {
            return crater_local::enter::run(&folder);
        }
        command => client::run(&command),
    };
    exit::code(done)
}
