//! What the client's commands take.

mod job;
mod quota;

pub use job::{Evict, For, JobCommand, JobMetrics, List, Logs, SubmitArgs};
pub use quota::{QuotaCommand, QuotaGet, QuotaSet, TenantCommand, Usage};

use clap::builder::NonEmptyStringValueParser as Text;
use clap::{Args, Subcommand, ValueEnum};
use std::fmt::Debug;
use std::path::PathBuf;
use std::time::Duration;

/// What every command that talks to a server takes.
#[derive(Clone, Debug, Args)]
pub struct Common {
    /// The server [env: `CRATER_SERVER`] [default: <http://127.0.0.1:8470>]
    #[arg(long, global = true, value_name = "URL", help_heading = "Connection and output")]
    pub server: Option<String>,
    /// Access token [env: `CRATER_TOKEN`]
    #[arg(long, global = true, value_name = "TOKEN", help_heading = "Connection and output")]
    pub token: Option<String>,
    /// Certificates to trust instead of the public ones, PEM [env: `CRATER_CA`]
    #[arg(long, global = true, value_name = "FILE", help_heading = "Connection and output")]
    pub ca: Option<PathBuf>,
    /// How answers are printed
    #[arg(short, long, global = true, value_enum, value_name = "FORMAT", default_value_t = Output::Table, help_heading = "Connection and output")]
    pub output: Output,
    /// Say what is done, on standard error
    #[arg(short, long, global = true, help_heading = "Connection and output")]
    pub verbose: bool,
}

/// How answers are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// For people
    Table,
    /// For people, with more columns
    Wide,
    /// For programs
    Json,
    /// For programs and people
    Yaml,
}

/// A group of commands and what all of them take.
#[derive(Debug, Args)]
pub struct Of<C: Subcommand + Debug> {
    /// For all of them
    #[command(flatten)]
    pub common: Common,
    /// What to do
    #[command(subcommand)]
    pub command: C,
}

/// `queue`.
#[derive(Debug, Subcommand)]
pub enum QueueCommand {
    /// List the queues
    List,
    /// Show a queue, its policy and the policy's last words
    Describe(Name),
    /// Change a queue while it runs: its next decision follows
    #[command(after_help = "Examples:
  crater queue set training --policy nvlink-affinity
  crater queue set inference --policy /srv/policies/own.wasm --config '{\"by\":\"nodes\"}'
  crater queue set offline --policy none --fallback binpack")]
    Set(QueueSet),
    /// Let nothing of it start; what runs goes on
    Pause(Name),
    /// Let it start jobs again
    Resume(Name),
    /// Pause it and say what is left: nothing is cancelled
    Drain(Name),
}

/// `queue set`.
#[derive(Debug, Args)]
pub struct QueueSet {
    /// The queue
    #[arg(value_parser = Text::new())]
    pub name: String,
    /// Policy: a built-in name, a file on the server's machine, or none
    #[arg(long, value_name = "NAME|FILE.wasm|none")]
    pub policy: Option<String>,
    /// The policy's configuration
    #[arg(long, value_name = "JSON")]
    pub config: Option<String>,
    /// Who decides when the policy cannot: binpack, spread or hold
    #[arg(long, value_name = "NAME")]
    pub fallback: Option<String>,
    /// Greater goes first where queues compete
    #[arg(long, value_name = "N")]
    pub priority: Option<u16>,
}

/// One thing by its name.
#[derive(Debug, Args)]
pub struct Name {
    /// Its name
    #[arg(value_parser = Text::new())]
    pub name: String,
}

/// `cluster`.
#[derive(Debug, Subcommand)]
pub enum ClusterCommand {
    /// What is promised and used of the whole cluster, now and over time
    #[command(
        after_help = "Examples:\n  crater cluster metrics\n  crater cluster metrics --metric disk-io\n  crater cluster metrics --metric gpu --range 24h -o json"
    )]
    Metrics(Metrics),
    /// List the machines
    Nodes,
}

/// `cluster metrics`.
#[derive(Debug, Args)]
pub struct Metrics {
    /// Only this
    #[arg(long, value_enum)]
    pub metric: Option<Metric>,
    /// How far back, such as 1h or 7d
    #[arg(long, value_name = "TIME", value_parser = span, default_value = "1h")]
    pub range: Duration,
}

/// What a cluster has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Metric {
    /// Cards
    Gpu,
    /// Memory of cards
    GpuMemory,
    /// Cores
    Cpu,
    /// Memory
    Memory,
    /// Disk bandwidth
    DiskIo,
}

impl Metric {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Gpu, Self::GpuMemory, Self::Cpu, Self::Memory, Self::DiskIo];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gpu => "gpu",
            Self::GpuMemory => "gpu-memory",
            Self::Cpu => "cpu",
            Self::Memory => "memory",
            Self::DiskIo => "disk-io",
        }
    }
}

/// `webhook`.
#[derive(Debug, Subcommand)]
pub enum WebhookCommand {
    /// List the webhooks of the configuration, and how deliveries went
    List,
}

/// `backup`.
#[derive(Debug, Args)]
pub struct Backup {
    /// For the connection
    #[command(flatten)]
    pub common: Common,
    /// Where the backup is written; it appears once it is whole
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}

/// `restore`.
#[derive(Debug, Args)]
pub struct Restore {
    /// For the connection
    #[command(flatten)]
    pub common: Common,
    /// A backup
    #[arg(value_name = "FILE", required_unless_present = "discard")]
    pub file: Option<PathBuf>,
    /// Put it into this new or empty data folder instead, without a server
    #[arg(long, value_name = "DIR", requires = "file")]
    pub data: Option<PathBuf>,
    /// Let the backup go that waits for the server's next start
    #[arg(long, conflicts_with_all = ["file", "data"])]
    pub discard: bool,
}

/// `node`.
#[derive(Debug, Subcommand)]
pub enum NodeCommand {
    /// List the machines
    List,
    /// Let nothing new start on a machine
    Cordon(Name),
    /// Let jobs start on a machine again
    Uncordon(Name),
    /// Cordon a machine and end what runs there, to start again elsewhere
    Drain(Name),
}

/// `token`.
#[derive(Debug, Subcommand)]
pub enum TokenCommand {
    /// Make a token and print it, once
    #[command(after_help = "Examples:
  crater token create --name ci --role member --tenant team-nlp --expires 90d
  crater token create --name ops --role admin")]
    Create(TokenCreate),
    /// List tokens, without their secrets
    List,
    /// Take a token back, at once
    Revoke {
        /// Its number, as `token list` shows it
        id: u64,
    },
}

/// `token create`.
#[derive(Debug, Args)]
pub struct TokenCreate {
    /// Name, for people
    #[arg(long, value_parser = Text::new())]
    pub name: String,
    /// What it allows
    #[arg(long, value_parser = ["viewer", "member", "manager", "admin"])]
    pub role: String,
    /// Where: a tenant and all below it; an administrator has none
    #[arg(long)]
    pub tenant: Option<String>,
    /// How long it holds, such as 90d; for ever without
    #[arg(long, value_name = "TIME")]
    pub expires: Option<String>,
}

/// `config`.
#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Keep the server and the token that commands use
    #[command(after_help = "Example:
  crater config set --server https://crater.your-domain.com --token your-api-token
CRATER_SERVER and CRATER_TOKEN go before it, --server and --token before those.")]
    Set(ConfigSet),
    /// Show what commands use and where it comes from
    View {
        /// For the connection
        #[command(flatten)]
        common: Common,
    },
}

/// `config set`.
#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
pub struct ConfigSet {
    /// The server
    #[arg(long, value_name = "URL")]
    pub server: Option<String>,
    /// Access token; kept in a file that only its owner reads
    #[arg(long, value_name = "TOKEN")]
    pub token: Option<String>,
    /// Certificates to trust instead of the public ones, PEM
    #[arg(long, value_name = "FILE")]
    pub ca: Option<PathBuf>,
}

/// `completion`.
#[derive(Debug, Args)]
pub struct Completion {
    /// The shell
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}

/// Reads a span of time.
fn span(text: &str) -> Result<Duration, String> {
    crater_server::config::span("time", text)
        .map_err(|_| "expected a span of time such as 30d, 12h, 5m or 90s".to_owned())
}

/// Reads seconds: a plain number, or a span of time.
fn seconds(text: &str) -> Result<u32, String> {
    let span = || span(text).ok().and_then(|span| u32::try_from(span.as_secs()).ok());
    let seconds = text.parse().ok().or_else(span);
    seconds.ok_or_else(|| "expected seconds, or a span of time such as 2h".to_owned())
}

/// Reads NAME=VALUE.
fn pair(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE")?;
    if name.is_empty() {
        return Err("expected NAME=VALUE".into());
    }
    Ok((name.to_owned(), value.to_owned()))
}
