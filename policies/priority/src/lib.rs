//! `priority`: higher priority goes first and is evicted last.
//!
//! **Order.** By priority; where that is equal inference before training before
//! offline work, then by submission. Waiting ages: each `age-minutes` (60) count
//! as a point of priority, up to `age-points` (40, from *low* to *medium*), so
//! that nothing starves.
//!
//! **Prices.** Lower priority goes first; within a priority what loses the
//! fewest card-seconds: time since the last checkpoint (since the start without
//! one) times the GPU share that would go. Each earlier preemption counts as
//! `repeat-seconds` (600) more, so that the same job is not hit again and again.

use crater_sdk::prelude::*;

/// The configuration.
#[derive(Clone, Copy, Debug)]
pub struct Priority {
    age_minutes: i32,
    age_points: i32,
    repeat_seconds: i32,
}

impl Policy for Priority {
    fn configure(config: &str, _: &[u8]) -> Result<Self, String> {
        let mut settings = Settings::read(config)?;
        let it = Self {
            age_minutes: settings.int("age-minutes", 0..=100_000, 60)?,
            age_points: settings.int("age-points", 0..=1000, 40)?,
            repeat_seconds: settings.int("repeat-seconds", 0..=1_000_000, 600)?,
        };
        settings.end()?;
        Ok(it)
    }

    fn rank(&self, _: &Context, job: &Job) -> Rank {
        // Thousandths of a point.
        let aged = match i64::from(self.age_minutes) * 60 {
            0 => 0,
            step => i64::from(job.get(JOB_WAITED)) * 1000 / step,
        };
        let aged = aged.min(i64::from(self.age_points) * 1000) as i32;
        let points = job.get(JOB_PRIORITY).clamp(0, 1000) * 1000 + aged;
        // Kinds are 1 to 3 and only break ties.
        Rank { tier: 0, class: 0, weight: points * 4 + 3 - job.get(JOB_KIND).clamp(0, 3) }
    }

    fn price(&self, _: &Context, _: &Job, unit: &Unit) -> Price {
        let lost = match unit.get(UNIT_SINCE_CHECKPOINT) {
            -1 => unit.get(UNIT_RUNNING),
            seconds => seconds,
        };
        let again = i64::from(unit.get(UNIT_PREEMPTIONS)) * i64::from(self.repeat_seconds);
        // Work without a GPU loses its time as well.
        let share = i64::from(unit.get(UNIT_MILLI)).max(1);
        let cost = (i64::from(lost) + again).saturating_mul(share) / 1000;
        Price { tier: unit.get(UNIT_PRIORITY), cost: cost.min(i64::from(i32::MAX)) as i32 }
    }
}

crater_sdk::export!(Priority {
    name: "priority",
    exports: [rank, preempt],
    wants: [
        JOB_PRIORITY,
        JOB_KIND,
        JOB_WAITED,
        UNIT_PRIORITY,
        UNIT_MILLI,
        UNIT_RUNNING,
        UNIT_SINCE_CHECKPOINT,
        UNIT_PREEMPTIONS
    ],
    schema: include_str!("../schema.json"),
});

#[cfg(test)]
mod tests {
    use super::*;
    use crater_sdk::testing::{JobSpec, Tester, job, unit};

    fn priority(config: &str) -> Tester {
        Tester::new(&native(), config).unwrap()
    }

    /// Rows in the order in which they are served.
    fn order(config: &str, jobs: &[JobSpec]) -> Vec<usize> {
        let ranks = priority(config).ranks(jobs);
        let mut rows: Vec<usize> = (0..jobs.len()).collect();
        rows.sort_by_key(|row| -ranks[*row].2);
        rows
    }

    #[test]
    fn priority_then_kind_then_submission() {
        let of = |points, kind| job().set(JOB_PRIORITY, points).set(JOB_KIND, kind);
        let jobs = [of(50, 3), of(10, 1), of(50, 2), of(100, 3), of(50, 2)];
        assert_eq!(order("{}", &jobs), [3, 2, 4, 0, 1]);
    }

    #[test]
    fn waiting_ages_up_to_a_bound() {
        let hours = |h| job().set(JOB_PRIORITY, 10).set(JOB_WAITED, h * 3600);
        let fresh = job().set(JOB_PRIORITY, 45);
        assert_eq!(order("{}", &[hours(34), fresh.clone()]), [1, 0]);
        assert_eq!(order("{}", &[hours(36), fresh.clone()]), [0, 1]);
        assert_eq!(order(r#"{"age-points": 30}"#, &[hours(500), fresh.clone()]), [1, 0]);
        assert_eq!(order(r#"{"age-minutes": 0}"#, &[hours(500), fresh]), [1, 0]);
    }

    #[test]
    fn the_cheapest_is_low_in_priority_then_little_to_lose() {
        let of = |points, since, milli| {
            let unit = unit(1).set(UNIT_PRIORITY, points).set(UNIT_MILLI, milli);
            unit.set(UNIT_RUNNING, 9_000).set(UNIT_SINCE_CHECKPOINT, since)
        };
        let units = [of(50, 60, 8000), of(50, 60, 500), of(50, -1, 1000), of(10, -1, 8000)];
        let prices = priority("{}").prices(&job(), &units);
        assert_eq!(prices, [(50, 480), (50, 30), (50, 9_000), (10, 72_000)]);
        let again = [of(50, 60, 1000).set(UNIT_PREEMPTIONS, 2)];
        assert_eq!(priority("{}").prices(&job(), &again), [(50, 1_260)]);
    }
}
