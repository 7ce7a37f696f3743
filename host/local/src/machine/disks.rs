//! The machine's disks, and what is built on them.

use super::{FindError, files};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;
use std::str::FromStr;

/// A device's number, as `8:0`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeviceNumber {
    /// Of the driver.
    pub major: u32,
    /// Of the device.
    pub minor: u32,
}

impl DeviceNumber {
    /// Reads the number in `st_dev`.
    pub fn of(device: u64) -> Self {
        Self { major: rustix::fs::major(device), minor: rustix::fs::minor(device) }
    }
}

impl fmt::Display for DeviceNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.major, self.minor)
    }
}

impl FromStr for DeviceNumber {
    type Err = std::num::ParseIntError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (major, minor) = text.trim().split_once(':').unwrap_or((text, ""));
        Ok(Self { major: major.parse()?, minor: minor.parse()? })
    }
}

/// A disk, or an array of several that is used as one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disk {
    /// The kernel's name, as `nvme0n1`.
    pub name: String,
    /// Its number: what `io.max` and `io.weight` name.
    pub number: DeviceNumber,
    /// Whether it has to seek.
    pub rotational: bool,
    /// The IO scheduler in force, as `none` or `bfq`; `None` for a device that
    /// hands its requests on.
    pub scheduler: Option<String>,
    /// The schedulers that the kernel offers for it, the one in force included.
    pub schedulers: Vec<String>,
    /// What lies on this disk and on no other.
    pub layers: Vec<Layer>,
    /// For an array the names of its disks; empty for a disk.
    pub members: Vec<String>,
}

/// A partition, or a device that is made of one disk: a volume, an encrypted
/// disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layer {
    /// The kernel's name, as `nvme0n1p2` or `dm-0`.
    pub name: String,
    /// The device mapper's name, as `cryptroot`.
    pub alias: Option<String>,
    /// Its number.
    pub number: DeviceNumber,
    /// The whole device at which the kernel accounts the requests of who uses
    /// this: of a partition its disk, of a volume the volume. What is below a
    /// volume is partly asked by threads of the kernel, for nobody's account.
    pub charged_at: DeviceNumber,
}

/// Devices that are no disks: memory, files, and what is taken out by hand.
const NOT_DISKS: [&str; 7] = ["loop", "ram", "zram", "sr", "fd", "mtdblock", "nbd"];

/// An entry of `/sys/block`.
struct Block {
    number: DeviceNumber,
    rotational: bool,
    scheduler: Option<String>,
    schedulers: Vec<String>,
    alias: Option<String>,
    partitions: Vec<(String, DeviceNumber)>,
    /// What it is made of, for a device of the mapper or an array.
    slaves: Vec<String>,
}

/// Every disk, by name.
pub fn find(root: &Path) -> Result<Vec<Disk>, FindError> {
    let folder = root.join("sys/block");
    let mut blocks = BTreeMap::new();
    for name in files::names(&folder)? {
        if let Some(block) = block(&folder.join(&name), &name)? {
            blocks.insert(name, block);
        }
    }
    let tree = Tree::new(&blocks);
    let mut disks: BTreeMap<&str, Disk> = BTreeMap::new();
    for (name, block) in blocks.iter().filter(|(name, _)| tree.owner(name) == Some(name)) {
        let members = if block.slaves.is_empty() { BTreeSet::new() } else { tree.members(name) };
        let disk = Disk {
            name: name.clone(),
            number: block.number,
            rotational: block.rotational,
            scheduler: block.scheduler.clone(),
            schedulers: block.schedulers.clone(),
            layers: vec![],
            members: members.into_iter().map(str::to_owned).collect(),
        };
        disks.insert(name, disk);
    }
    for (name, block) in &blocks {
        let Some(disk) = tree.owner(name).and_then(|owner| disks.get_mut(owner)) else { continue };
        let charged_at = block.number;
        if disk.name != *name {
            let (name, alias) = (name.clone(), block.alias.clone());
            disk.layers.push(Layer { name, alias, number: block.number, charged_at });
        }
        disk.layers.extend(block.partitions.iter().map(|(name, number)| Layer {
            name: name.clone(),
            alias: None,
            number: *number,
            charged_at,
        }));
    }
    Ok(disks.into_values().collect())
}

/// Reads an entry; `None` for what is no disk or holds nothing.
fn block(folder: &Path, name: &str) -> Result<Option<Block>, FindError> {
    let kind = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let says = |file: &str| files::value::<u64>(&folder.join(file));
    // A path of a multi-path disk is hidden behind the disk.
    if NOT_DISKS.contains(&kind) || says("size") == Some(0) || says("hidden") == Some(1) {
        return Ok(None);
    }
    let Some(number) = files::value(&folder.join("dev")) else { return Ok(None) };
    let slaves = files::names(&folder.join("slaves"))?;
    let made = matches!(kind, "dm-" | "md" | "md_d");
    if made && slaves.is_empty() {
        return Ok(None);
    }
    let mut partitions = vec![];
    for part in files::names(folder)? {
        let inside = folder.join(&part);
        if inside.join("partition").exists()
            && let Some(number) = files::value(&inside.join("dev"))
        {
            partitions.push((part, number));
        }
    }
    let text: Option<String> =
        std::fs::read_to_string(folder.join("queue/scheduler")).ok().filter(|_| !made);
    let (scheduler, schedulers) = scheduler(text.as_deref().unwrap_or_default());
    Ok(Some(Block {
        number,
        rotational: says("queue/rotational") == Some(1),
        scheduler,
        schedulers,
        alias: files::value(&folder.join("dm/name")),
        partitions,
        slaves,
    }))
}

/// `[none] mq-deadline bfq`: the one in force and all that are offered.
fn scheduler(text: &str) -> (Option<String>, Vec<String>) {
    let words: Vec<&str> = text.split_whitespace().collect();
    let bare = |word: &&str| word.trim_matches(['[', ']']).to_owned();
    let forced = words.iter().find(|word| word.starts_with('['));
    let only = if words.len() == 1 { words.first() } else { None };
    (forced.or(only).map(bare), words.iter().map(bare).collect())
}

/// What is made of what.
struct Tree<'a> {
    blocks: &'a BTreeMap<String, Block>,
    /// The device of each partition.
    whole: BTreeMap<&'a str, &'a str>,
}

impl<'a> Tree<'a> {
    fn new(blocks: &'a BTreeMap<String, Block>) -> Self {
        let parts = blocks
            .iter()
            .flat_map(|(name, b)| b.partitions.iter().map(|(part, _)| (&**part, &**name)));
        Self { whole: parts.collect(), blocks }
    }

    /// The devices that this one is directly made of, partitions as their
    /// whole.
    fn below(&self, name: &str) -> Vec<&'a str> {
        let slaves = self.blocks.get(name).map_or(&[][..], |b| &b.slaves);
        let whole = |slave: &'a String| self.whole.get(&**slave).copied().unwrap_or(slave);
        slaves.iter().map(whole).collect()
    }

    /// The disk or array on which this device lies: itself, if it is one.
    /// `None` if what it is made of is left out. The kernel keeps devices from
    /// being made of themselves.
    fn owner(&self, name: &str) -> Option<&'a str> {
        let (name, _) = self.blocks.get_key_value(name)?;
        let below = self.below(name);
        if below.is_empty() {
            return Some(name);
        }
        let owners: Option<BTreeSet<&str>> = below.iter().map(|b| self.owner(b)).collect();
        let owners = owners?;
        if owners.len() == 1 { owners.into_iter().next() } else { Some(name) }
    }

    /// The disks that an array is made of in the end.
    fn members(&self, name: &str) -> BTreeSet<&'a str> {
        let below = self.below(name);
        below
            .into_iter()
            .flat_map(
                |b| if self.below(b).is_empty() { BTreeSet::from([b]) } else { self.members(b) },
            )
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedulers_are_read_with_the_one_in_force() {
        let of = |text| scheduler(text);
        let all = vec!["none".to_owned(), "mq-deadline".into(), "bfq".into()];
        assert_eq!(of("none [mq-deadline] bfq\n"), (Some("mq-deadline".into()), all));
        assert_eq!(of("none\n"), (Some("none".into()), vec!["none".into()]));
        assert_eq!(of(""), (None, vec![]));
    }

    #[test]
    fn numbers_are_read_from_text_and_stat() {
        let number = DeviceNumber { major: 259, minor: 3 };
        assert_eq!("259:3\n".parse(), Ok(number));
        assert_eq!(number.to_string(), "259:3");
        assert!("259".parse::<DeviceNumber>().is_err());
        assert_eq!(DeviceNumber::of(0x10303), number);
    }
}
