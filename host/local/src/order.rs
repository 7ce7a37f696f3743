//! What a keeper is told to run, and what it writes down in the end.

use crate::groups::Limits;
use crater_model::{ClaimUid, JobUid, Mib};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// Where a member finds its job's own folder, whichever job that is.
pub const ROOM: &str = "/run/crater/job";

/// Where programs are looked for.
pub const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// One member of a job, to be run under one claim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// The claim.
    pub claim: ClaimUid,
    /// The job.
    pub job: JobUid,
    /// Which member of it, from 0.
    pub member: u32,
    /// How many members the job has: what several print is marked by line.
    pub members: u32,
    /// Program and arguments.
    pub command: Vec<String>,
    /// The container runtime that the command is of, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime: Option<String>,
    /// All of its environment.
    pub env: BTreeMap<String, String>,
    /// Where it starts; empty for the job's own folder.
    pub workdir: PathBuf,
    /// Who it runs as.
    pub user: User,
    /// The cgroup, below the hierarchy's root.
    pub group: String,
    /// What it may use.
    pub limits: Limits,
    /// The job's own folder, on this machine's own paths.
    pub room: PathBuf,
    /// Where what it prints goes.
    pub output: PathBuf,
    /// Bytes kept of each of its streams.
    pub output_bytes: u64,
    /// The server's folder, which it must not see.
    pub hidden: PathBuf,
}

/// Numbers of a user and of groups.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct User {
    /// The user.
    pub uid: u32,
    /// The main group.
    pub gid: u32,
    /// Further groups.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<u32>,
}

/// The member runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Running {
    /// Its first process.
    pub pid: u32,
}

/// It is to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stop {
    /// From the signal to end until it is ended by force.
    pub grace: Duration,
}

/// How a member ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "how", rename_all = "kebab-case")]
pub enum End {
    /// By itself.
    Exit {
        /// Its exit code.
        code: i32,
    },
    /// By a signal that was not sent by the keeper.
    Signal {
        /// Its number.
        signal: i32,
    },
    /// The kernel ended it, or one of its processes, for want of memory.
    OutOfMemory {
        /// What it may use.
        limit: Mib,
    },
    /// It was told to.
    Stopped {
        /// It did not within its grace and was ended by force.
        forced: bool,
    },
    /// It never ran.
    NotStarted {
        /// Why.
        why: String,
        /// It is the job's own fault, so that it would not start again either.
        #[serde(default)]
        own: bool,
    },
    /// Its keeper went without a word, so how it ended is not known.
    Lost {
        /// Why.
        why: String,
    },
}

impl End {
    /// Whether it ended by itself and well.
    pub const fn success(&self) -> bool {
        matches!(self, Self::Exit { code: 0 })
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exit { code } => write!(f, "exit code {code}"),
            Self::Signal { signal } => match nix::sys::signal::Signal::try_from(*signal) {
                Ok(name) => write!(f, "ended by {name}"),
                Err(_) => write!(f, "ended by signal {signal}"),
            },
            Self::OutOfMemory { limit } => {
                write!(f, "out of memory: it may use {} MiB", limit.0)
            }
            Self::Stopped { forced: false } => f.write_str("ended as it was told"),
            Self::Stopped { forced: true } => f.write_str("ended by force after its grace"),
            Self::NotStarted { why, .. } => write!(f, "not started: {why}"),
            Self::Lost { why } => f.write_str(why),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_are_said_in_words() {
        let said = |end: End| end.to_string();
        assert_eq!(said(End::Exit { code: 3 }), "exit code 3");
        assert_eq!(said(End::Signal { signal: 11 }), "ended by SIGSEGV");
        assert_eq!(said(End::OutOfMemory { limit: Mib(256) }), "out of memory: it may use 256 MiB");
        assert!(End::Exit { code: 0 }.success());
        assert!(!End::Stopped { forced: false }.success());
    }
}
