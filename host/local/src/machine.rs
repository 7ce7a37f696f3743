//! The machine found: its cores, memory, disks and cards.
//!
//! Everything is read below a root, `/` but in tests, and nothing is changed.

mod cards;
pub mod cores;
mod disks;
mod files;
mod limits;
mod mounts;
mod offer;
mod storage;

pub use cards::{Card, Driver, NoCards};
pub use disks::{DeviceNumber, Disk, Layer};
pub use limits::{Limit, Limited};
pub use nvml_wrapper::error::NvmlError;
pub use offer::{Offer, gpu_environment};
pub use storage::Storage;

use crater_model::{Mib, MilliCores};
use std::io;
use std::path::{Path, PathBuf};

/// Why a machine could not be described.
#[derive(Debug, thiserror::Error)]
pub enum FindError {
    /// A file of the kernel, or a path that was asked for, cannot be read.
    #[error("{} cannot be read", path.display())]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A file of the kernel does not say what it should.
    #[error("{} does not say {what}: `{text}`", path.display())]
    Says {
        /// The file.
        path: PathBuf,
        /// What was looked for in it.
        what: &'static str,
        /// What it says, its first line.
        text: String,
    },
    /// A file of the kernel does not hold a list of cores.
    #[error("{} names no cores", path.display())]
    Cores {
        /// The file.
        path: PathBuf,
        /// What it holds.
        #[source]
        source: cores::CoreListError,
    },
    /// The driver's library that was named cannot be loaded.
    #[error("{} cannot be loaded as NVIDIA's management library", path.display())]
    Library {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: NvmlError,
    },
    /// There is a driver, and it does not say which cards there are.
    #[error("the NVIDIA driver failed at {call} (CRATER_NVML=off leaves cards out)")]
    Driver {
        /// The function that was called.
        call: &'static str,
        /// Its answer.
        #[source]
        source: NvmlError,
    },
    /// The driver failed over one card, otherwise than by saying that the card
    /// is lost, needs a reset or does not know the answer.
    #[error(
        "the NVIDIA driver failed at {call} for card {index}{} (CRATER_NVML=off leaves cards out)",
        if uuid.is_empty() { String::new() } else { format!(", {uuid}") }
    )]
    Card {
        /// The card's index.
        index: u32,
        /// Its identity, empty if that was not known yet.
        uuid: String,
        /// The function that was called.
        call: &'static str,
        /// Its answer.
        #[source]
        source: NvmlError,
    },
}

/// A NUMA node: cores and the memory next to them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Numa {
    /// Its number.
    pub id: u16,
    /// Its cores, in order: of those that this process may use. May be none.
    pub cpus: Vec<u32>,
    /// Its memory in MiB, whatever limits there are.
    pub memory_mib: u64,
}

/// A machine, as it was when it was looked at.
#[derive(Clone, Debug, Default)]
pub struct Machine {
    /// The host's name.
    pub name: String,
    /// The cores that are online and that this process may use, in order.
    pub cpus: Vec<u32>,
    /// CPU that there is to promise: the cores, or less where a quota says so.
    pub cpu: MilliCores,
    /// NUMA nodes, by number; one of everything where the kernel knows none.
    pub numa: Vec<Numa>,
    /// Memory that there is, in MiB: the machine's, or less where a limit says
    /// so.
    pub memory_mib: u64,
    /// The limits that leave less than the machine has.
    pub limits: Vec<Limit>,
    /// Disks, by name.
    pub disks: Vec<Disk>,
    /// Cards, by the driver's index, without gaps.
    pub cards: Vec<Card>,
    /// Why there are no cards.
    pub no_cards: Option<NoCards>,
    /// Where the mounts are read when somebody asks for a path.
    root: PathBuf,
}

/// Describes the machine below `root`, which is `/` but in tests, with the
/// cards that the driver named by `CRATER_NVML` knows of (see
/// [`Driver::from_env`]).
///
/// # Errors
///
/// If the kernel does not say how many cores and how much memory there are, or
/// a driver is there and fails.
pub fn find(root: &Path) -> Result<Machine, FindError> {
    find_with(root, &Driver::from_env())
}

/// As [`find`], with the cards that `driver` knows of.
pub fn find_with(root: &Path, driver: &Driver) -> Result<Machine, FindError> {
    let name = files::text(&root.join("proc/sys/kernel/hostname"))?;
    let cpus = cpus(root)?;
    let memory = files::meminfo(&root.join("proc/meminfo"), "MemTotal")?;
    let (cpu_limit, memory_limit) = limits::find(root)?;
    let cores = MilliCores(1000) * cpus.len() as u64;
    let (mut cpu, mut memory_mib, mut limits) = (cores, memory, vec![]);
    for limit in cpu_limit.into_iter().chain(memory_limit) {
        match limit.what {
            Limited::Cpu(quota) if quota < cores => cpu = quota,
            Limited::Memory(Mib(most)) if most < memory => memory_mib = most,
            _ => continue,
        }
        limits.push(limit);
    }
    let (cards, no_cards) = match cards::find(root, driver)? {
        Ok(cards) => (cards, None),
        Err(why) => (vec![], Some(why)),
    };
    Ok(Machine {
        numa: numa(root, &cpus, memory)?,
        disks: disks::find(root)?,
        root: root.to_owned(),
        name,
        cpus,
        cpu,
        memory_mib,
        limits,
        cards,
        no_cards,
    })
}

/// The cores that are online and that this process may use.
fn cpus(root: &Path) -> Result<Vec<u32>, FindError> {
    let file = root.join("sys/devices/system/cpu/online");
    let mut cpus = core_list(&file, &files::text(&file)?)?;
    let file = root.join("proc/self/status");
    if let Some(status) = files::text_if_there(&file)?
        && let Some(list) = status.lines().find_map(|l| l.strip_prefix("Cpus_allowed_list:"))
    {
        let allowed = core_list(&file, list)?;
        cpus.retain(|cpu| allowed.binary_search(cpu).is_ok());
    }
    Ok(cpus)
}

fn core_list(path: &Path, text: &str) -> Result<Vec<u32>, FindError> {
    cores::parse(text).map_err(|source| FindError::Cores { path: path.to_owned(), source })
}

fn numa(root: &Path, usable: &[u32], memory_mib: u64) -> Result<Vec<Numa>, FindError> {
    let folder = root.join("sys/devices/system/node");
    let mut nodes = vec![];
    for name in files::names(&folder)? {
        let Some(id) = name.strip_prefix("node").and_then(|id| id.parse().ok()) else { continue };
        let file = folder.join(&name).join("cpulist");
        let mut cpus = core_list(&file, &files::text(&file)?)?;
        cpus.retain(|cpu| usable.binary_search(cpu).is_ok());
        let memory_mib = files::meminfo(&folder.join(&name).join("meminfo"), "MemTotal")?;
        nodes.push(Numa { id, cpus, memory_mib });
    }
    if nodes.is_empty() {
        nodes.push(Numa { id: 0, cpus: usable.to_vec(), memory_mib });
    }
    nodes.sort_by_key(|node| node.id);
    Ok(nodes)
}
