//! Control groups, of both generations.
//!
//! Every member has one of its own. What it starts is born into it, and since a
//! member is never root, nothing leaves it.

use crate::disk::{DiskLimits, Usage};
use cgroups_rs::fs::cpu::CpuController;
use cgroups_rs::fs::cpuset::CpuSetController;
use cgroups_rs::fs::hierarchies::auto;
use cgroups_rs::fs::memory::MemController;
use cgroups_rs::fs::pid::PidController;
use cgroups_rs::fs::{Cgroup, MaxValue, Subsystem};
use crater_model::{Mib, MilliCores};
use rustix::process::{Pid, PidfdFlags, Signal};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use thiserror::Error;

/// What a member may use.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// CPU: a quota, and a share by it when there is too little.
    pub cpu: MilliCores,
    /// Memory, swap included.
    pub memory: Mib,
    /// Processes and threads.
    pub processes: u32,
    /// The cores it runs on, such as `0-7`; any without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cores: Option<String>,
    /// Disk.
    pub disk: DiskLimits,
}

/// Control groups cannot be used.
#[derive(Debug, Error)]
pub enum GroupError {
    /// Some are not there.
    #[error(
        "this machine offers no cgroup controller {missing} ({found}); jobs would have no limits. \
         Run on the machine itself or in a container with writable cgroups"
    )]
    Missing {
        /// Which.
        missing: String,
        /// What was found.
        found: String,
    },
    /// One cannot be made or set.
    #[error("cgroup {name}: {what}: {why}")]
    Refused {
        /// Its name.
        name: String,
        /// What was tried.
        what: &'static str,
        /// What the system said.
        why: String,
    },
    /// Its processes do not end.
    #[error("cgroup {name}: {count} processes do not end: {first}")]
    Stuck {
        /// Its name.
        name: String,
        /// How many.
        count: usize,
        /// One of them.
        first: u32,
    },
}

/// What this machine offers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Of the second generation, with one hierarchy for everything.
    pub unified: bool,
    /// Controllers by name; `blkio` is called `io` in the second generation.
    pub controllers: BTreeSet<String>,
}

impl Found {
    /// Looks.
    pub fn look() -> Self {
        let root = Cgroup::load(auto(), "");
        let names = root.subsystems().iter().map(Subsystem::controller_name);
        let mut controllers: BTreeSet<String> = names.collect();
        if root.v2() {
            let offered = fs::read_to_string("/sys/fs/cgroup/cgroup.controllers");
            let offered = offered.unwrap_or_default();
            controllers = offered.split_whitespace().map(str::to_owned).collect();
        }
        Self { unified: root.v2(), controllers }
    }

    /// Refuses a machine on which limits would not hold.
    pub fn check(&self) -> Result<(), GroupError> {
        for needed in ["cpu", "memory", "pids"] {
            if !self.controllers.contains(needed) {
                let (missing, found) = (needed.to_owned(), self.to_string());
                return Err(GroupError::Missing { missing, found });
            }
        }
        Ok(())
    }

    /// Makes a group and takes it away: some containers show cgroups that they
    /// may not change.
    pub fn try_out(&self, name: &str) -> Result<(), GroupError> {
        self.check()?;
        let limits =
            Limits { cpu: MilliCores(100), memory: Mib(16), processes: 8, ..Limits::default() };
        Group::make(self, name, &limits)?.remove(Duration::from_secs(1))
    }

    /// Those that a member is put under.
    fn used(&self) -> Vec<String> {
        let wanted = ["cpu", "cpuacct", "cpuset", "memory", "pids", "blkio", "io"];
        wanted.map(str::to_owned).into_iter().filter(|c| self.controllers.contains(c)).collect()
    }
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.controllers.iter().map(String::as_str).collect();
        write!(f, "cgroup v{}: {}", if self.unified { 2 } else { 1 }, names.join(", "))
    }
}

/// What a group used until now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Used {
    /// CPU time.
    pub cpu: Duration,
    /// Memory now, without what the kernel keeps of files and could drop.
    pub memory: u64,
    /// Disk.
    pub disk: Usage,
}

/// One control group.
pub struct Group {
    name: String,
    inner: Cgroup,
}

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Group").field(&self.name).finish()
    }
}

impl Group {
    /// The group of a name, whether it is there or not.
    pub fn at(found: &Found, name: &str) -> Self {
        let inner = Cgroup::load_with_specified_controllers(auto(), name, found.used());
        Self { name: name.to_owned(), inner }
    }

    /// Makes it, with these limits.
    pub fn make(found: &Found, name: &str, limits: &Limits) -> Result<Self, GroupError> {
        let group = Self::at(found, name);
        group.inner.create().map_err(|e| group.refused("make it", &e))?;
        group.limit(limits)?;
        Ok(group)
    }

    fn refused(&self, what: &'static str, why: &dyn std::error::Error) -> GroupError {
        let mut text = why.to_string();
        let mut source = why.source();
        while let Some(error) = source {
            text = format!("{text}: {error}");
            source = error.source();
        }
        GroupError::Refused { name: self.name.clone(), what, why: text }
    }

    fn limit(&self, limits: &Limits) -> Result<(), GroupError> {
        let missing = |what| GroupError::Refused {
            name: self.name.clone(),
            what,
            why: "its controller is gone".into(),
        };
        let memory: &MemController =
            self.inner.controller_of().ok_or_else(|| missing("limit memory"))?;
        let bytes = i64::try_from(limits.memory.0.saturating_mul(1 << 20)).unwrap_or(i64::MAX);
        memory.set_limit(bytes).map_err(|e| self.refused("limit memory", &e))?;
        // Without swap accounting there is no such file, and nothing to limit.
        let swap = if self.inner.v2() { 0 } else { bytes };
        if let Err(error) = memory.set_memswap_limit(swap) {
            tracing::debug!(%error, group = self.name, "swap is not limited");
        }
        let cpu: &CpuController = self.inner.controller_of().ok_or_else(|| missing("limit CPU"))?;
        // The kernel takes no quota below a millisecond of each period.
        let quota = i64::try_from(limits.cpu.0.saturating_mul(PERIOD / 1000)).unwrap_or(i64::MAX);
        cpu.set_cfs_quota_and_period(Some(quota.max(1000)), Some(PERIOD))
            .map_err(|e| self.refused("limit CPU", &e))?;
        let weight = if self.inner.v2() {
            (limits.cpu.0 / 10).clamp(1, 10_000)
        } else {
            (limits.cpu.0.saturating_mul(1024) / 1000).clamp(2, 262_144)
        };
        cpu.set_shares(weight).map_err(|e| self.refused("weigh CPU", &e))?;
        let pids: &PidController =
            self.inner.controller_of().ok_or_else(|| missing("limit processes"))?;
        pids.set_pid_max(MaxValue::Value(i64::from(limits.processes)))
            .map_err(|e| self.refused("limit processes", &e))?;
        if let Some(cores) = &limits.cores
            && let Some(set) = self.inner.controller_of::<CpuSetController>()
        {
            set.set_cpus(cores).map_err(|e| self.refused("choose cores", &e))?;
        }
        self.set_disk(&limits.disk);
        Ok(())
    }

    /// Sets what it may use of its disk; what the machine cannot do is said in
    /// the log, since it was said to the user when the server started.
    pub fn set_disk(&self, limits: &DiskLimits) {
        for note in limits.apply(self) {
            tracing::debug!(group = self.name, "{note}");
        }
    }

    /// Moves this process into it, and so all that it starts.
    pub fn join(&self) -> Result<(), GroupError> {
        let own = u64::from(std::process::id());
        self.inner
            .add_task_by_tgid(own.into())
            .map_err(|e| self.refused("move a process into it", &e))
    }

    /// The folder of one of its controllers; in the second generation all have
    /// the same.
    pub(crate) fn folder(&self, controller: &str) -> Option<PathBuf> {
        let all = self.inner.subsystems();
        let found = all.iter().find(|s| s.controller_name() == controller);
        found.map(|s| s.to_controller().path().to_owned())
    }

    /// Whether it is of the second generation.
    pub fn unified(&self) -> bool {
        self.inner.v2()
    }

    /// Its folders, one for each controller in the first generation, each with
    /// those below it, deepest first. A container runtime makes some.
    fn folders(&self) -> Vec<PathBuf> {
        let tops: BTreeSet<PathBuf> = if self.unified() {
            self.folder("cpu").into_iter().collect()
        } else {
            let all = self.inner.subsystems().iter();
            // A container runtime also makes them in hierarchies that limit
            // nothing.
            let others = fs::read_dir("/sys/fs/cgroup").into_iter().flatten();
            let others = others.filter_map(Result::ok).map(|entry| entry.path().join(&self.name));
            all.map(|s| s.to_controller().path().to_owned()).chain(others).collect()
        };
        let mut all = vec![];
        for top in &tops {
            below(top, &mut all);
        }
        all
    }

    /// Its processes.
    pub fn processes(&self) -> Vec<u32> {
        let mut all: Vec<u32> = vec![];
        for folder in self.folders() {
            let text = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
            all.extend(text.lines().filter_map(|line| line.parse::<u32>().ok()));
        }
        all.sort_unstable();
        all.dedup();
        // Those of another namespace have no number here.
        all.retain(|pid| *pid != 0);
        all
    }

    /// Ends processes by force, if they are (still) the group's: a number may
    /// belong to somebody else by now, a handle does not.
    fn end(&self, processes: &[u32]) {
        let opened = processes.iter().filter_map(|number| {
            let pid = i32::try_from(*number).ok().and_then(Pid::from_raw)?;
            let handle = rustix::process::pidfd_open(pid, PidfdFlags::empty()).ok()?;
            Some((*number, handle))
        });
        let opened: Vec<_> = opened.collect();
        let still = self.processes();
        for (_, handle) in opened.iter().filter(|(n, _)| still.binary_search(n).is_ok()) {
            let _ = rustix::process::pidfd_send_signal(handle, Signal::KILL);
        }
    }

    /// Ends all its processes by force, those that are just being born, too.
    pub fn kill(&self, within: Duration) -> Result<(), GroupError> {
        let until = Instant::now() + within;
        // From here on nothing more is born.
        if let Some(pids) = self.inner.controller_of::<PidController>() {
            let _ = pids.set_pid_max(MaxValue::Value(0));
        }
        loop {
            let left = self.processes();
            let Some(first) = left.first() else { return Ok(()) };
            if Instant::now() > until {
                let name = self.name.clone();
                return Err(GroupError::Stuck { name, count: left.len(), first: *first });
            }
            if self.inner.kill().is_err() {
                // No more at a time than there may be open files.
                left.chunks(256).for_each(|some| self.end(some));
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Whether the kernel ended a process of it for want of memory.
    pub fn out_of_memory(&self) -> bool {
        let file = if self.unified() { "memory.events" } else { "memory.oom_control" };
        let Some(folder) = self.folder("memory") else { return false };
        figure(&folder.join(file), "oom_kill").is_some_and(|count| count > 0)
    }

    /// Whether its members ever met the limit of memory: with an end by SIGKILL
    /// that nobody sent, the same in a container whose own group is gone.
    pub fn met_its_memory(&self) -> bool {
        let Some(folder) = self.folder("memory") else { return false };
        if self.unified() {
            return figure(&folder.join("memory.events"), "max").is_some_and(|times| times > 0);
        }
        // Failures are counted in the group that the process was in.
        let read = |file: &str| number(&folder.join(file)).unwrap_or(0);
        let (most, limit) = ("memory.max_usage_in_bytes", "memory.limit_in_bytes");
        read(most) >= read(limit)
    }

    /// What it used until now.
    pub fn used(&self) -> Used {
        let memory = self.folder("memory").map(|folder| memory(&folder, self.unified()));
        let cpu = if self.unified() {
            let folder = self.folder("cpu");
            let micros = folder.and_then(|f| figure(&f.join("cpu.stat"), "usage_usec"));
            micros.map(Duration::from_micros)
        } else {
            let folder = self.folder("cpuacct");
            folder.and_then(|f| number(&f.join("cpuacct.usage"))).map(Duration::from_nanos)
        };
        let disk = self.disk_used();
        Used { cpu: cpu.unwrap_or_default(), memory: memory.unwrap_or(0), disk }
    }

    /// What it read and wrote until now.
    pub fn disk_used(&self) -> Usage {
        Usage::of(self)
    }

    /// Takes it away once it is empty; one that is not there is fine.
    pub fn remove(&self, within: Duration) -> Result<(), GroupError> {
        let until = Instant::now() + within;
        loop {
            let failed = self.folders().into_iter().filter_map(|f| fs::remove_dir(f).err());
            let failed: Vec<std::io::Error> =
                failed.filter(|e| e.kind() != std::io::ErrorKind::NotFound).collect();
            let Some(error) = failed.last() else { return Ok(()) };
            // The kernel takes a moment to let go of the last process.
            if Instant::now() > until {
                return Err(self.refused("take it away", error));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// A folder after all those below it.
fn below(folder: &Path, all: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.filter_map(Result::ok) {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            below(&entry.path(), all);
        }
    }
    all.push(folder.to_owned());
}

/// Microseconds in which a quota is used up.
const PERIOD: u64 = 100_000;

/// The number after a word in a file of lines.
pub(crate) fn figure(file: &Path, word: &str) -> Option<u64> {
    let text = fs::read_to_string(file).ok()?;
    let mut lines = text.lines().map(str::split_whitespace);
    let mut line = lines.find(|line| line.clone().next() == Some(word))?;
    line.nth(1)?.parse().ok()
}

/// The number in a file.
pub(crate) fn number(file: &Path) -> Option<u64> {
    fs::read_to_string(file).ok()?.trim().parse().ok()
}

fn memory(folder: &Path, unified: bool) -> u64 {
    let (all, dropped) = if unified {
        ("memory.current", "inactive_file")
    } else {
        ("memory.usage_in_bytes", "total_inactive_file")
    };
    let all = number(&folder.join(all)).unwrap_or(0);
    all.saturating_sub(figure(&folder.join("memory.stat"), dropped).unwrap_or(0))
}
