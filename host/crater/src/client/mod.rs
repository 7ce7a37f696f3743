//! The client of `crater serve`: `crater job`, `queue`, `quota` and the like.
//!
//! Ends with 0 when it is done, 1 when the server said no or what was waited
//! for failed, 2 when the command cannot be meant, 3 when the server cannot be
//! reached.

pub mod args;
mod backup;
mod cluster;
mod config;
mod curve;
mod error;
mod http;
mod job;
mod policy;
mod print;
mod queue;
mod quota;
mod settings;
mod spell;
mod table;
mod tenant;
mod token;
mod usage;
mod webhook;

pub use error::Unreachable;
pub use policy::status as policy_status;

use crate::cli::{Cli, Command};
use args::Completion;
use clap::CommandFactory as _;
use http::Api;

/// Runs a command of the client.
pub fn run(command: &Command) -> anyhow::Result<()> {
    let done = match command {
        Command::Job(of) => job::run(&Api::new(&of.common)?, of.common.output, &of.command),
        Command::Queue(of) => queue::run(&Api::new(&of.common)?, of.common.output, &of.command),
        Command::Quota(of) => quota::run(&Api::new(&of.common)?, of.common.output, &of.command),
        Command::Tenant(of) => tenant::run(&Api::new(&of.common)?, of.common.output, &of.command),
        Command::Cluster(of) => cluster::run(&Api::new(&of.common)?, of.common.output, &of.command),
        Command::Node(of) => cluster::node(&Api::new(&of.common)?, of.common.output, &of.command),
        Command::Webhook(of) => webhook::run(&Api::new(&of.common)?, of.common.output, &of.command),
        Command::Backup(args) => backup::backup(args),
        Command::Restore(args) => backup::restore(args),
        Command::Token(of) => token::run(&Api::new(&of.common)?, of.common.output, &of.command),
        Command::Config(command) => config::run(command),
        Command::Completion(completion) => completions(completion),
        Command::Simulate(_) | Command::Policy(_) | Command::Serve(_) | Command::Local(_) => Ok(()),
    };
    print::unless_closed(done)
}

fn completions(completion: &Completion) -> anyhow::Result<()> {
    let mut script = vec![];
    clap_complete::generate(completion.shell, &mut Cli::command(), "crater", &mut script);
    print::text(&String::from_utf8_lossy(&script))
}
