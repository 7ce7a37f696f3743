//! Borrowing, and how queues make room, as the configuration says them.

use super::{Config, Queue, span};
use crater_model::{FieldError, PlatformSpec, RoomRules};

/// Longest of the spans that are kept in seconds.
const LONGEST: u64 = 366 * 86_400;

impl Config {
    /// What holds for all tenants.
    pub(super) fn platform(&self) -> Result<PlatformSpec, FieldError> {
        if !(1.0..=100.0).contains(&self.soft_quota_ratio) {
            let text = self.soft_quota_ratio.to_string();
            return Err(FieldError::new("soft-quota-ratio", &text, "1 to 100"));
        }
        let (opens, closes) = (self.borrow_opens_below, self.borrow_closes_at);
        // The engine checks them, too, under its own names.
        if closes > 100 || opens > closes {
            let expected = format!("percent, borrow-opens-below ({opens}) to 100");
            return Err(FieldError::new("borrow-closes-at", &closes.to_string(), expected));
        }
        let spec = PlatformSpec {
            soft_quota_ratio_percent: (self.soft_quota_ratio * 100.0).round() as u32,
            borrowing: self.borrowing,
            borrow_unpreemptible: self.borrow_unpreemptible,
            borrow_opens_below_percent: opens,
            borrow_closes_at_percent: closes,
            ..PlatformSpec::default()
        };
        spec.check().map(|()| spec)
    }
}

impl Queue {
    /// How its jobs make room, and how it has room kept.
    pub(super) fn room(&self) -> Result<RoomRules, FieldError> {
        Ok(RoomRules {
            minimum_run: seconds("minimum-run", &self.minimum_run)?,
            preemptions_per_hour: self.preemptions_per_hour,
            preemptions_per_job: self.preemptions_per_job,
            reserve_after: seconds("reserve-after", &self.reserve_after)?,
        })
    }
}

/// A span in seconds.
fn seconds(field: &str, text: &str) -> Result<u32, FieldError> {
    let span = span(field, text)?.as_secs();
    let fits = u32::try_from(span).ok().filter(|_| span <= LONGEST);
    fits.ok_or_else(|| FieldError::new(field, text, "at most 366d"))
}

/// The usual least run of a job before it is preempted.
pub(super) fn minute() -> String {
    "60s".into()
}

/// The usual wait of a queue's first job before room is kept for it.
pub(super) fn five_minutes() -> String {
    "5m".into()
}
