//! What `crater quota` and `crater tenant` take.

use super::{Text, pair};
use clap::{Args, Subcommand};

/// `quota`.
#[derive(Debug, Subcommand)]
pub enum QuotaCommand {
    /// Show what a tenant uses and may use
    #[command(after_help = "Examples:\n  crater quota get\n  crater quota get --tenant team-nlp")]
    Get(QuotaGet),
    /// Set what a tenant may use; what is left out stays, none takes a limit away
    #[command(after_help = "Examples:
  crater quota set --tenant team-nlp --gpu-hard 8 --cpu-hard 64 --memory-hard 256Gi
  crater quota set --tenant team-nlp --gpu-soft 16 --cpu-soft 128 --memory-soft 512Gi
  crater quota set --tenant team-nlp/chat --gpu-hard 4 --ceiling medium --dry-run
Nothing is evicted by it.")]
    Set(Box<QuotaSet>),
}

/// `quota get`.
#[derive(Debug, Args)]
pub struct QuotaGet {
    /// The tenant; without it one's own, and all for an administrator
    #[arg(long, value_parser = Text::new())]
    pub tenant: Option<String>,
}

/// `quota set`.
#[derive(Debug, Args)]
pub struct QuotaSet {
    /// The tenant: department, department/project or department/project/person
    #[arg(long, value_parser = Text::new())]
    pub tenant: String,
    /// Highest priority of its jobs: low, medium, high, 0 to 1000, or none
    #[arg(long)]
    pub ceiling: Option<String>,
    /// Only say who would exceed it, wait or could start
    #[arg(long)]
    pub dry_run: bool,
    /// Cards that it may always use
    #[arg(long, value_name = "CARDS", help_heading = "Always usable")]
    pub gpu_hard: Option<String>,
    /// GPU memory
    #[arg(long, value_name = "MEMORY", help_heading = "Always usable")]
    pub gpu_memory_hard: Option<String>,
    /// Cores
    #[arg(long, value_name = "CORES", help_heading = "Always usable")]
    pub cpu_hard: Option<String>,
    /// Memory
    #[arg(long, value_name = "MEMORY", help_heading = "Always usable")]
    pub memory_hard: Option<String>,
    /// Disk bandwidth
    #[arg(long, value_name = "MB/S", help_heading = "Always usable")]
    pub disk_mbps_hard: Option<String>,
    /// Cards of one model; may be repeated
    #[arg(long, value_name = "MODEL=CARDS", value_parser = pair, help_heading = "Always usable")]
    pub model_hard: Vec<(String, String)>,
    /// Cards that it may use while there are spare ones
    #[arg(long, value_name = "CARDS", help_heading = "Usable while there is spare capacity")]
    pub gpu_soft: Option<String>,
    /// GPU memory
    #[arg(long, value_name = "MEMORY", help_heading = "Usable while there is spare capacity")]
    pub gpu_memory_soft: Option<String>,
    /// Cores
    #[arg(long, value_name = "CORES", help_heading = "Usable while there is spare capacity")]
    pub cpu_soft: Option<String>,
    /// Memory
    #[arg(long, value_name = "MEMORY", help_heading = "Usable while there is spare capacity")]
    pub memory_soft: Option<String>,
    /// Disk bandwidth
    #[arg(long, value_name = "MB/S", help_heading = "Usable while there is spare capacity")]
    pub disk_mbps_soft: Option<String>,
    /// Cards of one model; may be repeated
    #[arg(long, value_name = "MODEL=CARDS", value_parser = pair, help_heading = "Usable while there is spare capacity")]
    pub model_soft: Vec<(String, String)>,
}

/// `tenant`.
#[derive(Debug, Subcommand)]
pub enum TenantCommand {
    /// List the tenants that have a quota or use anything
    List,
    /// Show them as a tree
    Tree,
    /// Show what tenants held, by day and queue: cards, cores and GiB times seconds
    #[command(after_help = "Examples:
  crater tenant usage
  crater tenant usage --tenant team-nlp --since 30d -o json")]
    Usage(Usage),
    /// Make a tenant, without limits of its own
    #[command(after_help = "Example:\n  crater tenant create team-nlp/chat")]
    Create {
        /// department, department/project or department/project/person
        #[arg(value_parser = Text::new())]
        path: String,
    },
}

/// `tenant usage`.
#[derive(Debug, Args)]
pub struct Usage {
    /// Of this tenant and those below it
    #[arg(long, value_parser = Text::new())]
    pub tenant: Option<String>,
    /// How far back, whole days (UTC)
    #[arg(long, value_name = "TIME", value_parser = super::span, default_value = "7d")]
    pub since: std::time::Duration,
}
