//! `night-only`: offline work starts only at night.
//!
//! By day every node is deferred until the night begins. It wants nothing of
//! the nodes, so all of them are one row to the host.

use crater_sdk::prelude::*;

/// The night, in minutes of the local day; it may reach over midnight.
#[derive(Debug)]
pub struct NightOnly {
    from: i32,
    to: i32,
    utc_offset: i32,
}

const DAY: i32 = 24 * 60;
const OFFLINE: i32 = 3;

impl Policy for NightOnly {
    fn configure(config: &str, _: &[u8]) -> Result<Self, String> {
        let mut settings = Settings::read(config)?;
        let it = Self {
            from: settings.int("from-hour", 0..=23, 22)? * 60,
            to: settings.int("to-hour", 0..=23, 7)? * 60,
            utc_offset: settings.int("utc-offset-minutes", -840..=840, 0)?,
        };
        settings.end()?;
        Ok(it)
    }

    fn filter(&self, context: &Context, job: &Job, _: &Node) -> Verdict {
        let local = context.minute_of_day() + self.utc_offset;
        let into_night = (local - self.from).rem_euclid(DAY);
        let length = (self.to - self.from).rem_euclid(DAY);
        if job.get(JOB_KIND) != OFFLINE || into_night < length {
            Verdict::Keep
        } else {
            Verdict::Defer((DAY - into_night) * 60)
        }
    }
}

crater_sdk::export!(NightOnly {
    name: "night-only",
    exports: [filter],
    wants: [MINUTE_OF_DAY, JOB_KIND],
    time_step: 300,
    schema: r#"{"type": "object", "additionalProperties": false, "properties": {
        "from-hour": {"type": "integer", "minimum": 0, "maximum": 23, "default": 22,
                      "description": "Local hour in which the night begins"},
        "to-hour": {"type": "integer", "minimum": 0, "maximum": 23, "default": 7,
                    "description": "Local hour in which it is over"},
        "utc-offset-minutes": {"type": "integer", "minimum": -840, "maximum": 840, "default": 0,
                               "description": "Local time less UTC"}}}"#,
});

#[cfg(test)]
mod tests {
    use super::*;
    use crater_sdk::testing::{Tester, job, node};

    fn code(config: &str, hour: i32, kind: i32) -> i32 {
        let tester = Tester::new(&native(), config).unwrap().at(hour * 60);
        tester.codes(&job().set(JOB_KIND, kind), &[node()])[0]
    }

    #[test]
    fn offline_work_waits_for_the_night() {
        assert_eq!(code("{}", 12, 3), -10 * 3600);
        assert_eq!((code("{}", 22, 3), code("{}", 3, 3), code("{}", 7, 3)), (0, 0, -15 * 3600));
        assert_eq!(code("{}", 12, 2), 0);
    }

    #[test]
    fn the_night_is_local() {
        // 16:00 UTC is midnight eight hours to the east.
        assert_eq!(code(r#"{"utc-offset-minutes": 480}"#, 16, 3), 0);
        assert_eq!(code(r#"{"utc-offset-minutes": 480}"#, 0, 3), -14 * 3600);
        assert_eq!(code(r#"{"from-hour": 1, "to-hour": 5}"#, 0, 3), -3600);
    }
}
