//! `round-robin`: the users of a queue take turns.
//!
//! Each user is a class of its own, and the host serves next the class that
//! uses least at this moment: who has nothing running comes first, however many
//! jobs the others have queued. Among one user's own jobs the greater priority
//! goes first.

use crater_sdk::prelude::*;

/// It takes no configuration.
#[derive(Debug)]
pub struct RoundRobin;

impl Policy for RoundRobin {
    fn configure(config: &str, _: &[u8]) -> Result<Self, String> {
        Settings::none(config).map(|()| Self)
    }

    fn rank(&self, _: &Context, job: &Job) -> Rank {
        Rank { tier: 0, class: job.get(JOB_USER), weight: job.get(JOB_PRIORITY) }
    }
}

crater_sdk::export!(RoundRobin {
    name: "round-robin",
    exports: [rank],
    wants: [JOB_USER, JOB_PRIORITY],
});

#[cfg(test)]
mod tests {
    use super::*;
    use crater_sdk::testing::{Tester, job};

    #[test]
    fn a_class_for_each_user() {
        let of = |user, priority| job().set(JOB_USER, user).set(JOB_PRIORITY, priority);
        let ranks =
            Tester::new(&native(), "{}").unwrap().ranks(&[of(7, 50), of(8, 10), of(7, 100)]);
        assert_eq!(ranks, [(0, 7, 50), (0, 8, 10), (0, 7, 100)]);
    }
}
