//! A folder that looks like a machine's root.

use crater_local::machine::{Driver, Machine, find_with};
use std::fs;
use std::path::Path;
use tempfile::TempDir;

pub struct Folder(TempDir);

impl Folder {
    /// A machine of which only cores and memory (in MiB) are told.
    pub fn new(name: &str, online: &str, memory_mib: u64) -> Self {
        Self(tempfile::tempdir().unwrap())
            .file("proc/sys/kernel/hostname", name)
            .file("sys/devices/system/cpu/online", online)
            .file("proc/meminfo", &meminfo("", memory_mib))
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    pub fn file(self, path: &str, text: &str) -> Self {
        let file = self.path().join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, format!("{text}\n")).unwrap();
        self
    }

    /// A NUMA node.
    pub fn node(self, id: u32, cpus: &str, memory_mib: u64) -> Self {
        let folder = format!("sys/devices/system/node/node{id}");
        self.file(&format!("{folder}/cpulist"), cpus)
            .file(&format!("{folder}/meminfo"), &meminfo(&format!("Node {id} "), memory_mib))
    }

    /// An entry of `/sys/block`, with partitions that are numbered on.
    pub fn block(self, name: &str, number: &str, partitions: &[&str]) -> Self {
        let folder = format!("sys/block/{name}");
        let (major, minor) = number.split_once(':').unwrap();
        let mut this = self
            .file(&format!("{folder}/dev"), number)
            .file(&format!("{folder}/size"), "1000215216")
            .file(&format!("{folder}/queue/rotational"), "0")
            .file(&format!("{folder}/queue/scheduler"), "[none] mq-deadline");
        for (minor, part) in (minor.parse::<u32>().unwrap() + 1..).zip(partitions) {
            this = this
                .file(&format!("{folder}/{part}/dev"), &format!("{major}:{minor}"))
                .file(&format!("{folder}/{part}/partition"), "1");
        }
        this
    }

    /// A device of the mapper, or an array, made of others.
    pub fn made(self, name: &str, number: &str, alias: &str, of: &[&str]) -> Self {
        let folder = format!("sys/block/{name}");
        let mut this = self.block(name, number, &[]);
        if !alias.is_empty() {
            this = this.file(&format!("{folder}/dm/name"), alias);
        }
        for slave in of {
            this = this.file(&format!("{folder}/slaves/{slave}/uevent"), "");
        }
        this
    }

    /// The machine, without a look for cards.
    pub fn found(&self) -> Machine {
        find_with(self.path(), &Driver::Off).unwrap()
    }
}

fn meminfo(before: &str, mib: u64) -> String {
    let kib = mib * 1024;
    format!("{before}MemTotal:       {kib} kB\n{before}MemFree:        {} kB", kib / 2)
}
