//! The cluster that is this machine.

use super::amounts::Text;
use crater_local::local::Settings;
use crater_local::machine::Offer;
use crater_local::users::{COUNT, FIRST, Rule};
use crater_model::parse::memory;
use crater_model::{FieldError, Iops, MbPerSec, Mib};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// This machine, on which jobs run as processes.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema, PartialEq)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct ThisMachine {
    /// Memory that no job is promised: the system's, and the server's.
    pub reserve_memory: Text,
    /// Disk bandwidth in MB/s that jobs may reserve. It cannot be asked of a
    /// disk; `fio` or the data sheet says it.
    pub disk: u64,
    /// Disk operations a second that jobs may reserve.
    pub iops: u64,
    /// Processes and threads of one member.
    pub processes: u32,
    /// Kept of each of a job's two streams, such as 64Mi; what is older goes.
    pub output: Text,
    /// Users of this machine that tenants' jobs run as: a tenant's path and a
    /// name. Other tenants have a number of their own.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub users: BTreeMap<String, String>,
    /// One user for the jobs of all tenants. They can reach each other's files
    /// and processes then: only for a machine of a single tenant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub single_user: Option<String>,
    /// First of the numbers that tenants are given.
    pub first_uid: u32,
    /// How many numbers there are.
    pub uids: u32,
    /// A container runtime for jobs with an image: podman. Without one they are
    /// refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runtime: Option<String>,
    /// Folders of this machine that jobs with an image may have as volumes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub volumes: Vec<String>,
    /// Shares of cards are kept to by the MPS daemon, which runs.
    pub mps: bool,
}

impl Default for ThisMachine {
    fn default() -> Self {
        Self {
            reserve_memory: Text("1Gi".into()),
            disk: 0,
            iops: 0,
            processes: 4096,
            output: Text("64Mi".into()),
            users: BTreeMap::new(),
            single_user: None,
            first_uid: FIRST,
            uids: COUNT,
            runtime: None,
            volumes: vec![],
            mps: false,
        }
    }
}

impl ThisMachine {
    /// What the machine offers.
    pub fn offer(&self) -> Result<Offer, FieldError> {
        let reserve = memory("reserve-memory", &self.reserve_memory.0)?;
        Ok(Offer { reserve, disk: MbPerSec(self.disk), iops: Iops(self.iops) })
    }

    /// How jobs run.
    pub fn settings(&self, data: &Path) -> Result<Settings, FieldError> {
        let output = memory("output", &self.output.0)?;
        if !(Mib(1)..=Mib(1 << 20)).contains(&output) {
            return Err(FieldError::new("output", &self.output.0, "1Mi to 1Ti"));
        }
        if !(8..=4_194_304).contains(&self.processes) {
            let text = self.processes.to_string();
            return Err(FieldError::new("processes", &text, "8 to 4194304"));
        }
        let last = self.first_uid.checked_add(self.uids);
        if self.first_uid < 1000 || self.uids == 0 || last.is_none_or(|last| last > 0xFFFF_FFF0) {
            let text = format!("{} and {}", self.first_uid, self.uids);
            let expected = "numbers from 1000 to 4294967280, at least one";
            return Err(FieldError::new("first-uid and uids", &text, expected));
        }
        let users = match &self.single_user {
            Some(_) if !self.users.is_empty() => {
                let expected = "either users or single-user";
                return Err(FieldError::new("single-user", "and users", expected));
            }
            Some(name) => Rule::One(name.clone()),
            None => {
                let (named, first) = (self.users.clone(), self.first_uid);
                Rule::Each { named, first, count: self.uids }
            }
        };
        Ok(Settings {
            data: data.to_owned(),
            // The file that runs, also if its name was given to another version.
            program: "/proc/self/exe".into(),
            users,
            processes: self.processes,
            output_bytes: output.0 << 20,
            runtime: self.runtime.clone(),
        })
    }
}
