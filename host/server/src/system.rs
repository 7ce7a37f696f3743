//! The whole system: started from a data folder and a configuration, changed
//! while it runs.

use crate::books::{Books, Unavailable, now};
use crate::chronicle::{Chronicle, UsageMeter};
use crate::collector::Gauge;
use crate::config::{Config, ConfigError, Plan};
use crate::deciders::Deciders;
use crate::executor::Executor;
use crate::executor::local::{self, LocalError};
use crate::executor::simulated::{Declared, Pace, Simulated};
use crate::logs::Logs;
use crate::metrics::Metrics;
use crate::policies::{BuiltIns, Policies, Wanted};
use crate::webhooks::Hooks;
use crater_engine::Strings;
use crater_engine::ledger::Refusal;
use crater_model::{NodeSpec, QueueName};
use crater_policy::Runtime;
use crater_store::{Packed, Reader, Store, StoreError};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;
use thiserror::Error;

/// What a start needs.
pub struct Options {
    /// Folder for everything that must outlive the process.
    pub data: PathBuf,
    /// Configuration file; the defaults without one.
    pub config: Option<PathBuf>,
    /// The policy runtime.
    pub runtime: Runtime,
    /// Policies that the binary brings along.
    pub built_ins: BuiltIns,
    /// Jobs run on this machine, whether the configuration says so or not.
    pub local: bool,
}

/// The server could not start.
#[derive(Debug, Error)]
pub enum StartError {
    /// The configuration.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// This machine cannot run jobs.
    #[error(transparent)]
    Local(#[from] LocalError),
    /// A thread could not be started.
    #[error("a thread cannot be started: {0}")]
    Thread(#[from] std::io::Error),
    /// The ledger refused what the configuration says.
    #[error("the configuration is refused: {0}")]
    Refused(String),
}

/// How the last reload of the configuration went.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reload {
    /// When it was last applied.
    pub applied: Option<crater_model::Time>,
    /// Why the last one was refused, until one is applied.
    pub refused: Option<String>,
}

/// How often what is over is forgotten and history trimmed. Nothing waits for
/// it, so that the thread may sleep.
const HOUSE: Duration = Duration::from_secs(10);
/// So many ended jobs stay in the books no longer than `FEW` milliseconds, fewer
/// stay for `LONG`. History knows them all.
const CROWD: usize = 5_000;
const FEW: u64 = 15_000;
const LONG: u64 = 600_000;
/// The usual retention.
const MONTH: Duration = Duration::from_hours(30 * 24);

/// The running system. Share it by `Arc`.
pub struct System {
    /// The books.
    pub books: Books,
    /// The queues' policies.
    pub policies: Arc<Policies>,
    /// The deciding threads.
    pub deciders: Deciders,
    /// What is counted and timed.
    pub metrics: Arc<Metrics>,
    /// Who is told of jobs.
    pub hooks: Arc<Hooks>,
    /// What jobs print.
    pub logs: Arc<dyn Logs>,
    /// The configuration in force.
    config: RwLock<Config>,
    file: Option<PathBuf>,
    data: PathBuf,
    reload: Mutex<Reload>,
    /// Jobs run on this machine, whatever the file says.
    local: bool,
    /// This machine, if jobs run on it.
    machine: Option<NodeSpec>,
}

/// Who runs the members, what they print and use, and where they run.
struct Runner {
    executor: Box<dyn Executor>,
    logs: Arc<dyn Logs>,
    gauge: Arc<dyn Gauge>,
    machine: Option<NodeSpec>,
}

impl Runner {
    fn new(config: &Config, plan: &Plan, file: &Path, data: &Path) -> Result<Self, StartError> {
        if let Some(this) = &config.cluster.local {
            let refuse = |error| ConfigError::Value {
                file: file.into(),
                place: "cluster.local".into(),
                error,
            };
            let (executor, spec) = local::open(this, data, refuse)?;
            let (logs, gauge) = (executor.logs(), executor.meter());
            return Ok(Self { executor: Box::new(executor), logs, gauge, machine: Some(spec) });
        }
        let pace = Pace { run: plan.run, ..Pace::default() };
        let executor = Simulated::new(pace).with_history(Reader::open(data)?);
        let (logs, gauge) = (executor.logs(), Arc::new(Declared));
        Ok(Self { executor: Box::new(executor), logs, gauge, machine: None })
    }
}

impl System {
    /// Recovers the books, applies the configuration and starts all threads.
    pub fn start(options: Options) -> Result<Arc<Self>, StartError> {
        let file = options.config.clone();
        let mut config = match &file {
            Some(file) => Config::read(file)?,
            None => Config::default(),
        };
        if options.local {
            config.cluster.local.get_or_insert_default();
        }
        let named = file.as_deref().unwrap_or(Path::new("the defaults"));
        let plan = config.plan(named)?;
        let (store, recovered) = Store::open(&options.data)?;
        let strings = Arc::new(Strings::default());
        let state = recovered.books(strings.clone())?;
        let metrics = Arc::<Metrics>::default();
        let hooks = Arc::<Hooks>::default();
        hooks.set(plan.webhooks.clone());
        let usage = UsageMeter::recover(store.own(), &state, now().max(state.at))?;
        let chronicle = Chronicle::new(&state, usage, hooks.clone(), metrics.clone());
        let books = Books::start(store, state, chronicle, metrics.clone())?;
        let policies = Arc::new(Policies::new(options.runtime, strings, options.built_ins));
        policies.set_budgets(plan.budgets.clone());
        let deciders = Deciders::new(books.clone(), policies.clone(), metrics.clone());
        let runner = Runner::new(&config, &plan, named, &options.data)?;
        let mut executor = runner.executor;
        let system = Arc::new(Self {
            books,
            policies,
            deciders,
            metrics,
            hooks,
            logs: runner.logs,
            config: RwLock::new(config),
            file,
            data: options.data,
            reload: Mutex::default(),
            local: options.local,
            machine: runner.machine,
        });
        // A store that never counted usage begins here, durably: what is held
        // from now on counts even if the process ends at once.
        let seq = system.books.change_blocking(|writer| {
            let marked = writer.mark_usage();
            marked.map(|()| writer.state().seq)
        });
        let seq = seq.map_err(|error| StartError::Refused(error.to_string()))??;
        tracing::debug!(seq, "usage is counted from here on");
        system.commit(&plan).map_err(StartError::Refused)?;
        for (queue, wanted) in &plan.queues {
            // One that is broken must not keep the server from starting: its
            // queue's fallback decides, and the status says why.
            system.set_policy(&queue.name, wanted.as_ref()).unwrap_or_else(|text| {
                tracing::error!(queue = %queue.name, "{text}; the queue's fallback decides");
            });
        }
        system.deciders.follow(&system.books.view().state)?;
        let books = system.books.clone();
        std::thread::Builder::new()
            .name("executor".into())
            .spawn(move || crate::executor::run(&books, &mut *executor))?;
        crate::collector::start(&system, runner.gauge)?;
        crate::limits::start(&system)?;
        crate::lending::start(&system)?;
        crate::webhooks::start(&system)?;
        Self::keep_house(&system)?;
        Self::learn(&system)?;
        crate::watch::start(&system)?;
        Ok(system)
    }

    /// Refuses a job that could not run here, naming the field.
    pub fn accepts(&self, job: &crater_model::JobSpec) -> Result<(), crater_model::FieldError> {
        if self.machine.is_none() {
            return Ok(());
        }
        let config = self.config.read().unwrap_or_else(PoisonError::into_inner);
        config.cluster.local.as_ref().map_or(Ok(()), |this| local::check(this, job))
    }

    /// The configuration in force.
    pub fn config(&self) -> Config {
        self.config.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How often what jobs use is measured.
    pub fn interval(&self) -> Duration {
        let config = self.config.read().unwrap_or_else(PoisonError::into_inner);
        // It was checked when it was applied.
        config.interval().unwrap_or(Duration::from_secs(15))
    }

    /// How long history is kept.
    pub fn retention(&self) -> Duration {
        let config = self.config.read().unwrap_or_else(PoisonError::into_inner);
        crate::config::span("retention", &config.retention).unwrap_or(MONTH)
    }

    /// Its file.
    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// The data folder.
    pub fn data(&self) -> &Path {
        &self.data
    }

    /// A reader of the history.
    pub fn reader(&self) -> Result<Reader, StoreError> {
        Reader::open(&self.data)
    }

    /// How the last reload went.
    pub fn reload_status(&self) -> Reload {
        self.reload.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Reads the file again and applies it, whole or not at all.
    pub fn reload(&self) -> Result<(), String> {
        let Some(file) = &self.file else { return Ok(()) };
        let read = Config::read(file).map_err(|error| error.to_string());
        let result = read.and_then(|mut new| {
            if self.local {
                new.cluster.local.get_or_insert_default();
            }
            self.apply(new)
        });
        let mut reload = self.reload.lock().unwrap_or_else(PoisonError::into_inner);
        match &result {
            Ok(()) => *reload = Reload { applied: Some(now()), refused: None },
            Err(error) => reload.refused = Some(error.clone()),
        }
        result
    }

    fn apply(&self, new: Config) -> Result<(), String> {
        let file = self.file.as_deref().unwrap_or(Path::new("the defaults"));
        let plan = new.plan(file).map_err(|error| error.to_string())?;
        if new.cluster.local != self.config().cluster.local {
            let place = "cluster.local: it is read when the server starts; restart it, and jobs \
                         that run on this machine run on";
            return Err(format!("{}: {place}", file.display()));
        }
        let view = self.books.view();
        let known = self.policies.status();
        let known = |queue: &QueueName| known.iter().find(|(name, _, _)| name == queue);
        let changed = |queue: &QueueName, wanted: Option<&Wanted>| {
            known(queue).map(|(_, known, _)| known) != wanted
        };
        // All new policies are tried before anything is changed.
        let news: Vec<_> =
            plan.queues.iter().filter(|(q, wanted)| changed(&q.name, wanted.as_ref())).collect();
        for (queue, wanted) in &news {
            if let Some(wanted) = wanted {
                let checked = self.policies.check(wanted, &view.state);
                checked.map_err(|error| format!("queue {}: {error}", queue.name))?;
            }
        }
        self.commit(&plan)?;
        for (queue, wanted) in news {
            self.set_policy(&queue.name, wanted.as_ref())?;
        }
        self.deciders.follow(&self.books.view().state).map_err(|error| error.to_string())?;
        self.policies.set_budgets(plan.budgets);
        self.hooks.set(plan.webhooks);
        *self.config.write().unwrap_or_else(PoisonError::into_inner) = new;
        Ok(())
    }

    /// Brings the books to what the configuration says, in one durable step.
    fn commit(&self, plan: &Plan) -> Result<(), String> {
        let mut plan = plan.clone();
        if let Some(machine) = &self.machine {
            plan.nodes = vec![machine.clone()];
        }
        let done = self.books.change_blocking(move |writer| {
            let now = writer.now;
            for (queue, _) in &plan.queues {
                let known = writer.state().queues().get(&queue.name);
                if known.is_none_or(|known| *known.spec != *queue) {
                    writer.ledger.set_queue(now, queue.clone())?;
                }
            }
            if *writer.state().quotas().platform() != plan.platform {
                writer.ledger.set_platform(now, plan.platform)?;
            }
            for tenant in &plan.tenants {
                let known = writer.state().quotas().tenants().get(&tenant.path);
                if known.is_none_or(|known| **known != *tenant) {
                    writer.ledger.set_tenant(now, tenant.clone())?;
                }
            }
            set_nodes(writer.ledger, now, &plan.nodes)
        });
        done.map_err(|error| error.to_string())?.map_err(|error: Refusal| error.to_string())
    }

    /// Sets or takes away a queue's policy, and says in the journal which
    /// decides from here on.
    pub fn set_policy(&self, queue: &QueueName, wanted: Option<&Wanted>) -> Result<(), String> {
        let view = self.books.view();
        let Some(wanted) = wanted else {
            self.policies.clear(queue);
            return Ok(());
        };
        let live = self
            .policies
            .set(queue, wanted, &view.state)
            .map_err(|refusal| format!("queue {queue}: {refusal}"))?;
        self.note_policy(queue, &live).map_err(|error| error.to_string())
    }

    /// Reads a queue's policy again, because its file changed.
    pub fn refresh_policy(&self, queue: &QueueName) {
        let view = self.books.view();
        match self.policies.refresh(queue, &view.state) {
            Some(Ok(live)) => {
                if let Err(error) = self.note_policy(queue, &live) {
                    tracing::error!(%queue, %error, "the new policy is not in the journal");
                }
            }
            Some(Err(refusal)) => tracing::warn!(%queue, "{refusal}; the last good one stays"),
            None => {}
        }
    }

    fn note_policy(
        &self,
        queue: &QueueName,
        live: &crater_policy::Live,
    ) -> Result<(), Unavailable> {
        let digest = crater_engine::Policy::digest(&*live.policy);
        let known = self.books.view().state.queues().get(queue).and_then(|q| q.policy);
        if known == Some(digest) {
            return Ok(());
        }
        let queue = queue.clone();
        self.books.change_blocking(move |writer| {
            if let Err(error) = writer.ledger.set_policy(writer.now, &queue, digest) {
                tracing::error!(%error, "the journal does not take the policy");
            }
        })
    }

    /// Snapshots, forgetting what is over, trimming history, counting usage.
    fn keep_house(system: &Arc<Self>) -> std::io::Result<()> {
        let system = Arc::downgrade(system);
        std::thread::Builder::new().name("housekeeping".into()).spawn(move || {
            let mut last = 0;
            loop {
                std::thread::sleep(HOUSE);
                let Some(system) = system.upgrade() else { return };
                let retention = system.retention();
                let urls: Vec<String> = system.hooks.all().iter().map(|h| h.url.clone()).collect();
                let state = system.books.view().state.clone();
                let many = state.seq >= last + 20_000;
                // People look at what just ended; a restart reads what is kept.
                let over = state.jobs().filter(|job| job.may_be_forgotten()).count();
                let kept = if over > CROWD { FEW } else { LONG };
                // Packed here: the ledger thread only writes it down.
                let packed = many.then(|| Packed::new(&state.snapshot()));
                let done = system.books.change_blocking(move |writer| {
                    let now = writer.now;
                    let before = crater_model::Time(now.0.saturating_sub(kept));
                    let forgotten = writer.ledger.forget(now, before);
                    if let Err(error) = forgotten {
                        tracing::error!(%error, "ended jobs stay in the books");
                    }
                    match packed {
                        None => {}
                        Some(Err(error)) => tracing::error!(%error, "no snapshot was packed"),
                        Some(Ok(packed)) => {
                            if let Err(error) = writer.store().snapshot_packed(&packed) {
                                tracing::error!(%error, "no snapshot was written");
                            }
                        }
                    }
                    if let Err(error) = writer.store().trim(now, retention) {
                        tracing::error!(%error, "history was not trimmed");
                    }
                    if let Err(error) = writer.mark_usage() {
                        tracing::error!(%error, "usage was not counted");
                    }
                    if let Err(error) = writer.store().trim_outbox(&urls) {
                        tracing::error!(%error, "the outbox was not trimmed");
                    }
                });
                if many {
                    last = state.seq;
                }
                if done.is_err() {
                    return;
                }
            }
        })?;
        Ok(())
    }

    /// Learns the mix from submissions and tells policies that prepare.
    fn learn(system: &Arc<Self>) -> std::io::Result<()> {
        let (view, batches) = system.books.follow();
        for job in view.state.jobs() {
            system.policies.learn(&job.spec);
        }
        let system = Arc::downgrade(system);
        std::thread::Builder::new().name("mix".into()).spawn(move || {
            for batch in batches {
                let Some(system) = system.upgrade() else { return };
                let mut due = false;
                for entry in batch.iter() {
                    if let crater_model::Event::JobSubmitted { spec, .. } = &entry.event {
                        due |= system.policies.learn(spec);
                    }
                }
                if due {
                    system.policies.teach(&system.books.view().state);
                    for (queue, _, status) in system.policies.status() {
                        let Some((live, _)) = status.live else { continue };
                        if let Err(error) = system.note_policy(&queue, &live) {
                            tracing::error!(%queue, %error, "the new policy is not in the journal");
                        }
                    }
                }
            }
        })?;
        Ok(())
    }
}

/// Makes the nodes those of the configuration, by name.
fn set_nodes<J: crater_engine::Journal>(
    ledger: &mut crater_engine::Ledger<J>,
    now: crater_model::Time,
    nodes: &[NodeSpec],
) -> Result<(), Refusal> {
    for spec in nodes {
        let known = ledger.state().nodes().find(|node| node.spec.name == spec.name);
        match known.map(|node| (node.uid, node.spec.clone())) {
            None => {
                ledger.add_node(now, spec.clone())?;
            }
            Some((uid, known)) => {
                // A person cordons while the server runs; a file does not undo it.
                let (cordoned, disk_full) = (known.cordoned, known.disk_full);
                let spec = NodeSpec { cordoned, disk_full, ..spec.clone() };
                if spec != *known {
                    ledger.change_node(now, uid, spec)?;
                }
            }
        }
    }
    let names: std::collections::BTreeSet<_> = nodes.iter().map(|node| node.name.clone()).collect();
    let gone: Vec<_> = ledger
        .state()
        .nodes()
        .filter(|node| !names.contains(&node.spec.name))
        .map(|node| node.uid)
        .collect();
    gone.into_iter().try_for_each(|node| ledger.remove_node(now, node))
}
