//! What `crater job` takes.

use super::{Text, pair, seconds, span};
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;

/// `job`.
#[derive(Debug, Subcommand)]
pub enum JobCommand {
    /// Submit a job
    #[command(after_help = SUBMIT)]
    Submit(Box<SubmitArgs>),
    /// List jobs, newest first
    #[command(after_help = LIST)]
    List(List),
    /// Show everything about a job: why it waits, where it runs, what happened
    #[command(after_help = "Examples:
  crater job describe job-002
  crater job describe job-002 | grep -A 10 \"Scheduling Constraints\"")]
    Describe(Id),
    /// End jobs of one's own
    Cancel(Cancel),
    /// Say that a running job saved its progress: it goes on from there
    #[command(after_help = "Example:\n  crater job checkpoint \"$CRATER_JOB_ID\"")]
    Checkpoint(Id),
    /// End jobs of others, as their manager, or send them back to their queue
    #[command(
        after_help = EVICT,
        override_usage = "crater job evict [--reason TEXT] [--requeue] <JOB>...\n       crater job evict [--reason TEXT] [--requeue] --tenant TENANT [--priority LEVEL] --all"
    )]
    Evict(Evict),
    /// Change a job that is not over
    #[command(after_help = "Example:\n  crater job update job-002 --priority high --disk-io 500")]
    Update(Update),
    /// Submit a job again that is over
    Retry(Id),
    /// Show what a job held and used over time
    #[command(after_help = "Examples:
  crater job metrics job-002
  crater job metrics job-002 --metric gpu-memory --range 1h")]
    Metrics(JobMetrics),
    /// Print what a job printed
    #[command(after_help = "Examples:
  crater job logs job-002
  crater job logs job-002 -f")]
    Logs(Logs),
    /// Wait until a job is over; ends with 0 if it succeeded
    #[command(after_help = "Examples:
  crater job wait job-002 --timeout 2h && echo done
  crater job wait job-001 --for running --timeout 5m")]
    Wait(Wait),
}

const SUBMIT: &str = "Examples:
  crater job submit --name llm-inference-7b --image registry.your-domain.com/llm-inference:v1.0 \\
    --gpu 1 --gpu-memory 40960 --cpu 8 --memory 32Gi --disk-io 100 \\
    --command \"python serve.py --model /models/llama-7b --port 8080\" \\
    --queue inference --priority high
  crater job submit --name finetune --queue training --gpu 4 --gpu-exclusive true \\
    --cpu 32 --memory 128Gi --preemptible true --command \"torchrun train.py\" --wait
  crater job submit -f job.yaml --priority low
A file holds the same fields: {name: finetune, queue: training, gpu: 4, cpu: 32, memory: 128Gi}";

const LIST: &str = "Examples:
  crater job list --queue inference
  crater job list --status failed --since 1h
  crater job list --tenant team-nlp --all -o wide
  crater job list --watch";

const EVICT: &str = "Examples:
  crater job evict job-001 --reason quota-exceeded
  crater job evict job-001 --requeue --reason \"the node is repaired\"
  crater job evict --tenant team-nlp --priority low --all";

/// `job submit`. A field that is given here goes before the file's.
#[derive(Debug, Args)]
pub struct SubmitArgs {
    /// File with the same fields, YAML or JSON; - for standard input
    #[arg(short, long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Name, for people
    #[arg(long, required_unless_present = "file")]
    pub name: Option<String>,
    /// The queue
    #[arg(long, required_unless_present = "file")]
    pub queue: Option<String>,
    /// Whose it is; one's own tenant without
    #[arg(long)]
    pub tenant: Option<String>,
    /// inference, training or offline; the queue's without
    #[arg(long)]
    pub kind: Option<String>,
    /// low, medium, high or 0 to 1000
    #[arg(long)]
    pub priority: Option<String>,
    /// Container image
    #[arg(long)]
    pub image: Option<String>,
    /// Command line
    #[arg(long)]
    pub command: Option<String>,
    /// Cards: 0.5 is half of one, 4 are four distinct ones
    #[arg(long, value_name = "CARDS", help_heading = "Resources of one member")]
    pub gpu: Option<String>,
    /// GPU memory in MiB or such as 40Gi, over all its cards
    #[arg(long, value_name = "MEMORY", help_heading = "Resources of one member")]
    pub gpu_memory: Option<String>,
    /// Whole cards, shared with nobody
    #[arg(long, value_name = "true|false", num_args = 0..=1, default_missing_value = "true", help_heading = "Resources of one member")]
    pub gpu_exclusive: Option<bool>,
    /// A MIG profile such as 1g.10gb
    #[arg(long, value_name = "PROFILE", help_heading = "Resources of one member")]
    pub mig_profile: Option<String>,
    /// Card models that it may use; may be repeated
    #[arg(
        long,
        value_name = "MODEL",
        value_delimiter = ',',
        help_heading = "Resources of one member"
    )]
    pub card_model: Vec<String>,
    #[arg(
        long,
        help = "NVLink between its cards: none, preferred or required",
        value_name = "NEED",
        help_heading = "Resources of one member"
    )]
    pub nvlink: Option<String>,
    /// All on one NUMA node: none, preferred or required
    #[arg(long, value_name = "NEED", help_heading = "Resources of one member")]
    pub numa: Option<String>,
    /// Cores, such as 8, 0.5 or 500m
    #[arg(long, value_name = "CORES", help_heading = "Resources of one member")]
    pub cpu: Option<String>,
    /// Memory, such as 32Gi
    #[arg(long, value_name = "MEMORY", help_heading = "Resources of one member")]
    pub memory: Option<String>,
    /// Disk IO weight, 1 to 10000
    #[arg(long, value_name = "WEIGHT", help_heading = "Resources of one member")]
    pub disk_io: Option<String>,
    /// Reserved disk bandwidth in MB/s
    #[arg(long, value_name = "MB/S", help_heading = "Resources of one member")]
    pub disk_bandwidth: Option<String>,
    /// Reserved disk operations a second
    #[arg(long, value_name = "IOPS", help_heading = "Resources of one member")]
    pub disk_iops: Option<String>,
    /// Most disk bandwidth in MB/s, of reading and of writing
    #[arg(long, value_name = "MB/S", help_heading = "Resources of one member")]
    pub disk_bandwidth_limit: Option<String>,
    /// Most disk operations a second
    #[arg(long, value_name = "IOPS", help_heading = "Resources of one member")]
    pub disk_iops_limit: Option<String>,
    /// Equal members, started all or nothing
    #[arg(long, value_name = "N")]
    pub members: Option<u32>,
    /// Members that suffice to start
    #[arg(long, value_name = "N")]
    pub min: Option<u32>,
    /// How near its members must be: domain, zone or a node label, and
    /// :preferred where farther will do
    #[arg(long, value_name = "LEVEL[:preferred]")]
    pub together: Option<String>,
    /// Node labels that it needs; may be repeated
    #[arg(long, value_name = "LABEL=VALUE", value_parser = pair)]
    pub node_selector: Vec<(String, String)>,
    /// It may be preempted; not for inference
    #[arg(long, value_name = "true|false", num_args = 0..=1, default_missing_value = "true")]
    pub preemptible: Option<bool>,
    /// Longest run, in seconds or such as 2h; waiting does not count
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    pub run_limit: Option<u32>,
    /// Environment; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair)]
    pub env: Vec<(String, String)>,
    /// Working directory
    #[arg(long, value_name = "DIR")]
    pub workdir: Option<String>,
    /// A volume; may be repeated
    #[arg(long, alias = "volume", value_name = "SOURCE:/TARGET[:ro]")]
    pub volumes: Vec<String>,
    /// Ports that it listens on
    #[arg(long, alias = "port", value_name = "PORT,PORT", value_delimiter = ',')]
    pub ports: Vec<u16>,
    /// Time between the signal to end and the end, in seconds or such as 2m
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    pub grace: Option<u32>,
    /// Submitting again with the same key gives the same job
    #[arg(long, value_parser = Text::new())]
    pub key: Option<String>,
    /// Wait until it is over; ends with 0 if it succeeded
    #[arg(long)]
    pub wait: bool,
    /// Wait no longer
    #[arg(long, value_name = "TIME", value_parser = span, requires = "wait")]
    pub timeout: Option<Duration>,
}

/// `job list`.
#[derive(Clone, Debug, Args)]
pub struct List {
    /// Of this queue
    #[arg(long)]
    pub queue: Option<String>,
    /// In this status; several with commas
    #[arg(long, value_delimiter = ',')]
    pub status: Vec<String>,
    /// Of this tenant and those below it
    #[arg(long)]
    pub tenant: Option<String>,
    /// Of this name
    #[arg(long)]
    pub name: Option<String>,
    /// Submitted or changed within this time, such as 1h
    #[arg(long, value_name = "TIME", value_parser = span)]
    pub since: Option<Duration>,
    /// Those that are over, too; without it or --status only those that are not
    #[arg(long)]
    pub all: bool,
    /// At most so many
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub limit: Option<u32>,
    /// Go on and show changes as they happen
    #[arg(long, conflicts_with = "limit")]
    pub watch: bool,
}

/// One job.
#[derive(Debug, Args)]
pub struct Id {
    /// The job, such as job-002
    #[arg(value_name = "JOB", value_parser = Text::new())]
    pub id: String,
}

/// `job cancel`.
#[derive(Debug, Args)]
pub struct Cancel {
    /// The jobs, such as job-002
    #[arg(value_name = "JOB", required = true, value_parser = Text::new())]
    pub ids: Vec<String>,
    /// Why, for people
    #[arg(long, default_value = "", hide_default_value = true)]
    pub reason: String,
}

/// `job evict`.
#[derive(Debug, Args)]
pub struct Evict {
    /// The jobs, such as job-001
    #[arg(value_name = "JOB", required_unless_present = "tenant", conflicts_with = "tenant", value_parser = Text::new())]
    pub ids: Vec<String>,
    /// Running jobs of this tenant and those below it
    #[arg(long, requires = "all", value_parser = Text::new())]
    pub tenant: Option<String>,
    /// Of them those of exactly this priority: low, medium, high or 0 to 1000
    #[arg(long, requires = "tenant")]
    pub priority: Option<String>,
    /// All of them
    #[arg(long, requires = "tenant")]
    pub all: bool,
    /// Why, for people
    #[arg(long, default_value = "evicted by hand")]
    pub reason: String,
    /// They wait and start again, from their checkpoints; else they are over
    #[arg(long)]
    pub requeue: bool,
}

/// `job update`.
#[derive(Debug, Args)]
pub struct Update {
    /// The job, such as job-002
    #[arg(value_name = "JOB", value_parser = Text::new())]
    pub id: String,
    /// What changes
    #[command(flatten)]
    pub changes: Changes,
}

/// What changes.
#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
pub struct Changes {
    /// low, medium, high or 0 to 1000
    #[arg(long)]
    pub priority: Option<String>,
    /// It may be preempted; not for inference
    #[arg(long, value_name = "true|false", num_args = 0..=1, default_missing_value = "true")]
    pub preemptible: Option<bool>,
    /// Disk IO weight, 1 to 10000
    #[arg(long, value_name = "WEIGHT")]
    pub disk_io: Option<u16>,
}

/// `job metrics`.
#[derive(Debug, Args)]
pub struct JobMetrics {
    /// The job, such as job-002
    #[arg(value_name = "JOB", value_parser = Text::new())]
    pub id: String,
    /// Which, and how far back
    #[command(flatten)]
    pub which: super::Metrics,
}

/// `job logs`.
#[derive(Debug, Args)]
pub struct Logs {
    /// The job, such as job-002
    #[arg(value_name = "JOB", value_parser = Text::new())]
    pub id: String,
    /// Go on until the job is over
    #[arg(short, long)]
    pub follow: bool,
    /// stdout or stderr
    #[arg(long, value_name = "NAME", default_value = "stdout", value_parser = ["stdout", "stderr"])]
    pub stream: String,
    /// From this byte on
    #[arg(long, value_name = "BYTE", default_value_t = 0, hide_default_value = true)]
    pub offset: u64,
}

/// `job wait`.
#[derive(Debug, Args)]
pub struct Wait {
    /// The job, such as job-002
    #[arg(value_name = "JOB", value_parser = Text::new())]
    pub id: String,
    /// What for
    #[arg(long = "for", value_enum, default_value_t = For::Over)]
    pub goal: For,
    /// Wait no longer
    #[arg(long, value_name = "TIME", value_parser = span)]
    pub timeout: Option<Duration>,
}

/// What is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum For {
    /// It is over
    Over,
    /// It runs, or has succeeded already
    Running,
}
