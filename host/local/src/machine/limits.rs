//! What the cgroups that this process is in leave it of the machine: in a
//! container, or under a service manager, less than the kernel counts.

use super::mounts::{self, Mount};
use super::{FindError, files};
use crater_model::{Mib, MilliCores};
use std::fmt;
use std::path::{Component, Path, PathBuf};

/// What is limited, and to how much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limited {
    /// CPU time, as cores.
    Cpu(MilliCores),
    /// Memory.
    Memory(Mib),
}

/// A cgroup's limit that is less than what the machine has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Of what, and how much is left.
    pub what: Limited,
    /// The kernel's file that says so.
    pub file: PathBuf,
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.what {
            Limited::Cpu(cores) => write!(f, "CPU is limited to {cores} cores")?,
            Limited::Memory(memory) => write!(f, "memory is limited to {memory}")?,
        }
        write!(f, " by {}", self.file.display())
    }
}

/// The least CPU and the least memory that any cgroup above this process
/// leaves it; `None` where none sets a limit.
pub fn find(root: &Path) -> Result<(Option<Limit>, Option<Limit>), FindError> {
    let mounts = mounts::read(root)?;
    let groups = files::text_if_there(&root.join("proc/self/cgroup"))?.unwrap_or_default();
    let least = |controller, read: fn(&Path, bool) -> Option<(Limited, PathBuf)>| {
        let (folders, first_version) = folders(root, &mounts, &groups, controller)?;
        let limits = folders.iter().filter_map(|folder| read(folder, first_version));
        let (what, file) = limits.min_by_key(|(what, _)| amount(*what))?;
        // As it is called inside the root, which is `/` but in tests.
        let file = Path::new("/").join(file.strip_prefix(root).unwrap_or(&file));
        Some(Limit { what, file })
    };
    Ok((least("cpu", cpu), least("memory", memory)))
}

fn amount(what: Limited) -> u64 {
    match what {
        Limited::Cpu(MilliCores(n)) | Limited::Memory(Mib(n)) => n,
    }
}

/// The folders of the cgroups above this process that this controller rules,
/// its own first, and whether they are of version 1. Each of them limits.
fn folders(
    root: &Path,
    mounts: &[Mount],
    groups: &str,
    controller: &str,
) -> Option<(Vec<PathBuf>, bool)> {
    // `4:memory:/path` for a controller of version 1, `0::/path` for version 2.
    let group = |of: &dyn Fn(&str) -> bool| {
        groups.lines().find_map(|line| {
            let mut parts = line.splitn(3, ':').skip(1);
            of(parts.next()?).then_some(parts.next()?)
        })
    };
    let first = mounts
        .iter()
        .find(|m| m.filesystem == "cgroup" && m.options.iter().any(|o| o == controller));
    let (mount, path) = match first {
        Some(mount) => (mount, group(&|of| of.split(',').any(|c| c == controller))?),
        None => (mounts.iter().find(|m| m.filesystem == "cgroup2")?, group(&str::is_empty)?),
    };
    // A container without a cgroup namespace sees its own cgroup mounted at
    // the top; a process that stands outside its namespace's root sees `/..`.
    let inside = Path::new(path).strip_prefix(&mount.root).unwrap_or(Path::new(""));
    let names = || inside.components().map(Component::as_os_str);
    let inside: PathBuf =
        if names().any(|n| n == "..") { PathBuf::new() } else { names().collect() };
    let top = root.join(mount.point.strip_prefix("/").unwrap_or(&mount.point));
    let own = top.join(inside);
    let folders = own.ancestors().take_while(|f| f.starts_with(&top));
    Some((folders.map(Path::to_owned).collect(), first.is_some()))
}

fn cpu(folder: &Path, first_version: bool) -> Option<(Limited, PathBuf)> {
    let (quota, period, file) = if first_version {
        let file = folder.join("cpu.cfs_quota_us");
        (files::value(&file)?, files::value(&folder.join("cpu.cfs_period_us"))?, file)
    } else {
        let file = folder.join("cpu.max");
        let text: String = files::value(&file)?;
        let (quota, period) = text.split_once(' ')?;
        (quota.parse().ok()?, period.parse().ok()?, file)
    };
    // -1 and `max` are no limit and do not parse.
    let (quota, period): (u64, u64) = (quota, period);
    let milli = quota.saturating_mul(1000).checked_div(period)?;
    Some((Limited::Cpu(MilliCores(milli)), file))
}

fn memory(folder: &Path, first_version: bool) -> Option<(Limited, PathBuf)> {
    let name = if first_version { "memory.limit_in_bytes" } else { "memory.max" };
    let file = folder.join(name);
    // `max` does not parse. Version 1 writes the greatest number of pages
    // instead, which is more than any machine has.
    let bytes: u64 = files::value(&file)?;
    Some((Limited::Memory(Mib(bytes >> 20)), file))
}
