//! On which disk a path lies.

use super::disks::{DeviceNumber, Disk};
use super::mounts::{self, Mount};
use super::{FindError, Machine};
use std::fmt;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// What holds the files below a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Storage<'a> {
    /// A disk of this machine.
    Disk {
        /// The disk, or the array.
        disk: &'a Disk,
        /// Where limits and weights have to be set so that they hold for who
        /// uses the path: the disk, or the volume on it.
        charged_at: DeviceNumber,
    },
    /// No disk of this machine, so that no disk bandwidth can be measured,
    /// reserved or capped there.
    NoDisk {
        /// The kind of file system: `tmpfs`, `overlay`, `nfs4` and so on.
        filesystem: String,
        /// What is mounted: a word, a server, a pool, a loop device.
        source: String,
    },
}

impl fmt::Display for Storage<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Disk { disk, charged_at } if disk.number == *charged_at => {
                write!(f, "{} ({charged_at})", disk.name)
            }
            Self::Disk { disk, charged_at } => {
                let layer = disk.layers.iter().find(|layer| layer.number == *charged_at);
                let name = layer.map_or("", |layer| layer.alias.as_ref().unwrap_or(&layer.name));
                write!(f, "{name} ({charged_at}) on {}", disk.name)
            }
            Self::NoDisk { filesystem, source } => {
                write!(f, "{source}, a file system of kind {filesystem} without a disk here")
            }
        }
    }
}

impl Machine {
    /// On what `path` lies, which must be there.
    ///
    /// # Errors
    ///
    /// If the path or the list of mounts cannot be read.
    pub fn storage_of(&self, path: &Path) -> Result<Storage<'_>, FindError> {
        let failed = |source| FindError::Read { path: path.to_owned(), source };
        let path = path.canonicalize().map_err(failed)?;
        let number = DeviceNumber::of(path.metadata().map_err(failed)?.dev());
        let mounts = mounts::read(&self.root)?;
        Ok(self.storage(number, mounts::above(&mounts, &path)))
    }

    /// The disk on which `path` lies; `None` if it lies on none or cannot be
    /// read. [`Machine::storage_of`] says which.
    pub fn disk_of(&self, path: &Path) -> Option<&Disk> {
        match self.storage_of(path) {
            Ok(Storage::Disk { disk, .. }) => Some(disk),
            _ => None,
        }
    }

    /// The disk on which the device with this number lies, and the device at
    /// which requests to it are accounted.
    pub fn device(&self, number: DeviceNumber) -> Option<(&Disk, DeviceNumber)> {
        self.layer(|_, own| own == number)
    }

    fn layer(&self, is: impl Fn(&[&str], DeviceNumber) -> bool) -> Option<(&Disk, DeviceNumber)> {
        self.disks.iter().find_map(|disk| {
            let whole = is(&[&disk.name], disk.number).then_some(disk.number);
            let layer = || {
                disk.layers.iter().find(|layer| {
                    let alias = layer.alias.as_deref().unwrap_or(&layer.name);
                    is(&[&layer.name, alias], layer.number)
                })
            };
            let charged_at = whole.or_else(|| layer().map(|layer| layer.charged_at))?;
            Some((disk, charged_at))
        })
    }

    pub(super) fn storage(&self, number: DeviceNumber, mount: Option<&Mount>) -> Storage<'_> {
        let named = || {
            // btrfs numbers its subvolumes by itself; what it names as its
            // source is one of its devices.
            let source = Path::new(&mount?.source);
            let device = source.strip_prefix("/dev").ok()?;
            let links = self.root.join("dev").join(device).canonicalize();
            let target: PathBuf = links.unwrap_or_else(|_| source.to_owned());
            let (target, name) = (target.file_name()?, source.file_name()?);
            self.layer(|names, _| names.iter().any(|n| target == *n || name == *n))
        };
        match self.device(number).or_else(|| (number.major == 0).then(named)?) {
            Some((disk, charged_at)) => Storage::Disk { disk, charged_at },
            None => Storage::NoDisk {
                filesystem: mount.map_or("unknown", |m| &m.filesystem).to_owned(),
                source: mount.map_or_else(|| format!("device {number}"), |m| m.source.clone()),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::disks::Layer;

    fn number(text: &str) -> DeviceNumber {
        text.parse().unwrap()
    }

    /// An encrypted partition of one disk.
    fn machine(root: &Path) -> Machine {
        let layer = |name: &str, alias: Option<&str>, own: &str, charged_at: &str| Layer {
            name: name.into(),
            alias: alias.map(str::to_owned),
            number: number(own),
            charged_at: number(charged_at),
        };
        let disk = Disk {
            name: "sda".into(),
            number: number("8:0"),
            rotational: false,
            scheduler: None,
            schedulers: vec![],
            layers: vec![
                layer("sda1", None, "8:1", "8:0"),
                layer("dm-0", Some("cryptroot"), "254:0", "254:0"),
            ],
            members: vec![],
        };
        Machine { disks: vec![disk], root: root.to_owned(), ..Machine::default() }
    }

    fn mount(filesystem: &str, source: &str) -> Mount {
        Mount {
            number: number("0:41"),
            root: "/".into(),
            point: "/".into(),
            filesystem: filesystem.into(),
            source: source.into(),
            options: vec![],
        }
    }

    fn said(own: &str, filesystem: &str, source: &str) -> String {
        let folder = tempfile::tempdir().unwrap();
        let mapper = folder.path().join("dev/mapper");
        std::fs::create_dir_all(&mapper).unwrap();
        std::fs::write(folder.path().join("dev/dm-0"), "").unwrap();
        std::os::unix::fs::symlink("../dm-0", mapper.join("by-another-name")).unwrap();
        let machine = machine(folder.path());
        machine.storage(number(own), Some(&mount(filesystem, source))).to_string()
    }

    #[test]
    fn a_disk_is_found_by_its_number() {
        assert_eq!(said("8:1", "ext4", "/dev/sda1"), "sda (8:0)");
        assert_eq!(said("254:0", "ext4", "/dev/mapper/cryptroot"), "cryptroot (254:0) on sda");
    }

    #[test]
    fn a_subvolume_is_found_by_its_source() {
        assert_eq!(said("0:41", "btrfs", "/dev/sda1"), "sda (8:0)");
        let volume = "cryptroot (254:0) on sda";
        assert_eq!(said("0:41", "btrfs", "/dev/mapper/cryptroot"), volume);
        assert_eq!(said("0:41", "btrfs", "/dev/mapper/by-another-name"), volume);
    }

    #[test]
    fn what_has_no_disk_is_named() {
        let no_disk = [
            ("0:41", "tmpfs", "tmpfs"),
            ("0:41", "overlay", "overlay"),
            ("0:41", "nfs4", "store:/home"),
            ("0:41", "zfs", "tank/jobs"),
            ("7:3", "squashfs", "/dev/loop3"),
        ];
        for (own, filesystem, source) in no_disk {
            assert_eq!(
                said(own, filesystem, source),
                format!("{source}, a file system of kind {filesystem} without a disk here")
            );
        }
    }
}
