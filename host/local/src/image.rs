//! Members that run in a container of an image.
//!
//! The runtime is podman, which is asked to put the container into the member's
//! own cgroup, so that limits, measures and the end are the same as without an
//! image. In the second generation crun leaves the cgroup alone; in the first,
//! where it cannot, runc makes one below it.

use crate::order::{Order, ROOM, User};
use rustix::process::Resource;
use std::path::Path;
use std::process::{Command, Stdio};

/// What a member runs in a container of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// Its name.
    pub name: String,
    /// `source:target[:ro]`, each source one that the platform allows.
    pub volumes: Vec<String>,
    /// UUIDs of the member's cards, for the runtime's own devices.
    pub cards: Vec<String>,
}

/// Where the runtime works for one member.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// The member's control group, and whether it is of the second generation.
    pub group: &'a str,
    /// See there.
    pub unified: bool,
    /// Who it runs as.
    pub user: &'a User,
    /// The job's own folder.
    pub room: &'a Path,
    /// Where it starts; empty for the image's own.
    pub workdir: &'a Path,
    /// The file with its environment.
    pub env: &'a Path,
}

/// What the container of a claim is called.
fn name(group: &str) -> String {
    group.replace('/', "-")
}

/// The command that runs a command line for `sh -c`, or the image's own command,
/// in a container. The environment goes by a file: everybody may read a command
/// line, and the runtime itself is root and must not have it.
pub fn command(runtime: &str, image: &Image, line: &str, place: Place<'_>) -> Vec<String> {
    let Place { group, unified, user, room, workdir, env } = place;
    let mut words: Vec<String> = vec![runtime.to_owned()];
    let mut add = |more: &[&str]| words.extend(more.iter().map(|word| (*word).to_owned()));
    if unified {
        add(&["run", "--cgroups=disabled"]);
    } else {
        add(&["--cgroup-manager=cgroupfs", "--runtime=runc", "run", "--cgroup-parent"]);
        add(&[&format!("/{group}")]);
    }
    let name = name(group);
    let (uid, gid) = (user.uid, user.gid);
    add(&["--rm", "--replace", "--name", &name, "--network=host", "--init=false"]);
    add(&["--cap-drop=all", "--security-opt=no-new-privileges"]);
    // Podman's own defaults may be above what this process may give.
    for (what, resource, usual) in
        [("nofile", Resource::Nofile, 1 << 20), ("nproc", Resource::Nproc, 32_768)]
    {
        let most = rustix::process::getrlimit(resource).maximum.unwrap_or(usual).min(usual);
        add(&[&format!("--ulimit={what}={most}:{most}")]);
    }
    add(&["--pids-limit=-1"]);
    add(&[&format!("--user={uid}:{gid}"), &format!("--volume={}:{ROOM}", room.display())]);
    for group in &user.groups {
        add(&[&format!("--group-add={group}")]);
    }
    for volume in &image.volumes {
        add(&[&format!("--volume={volume}")]);
    }
    for card in &image.cards {
        add(&[&format!("--device=nvidia.com/gpu={card}")]);
    }
    add(&[&format!("--env-file={}", env.display())]);
    if !workdir.as_os_str().is_empty() {
        add(&[&format!("--workdir={}", workdir.display())]);
    }
    if line.is_empty() {
        add(&["--", &image.name]);
    } else {
        add(&["--entrypoint=/bin/sh", "--", &image.name, "-c", line]);
    }
    words
}

/// A member's environment as the runtime reads it from a file, a line each. The
/// image has a `PATH` of its own.
pub fn env_file(order: &Order) -> String {
    let own = order.env.iter().filter(|(name, _)| *name != "PATH");
    own.map(|(name, value)| format!("{name}={value}\n")).collect::<Vec<_>>().concat()
}

/// Takes away what the runtime still knows of a member that is over.
pub fn forget(runtime: &str, group: &str) {
    let removed = Command::new(runtime)
        .args(["rm", "--force", "--ignore", "--time=0", &name(group)])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if let Err(error) = removed {
        eprintln!("crater: {runtime} rm: {error}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_container_is_in_the_members_group_and_its_environment_in_a_file() {
        let image = Image {
            name: "a/b:1".into(),
            volumes: vec!["/srv/data:/data:ro".into()],
            cards: vec!["GPU-1".into()],
        };
        let user = User { uid: 7, gid: 8, groups: vec![9] };
        let place = Place {
            group: "crater/1/2",
            unified: true,
            user: &user,
            room: Path::new("/room"),
            workdir: Path::new("/w"),
            env: Path::new("/claim/env"),
        };
        let words = command("podman", &image, "id", place);
        for word in [
            "--cgroups=disabled",
            "--user=7:8",
            "--group-add=9",
            "crater-1-2",
            "--env-file=/claim/env",
            "--volume=/room:/run/crater/job",
            "--volume=/srv/data:/data:ro",
            "--device=nvidia.com/gpu=GPU-1",
            "--workdir=/w",
        ] {
            assert!(words.iter().any(|known| known == word), "{word}: {words:?}");
        }
        assert!(words.ends_with(&["--".into(), "a/b:1".into(), "-c".into(), "id".into()]));
        let first = command("podman", &image, "", Place { unified: false, ..place });
        assert!(first.contains(&"/crater/1/2".to_owned()), "{first:?}");
        assert!(first.ends_with(&["--".into(), "a/b:1".into()]), "the image's own command");
    }
}
