//! Tenants with their quotas, and what holds for all of them.

use crate::id::TenantPath;
use crate::job::Priority;
use crate::parse::FieldError;
use crate::quota::{Amounts, Resource};
use serde::{Deserialize, Serialize};

/// A department, a project or a person, and what it may use. Each level of a
/// job's path is checked on its own; a level without a quota has no limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct TenantSpec {
    /// Which.
    pub path: TenantPath,
    /// Always usable, and while borrowing is off all that is usable.
    #[serde(default, skip_serializing_if = "Amounts::is_empty")]
    pub hard: Amounts,
    /// Usable while there is spare capacity; what is not set is hard times the
    /// platform's ratio.
    #[serde(default, skip_serializing_if = "Amounts::is_empty")]
    pub soft: Amounts,
    /// The greatest priority of its jobs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ceiling: Option<Priority>,
}

impl TenantSpec {
    /// A tenant without limits of its own.
    pub fn new(path: TenantPath) -> Self {
        let (hard, soft) = (Amounts::default(), Amounts::default());
        Self { path, hard, soft, ceiling: None }
    }

    /// The same with its amounts in the steps that quotas are set in.
    #[must_use]
    pub fn rounded(self) -> Self {
        Self { hard: self.hard.rounded(), soft: self.soft.rounded(), ..self }
    }

    /// What of a resource may be used with what is borrowed, in its own unit;
    /// `None` for no limit.
    pub fn soft(&self, resource: &Resource, platform: &PlatformSpec) -> Option<u64> {
        let hard = self.hard.get(resource)?;
        let ratio = u128::from(platform.soft_quota_ratio_percent);
        let scaled = u128::from(hard) * ratio / 100;
        let scaled = u64::try_from(scaled).unwrap_or(u64::MAX);
        Some(self.soft.get(resource).unwrap_or(scaled).max(hard))
    }

    /// Refuses a quota that contradicts itself, naming the field.
    pub fn check(&self) -> Result<(), FieldError> {
        self.hard.check("hard")?;
        self.soft.check("soft")?;
        if let Some(ceiling) = self.ceiling.filter(|c| *c > Priority::MAX) {
            return Err(FieldError::new("ceiling", &ceiling.0.to_string(), "0 to 1000"));
        }
        for (resource, soft) in self.soft.iter() {
            let expected = match self.hard.get(&resource) {
                None => format!("a hard limit of {resource} beside it"),
                Some(hard) if soft < hard => format!("at least hard ({})", resource.spell(hard)),
                Some(_) => continue,
            };
            let field = format!("soft {resource}");
            return Err(FieldError::new(&field, &resource.spell(soft), expected));
        }
        Ok(())
    }
}

/// What holds for all tenants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct PlatformSpec {
    /// Soft quota where a tenant sets none, in percent of hard.
    pub soft_quota_ratio_percent: u32,
    /// Whether use between hard and soft is possible.
    pub borrowing: bool,
    /// Jobs that are not preemptible may borrow too: what they borrow cannot be
    /// reclaimed before they end.
    pub borrow_unpreemptible: bool,
    /// Borrowing opens while less of the cluster's GPU than this is used.
    pub borrow_opens_below_percent: u8,
    /// Once open, it closes at this.
    pub borrow_closes_at_percent: u8,
    /// Whether the tenants' limits were read. Until then nothing starts: limits
    /// that are not known are not limits that are not there.
    pub quotas_known: bool,
}

impl Default for PlatformSpec {
    fn default() -> Self {
        Self {
            soft_quota_ratio_percent: 200,
            borrowing: false,
            borrow_unpreemptible: false,
            borrow_opens_below_percent: 50,
            borrow_closes_at_percent: 55,
            quotas_known: true,
        }
    }
}

impl PlatformSpec {
    /// Refuses what cannot be, naming the field.
    pub fn check(&self) -> Result<(), FieldError> {
        if !(100..=100_000).contains(&self.soft_quota_ratio_percent) {
            let value = self.soft_quota_ratio_percent.to_string();
            let expected = "100 to 100000 percent of hard";
            return Err(FieldError::new("soft-quota-ratio-percent", &value, expected));
        }
        let (opens, closes) = (self.borrow_opens_below_percent, self.borrow_closes_at_percent);
        if closes > 100 || opens > closes {
            let expected = format!("{opens}, where it opens, to 100");
            return Err(FieldError::new("borrow-closes-at-percent", &closes.to_string(), expected));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tenant(hard: &[(&str, &str)], soft: &[(&str, &str)]) -> TenantSpec {
        let mut spec = TenantSpec::new(TenantPath::parse("tenant", "ai/nlp").unwrap());
        for (field, text) in hard {
            spec.hard.field(field, text).unwrap();
        }
        for (field, text) in soft {
            spec.soft.field(field, text).unwrap();
        }
        spec
    }

    #[test]
    fn soft_is_twice_hard_unless_set() {
        let platform = PlatformSpec::default();
        let spec = tenant(&[("gpu", "8"), ("cpu", "64")], &[("cpu", "70")]);
        assert!(spec.check().is_ok());
        assert_eq!(spec.soft(&Resource::Gpu, &platform), Some(16_000));
        assert_eq!(spec.soft(&Resource::Cpu, &platform), Some(70_000));
        assert_eq!(spec.soft(&Resource::Memory, &platform), None);
    }

    #[test]
    fn contradictions_are_refused_by_field() {
        let field = |spec: TenantSpec| spec.check().unwrap_err().to_string();
        let low = field(tenant(&[("gpu", "8")], &[("gpu", "7.5")]));
        assert_eq!(low, "soft gpu: \"7.5\" is refused: expected at least hard (8)");
        assert!(field(tenant(&[], &[("cpu", "1")])).starts_with("soft cpu: "));
        let ceiling = Some(Priority(1001));
        assert!(field(TenantSpec { ceiling, ..tenant(&[], &[]) }).starts_with("ceiling: "));
        let open = PlatformSpec {
            borrow_opens_below_percent: 60,
            borrow_closes_at_percent: 55,
            ..PlatformSpec::default()
        };
        assert!(open.check().unwrap_err().to_string().starts_with("borrow-closes-at-percent: "));
        assert!(PlatformSpec::default().check().is_ok());
    }

    #[test]
    fn a_tenant_is_read_as_it_was_written() {
        let spec = tenant(&[("gpu.A100", "4"), ("gpu-memory", "4Gi")], &[]);
        let json = serde_json::to_string(&spec).unwrap();
        assert_eq!(json, r#"{"path":"ai/nlp","hard":{"gpu-memory":4096,"models":{"A100":4000}}}"#);
        assert_eq!(serde_json::from_str::<TenantSpec>(&json).unwrap(), spec);
        assert_eq!(serde_json::from_str::<PlatformSpec>("{}").unwrap(), PlatformSpec::default());
    }
}
