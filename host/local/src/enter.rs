//! The last steps before a member's own command: this process goes into the
//! cgroup, takes its own view of the files, becomes the tenant's user, and
//! becomes the command.
//!
//! Its standard input is a pipe to the keeper: whatever is written there says
//! why it went no further; the command itself finds nothing to read.

use crate::folder::Folder;
use crate::groups::{Found, Group};
use crate::order::{Order, PATH, ROOM};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::unistd::{Gid, Uid, setgid, setgroups, setuid};
use rustix::fs::{Mode, OFlags};
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// Marks what is the job's own fault.
pub(crate) const OWN: &str = "the job: ";

/// What it ends with if it goes no further.
const REFUSED: u8 = 125;

/// Becomes the member that the claim's folder orders.
pub fn run(folder: &Path) -> ExitCode {
    let keeper = match io::stdin().as_fd().try_clone_to_owned() {
        Ok(pipe) => pipe,
        Err(error) => {
            eprintln!("crater: {error}");
            return ExitCode::from(REFUSED);
        }
    };
    let Err(why) = enter(folder);
    if let Err(error) = File::from(keeper).write_all(why.as_bytes()) {
        eprintln!("crater: {why} ({error})");
    }
    ExitCode::from(REFUSED)
}

fn enter(folder: &Path) -> Result<std::convert::Infallible, String> {
    let said = |what: &str, error: &dyn std::fmt::Display| format!("{what}: {error}");
    let order = Folder::at(folder).order().map_err(|e| said("its order", &e))?;
    let order = order.ok_or("its order is not there")?;
    let nothing = File::open("/dev/null").map_err(|e| said("/dev/null", &e))?;
    rustix::stdio::dup2_stdin(&nothing).map_err(|e| said("its input", &e))?;
    // Alone in a session, so that a signal reaches it and what it started.
    rustix::process::setsid().map_err(|e| said("its session", &e))?;
    // When the machine runs out of memory, members go before the server does.
    fs::write("/proc/self/oom_score_adj", "200").map_err(|e| said("oom_score_adj", &e))?;
    let group = Group::at(&Found::look(), &order.group);
    group.join().map_err(|e| e.to_string())?;
    if order.runtime.is_some() {
        // The runtime makes the mounts and becomes the user. It is root: nothing
        // of the job's environment is its own.
        let (program, rest) = order.command.split_first().ok_or("it has no command")?;
        let own = [("PATH", PATH), ("HOME", "/root"), ("LANG", "C.UTF-8")];
        let failed = Command::new(program).args(rest).env_clear().envs(own).exec();
        return Err(said(program, &failed));
    }
    mounts(&order).map_err(|(what, e)| said(&what, &e))?;
    become_user(&order).map_err(|e| said("its user", &e))?;
    let workdir =
        if order.workdir.as_os_str().is_empty() { Path::new(ROOM) } else { &order.workdir };
    // As the user: whoever may not enter it finds that here.
    std::env::set_current_dir(workdir)
        .map_err(|e| said(&format!("{OWN}workdir {}", workdir.display()), &e))?;
    let (program, rest) = order.command.split_first().ok_or("it has no command")?;
    let failed = Command::new(program).args(rest).env_clear().envs(&order.env).exec();
    Err(said(&format!("{OWN}{program}"), &failed))
}

/// A view of the files of its own: the job's folder at a place that is the same
/// for every job, a `/tmp` that goes with the job, and nothing of the server's.
fn mounts(order: &Order) -> Result<(), (String, nix::Error)> {
    let none = None::<&Path>;
    unshare(CloneFlags::CLONE_NEWNS).map_err(|e| ("its own mounts".to_owned(), e))?;
    let at = |target: &Path, result: nix::Result<()>| {
        result.map_err(|e| (format!("mount {}", target.display()), e))
    };
    let (root, room) = (Path::new("/"), Path::new(ROOM));
    at(root, mount(none, root, none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none))?;
    at(room, mount(Some(&*order.room), room, none, MsFlags::MS_BIND, none))?;
    let closed = MsFlags::MS_RDONLY | MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    let tmpfs = Some(Path::new("tmpfs"));
    at(&order.hidden, mount(tmpfs, &*order.hidden, tmpfs, closed, Some(Path::new("mode=0555"))))?;
    // The job owns what it is in, and may have put a link in its place: that
    // would show what its user cannot reach.
    let (own, tmp) = (room.join("tmp"), Path::new("/tmp"));
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = rustix::fs::open(&own, flags, Mode::empty());
    let opened = opened.map_err(|e| nix::Error::from_raw(e.raw_os_error()));
    let opened = opened.map_err(|e| (own.display().to_string(), e))?;
    let seen = PathBuf::from(format!("/proc/self/fd/{}", opened.as_raw_fd()));
    at(tmp, mount(Some(&*seen), tmp, none, MsFlags::MS_BIND, none))
}

/// Root no more, and never again.
fn become_user(order: &Order) -> nix::Result<()> {
    let user = &order.user;
    let groups: Vec<Gid> = user.groups.iter().map(|gid| Gid::from_raw(*gid)).collect();
    setgroups(&groups)?;
    setgid(Gid::from_raw(user.gid))?;
    setuid(Uid::from_raw(user.uid))?;
    nix::sys::prctl::set_no_new_privs()
}
