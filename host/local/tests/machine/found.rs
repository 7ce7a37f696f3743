//! Cores, memory and disks.

use crate::folder::Folder;
use crater_local::machine::{
    Driver, FindError, Machine, NoCards, Numa, Offer, Storage, cores, find, find_with,
};
use crater_model::{Iops, MbPerSec, Mib, MilliCores};
use std::path::Path;

const SERVICE: &str = "proc/self/cgroup";
const MOUNTS: &str = "proc/self/mountinfo";

/// Where version 2 is mounted, and what is above a service.
const VERSION_2: &str = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw";

fn disk_names(machine: &Machine) -> Vec<&str> {
    machine.disks.iter().map(|disk| &*disk.name).collect()
}

/// On which disk a device lies, and where its requests are accounted.
fn lies(machine: &Machine, number: &str) -> Option<String> {
    let (disk, charged_at) = machine.device(number.parse().unwrap())?;
    Some(format!("{} at {charged_at}", disk.name))
}

#[test]
fn a_server_with_two_numa_nodes() {
    let machine = Folder::new("gpu-01", "0-63", 1_031_600)
        .node(0, "0-15,32-47", 515_800)
        .node(1, "16-31,48-63", 515_800)
        // As under `taskset`: 8 cores of the second node are others'.
        .file("proc/self/status", "Name:\tcrater\nCpus_allowed_list:\t0-23,32-63")
        .block("nvme0n1", "259:0", &["nvme0n1p1", "nvme0n1p2"])
        .block("nvme1n1", "259:8", &[])
        .block("nvme2n1", "259:16", &["nvme2n1p1"])
        .block("sda", "8:0", &["sda1"])
        .file("sys/block/sda/queue/rotational", "1")
        .file("sys/block/sda/queue/scheduler", "none mq-deadline [bfq]")
        .made("md0", "9:0", "", &["nvme1n1", "nvme2n1p1"])
        .made("dm-0", "253:0", "fast-scratch", &["md0"])
        .block("loop0", "7:0", &[])
        .block("zram0", "252:0", &[])
        .block("sr0", "11:0", &[])
        .block("sdb", "8:16", &[])
        .file("sys/block/sdb/size", "0")
        .block("nvme0c0n1", "259:3", &[])
        .file("sys/block/nvme0c0n1/hidden", "1")
        .found();
    assert_eq!((&*machine.name, machine.memory_mib), ("gpu-01", 1_031_600));
    assert_eq!(cores::print(&machine.cpus), "0-23,32-63");
    assert_eq!(machine.cpu, MilliCores(56_000));
    let second = (16..24).chain(48..64).collect();
    assert_eq!(machine.numa[1], Numa { id: 1, cpus: second, memory_mib: 515_800 });
    assert_eq!(machine.limits, []);

    assert_eq!(disk_names(&machine), ["md0", "nvme0n1", "nvme1n1", "nvme2n1", "sda"]);
    assert_eq!(machine.disks[0].members, ["nvme1n1", "nvme2n1"]);
    let sda = &machine.disks[4];
    assert!(sda.rotational && !machine.disks[1].rotational);
    assert_eq!(sda.scheduler.as_deref(), Some("bfq"));
    assert_eq!(sda.schedulers, ["none", "mq-deadline", "bfq"]);
    assert_eq!(lies(&machine, "8:1").unwrap(), "sda at 8:0", "limits take whole disks");
    assert_eq!(lies(&machine, "259:2").unwrap(), "nvme0n1 at 259:0");
    assert_eq!(lies(&machine, "9:0").unwrap(), "md0 at 9:0");
    assert_eq!(lies(&machine, "253:0").unwrap(), "md0 at 253:0", "a volume on the array");
    assert_eq!(lies(&machine, "7:0"), None);

    let offer = Offer { reserve: Mib(8192), disk: MbPerSec(3000), iops: Iops(500_000) };
    let spec = machine.node_spec(&offer);
    assert_eq!(spec.check(), Ok(()));
    assert_eq!((&*spec.name, spec.cpu), ("gpu-01", MilliCores(56_000)));
    assert_eq!(spec.memory, Mib(1_031_600 - 8192));
    assert_eq!((spec.disk, spec.iops), (MbPerSec(3000), Iops(500_000)));
}

#[test]
fn a_laptop() {
    let machine = Folder::new("Annas-Laptop.local", "0-7", 15_800)
        .block("nvme0n1", "259:0", &["nvme0n1p1"])
        .block("mmcblk0", "179:0", &["mmcblk0p1"])
        .found();
    let all: Vec<u32> = (0..8).collect();
    assert_eq!(machine.numa, [Numa { id: 0, cpus: all, memory_mib: 15_800 }]);
    assert_eq!(disk_names(&machine), ["mmcblk0", "nvme0n1"]);
    assert_eq!(machine.no_cards, Some(NoCards::Off));
    let spec = machine.node_spec(&Offer::default());
    assert_eq!(spec.check(), Ok(()));
    assert_eq!(&*spec.name, "annas-laptop.local");
}

#[test]
fn a_root_on_an_encrypted_partition() {
    let machine = Folder::new("desk", "0-3", 7900)
        .block("sda", "8:0", &["sda1", "sda2"])
        .made("dm-0", "254:0", "cryptroot", &["sda2"])
        .made("dm-1", "254:1", "vg-root", &["dm-0"])
        .made("dm-2", "254:2", "gone", &[])
        .found();
    assert_eq!(disk_names(&machine), ["sda"], "what is made of a disk is none");
    assert_eq!(lies(&machine, "254:1").unwrap(), "sda at 254:1");
    let layers: Vec<_> = machine.disks[0].layers.iter().map(|l| (&*l.name, &l.alias)).collect();
    assert!(layers.contains(&("dm-1", &Some("vg-root".into()))), "{layers:?}");
    assert_eq!(layers.len(), 4, "{layers:?}");
}

#[test]
fn a_container_has_what_its_cgroup_leaves_it() {
    let container = || Folder::new("c0ffee", "0-63", 500_000).file(MOUNTS, VERSION_2);
    let limited = container()
        .file(SERVICE, "0::/")
        .file("sys/fs/cgroup/memory.max", "2147483648")
        .file("sys/fs/cgroup/cpu.max", "150000 100000")
        .found();
    assert_eq!((limited.memory_mib, limited.cpu), (2048, MilliCores(1500)));
    assert_eq!(limited.cpus.len(), 64, "a quota is time, not cores");
    let limits: Vec<_> = limited.limits.iter().map(ToString::to_string).collect();
    assert_eq!(
        limits,
        [
            "CPU is limited to 1.5 cores by /sys/fs/cgroup/cpu.max",
            "memory is limited to 2Gi by /sys/fs/cgroup/memory.max",
        ]
    );
    let free = container()
        .file(SERVICE, "0::/")
        .file("sys/fs/cgroup/memory.max", "max")
        .file("sys/fs/cgroup/cpu.max", "max 100000")
        .found();
    assert_eq!((free.memory_mib, free.cpu), (500_000, MilliCores(64_000)));
    assert_eq!(free.limits, []);
}

#[test]
fn a_service_has_the_least_that_any_cgroup_above_it_leaves() {
    let machine = Folder::new("n", "0-7", 16_000)
        .file(MOUNTS, VERSION_2)
        .file(SERVICE, "0::/system.slice/crater.service")
        .file("sys/fs/cgroup/system.slice/memory.max", "4294967296")
        .file("sys/fs/cgroup/system.slice/crater.service/memory.max", "8589934592")
        .file("sys/fs/cgroup/system.slice/crater.service/cpu.max", "900000 100000")
        .found();
    assert_eq!((machine.memory_mib, machine.cpu), (4096, MilliCores(8000)));
    let files: Vec<_> = machine.limits.iter().map(|limit| limit.file.clone()).collect();
    assert_eq!(files, [Path::new("/sys/fs/cgroup/system.slice/memory.max")]);
}

#[test]
fn limits_of_cgroups_of_version_1() {
    let mounts = "\
        31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n\
        32 31 0:29 /docker/abc /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n\
        35 31 0:32 /docker/abc /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
        41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw";
    let groups = "5:memory:/docker/abc\n4:cpu,cpuacct:/docker/abc/job\n0::/";
    let machine = Folder::new("n", "0-7", 16_000)
        .file(MOUNTS, mounts)
        .file(SERVICE, groups)
        .file("sys/fs/cgroup/memory/memory.limit_in_bytes", "1073741824")
        .file("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "50000")
        .file("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000")
        .file("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "30000")
        .file("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us", "100000")
        .found();
    assert_eq!((machine.memory_mib, machine.cpu), (1024, MilliCores(300)));
    let unlimited = Folder::new("n", "0-7", 16_000)
        .file(MOUNTS, mounts)
        .file(SERVICE, groups)
        .file("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712")
        .file("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1")
        .file("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000")
        .found();
    assert_eq!((unlimited.memory_mib, unlimited.limits), (16_000, vec![]));
}

#[test]
fn what_the_kernel_does_not_say_is_named() {
    let empty = tempfile::tempdir().unwrap();
    let error = find_with(empty.path(), &Driver::Off).unwrap_err();
    assert!(error.to_string().ends_with("proc/sys/kernel/hostname cannot be read"), "{error}");
    let folder = Folder::new("n", "zero to three", 100);
    let error = find_with(folder.path(), &Driver::Off).unwrap_err();
    assert!(matches!(error, FindError::Cores { .. }), "{error}");
    let folder = Folder::new("n", "0", 100).file("proc/meminfo", "MemFree: 12 kB");
    let error = find_with(folder.path(), &Driver::Off).unwrap_err().to_string();
    assert!(error.ends_with("does not say how much memory there is: `MemFree: 12 kB`"), "{error}");
}

#[test]
fn this_machine_is_found() {
    let machine = find(Path::new("/")).unwrap();
    assert!(!machine.cpus.is_empty() && machine.memory_mib > 0, "{machine:?}");
    assert!(machine.cpu > MilliCores(0) && machine.cpu.0 <= 1000 * machine.cpus.len() as u64);
    assert_eq!(machine.cards.is_empty(), machine.no_cards.is_some(), "{machine:?}");
    assert_eq!(machine.node_spec(&Offer::default()).check(), Ok(()));
    let Storage::NoDisk { filesystem, .. } = machine.storage_of(Path::new("/proc")).unwrap() else {
        panic!("/proc lies on a disk");
    };
    assert_eq!(filesystem, "proc");
    assert!(machine.storage_of(Path::new("/no/such/path")).is_err());
    // In a container the root is an overlay; elsewhere it is on some disk.
    let root = machine.storage_of(Path::new("/")).unwrap();
    assert_eq!(machine.disk_of(Path::new("/")).is_some(), matches!(root, Storage::Disk { .. }));
    println!("{machine:#?}\n/ is on {root}");
}
