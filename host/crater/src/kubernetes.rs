//! `crater serve --cluster kubernetes`: policies for host/kube, and its lines.

use crate::exit::input;
use crate::loader::Loader;
use anyhow::{Context, anyhow};
use clap::{Args, ValueEnum};
use crater_engine::policy::Values;
use crater_engine::{Policies, Policy, Strings};
use crater_kube::settings::TakeBooks;
use crater_kube::{Fence, LeaseTimes, Scheduler, Settings, now};
use crater_model::{Kind, QueueSpec};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// What `serve` takes for Kubernetes.
#[derive(Debug, Args)]
pub struct Kubernetes {
    /// Where the API server is; without it as kubectl finds it, or the pod's own account
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// A queue and its policy; the first is that of pods that name none; may be repeated
    #[arg(long, value_name = "QUEUE=NAME|FILE.wasm", default_values = ["training=binpack", "inference=spread", "offline=priority"])]
    pub queue: Vec<String>,
    /// The schedulerName of pods that are ours
    #[arg(long, value_name = "NAME", default_value = "crater")]
    pub scheduler_name: String,
    /// Namespace of the lease and the epoch
    #[arg(long, value_name = "NAME", default_value = "kube-system")]
    pub namespace: String,
    /// Who this process is among those that contend for the lease [default: host name and process]
    #[arg(long, value_name = "NAME")]
    pub identity: Option<String>,
    /// Milliseconds that the lease lasts, that its holder goes on without renewing it, and between tries
    #[arg(long, value_name = "MS,MS,MS", value_delimiter = ',', default_values_t = [15_000, 10_000, 2_000])]
    pub lease: Vec<u64>,
    /// How an older leader is kept from promising what a newer one promises too
    #[arg(long, value_enum, default_value_t = FenceArg::Claims)]
    pub fence: FenceArg,
    /// Most requests a second
    #[arg(long, value_name = "N", default_value_t = 500.0)]
    pub qps: f64,
    /// Requests that may be sent at once beyond that
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub burst: u32,
    /// Most requests under way
    #[arg(long, value_name = "N", default_value_t = 64)]
    pub in_flight: usize,
    /// Seconds after which everything is listed again, whatever the watches said
    #[arg(long, value_name = "SECS", default_value_t = 300)]
    pub resync: u64,
    /// Write what the books hold here when leading ends: for comparisons
    #[arg(long, hide = true, value_name = "FILE")]
    pub books: Option<PathBuf>,
    /// Go on writing after the lease ran out: for tests of what the fence does by itself
    #[arg(long, hide = true)]
    pub heedless: bool,
}

/// See `Fence`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FenceArg {
    /// Promises are written to one object a node before they are bound
    Claims,
    /// The API server refuses Bindings of an older epoch; fence-at-admission.yaml must be applied
    Admission,
}

/// Serves a Kubernetes cluster until a signal comes.
pub fn run(args: &Kubernetes) -> anyhow::Result<()> {
    let strings = Arc::new(Strings::default());
    let loader = Loader::new(strings.clone())?;
    let mut queues = vec![];
    let mut policies = Policies::new();
    for text in &args.queue {
        let bad = || input(anyhow!("--queue: {text:?}: QUEUE=NAME is expected"));
        let (name, policy) = text.split_once('=').ok_or_else(bad)?;
        let kind = Kind::parse("queue", name).unwrap_or_default();
        let queue = QueueSpec::new(name, kind);
        queue.check().map_err(input)?;
        let policy: Arc<dyn Policy> = loader.policy(policy, "{}", &Values::new())?;
        policies.insert(queue.name.clone(), policy);
        queues.push(queue);
    }
    let [lasts, renew, retry] = args.lease[..] else {
        return Err(input(anyhow!("--lease: three numbers are expected")));
    };
    if !(retry > 0 && retry < renew && renew < lasts) {
        return Err(input(anyhow!("--lease: each must be less than the one before it")));
    }
    if !(args.qps.is_finite() && args.qps > 0.0) {
        return Err(input(anyhow!("--qps: a positive number is expected")));
    }
    let ms = Duration::from_millis;
    let settings = Settings {
        kubeconfig: args.kubeconfig.clone(),
        scheduler_name: args.scheduler_name.as_str().into(),
        namespace: args.namespace.clone(),
        lease: LeaseTimes { lasts: ms(lasts), renew: ms(renew), retry: ms(retry) },
        heed_lease: !args.heedless,
        fence: match args.fence {
            FenceArg::Claims => Fence::Claims,
            FenceArg::Admission => Fence::Admission,
        },
        policies,
        strings,
        qps: args.qps,
        burst: args.burst,
        in_flight: args.in_flight.max(1),
        resync: Duration::from_secs(args.resync.max(1)),
        stop_on_signals: true,
        books: args.books.clone().map(write_books),
        log: Arc::new(|line| eprintln!("{} {line}", now().0)),
        ..Settings::new(args.identity.clone().unwrap_or_else(identity), queues)
    };
    let scheduler = Scheduler::new(settings);
    let stats = scheduler.stats.clone();
    let served = scheduler.run().context("serve");
    eprintln!("{} counts {}", now().0, serde_json::to_string(&stats.counts())?);
    served
}

fn write_books(file: PathBuf) -> TakeBooks {
    Arc::new(move |figures| {
        let written = serde_json::to_vec(figures)
            .map_err(std::io::Error::other)
            .and_then(|json| std::fs::write(&file, json));
        if let Err(error) = written {
            eprintln!("{}: {error}", file.display());
        }
    })
}

/// Different for each process that ever ran.
fn identity() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    format!("{}-{}-{}", host.trim(), std::process::id(), now().0)
}
