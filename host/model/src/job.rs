//! Jobs.

use crate::id::{QueueName, TenantPath, check_name};
use crate::parse::{FieldError, integer};
use crate::request::{Need, Request};
use crate::task::Task;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// What a job is for. Gives defaults, never rights; earlier stands above later
/// where priorities are equal.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Serves requests.
    Inference,
    /// Trains a model.
    #[default]
    Training,
    /// May run whenever there is room.
    Offline,
}

impl Kind {
    /// Parses a kind's name.
    pub fn parse(field: &str, text: &str) -> Result<Self, FieldError> {
        match text {
            "inference" => Ok(Self::Inference),
            "training" => Ok(Self::Training),
            "offline" => Ok(Self::Offline),
            _ => Err(FieldError::new(field, text, "inference, training or offline")),
        }
    }

    /// The number that stands for it in columns.
    pub const fn code(self) -> i32 {
        match self {
            Self::Inference => 1,
            Self::Training => 2,
            Self::Offline => 3,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Inference => "inference",
            Self::Training => "training",
            Self::Offline => "offline",
        })
    }
}

/// 0–1000, greater goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Priority(pub u16);

impl Priority {
    /// The greatest.
    pub const MAX: Self = Self(1000);

    /// Parses `low`, `medium`, `high` or 0–1000.
    pub fn parse(field: &str, text: &str) -> Result<Self, FieldError> {
        match text {
            "low" => Ok(Self(10)),
            "medium" => Ok(Self(50)),
            "high" => Ok(Self(100)),
            number => integer(field, number, 0, 1000)
                .map(|n| Self(n as u16))
                .map_err(|_| FieldError::new(field, text, "low, medium, high or 0 to 1000")),
        }
    }
}

impl Default for Priority {
    fn default() -> Self {
        Self(50)
    }
}

/// Where a job stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum JobState {
    /// Waits for room.
    Pending,
    /// Some or all of its members were placed and start.
    Starting,
    /// At least its minimum of members runs.
    Running,
    /// Members are being ended so that it can be queued again.
    Preempting,
    /// Ended by itself, well.
    Succeeded,
    /// Ended by itself or by a fault, badly.
    Failed,
    /// Ended by its owner.
    Cancelled,
    /// Ended by the platform.
    Evicted,
}

impl JobState {
    /// Whether the job is over.
    pub const fn ended(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed | Self::Cancelled | Self::Evicted)
    }
}

impl fmt::Display for JobState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

/// A job as submitted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobSpec {
    /// Name, for people.
    pub name: Arc<str>,
    /// The queue it waits in.
    pub queue: QueueName,
    /// Whose it is.
    pub tenant: TenantPath,
    /// What it is for.
    pub kind: Kind,
    /// How urgent it is.
    pub priority: Priority,
    /// Equal members.
    pub members: u32,
    /// Members that must start together.
    pub min_members: u32,
    /// What each member asks for.
    pub request: Arc<Request>,
    /// Its owner allows preemption.
    #[serde(default)]
    pub preemptible: bool,
    /// Longest run in seconds, 0 for none. Waiting does not count.
    #[serde(default)]
    pub run_limit: u32,
    /// What each member runs.
    #[serde(default)]
    pub task: Arc<Task>,
    /// Whether its members want to be near each other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub together: Option<Together>,
}

/// Members that want to be near each other.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Together {
    /// How near: `domain`, `zone`, or the key of a node label, such as that of
    /// racks or switches. Nodes with the same value are near each other.
    pub level: Arc<str>,
    /// Whether it waits until it can have that.
    pub need: Need,
}

impl JobSpec {
    /// A job of one member with everything else at its default.
    pub fn new(name: &str, queue: &str, tenant: TenantPath, request: Request) -> Self {
        Self {
            name: name.into(),
            queue: queue.into(),
            tenant,
            kind: Kind::default(),
            priority: Priority::default(),
            members: 1,
            min_members: 1,
            request: Arc::new(request),
            preemptible: false,
            run_limit: 0,
            task: Arc::default(),
            together: None,
        }
    }

    /// Refuses a job that contradicts itself, naming the field.
    pub fn check(&self) -> Result<(), FieldError> {
        check_name("name", &self.name)?;
        check_name("queue", &self.queue)?;
        if self.priority > Priority::MAX {
            return Err(FieldError::new("priority", &self.priority.0.to_string(), "0 to 1000"));
        }
        if self.members == 0 {
            return Err(FieldError::new("members", "0", "at least 1"));
        }
        if !(1..=self.members).contains(&self.min_members) {
            let expected = format!("1 to members ({})", self.members);
            return Err(FieldError::new("min", &self.min_members.to_string(), expected));
        }
        if self.preemptible && self.kind == Kind::Inference {
            let expected = "false for inference, which is not preempted";
            return Err(FieldError::new("preemptible", "true", expected));
        }
        if let Some(together) = &self.together
            && (together.level.is_empty() || together.level.len() > 317)
        {
            let expected = "domain, zone or the key of a node label";
            return Err(FieldError::new("together", &together.level, expected));
        }
        self.task.check()?;
        self.request.check()
    }
}

/// What an owner may change of a job that was submitted. What is not set stays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct JobChanges {
    /// How urgent it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<Priority>,
    /// Whether its owner allows preemption.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preemptible: Option<bool>,
    /// Weight when the disk is busy, 1–10000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_weight: Option<u16>,
}

impl JobChanges {
    /// The job with the changes made.
    #[must_use]
    pub fn of(&self, spec: &JobSpec) -> JobSpec {
        let mut changed = spec.clone();
        changed.priority = self.priority.unwrap_or(spec.priority);
        changed.preemptible = self.preemptible.unwrap_or(spec.preemptible);
        if let Some(weight) = self.disk_weight.filter(|w| *w != spec.request.disk.weight) {
            Arc::make_mut(&mut changed.request).disk.weight = weight;
        }
        changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_numbers_are_priorities() {
        assert_eq!(Priority::parse("priority", "high"), Ok(Priority(100)));
        assert_eq!(Priority::parse("priority", "1000"), Ok(Priority(1000)));
        assert!(Priority::parse("priority", "1001").is_err());
        assert!(Priority::parse("priority", "urgent").is_err());
    }

    #[test]
    fn changes_touch_only_what_they_name() {
        let tenant = TenantPath::parse("tenant", "ai/nlp").unwrap();
        let job = JobSpec::new("a", "training", tenant, Request::default());
        assert_eq!(JobChanges::default().of(&job), job);
        let changes =
            JobChanges { priority: Some(Priority(9)), disk_weight: Some(7), preemptible: None };
        let changed = changes.of(&job);
        assert_eq!((changed.priority.0, changed.request.disk.weight), (9, 7));
        assert_eq!((changed.preemptible, job.request.disk.weight), (false, 100));
    }

    #[test]
    fn contradictions_are_refused_by_field() {
        let tenant = TenantPath::parse("tenant", "ai/nlp").unwrap();
        let job = JobSpec::new("a", "training", tenant, Request::default());
        assert!(job.check().is_ok());
        let field = |job: JobSpec| job.check().unwrap_err().field;
        assert_eq!(field(JobSpec { members: 0, ..job.clone() }), "members");
        assert_eq!(field(JobSpec { min_members: 2, ..job.clone() }), "min");
        assert_eq!(
            field(JobSpec { kind: Kind::Inference, preemptible: true, ..job.clone() }),
            "preemptible"
        );
        assert_eq!(field(JobSpec { name: "训练".into(), ..job }), "name");
    }
}
