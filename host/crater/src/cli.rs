//! The command line.

use crate::client::args as client;
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

/// One pool of GPU, CPU, memory and disk IO for training and inference.
#[derive(Debug, Parser)]
#[command(name = "crater", version, about, arg_required_else_help = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the scheduler on clusters that exist only here
    #[command(subcommand)]
    Simulate(Simulate),
    /// Look at policies
    #[command(subcommand)]
    Policy(PolicyCommand),
    /// Schedule a cluster
    #[command(
        after_help = "Example:\n  crater serve --cluster kubernetes --kubeconfig ~/.kube/config\n  sudo crater serve --cluster local"
    )]
    Serve(Box<Serve>),
    /// Submit jobs, look at them, change and end them
    Job(client::Of<client::JobCommand>),
    /// Look at queues and change them
    Queue(client::Of<client::QueueCommand>),
    /// Look at quotas and change them
    Quota(client::Of<client::QuotaCommand>),
    /// Departments, projects and persons
    Tenant(client::Of<client::TenantCommand>),
    /// The cluster as a whole
    Cluster(client::Of<client::ClusterCommand>),
    /// Machines
    Node(client::Of<client::NodeCommand>),
    /// Access tokens
    Token(client::Of<client::TokenCommand>),
    /// Who is told when jobs start, are preempted and end
    Webhook(client::Of<client::WebhookCommand>),
    /// Copy everything that a running server keeps into a file
    #[command(after_help = "Example:\n  crater backup crater-2026-12-01.db")]
    Backup(client::Backup),
    /// Put a backup in the place of what a server keeps, at its next start
    #[command(after_help = RESTORE_HELP)]
    Restore(client::Restore),
    /// The server and token that commands use
    #[command(subcommand)]
    Config(client::ConfigCommand),
    /// Keep one member of a job on this machine; for the server
    #[command(subcommand, hide = true)]
    Local(LocalCommand),
    /// Print a script that completes commands in a shell
    #[command(
        after_help = "Example:\n  crater completion bash > ~/.local/share/bash-completion/completions/crater"
    )]
    Completion(client::Completion),
}

/// What the server starts on this machine.
#[derive(Debug, Subcommand)]
pub enum LocalCommand {
    /// Keep the member that a claim's folder orders, to its end
    Keep {
        /// The folder
        folder: PathBuf,
    },
    /// Become that member
    Enter {
        /// The folder
        folder: PathBuf,
    },
}

/// What is scheduled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Cluster {
    /// Machines that are declared in the configuration and exist only here
    Simulated,
    /// This machine, on which jobs run as processes; needs root
    Local,
    /// Pods of a Kubernetes cluster that name this scheduler
    Kubernetes,
}

/// `serve`.
#[derive(Debug, Args)]
pub struct Serve {
    /// Where the machines are
    #[arg(long, value_enum, default_value_t = Cluster::Simulated)]
    pub cluster: Cluster,
    /// For the embedded system
    #[command(flatten)]
    pub embedded: crate::serve::Embedded,
    /// For Kubernetes
    #[command(flatten)]
    pub kubernetes: crate::kubernetes::Kubernetes,
}

/// Simulations.
#[derive(Debug, Subcommand)]
pub enum Simulate {
    /// Schedule a workload as large as the published one while its policy is swapped
    #[command(after_help = DEMO_HELP)]
    Demo(Demo),
    /// Repeat the published GPU-sharing experiment (USENIX ATC'23)
    #[command(after_help = YARDSTICK_HELP)]
    Yardstick(Yardstick),
    /// Print a trace's mix of jobs, for `--mix`
    #[command(
        after_help = "Example:\n  crater simulate mix --data traces/openb --trace default > mix.json"
    )]
    Mix(Mix),
    /// Place every trace with the mix of every other one
    #[command(after_help = MIXES_HELP)]
    Mixes(Mixes),
    /// Print the published table beside ours: 6 policies on every trace in the folder
    Table(Table),
    /// Measure how long pods wait while others come and go for ever, policy beside policy
    #[command(after_help = STEADY_HELP)]
    Steady(Steady),
    /// Compare a cluster in two halves with one pool in which inference preempts training
    #[command(after_help = "Example:\n  crater simulate pooling --seeds 1-5 --markdown pooling.md")]
    Pooling(Pooling),
    /// Play scenario files and check what they expect
    #[command(
        after_help = "Example:\n  crater simulate scenario tests/scenarios\n\nThe format: docs/scenarios.md"
    )]
    Scenario(Scenario),
}

const RESTORE_HELP: &str = "Examples:
  crater restore crater-2026-12-01.db                  the running server takes it at its next start
  crater restore --discard                             not after all
  crater restore crater-2026-12-01.db --data ./data    into a new folder, without a server";

const DEMO_HELP: &str = "Examples:
  crater simulate demo
  crater simulate demo --swap 50=spread --html report.html
  crater simulate demo --data traces/openb --policy bestfit --swap 60=fgd";

const YARDSTICK_HELP: &str = "Examples:
  crater simulate yardstick --data traces/openb --trace default --policy fgd --seeds 42-51
  crater simulate yardstick --data traces/openb --trace multigpu50 --policy my-policy.wasm --format json
  crater simulate yardstick --data traces/openb --policy shadow-price --policy-config '{\"profile\":\"fill\"}'
  crater simulate yardstick --data traces/openb --policy shadow-price --mix none --learn 10
The traces: cluster-trace-gpu-v2023 of Alibaba's clusterdata, in CSV files.";

const STEADY_HELP: &str = "Examples:
  crater simulate steady --data traces/openb --load 80,90 --policy bestfit --policy fgd
  crater simulate steady --data traces/openb --trace all --seeds 42-46 --jobs 8 --format json > runs.jsonl
  crater simulate steady --from runs.jsonl --html waits.html --markdown waits.md
  crater simulate steady --data traces/openb --trace default --policy fgd --policy 'fgd={\"cover\":90}' --from runs.jsonl
JSON is one line a run, so that files of many calls can be put together with cat.";

const MIXES_HELP: &str = "Examples:
  crater simulate mixes --data traces/openb --policy-config '{\"profile\":\"fill\"}' --seeds 42-44
  crater simulate mixes --data traces/openb --learn
A row is a trace that is played, a column the trace whose mix the policy was given.";

/// Where output goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people
    Table,
    /// For programs
    Json,
}

/// `simulate demo`.
#[derive(Debug, Args)]
pub struct Demo {
    /// Folder with the published traces; without it a workload of the same kind is generated
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Trace in that folder
    #[arg(long, value_name = "NAME", default_value = "default", requires = "data")]
    pub trace: String,
    /// Policy at the start: a built-in name or a component
    #[arg(long, value_name = "NAME|FILE.wasm", default_value = "bestfit")]
    pub policy: String,
    /// Change the policy when so many percent have arrived; may be repeated
    #[arg(long, value_name = "PERCENT=NAME|FILE.wasm", default_values = ["30=packing", "60=fgd"])]
    pub swap: Vec<String>,
    /// Policies to set beside it, each for the whole run
    #[arg(long, value_name = "NAME|FILE.wasm", default_values = ["bestfit", "fgd", "shadow-price"])]
    pub beside: Vec<String>,
    /// Nodes of the generated cluster
    #[arg(long, default_value_t = 1213, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub nodes: u32,
    /// How densely generated pods arrive in the live queue, in percent of what the cluster can run in that time; many of them outlive the run
    #[arg(long, value_name = "PERCENT", default_value_t = 400, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub load: u32,
    /// Random seed
    #[arg(long, default_value_t = 42)]
    pub seed: u64,
    /// Also write a page with plots
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Output
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub format: Format,
}

/// `simulate yardstick`.
#[derive(Debug, Args)]
pub struct Yardstick {
    /// Folder with the published traces [env: `CRATER_TRACES`]
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Trace in that folder
    #[arg(long, value_name = "NAME", default_value = "default")]
    pub trace: String,
    /// Policy: a built-in name or a component
    #[arg(long, value_name = "NAME|FILE.wasm", default_value = "fgd")]
    pub policy: String,
    /// The policy's configuration
    #[arg(long, value_name = "JSON", default_value = "{}")]
    pub policy_config: String,
    /// What the policy knows of the workload beforehand: `trace`, `none`, the mix of another trace, or a file as `simulate mix` prints it
    #[arg(long, value_name = "trace|none|trace=NAME|FILE", default_value = "trace")]
    pub mix: String,
    /// Learn the mix from what arrives, until so many percent of the cluster's GPU were asked for; what is known beforehand counts as 500 jobs
    #[arg(long, value_name = "PERCENT", num_args = 0..=1, default_missing_value = "1000")]
    pub learn: Option<f64>,
    /// Seeds, one or a range
    #[arg(long, value_name = "A-B", default_value = "42-51")]
    pub seeds: String,
    /// Threads, one a seed
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub jobs: u16,
    /// Ask the policy about every node each time
    #[arg(long)]
    pub no_cache: bool,
    /// Also write a page with plots
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Output
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub format: Format,
}

/// `simulate mix`.
#[derive(Debug, Args)]
pub struct Mix {
    /// Folder with the published traces [env: `CRATER_TRACES`]
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Trace in that folder
    #[arg(long, value_name = "NAME", default_value = "default")]
    pub trace: String,
}

/// `simulate mixes`.
#[derive(Debug, Args)]
pub struct Mixes {
    /// Folder with the published traces [env: `CRATER_TRACES`]
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Traces; all in the folder without it
    #[arg(long, value_name = "NAME")]
    pub trace: Vec<String>,
    /// Policy
    #[arg(long, value_name = "NAME|FILE.wasm", default_value = "shadow-price")]
    pub policy: String,
    /// The policy's configuration
    #[arg(long, value_name = "JSON", default_value = "{}")]
    pub policy_config: String,
    /// Policy to compare with, which is told of each trace's own mix
    #[arg(long, value_name = "NAME|FILE.wasm", default_value = "bestfit")]
    pub beside: String,
    /// Go on learning from what arrives; see `simulate yardstick`
    #[arg(long, value_name = "PERCENT", num_args = 0..=1, default_missing_value = "1000")]
    pub learn: Option<f64>,
    /// Seeds, one or a range
    #[arg(long, value_name = "A-B", default_value = "42-44")]
    pub seeds: String,
    /// Threads, one a seed
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub jobs: u16,
    /// Output
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub format: Format,
}

/// `simulate table`.
#[derive(Debug, Args)]
pub struct Table {
    /// Folder with the published traces [env: `CRATER_TRACES`]
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Traces; all in the folder without it
    #[arg(long, value_name = "NAME")]
    pub trace: Vec<String>,
    /// Policies
    #[arg(long, value_name = "NAME", default_values = ["random", "dotprod", "clustering", "packing", "bestfit", "fgd"])]
    pub policy: Vec<String>,
    /// Seeds, one or a range
    #[arg(long, value_name = "A-B", default_value = "42-51")]
    pub seeds: String,
    /// Threads, one a seed
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub jobs: u16,
    /// Also write it as a page in Markdown
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,
}

/// `simulate steady`.
#[derive(Debug, Args)]
pub struct Steady {
    /// Folder with the published traces [env: `CRATER_TRACES`]
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Traces in that folder, or all [default: default; with --from none]
    #[arg(long, value_name = "NAME,NAME", value_delimiter = ',')]
    pub trace: Vec<String>,
    /// Offered loads in percent of the cluster's GPU
    #[arg(long, value_name = "PERCENT,PERCENT", value_delimiter = ',', default_values_t = [70, 80, 90, 95], value_parser = clap::value_parser!(u32).range(1..=200))]
    pub load: Vec<u32>,
    /// Policy, a built-in name or a component, with a configuration; may be repeated
    #[arg(long, value_name = "NAME[=JSON]", default_values = ["bestfit", "fgd", "shadow-price"])]
    pub policy: Vec<String>,
    /// The policy whose waits are subtracted from the others', seed by seed
    #[arg(long, value_name = "NAME[=JSON]", default_value = "fgd")]
    pub against: String,
    /// Seeds, one or a range; each policy sees the same arrivals
    #[arg(long, value_name = "A-B", default_value = "42-44")]
    pub seeds: String,
    /// Arrivals to measure in each run
    #[arg(long, value_name = "N", default_value_t = 200_000, value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    pub arrivals: u64,
    /// Threads, one a run
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub jobs: u16,
    /// Earlier runs, as --format json printed them: shown too and not run again; may be repeated
    #[arg(long, value_name = "FILE")]
    pub from: Vec<PathBuf>,
    /// Also write a page with plots
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Also write a page in Markdown
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,
    /// Output: tables over the seeds, or a line of JSON for each run
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub format: Format,
}

/// `simulate pooling`.
#[derive(Debug, Args)]
pub struct Pooling {
    /// Seeds, one or a range: a day each
    #[arg(long, value_name = "A-B", default_value = "1-5")]
    pub seeds: String,
    /// Machines of eight cards; the last of an odd number stays out
    #[arg(long, value_name = "N", default_value_t = 40, value_parser = clap::value_parser!(u32).range(2..=2000))]
    pub nodes: u32,
    /// What inference asks for at noon, in percent of half of the cards
    #[arg(long, value_name = "PERCENT", default_value_t = 110, value_parser = clap::value_parser!(u32).range(0..=400))]
    pub inference_peak: u32,
    /// What inference asks for at midnight
    #[arg(long, value_name = "PERCENT", default_value_t = 20, value_parser = clap::value_parser!(u32).range(0..=400))]
    pub inference_night: u32,
    /// What training asks for at any hour, in percent of half of the cards
    #[arg(long, value_name = "PERCENT", default_value_t = 110, value_parser = clap::value_parser!(u32).range(0..=400))]
    pub training: u32,
    /// How often training saves its progress, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 600, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub checkpoint: u64,
    /// Time that training has to stop, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(0..=3600))]
    pub grace: u64,
    /// Also write it as a page in Markdown
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,
    /// Output
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub format: Format,
}

/// `simulate scenario`.
#[derive(Debug, Args)]
pub struct Scenario {
    /// Files, or folders of files that end in .scenario
    #[arg(required = true, value_name = "FILE|DIR")]
    pub paths: Vec<PathBuf>,
    /// Print what happened, also when all is well
    #[arg(long)]
    pub verbose: bool,
}

/// Looking at policies.
#[derive(Debug, Subcommand)]
pub enum PolicyCommand {
    /// List the policies that this binary brings along
    List,
    /// Load a component as a queue would and say what it is, or why it is refused
    #[command(
        after_help = "Example:\n  crater policy check my-policy.wasm --config '{\"by\":\"nodes\"}'"
    )]
    Check(Check),
    /// Show which policy is live in each queue of a server, and what was refused
    #[command(after_help = "Example:\n  crater policy status -o wide")]
    Status(client::Common),
}

/// `policy check`.
#[derive(Debug, Args)]
pub struct Check {
    /// A component or a built-in name
    #[arg(value_name = "FILE.wasm|NAME")]
    pub policy: String,
    /// A configuration to try
    #[arg(long, value_name = "JSON", default_value = "{}")]
    pub config: String,
    /// Output
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub format: Format,
}
