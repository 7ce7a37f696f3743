//! Members that run in a container of an image.
//!
//! The runtime is podman, which is asked to put the container into the member's
//! own cgroup, so that limits, measures and the end are the same as without an
//! image. In the second generation crun leaves the cgroup alone; in the first,
//! where it cannot, runc makes one below it.

use crate::order::{ROOM, User};
use rustix::process::Resource;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::process::{Command, Stdio};

/// The container that a member runs in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Container {
    /// The program, such as `podman`.
    pub runtime: String,
    /// The image.
    pub image: String,
    /// Command line for `sh -c` in it; empty for the image's own.
    pub command: String,
    /// `source:target[:ro]`, each source one that the platform allows.
    pub volumes: Vec<String>,
    /// UUIDs of the cards that it may use, for the runtime's own devices.
    pub cards: Vec<String>,
}

/// What the container of a claim is called.
pub fn name(group: &str) -> String {
    group.replace('/', "-")
}

/// The command that runs it. The environment goes by the process' own: the
/// command line names the variables only, since everybody may read that.
pub fn command<'a>(
    container: &Container,
    group: &str,
    unified: bool,
    user: &User,
    env: impl Iterator<Item = &'a String>,
    (workdir, room): (&Path, &Path),
) -> Vec<String> {
    let mut words: Vec<String> = vec![container.runtime.clone()];
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
    for volume in &container.volumes {
        add(&[&format!("--volume={volume}")]);
    }
    for card in &container.cards {
        add(&[&format!("--device=nvidia.com/gpu={card}")]);
    }
    for variable in env {
        add(&[&format!("--env={variable}")]);
    }
    if !workdir.as_os_str().is_empty() {
        add(&[&format!("--workdir={}", workdir.display())]);
    }
    if container.command.is_empty() {
        add(&["--", &container.image]);
    } else {
        add(&["--entrypoint=/bin/sh", "--", &container.image, "-c", &container.command]);
    }
    words
}

/// Takes away what the runtime still knows of a container that is over.
pub fn forget(container: &Container, group: &str) {
    let removed = Command::new(&container.runtime)
        .args(["rm", "--force", "--ignore", "--time=0", &name(group)])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if let Err(error) = removed {
        eprintln!("crater: {} rm: {error}", container.runtime);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_variables_are_on_no_command_line() {
        let container = Container {
            runtime: "podman".into(),
            image: "a/b:1".into(),
            command: "id".into(),
            volumes: vec!["/srv/data:/data:ro".into()],
            cards: vec![],
        };
        let user = User { uid: 7, gid: 8, groups: vec![9] };
        let env = ["KEY".to_owned()];
        let paths = (Path::new("/w"), Path::new("/room"));
        let words = command(&container, "crater/1/2", true, &user, env.iter(), paths);
        for word in ["--env=KEY", "--user=7:8", "--group-add=9", "--name", "crater-1-2"] {
            assert!(words.iter().any(|known| known == word), "{word}: {words:?}");
        }
        assert!(words.ends_with(&["--".into(), "a/b:1".into(), "-c".into(), "id".into()]));
        let first = command(&container, "crater/1/2", false, &user, env.iter(), paths);
        assert!(first.contains(&"/crater/1/2".to_owned()), "{first:?}");
    }
}
