//! How a member shares the disk.
//!
//! The kernel takes limits for whole disks. A cap holds on any of them; weights
//! act only with the scheduler BFQ or, in the second generation, where the
//! device's cost model is on. In the first generation only what goes to the disk
//! at once counts as the member's: what the kernel writes later is nobody's.

use crate::groups::Group;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::Path;

/// More bytes a second than any disk does.
const UNCAPPED: u64 = 1 << 40;

/// What a member may use of its disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskLimits {
    /// The disk, as `major:minor`; none where files lie on none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// Weight when it is busy, 1–10000.
    pub weight: u16,
    /// Most bytes a second, each of reading and writing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Most operations a second, each of reading and writing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operations: Option<u64>,
}

impl Default for DiskLimits {
    fn default() -> Self {
        Self { device: None, weight: 100, bytes: None, operations: None }
    }
}

impl DiskLimits {
    /// Tells the kernel, and says what it does not take.
    pub(crate) fn apply(&self, group: &Group) -> Vec<String> {
        let controller = if group.unified() { "io" } else { "blkio" };
        let Some(folder) = group.folder(controller) else {
            return vec![format!("there is no cgroup controller {controller}")];
        };
        let mut wanted = self.weights(&folder, group.unified());
        let mut notes = vec![];
        match &self.device {
            Some(device) => wanted.extend(self.caps(device, group.unified())),
            None if self.bytes.or(self.operations).is_some() => {
                notes.push("its files lie on no disk of this machine: nothing is capped".into());
            }
            None => {}
        }
        for (file, text) in wanted {
            if let Err(error) = fs::write(folder.join(file), &text) {
                notes.push(format!("{file} takes no {text:?}: {error}"));
            }
        }
        notes
    }

    /// Files and what is written to them.
    fn weights(&self, folder: &Path, unified: bool) -> Vec<(&'static str, String)> {
        // BFQ's own weights end at 1000. Shares stay shares down to weight 10.
        let bfq = (self.weight / 10).max(1);
        let there = |file: &str| folder.join(file).exists();
        match (unified, there("io.bfq.weight"), there("blkio.bfq.weight")) {
            (true, false, _) => vec![("io.weight", format!("default {}", self.weight))],
            (true, true, _) => vec![
                ("io.weight", format!("default {}", self.weight)),
                ("io.bfq.weight", bfq.to_string()),
            ],
            (false, _, true) => vec![("blkio.bfq.weight", bfq.to_string())],
            (false, _, false) => vec![("blkio.weight", bfq.clamp(10, 1000).to_string())],
        }
    }

    /// The same for one disk.
    fn caps(&self, device: &str, unified: bool) -> Vec<(&'static str, String)> {
        if unified {
            let most = |limit: Option<u64>| limit.map_or("max".into(), |n| n.to_string());
            let (b, o) = (most(self.bytes), most(self.operations));
            return vec![("io.max", format!("{device} rbps={b} wbps={b} riops={o} wiops={o}"))];
        }
        // Not zero, which lifts a cap: without any the kernel counts nothing.
        let (b, o) = (self.bytes.unwrap_or(UNCAPPED), self.operations.unwrap_or(0));
        let all = [
            ("blkio.throttle.read_bps_device", b),
            ("blkio.throttle.write_bps_device", b),
            ("blkio.throttle.read_iops_device", o),
            ("blkio.throttle.write_iops_device", o),
        ];
        all.map(|(file, most)| (file, format!("{device} {most}"))).into()
    }
}

/// What a group read and wrote until now, on all disks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Bytes read and written.
    pub bytes: u64,
    /// Operations.
    pub operations: u64,
}

impl Usage {
    pub(crate) fn of(group: &Group) -> Self {
        let controller = if group.unified() { "io" } else { "blkio" };
        let Some(folder) = group.folder(controller) else { return Self::default() };
        let read = |file: &str| fs::read_to_string(folder.join(file)).unwrap_or_default();
        if group.unified() {
            Self::of_stat(&read("io.stat"))
        } else {
            // Each counts what passes through it, so one of them may see nothing.
            let most = |what: &str| {
                let files = ["throttle", "bfq"].map(|by| format!("blkio.{by}.{what}_recursive"));
                files.iter().map(|file| of_lines(&read(file))).max().unwrap_or(0)
            };
            Self { bytes: most("io_service_bytes"), operations: most("io_serviced") }
        }
    }

    fn of_stat(text: &str) -> Self {
        let sum = |keys: [&str; 2]| {
            let words = text.split_whitespace().filter_map(|word| word.split_once('='));
            let wanted = words.filter(|(key, _)| keys.contains(key));
            wanted.filter_map(|(_, value)| value.parse::<u64>().ok()).sum()
        };
        Self { bytes: sum(["rbytes", "wbytes"]), operations: sum(["rios", "wios"]) }
    }
}

/// The sum of the lines `8:0 Read 4096` and `8:0 Write 4096`.
fn of_lines(text: &str) -> u64 {
    let lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let wanted = lines.filter_map(|line| match line.as_slice() {
        [_, "Read" | "Write", value] => value.parse::<u64>().ok(),
        _ => None,
    });
    wanted.sum()
}

/// What a disk did until now: bytes, and the time in which it did anything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Activity {
    /// Bytes read and written.
    pub bytes: u64,
    /// Operations.
    pub operations: u64,
    /// Milliseconds in which at least one operation was under way.
    pub busy_ms: u64,
}

impl Activity {
    /// Reads it of a device of `/sys/block`.
    pub fn of(sys_block: &Path) -> Option<Self> {
        let text = fs::read_to_string(sys_block.join("stat")).ok()?;
        let figures: Vec<u64> = text.split_whitespace().map_while(|w| w.parse().ok()).collect();
        // Documentation/block/stat.rst: operations, merges, sectors, ms; for
        // reading, then for writing; under way, ms busy.
        let [r, _, r_sectors, _, w, _, w_sectors, _, _, busy_ms, ..] = figures[..] else {
            return None;
        };
        Some(Self { bytes: (r_sectors + w_sectors) * 512, operations: r + w, busy_ms })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn use_is_read_in_both_generations() {
        let v1 = "254:0 Read 4096\n254:0 Write 8192\n254:0 Sync 8192\nTotal 20480\n";
        assert_eq!(of_lines(v1), 12_288);
        let v2 = "254:0 rbytes=1 wbytes=2 rios=3 wios=4 dbytes=9 dios=9\n8:0 rbytes=10 wbytes=0\n";
        assert_eq!(Usage::of_stat(v2), Usage { bytes: 13, operations: 7 });
    }

    #[test]
    fn a_disk_says_what_it_did() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("stat"), " 5 1 16 9 7 1 8 9 0 123 200 0 0 0 0 0 0\n").unwrap();
        let did = Activity::of(folder.path()).unwrap();
        assert_eq!(did, Activity { bytes: 24 * 512, operations: 12, busy_ms: 123 });
    }
}
