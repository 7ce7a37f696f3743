//! The members that run here, as the server sees them.

use crate::disk::{DiskLimits, Usage};
use crate::folder::{self, Folder};
use crate::groups::{Found, Group, GroupError, Limits};
use crate::image::{self, Image, Place};
use crate::order::{End, Order, PATH, ROOM, Stop, User};
use crate::users::{Rule, UserError, Users};
use crater_model::{ClaimUid, JobUid, TenantPath, Time};
use rustix::fs::{Gid, Uid};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use thiserror::Error;

/// What a runner needs to know.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The server's folder; the runner's own is `local` in it. No member sees
    /// it.
    pub data: PathBuf,
    /// The program that knows `local keep` and `local enter`.
    pub program: PathBuf,
    /// Who members run as.
    pub users: Rule,
    /// Processes and threads of a member.
    pub processes: u32,
    /// Bytes kept of each stream of a job.
    pub output_bytes: u64,
    /// The container runtime, if images may be used.
    pub runtime: Option<String>,
}

/// Jobs cannot run on this machine.
#[derive(Debug, Error)]
pub enum OpenError {
    /// Not root.
    #[error(
        "jobs on this machine need root, so that they can run as users of their own, never as the \
         server's: start the server with sudo or as a system service, or take the simulated \
         cluster"
    )]
    NotRoot,
    /// No control groups.
    #[error(transparent)]
    Groups(#[from] GroupError),
    /// No users.
    #[error(transparent)]
    Users(#[from] UserError),
    /// Its folders.
    #[error("{0}: {1}")]
    Folder(PathBuf, io::Error),
}

/// How long what is left of a member without a keeper is waited for at a time.
const LOST: Duration = Duration::from_secs(1);

/// One member to start.
#[derive(Clone, Debug)]
pub struct Member {
    /// The claim.
    pub claim: ClaimUid,
    /// The job.
    pub job: JobUid,
    /// Which member, from 0.
    pub member: u32,
    /// Of how many.
    pub members: u32,
    /// Whose job it is.
    pub tenant: TenantPath,
    /// Command line for `sh -c`; of a container empty for the image's own.
    pub command: String,
    /// The image, what of the machine it sees, and which cards; none for a
    /// process of the machine itself.
    pub image: Option<Image>,
    /// Its environment, the platform's included.
    pub env: BTreeMap<String, String>,
    /// Where it starts; empty for the job's own folder.
    pub workdir: PathBuf,
    /// What it may use.
    pub limits: Limits,
}

/// What became of a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Report {
    /// Its member runs.
    Runs,
    /// It is over. Told until it is [forgotten](Local::forget).
    Ended(End),
}

/// A claim that has a folder.
#[derive(Debug)]
struct Kept {
    folder: Folder,
    job: JobUid,
    /// The keeper, if this process started it.
    keeper: Option<Child>,
    /// That it runs was reported.
    runs: bool,
    /// It was told to end.
    told: bool,
    /// What it was last said to use of its disk.
    disk: Option<DiskLimits>,
}

/// The runner.
#[derive(Debug)]
pub struct Local {
    settings: Settings,
    base: PathBuf,
    found: Found,
    users: Users,
    /// Control groups of this runner are below this one.
    groups: String,
    kept: BTreeMap<ClaimUid, Kept>,
    /// When each job last said that it saved its progress.
    saved: BTreeMap<JobUid, i64>,
}

impl Local {
    /// Makes ready what members need, and refuses a machine that cannot keep
    /// them apart.
    pub fn open(settings: Settings) -> Result<Self, OpenError> {
        if !nix::unistd::geteuid().is_root() {
            return Err(OpenError::NotRoot);
        }
        let found = Found::look();
        // The mounts of members name it by its whole path.
        let whole = |path: &Path| {
            fs::canonicalize(path).map_err(|error| OpenError::Folder(path.to_owned(), error))
        };
        let data = whole(&settings.data)?;
        let base = data.join("local");
        let gone = base.join("gone");
        for part in ["claims", "jobs", "output", "gone"].map(|part| base.join(part)) {
            folder::private(&part).map_err(|error| OpenError::Folder(part.clone(), error))?;
        }
        // What the last server did not come to take away.
        std::thread::spawn(move || {
            let left = fs::read_dir(gone).into_iter().flatten().filter_map(Result::ok);
            left.for_each(|entry| take_away(&entry.path()));
        });
        // Only where jobs' folders will appear to them; nothing lies in it.
        let room = PathBuf::from(ROOM);
        fs::create_dir_all(&room).map_err(|error| OpenError::Folder(room, error))?;
        let users = Users::open(&base, settings.users.clone())?;
        let meta = fs::metadata(&base).map_err(|e| OpenError::Folder(base.clone(), e))?;
        let groups = format!("crater/{:x}-{:x}", meta.dev(), meta.ino());
        found.try_out(&format!("{groups}/try"))?;
        let settings = Settings { data, ..settings };
        let (kept, saved) = (BTreeMap::new(), BTreeMap::new());
        Ok(Self { settings, base, found, users, groups, kept, saved })
    }

    /// Which control groups this machine has.
    pub const fn found(&self) -> &Found {
        &self.found
    }

    /// The group that all members' groups are in.
    pub fn groups(&self) -> &str {
        &self.groups
    }

    /// The runner's folder.
    pub fn base(&self) -> &Path {
        &self.base
    }

    fn group(&self, claim: ClaimUid) -> Group {
        Group::at(&self.found, &self.group_name(claim))
    }

    fn group_name(&self, claim: ClaimUid) -> String {
        format!("{}/{}", self.groups, claim.0)
    }

    /// Starts a member, or takes up again what runs for its claim already. What
    /// keeps it from starting is reported as its end.
    pub fn start(&mut self, member: Member) -> io::Result<()> {
        let claim = member.claim;
        if self.kept.contains_key(&claim) {
            return Ok(());
        }
        let folder = Folder::of(&self.base, claim);
        let job = member.job;
        let mut kept = Kept {
            folder: folder.clone(),
            job,
            keeper: None,
            runs: false,
            told: false,
            disk: None,
        };
        if !folder.ordered() {
            let ready = self.order(member).map_err(|error| error.to_string());
            let made = ready.and_then(|order| folder.make(&order).map_err(|e| e.to_string()));
            if let Err(why) = made {
                folder::private(folder.path())?;
                folder.ended(&End::NotStarted { why, own: false })?;
            }
        }
        kept.told = folder.stop()?.is_some();
        if kept.told {
            folder.poke()?;
        }
        if folder.end()?.is_none() {
            kept.keeper = self.keeper(&folder)?;
        }
        self.kept.insert(claim, kept);
        Ok(())
    }

    /// Starts a keeper where there is none. One that is just coming up makes no
    /// difference: only one gets the lock.
    fn keeper(&self, folder: &Folder) -> io::Result<Option<Child>> {
        if folder.lock()?.is_none() {
            return Ok(None);
        }
        let log =
            fs::File::options().create(true).append(true).open(folder.path().join("keeper.log"))?;
        let mut command = Command::new(&self.settings.program);
        command
            .args(["local", "keep"])
            .arg(folder.path())
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log);
        command.spawn().map(Some)
    }

    fn order(&mut self, member: Member) -> Result<Order, OrderError> {
        let user = self.users.of(&member.tenant)?;
        // There from the start: who prints nothing has printed nothing yet.
        let output = folder::output(&self.base, member.job);
        folder::private(&output)?;
        let room = folder::room(&self.base, member.job);
        own(&room, &user)?;
        for part in ["checkpoint", "tmp"] {
            own(&room.join(part), &user)?;
        }
        let mut env = BTreeMap::from(
            [("HOME", ROOM), ("PATH", PATH), ("LANG", "C.UTF-8")]
                .map(|(name, value)| (name.to_owned(), value.to_owned())),
        );
        env.extend(member.env);
        env.insert("CRATER_CHECKPOINT_DIR".into(), format!("{ROOM}/checkpoint"));
        let group = self.group_name(member.claim);
        let (command, runtime) = match &member.image {
            None => (vec!["/bin/sh".into(), "-c".into(), member.command], None),
            Some(image) => {
                let runtime = self.settings.runtime.clone().ok_or(OrderError::Runtime)?;
                let place = Place {
                    group: &group,
                    unified: self.found.unified,
                    user: &user,
                    room: &room,
                    workdir: &member.workdir,
                    env: &Folder::of(&self.base, member.claim).env(),
                };
                (image::command(&runtime, image, &member.command, place), Some(runtime))
            }
        };
        Ok(Order {
            claim: member.claim,
            job: member.job,
            member: member.member,
            members: member.members,
            command,
            runtime,
            env,
            workdir: member.workdir,
            user,
            group,
            limits: Limits { processes: self.settings.processes, ..member.limits },
            room,
            output,
            output_bytes: self.settings.output_bytes,
            hidden: self.settings.data.clone(),
        })
    }

    /// Tells a member to end; false if there is none for the claim.
    pub fn stop(&mut self, claim: ClaimUid, grace: Duration) -> io::Result<bool> {
        let Some(kept) = self.kept.get_mut(&claim) else { return Ok(false) };
        if !kept.told {
            kept.folder.tell_to_stop(Stop { grace })?;
            kept.told = true;
        }
        Ok(true)
    }

    /// Takes up a claim that is to end, which may have run before this process
    /// did; false if nothing is left of it.
    pub fn take_up(&mut self, claim: ClaimUid, job: JobUid) -> io::Result<bool> {
        let folder = Folder::of(&self.base, claim);
        if !self.kept.contains_key(&claim) && folder.path().is_dir() {
            let told = folder.stop()?.is_some();
            if told {
                // Whoever told it may have ended before its keeper heard.
                folder.poke()?;
            }
            self.kept
                .insert(claim, Kept { folder, job, keeper: None, runs: true, told, disk: None });
        }
        Ok(self.kept.contains_key(&claim))
    }

    /// What is new.
    pub fn poll(&mut self) -> Vec<(ClaimUid, Report)> {
        let mut reports = vec![];
        let claims: Vec<ClaimUid> = self.kept.keys().copied().collect();
        for claim in claims {
            match self.look(claim) {
                Ok(found) => reports.extend(found.into_iter().map(|report| (claim, report))),
                Err(error) => tracing::error!(%error, %claim, "its folder cannot be read"),
            }
        }
        reports
    }

    fn look(&mut self, claim: ClaimUid) -> io::Result<Vec<Report>> {
        let group = self.group_name(claim);
        let Some(kept) = self.kept.get_mut(&claim) else { return Ok(vec![]) };
        let mut reports = vec![];
        let end = kept.folder.end()?;
        if !kept.runs && (kept.folder.running()?.is_some()) {
            kept.runs = true;
            reports.push(Report::Runs);
        }
        if let Some(end) = end {
            if let Some(mut keeper) = kept.keeper.take() {
                // It wrote its last word and goes.
                keeper.wait()?;
            }
            reports.push(Report::Ended(end));
            return Ok(reports);
        }
        let gone = match &mut kept.keeper {
            Some(keeper) => keeper.try_wait()?.is_some(),
            None => true,
        };
        if gone && let Some(lock) = kept.folder.lock()? {
            kept.keeper = None;
            // Its last word may have come since.
            if kept.folder.end()?.is_none() {
                tracing::warn!(%claim, "its keeper is gone: what is left of it is ended");
                let group = Group::at(&self.found, &group);
                // The other members are not kept waiting for what does not end:
                // it is tried again at the next look.
                let ended = group.kill(LOST).and_then(|()| group.remove(LOST));
                if let Err(error) = ended {
                    tracing::warn!(%claim, %error, "it still holds what it was given");
                    return Ok(reports);
                }
                if let Some(Order { runtime: Some(runtime), group, .. }) = kept.folder.order()? {
                    image::forget(&runtime, &group);
                }
                let why = "its keeper was ended, or the machine restarted".into();
                kept.folder.ended(&End::Lost { why })?;
            }
            drop(lock);
        }
        Ok(reports)
    }

    /// The end of a claim was taken note of: nothing of it is needed any more.
    pub fn forget(&mut self, claim: ClaimUid) -> io::Result<()> {
        let Some(kept) = self.kept.remove(&claim) else { return Ok(()) };
        kept.folder.remove()?;
        if !self.kept.values().any(|other| other.job == kept.job) {
            self.saved.remove(&kept.job);
            // It may hold very much, and nobody waits for it; the job may start
            // again at once, with a new one.
            let tmp = folder::room(&self.base, kept.job).join("tmp");
            let gone = self.base.join("gone").join(claim.0.to_string());
            match fs::rename(tmp, &gone) {
                Ok(()) => drop(std::thread::spawn(move || take_away(&gone))),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Ends and takes away whatever runs for claims that nobody knows.
    pub fn sweep(&mut self, known: &BTreeSet<ClaimUid>) -> io::Result<()> {
        for (claim, folder) in Folder::all(&self.base)? {
            if known.contains(&claim) || self.kept.contains_key(&claim) {
                continue;
            }
            let Some(order) = folder.order()? else {
                folder.remove()?;
                continue;
            };
            tracing::warn!(%claim, job = %order.job, "nobody knows it: it is ended");
            folder.tell_to_stop(Stop { grace: Duration::ZERO })?;
            let job = order.job;
            self.kept.insert(
                claim,
                Kept { folder, job, keeper: None, runs: true, told: true, disk: None },
            );
        }
        Ok(())
    }

    /// Jobs that said that they saved their progress since they were last asked;
    /// `told` knows when a job was last known to have.
    pub fn checkpoints(&mut self, told: impl Fn(JobUid) -> Option<Time>) -> Vec<JobUid> {
        let jobs: BTreeSet<JobUid> = self.kept.values().map(|kept| kept.job).collect();
        let mut new = vec![];
        for job in jobs {
            let done = folder::room(&self.base, job).join("checkpoint/.done");
            let Ok(meta) = fs::symlink_metadata(done) else { continue };
            let at = meta.mtime() * 1000 + meta.mtime_nsec() / 1_000_000;
            let fresh = match self.saved.insert(job, at) {
                Some(before) => before != at,
                // Looked at for the first time in this run, or by this server.
                None => told(job).is_none_or(|told| i128::from(at) > i128::from(told.0)),
            };
            new.extend(fresh.then_some(job));
        }
        new
    }

    /// What a claim's member read and wrote until now.
    pub fn disk_used(&self, claim: ClaimUid) -> Usage {
        self.group(claim).disk_used()
    }

    /// Sets what a claim's member may use of its disk, unless that is what it may.
    pub fn set_disk(&mut self, claim: ClaimUid, limits: DiskLimits) {
        let group = self.group(claim);
        if let Some(kept) = self.kept.get_mut(&claim)
            && kept.disk.as_ref() != Some(&limits)
        {
            group.set_disk(&limits);
            kept.disk = Some(limits);
        }
    }

    /// Whether nothing runs.
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }
}

/// Removes what a job left: a folder, or a link that it put in its place.
fn take_away(path: &Path) {
    let link = fs::symlink_metadata(path).is_ok_and(|meta| !meta.is_dir());
    let gone = if link { fs::remove_file(path) } else { fs::remove_dir_all(path) };
    if let Err(error) = gone {
        tracing::warn!(%error, path = %path.display(), "what a job left stays");
    }
}

/// A member's order cannot be made.
#[derive(Debug, Error)]
enum OrderError {
    #[error(transparent)]
    User(#[from] UserError),
    #[error("no container runtime is configured (cluster.local.runtime)")]
    Runtime,
    #[error("its folder: {0}")]
    Folder(#[from] io::Error),
}

/// Makes a folder that only this user may enter.
fn own(path: &Path, user: &User) -> io::Result<()> {
    folder::private(path)?;
    let meta = fs::symlink_metadata(path)?;
    if !meta.is_dir() {
        return Err(io::Error::other(format!("{} is no folder", path.display())));
    }
    fs::set_permissions(path, fs::Permissions::from_mode(0o700))?;
    let (uid, gid) = (Uid::from_raw(user.uid), Gid::from_raw(user.gid));
    rustix::fs::chownat(
        rustix::fs::CWD,
        path,
        Some(uid),
        Some(gid),
        rustix::fs::AtFlags::SYMLINK_NOFOLLOW,
    )?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_no_folder_of_a_job() {
        let base = tempfile::tempdir().unwrap();
        let own_user = nix::unistd::geteuid().as_raw();
        let user = User { uid: own_user, gid: nix::unistd::getegid().as_raw(), groups: vec![] };
        let (real, link) = (base.path().join("real"), base.path().join("link"));
        own(&real, &user).unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        let refused = own(&link, &user).unwrap_err().to_string();
        assert!(refused.ends_with("link is no folder"), "{refused}");
    }
}
