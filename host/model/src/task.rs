//! What a job runs: told to the executor, of no concern to decisions.

use crate::amount::{Iops, MbPerSec};
use crate::parse::FieldError;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What each member runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Task {
    /// Container image; empty without one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub image: String,
    /// Command line for `sh -c`; empty for the image's own.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub command: String,
    /// Environment.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Working directory; empty for the default.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub workdir: String,
    /// `source:target[:ro]`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub volumes: Vec<String>,
    /// Ports that it listens on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<u16>,
    /// Seconds between the signal to end and the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grace: Option<u32>,
    /// Most disk bandwidth of each member in MB/s, of reading and of writing;
    /// as much as there is without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk_bandwidth_limit: Option<MbPerSec>,
    /// Most disk operations of each member a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk_iops_limit: Option<Iops>,
}

/// Bytes of all of a task's texts together.
const MOST: usize = 64 << 10;

impl Task {
    /// Refuses what no executor could take, by its field.
    pub fn check(&self) -> Result<(), FieldError> {
        let env: usize = self.env.iter().map(|(name, value)| name.len() + value.len()).sum();
        let volumes: usize = self.volumes.iter().map(String::len).sum();
        let all = self.image.len() + self.command.len() + self.workdir.len() + env + volumes;
        if all > MOST {
            let expected = format!("at most {MOST} bytes with env, image, volumes and workdir");
            return Err(FieldError::new("command", &format!("{all} bytes"), expected));
        }
        let texts =
            [("image", &self.image), ("command", &self.command), ("workdir", &self.workdir)];
        let values = self.env.values().map(|value| ("env", value));
        let volumes = self.volumes.iter().map(|volume| ("volumes", volume));
        for (field, text) in texts.into_iter().chain(values).chain(volumes) {
            if text.contains('\0') {
                return Err(FieldError::new(field, text, "a text without NUL"));
            }
        }
        for name in self.env.keys() {
            let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
            if name.is_empty()
                || name.starts_with(|c: char| c.is_ascii_digit())
                || !name.chars().all(plain)
            {
                return Err(FieldError::new("env", name, "names of letters, digits and _"));
            }
        }
        for volume in &self.volumes {
            let parts: Vec<&str> = volume.split(':').collect();
            let whole = |target: &str| target.starts_with('/');
            let fine = matches!(parts.as_slice(), [s, t] | [s, t, "ro" | "rw"] if !s.is_empty() && whole(t));
            if !fine {
                return Err(FieldError::new(
                    "volumes",
                    volume,
                    "source:/target or source:/target:ro",
                ));
            }
        }
        if self.disk_bandwidth_limit.is_some_and(|most| most.0 == 0) {
            return Err(FieldError::new("disk-bandwidth-limit", "0", "at least 1 MB/s"));
        }
        if self.disk_iops_limit.is_some_and(|most| most.0 == 0) {
            return Err(FieldError::new("disk-iops-limit", "0", "at least 1 operation a second"));
        }
        if self.grace.is_some_and(|grace| grace > 86_400) {
            return Err(FieldError::new("grace", "more than a day", "0 to 86400 seconds"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_run_is_refused_by_field() {
        let field = |task: Task| task.check().map_err(|e| e.field).err();
        assert_eq!(field(Task::default()), None);
        let env = |name: &str| BTreeMap::from([(name.to_owned(), "1".to_owned())]);
        assert_eq!(field(Task { env: env("A_1"), ..Task::default() }), None);
        assert_eq!(field(Task { env: env("1A"), ..Task::default() }), Some("env".into()));
        assert_eq!(
            field(Task { command: "a\0b".into(), ..Task::default() }),
            Some("command".into())
        );
        let volumes = |text: &str| Task { volumes: vec![text.into()], ..Task::default() };
        assert_eq!(field(volumes("data:/data:ro")), None);
        assert_eq!(field(volumes("data")), Some("volumes".into()));
        assert_eq!(
            field(Task { command: "x".repeat(MOST + 1), ..Task::default() }),
            Some("command".into())
        );
    }
}
