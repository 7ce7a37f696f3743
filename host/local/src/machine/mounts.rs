//! What is mounted where, as this process sees it.

use super::{FindError, files};
use crate::machine::DeviceNumber;
use std::path::{Path, PathBuf};

/// A line of `/proc/self/mountinfo`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// The file system's device, `0:n` for one without a block device.
    pub number: DeviceNumber,
    /// Which folder of the file system is mounted.
    pub root: PathBuf,
    /// Where.
    pub point: PathBuf,
    /// `ext4`, `cgroup2`, `overlay` and so on.
    pub filesystem: String,
    /// What is mounted: a device, a server, a pool or just a word.
    pub source: String,
    /// The file system's own options; for cgroups its controllers.
    pub options: Vec<String>,
}

/// Every mount, in the order in which they were made.
pub fn read(root: &Path) -> Result<Vec<Mount>, FindError> {
    let text = files::text_if_there(&root.join("proc/self/mountinfo"))?.unwrap_or_default();
    Ok(text.lines().filter_map(mount).collect())
}

/// `36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue`
fn mount(line: &str) -> Option<Mount> {
    let (place, what) = line.split_once(" - ")?;
    let mut place = place.split(' ').skip(2);
    let mut what = what.split(' ');
    Some(Mount {
        number: place.next()?.parse().ok()?,
        root: PathBuf::from(plain(place.next()?)),
        point: PathBuf::from(plain(place.next()?)),
        filesystem: what.next()?.to_owned(),
        source: plain(what.next()?),
        options: what.next().unwrap_or_default().split(',').map(str::to_owned).collect(),
    })
}

/// The kernel writes blanks, line ends and backslashes of names as `\040`.
fn plain(text: &str) -> String {
    let mut parts = text.split('\\');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let code = part.get(..3).and_then(|octal| u8::from_str_radix(octal, 8).ok());
        if let Some(code) = code.filter(u8::is_ascii) {
            plain.push(char::from(code));
            plain.push_str(&part[3..]);
        } else {
            plain.push('\\');
            plain.push_str(part);
        }
    }
    plain
}

/// The mount on which a path lies: the last of those with the longest point
/// above it.
pub fn above<'a>(mounts: &'a [Mount], path: &Path) -> Option<&'a Mount> {
    let depth = |mount: &Mount| mount.point.components().count();
    mounts.iter().filter(|mount| path.starts_with(&mount.point)).max_by_key(|mount| depth(mount))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_with_and_without_optional_fields() {
        let line = "36 35 98:0 /mnt1 /my\\040disk rw,noatime master:1 shared:2 - ext4 /dev/sda1 rw,errors=continue";
        let read = mount(line).unwrap();
        assert_eq!(read.number, DeviceNumber { major: 98, minor: 0 });
        assert_eq!(read.root, Path::new("/mnt1"));
        assert_eq!(read.point, Path::new("/my disk"));
        assert_eq!((&*read.filesystem, &*read.source), ("ext4", "/dev/sda1"));
        assert_eq!(read.options, ["rw", "errors=continue"]);
        let bare = mount("31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw").unwrap();
        assert_eq!(bare.filesystem, "cgroup2");
        assert_eq!(mount("nonsense"), None);
        assert_eq!(plain("a\\134b\\x\\"), "a\\b\\x\\");
    }

    #[test]
    fn the_last_mount_over_a_path_counts() {
        let at = |point: &str, source: &str| {
            mount(&format!("1 1 8:1 / {point} rw - ext4 {source} rw")).unwrap()
        };
        let mounts = [at("/", "a"), at("/data", "b"), at("/database", "c"), at("/data", "d")];
        let source = |path: &str| above(&mounts, Path::new(path)).map(|m| &*m.source);
        assert_eq!(source("/data/jobs"), Some("d"));
        assert_eq!(source("/dat"), Some("a"));
        assert_eq!(source("/database"), Some("c"));
    }
}
