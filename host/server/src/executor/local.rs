//! Runs members as processes of this machine.

mod io;
mod meter;
mod print;

use super::Executor;
use crate::books::Books;
use crate::config::{ConfigError, ThisMachine};
use crate::logs::Logs;
use crater_engine::{Job, Ledger, Refusal, State};
use crater_local::disk::DiskLimits;
use crater_local::image::Image;
use crater_local::local::{Local, Member, OpenError, Report};
use crater_local::machine::{self, FindError, Machine, Storage, gpu_environment};
use crater_local::{End, Limits};
use crater_model::{
    Cause, Claim, ClaimState, ClaimUid, FieldError, JobSpec, JobUid, Kind, MbPerSec, NodeSpec,
    NodeUid, Time,
};
use io::Io;
pub use meter::Meter;
use print::Printed;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use thiserror::Error;

/// From the signal to end until it is ended by force, unless the job says so.
const GRACE: Duration = Duration::from_mins(2);
/// Members are looked at this often while there are any.
const LOOK: Duration = Duration::from_millis(100);
/// Checkpoints are looked for this often.
const SAVES: Duration = Duration::from_secs(1);

/// This machine cannot run jobs.
#[derive(Debug, Error)]
pub enum LocalError {
    /// It cannot be described.
    #[error("this machine: {}", whole(.0))]
    Find(#[from] FindError),
    /// It cannot run them.
    #[error("{0}")]
    Open(#[from] OpenError),
    /// What the configuration says of it.
    #[error(transparent)]
    Config(#[from] ConfigError),
}

/// An error with what caused it.
fn whole(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text = format!("{text}: {cause}");
        next = cause.source();
    }
    text
}

/// The executor.
pub struct Processes {
    local: Local,
    machine: Machine,
    /// The disk on which jobs' files lie: its number, and who gives way on it.
    disk: Option<(String, Io)>,
    mps: bool,
    printed: Arc<Printed>,
    meter: Arc<Meter>,
    /// Claims that run according to the books, and have nothing here.
    missing: Vec<ClaimUid>,
    swept: bool,
    looked: Option<Instant>,
}

/// Finds this machine and makes it ready.
pub fn open(
    config: &ThisMachine,
    data: &Path,
    refuse: impl Fn(FieldError) -> ConfigError,
) -> Result<(Processes, NodeSpec), LocalError> {
    let machine = machine::find(Path::new("/"))?;
    let spec = machine.node_spec(&config.offer().map_err(&refuse)?);
    let settings = config.settings(data).map_err(&refuse)?;
    let output_bytes = settings.output_bytes;
    let local = Local::open(settings)?;
    let disk = disk(&machine, local.base(), spec.disk);
    tracing::info!(node = %spec.name, cpu = %spec.cpu, memory = %spec.memory,
        cards = spec.cards.len(), "{}", local.found());
    let printed = Arc::new(Printed::new(local.base(), output_bytes));
    let meter = Arc::new(Meter::new(&local));
    let (missing, looked) = (vec![], None);
    let mps = config.mps;
    let executor =
        Processes { local, machine, disk, mps, printed, meter, missing, swept: false, looked };
    Ok((executor, spec))
}

/// The disk whose use is limited, with a word in the log where there is none or
/// it takes no weights.
fn disk(machine: &Machine, base: &Path, capacity: MbPerSec) -> Option<(String, Io)> {
    match machine.storage_of(base) {
        Ok(Storage::Disk { disk, charged_at }) => {
            if disk.scheduler.as_deref() != Some("bfq") {
                tracing::info!(disk = %disk.name,
                    "disk weights act with the scheduler bfq (echo bfq > /sys/block/{}/queue/scheduler) \
                     or an enabled io.cost; caps act without", disk.name);
            }
            Some((charged_at.to_string(), Io::new(&disk.name, capacity)))
        }
        Ok(other) => {
            tracing::warn!(
                "jobs' files lie on no disk of this machine ({other}): disk IO is not \
                limited"
            );
            None
        }
        Err(error) => {
            tracing::warn!("disk IO is not limited: {}", whole(&error));
            None
        }
    }
}

/// Refuses a job that no process of this machine could be.
pub fn check(this: &ThisMachine, spec: &JobSpec) -> Result<(), FieldError> {
    let task = &spec.task;
    if !task.image.is_empty() && this.runtime.is_none() {
        let expected = "none: jobs are processes of this machine, which has no container runtime \
                        configured (cluster.local.runtime: podman); leave --image out and \
                        give --command";
        return Err(FieldError::new("image", &task.image, expected));
    }
    if task.image.starts_with('-') || task.image.contains(char::is_whitespace) {
        return Err(FieldError::new("image", &task.image, "the name of an image"));
    }
    let newline = |(_, value): &(&String, &String)| value.contains('\n');
    if !task.image.is_empty()
        && let Some((name, _)) = task.env.iter().find(newline)
    {
        let expected = "a value of one line, as containers take it";
        return Err(FieldError::new("env", name, expected));
    }
    if task.command.is_empty() && task.image.is_empty() {
        let expected = "a command, such as --command 'python3 train.py'";
        return Err(FieldError::new("command", "", expected));
    }
    for volume in &task.volumes {
        let source = volume.split(':').next().unwrap_or_default();
        let expected = if task.image.is_empty() {
            "none without an image: a process sees this machine's own files".to_owned()
        } else if this.volumes.is_empty() {
            "none: no folder of this machine may be mounted (cluster.local.volumes)".to_owned()
        } else if this.volumes.iter().any(|known| known == source) {
            continue;
        } else {
            format!("one of {}", this.volumes.join(", "))
        };
        return Err(FieldError::new("volumes", volume, expected));
    }
    if !task.workdir.is_empty() && !task.workdir.starts_with('/') {
        return Err(FieldError::new("workdir", &task.workdir, "a whole path, from /"));
    }
    if spec.request.cpu.0 < 10 {
        return Err(FieldError::new("cpu", &spec.request.cpu.to_string(), "at least 0.01"));
    }
    if spec.request.memory.0 < 8 {
        let text = spec.request.memory.to_string();
        return Err(FieldError::new("memory", &text, "at least 8Mi, which a process needs"));
    }
    Ok(())
}

impl Processes {
    /// What jobs print.
    pub fn logs(&self) -> Arc<dyn Logs> {
        self.printed.clone()
    }

    /// What jobs use.
    pub fn meter(&self) -> Arc<Meter> {
        self.meter.clone()
    }

    /// What a member may use of the disk: what its job says, and less while it
    /// gives way.
    fn disk_limits(&self, job: &Job, claim: ClaimUid) -> DiskLimits {
        let task = &job.spec.task;
        let most = task.disk_bandwidth_limit.map(|most| most.0.saturating_mul(1_000_000));
        let way = self.disk.as_ref().and_then(|(_, io)| io.cap(claim));
        DiskLimits {
            device: self.disk.as_ref().map(|(number, _)| number.clone()),
            weight: job.spec.request.disk.weight,
            bytes: most.into_iter().chain(way).min(),
            operations: task.disk_iops_limit.map(|most| most.0),
        }
    }

    fn member(&self, job: &Job, claim: &Claim) -> Member {
        let (task, held) = (&job.spec.task, &claim.held);
        let mut env = task.env.clone();
        // What the platform says stands above what the job says.
        let own = super::environment(job).map(|(name, value)| (name.to_owned(), value));
        env.extend(own);
        env.extend(gpu_environment(&self.machine, held, self.mps));
        env.insert("CRATER_MEMBER".into(), claim.member.to_string());
        env.insert("CRATER_MEMBERS".into(), job.spec.members.to_string());
        let near =
            job.spec.kind == Kind::Inference || job.spec.request.numa != crater_model::Need::None;
        let limits = Limits {
            cpu: held.cpu,
            memory: held.memory,
            processes: 0,
            cores: if near { self.machine.cores_for(held) } else { None },
            disk: self.disk_limits(job, claim.uid),
        };
        Member {
            claim: claim.uid,
            job: job.uid,
            member: claim.member,
            members: job.spec.members,
            tenant: job.spec.tenant.clone(),
            command: task.command.clone(),
            image: (!task.image.is_empty()).then(|| Image {
                name: task.image.clone(),
                volumes: task.volumes.clone(),
                cards: self.cards(claim),
            }),
            env,
            workdir: PathBuf::from(&task.workdir),
            limits,
        }
    }

    /// UUIDs of a claim's cards.
    fn cards(&self, claim: &Claim) -> Vec<String> {
        let cards = claim.held.cards.iter();
        let cards = cards.filter_map(|share| self.machine.cards.get(usize::from(share.card)));
        cards.map(|card| card.uuid.clone()).collect()
    }

    /// This machine as it is to be in the books, if its disk has become full or
    /// is not full any more.
    fn fullness(&self, state: &State) -> Option<(NodeUid, NodeSpec)> {
        let full = self.disk.as_ref().is_some_and(|(_, io)| io.full());
        let node = state.nodes().find(|node| node.spec.disk_full != full)?;
        Some((node.uid, NodeSpec { disk_full: full, ..(*node.spec).clone() }))
    }

    /// Looks at the disk, and holds or lets go who gives way.
    fn share_disk(&mut self, state: &State) {
        let Some((_, io)) = &mut self.disk else { return };
        for claim in io.look(state, &self.local) {
            let Some(job) = state.claim(claim).and_then(|claim| state.job(claim.job)) else {
                continue;
            };
            let limits = self.disk_limits(job, claim);
            tracing::debug!(%claim, bytes = limits.bytes, "gives way on the disk");
            self.local.set_disk(claim, limits);
        }
    }

    /// Tells the ledger what happened, and forgets what it took note of.
    fn report(&mut self, books: &Books, reports: Vec<(ClaimUid, Report)>, saves: Vec<JobUid>) {
        let missing = std::mem::take(&mut self.missing);
        let full = self.fullness(&books.view().state);
        if reports.is_empty() && saves.is_empty() && missing.is_empty() && full.is_none() {
            return;
        }
        let over: Vec<ClaimUid> =
            reports.iter().filter(|(_, r)| matches!(r, Report::Ended(_))).map(|r| r.0).collect();
        let told = books.change_blocking(move |writer| {
            let now = writer.now;
            if let Some((node, spec)) = full
                && let Err(error) = writer.ledger.change_node(now, node, spec)
            {
                tracing::error!(%error, "how full the disk is is not noted");
            }
            for job in saves {
                if let Err(error) = super::saved(writer.ledger, now, job) {
                    tracing::error!(%error, %job, "its checkpoint is not noted");
                }
            }
            let lost = End::Lost { why: "nothing of it is on this machine".into() };
            let missing = missing.into_iter().map(|claim| (claim, Report::Ended(lost.clone())));
            for (claim, report) in reports.into_iter().chain(missing) {
                if let Err(error) = note(writer.ledger, now, claim, &report) {
                    tracing::error!(%error, %claim, "a report was refused");
                }
            }
        });
        if told.is_err() {
            // The server ends; the next one is told again.
            return;
        }
        for claim in over {
            self.meter.forget(claim);
            if let Err(error) = self.local.forget(claim) {
                tracing::error!(%error, %claim, "its folder stays");
            }
        }
    }
}

/// What a report means for the books. An old message changes nothing.
fn note<J: crater_engine::Journal>(
    ledger: &mut Ledger<J>,
    now: Time,
    claim: ClaimUid,
    report: &Report,
) -> Result<bool, Refusal> {
    match report {
        Report::Runs => ledger.move_claim(now, claim, ClaimState::Held),
        Report::Ended(End::Stopped { .. }) => ledger.move_claim(now, claim, ClaimState::Gone),
        Report::Ended(End::NotStarted { why, own: false }) => ledger.refuse_start(now, claim, why),
        Report::Ended(End::Lost { why }) => {
            // Whoever was to end has.
            let known = ledger.state().claim(claim);
            let known = known.filter(|claim| claim.state != ClaimState::Releasing);
            if let Some(job) = known.map(|claim| claim.job) {
                tracing::warn!(%job, %claim, "lost: {why}");
                match ledger.evict(now, job, Cause::LostNode, Some(why)) {
                    Ok(_) | Err(Refusal::Over { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
            ledger.move_claim(now, claim, ClaimState::Gone)
        }
        Report::Ended(end) => ledger.member_ended_so(now, claim, end.success(), &end.to_string()),
    }
}

impl Executor for Processes {
    fn start(&mut self, state: &State, claim: &Claim) {
        let Some(job) = state.job(claim.job) else { return };
        if claim.state == ClaimState::Held {
            // Nothing is started twice: what ran and is not here is lost.
            match self.local.take_up(claim.uid, claim.job) {
                Ok(true) => {}
                Ok(false) => self.missing.push(claim.uid),
                Err(error) => {
                    tracing::error!(%error, claim = %claim.uid, "its folder is unreadable");
                }
            }
            // A changed weight comes this way, too.
            let limits = self.disk_limits(job, claim.uid);
            self.local.set_disk(claim.uid, limits);
            return;
        }
        let member = self.member(job, claim);
        if let Err(error) = self.local.start(member) {
            tracing::error!(%error, claim = %claim.uid, "it is not started");
        }
    }

    fn stop(&mut self, state: &State, claim: &Claim) {
        let grace = state.job(claim.job).and_then(|job| job.spec.task.grace);
        let grace = grace.map_or(GRACE, |seconds| Duration::from_secs(seconds.into()));
        let known = self.local.take_up(claim.uid, claim.job);
        match known.and_then(|known| Ok(known && self.local.stop(claim.uid, grace)?)) {
            Ok(true) => {}
            Ok(false) => self.missing.push(claim.uid),
            Err(error) => tracing::error!(%error, claim = %claim.uid, "it is not told to end"),
        }
    }

    fn step(&mut self, books: &Books) -> Duration {
        if !self.swept {
            self.swept = true;
            let known: BTreeSet<ClaimUid> =
                books.view().state.claims().map(|claim| claim.uid).collect();
            if let Err(error) = self.local.sweep(&known) {
                tracing::error!(%error, "what nobody knows is not looked for");
            }
        }
        let reports = self.local.poll();
        let ends = reports.iter().any(|(_, report)| matches!(report, Report::Ended(_)));
        // Before the ends: who saves when it is told to end is to be known.
        let due = ends || self.looked.is_none_or(|looked| looked.elapsed() >= SAVES);
        let mut saves = vec![];
        if due {
            self.looked = Some(Instant::now());
            let view = books.view();
            let told = |job| view.state.job(job).and_then(|job| job.checkpointed);
            saves = self.local.checkpoints(told);
        }
        self.share_disk(&books.view().state);
        self.report(books, reports, saves);
        self.printed.look();
        if self.local.is_empty() { Duration::from_secs(1) } else { LOOK }
    }
}
