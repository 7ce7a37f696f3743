//! `wait-nvlink`: jobs with several cards wait ten minutes for linked ones,
//! then take anything.
//!
//! A node whose free cards are not linked is *deferred*, not refused: the host
//! asks again when the time is up, even if nothing else happens until then. The
//! `time-step` of a minute keeps answers cached in between.

use crater_sdk::prelude::*;

/// How long to wait.
#[derive(Debug)]
pub struct WaitNvlink {
    seconds: i32,
}

/// Whether so many cards with room lie in one link group.
fn linked(node: &Node, ask: &Ask) -> bool {
    let fitting = || node.cards().filter(|card| ask.fits(card));
    fitting().any(|card| {
        let group = card.get(CARD_LINK_GROUP);
        fitting().filter(|c| c.get(CARD_LINK_GROUP) == group).count() >= ask.cards
    })
}

impl Policy for WaitNvlink {
    fn configure(config: &str, _: &[u8]) -> Result<Self, String> {
        let mut settings = Settings::read(config)?;
        let minutes = settings.int("minutes", 0..=10_080, 10)?;
        settings.end()?;
        Ok(Self { seconds: minutes * 60 })
    }

    fn filter(&self, _: &Context, job: &Job, node: &Node) -> Verdict {
        let ask = Ask::of(job);
        let left = self.seconds - job.get(JOB_WAITED);
        if ask.cards < 2 || left <= 0 || linked(node, &ask) {
            Verdict::Keep
        } else {
            Verdict::Defer(left)
        }
    }
}

crater_sdk::export!(WaitNvlink {
    name: "wait-nvlink",
    exports: [filter],
    wants: [
        JOB_WAITED,
        JOB_CARDS,
        JOB_CARD_MILLI,
        JOB_CARD_MIB,
        JOB_WHOLE_CARDS,
        JOB_MODELS,
        CARD_FREE,
        CARD_MEMORY_FREE,
        CARD_MEMORY_TOTAL,
        CARD_MODEL,
        CARD_LINK_GROUP
    ],
    time_step: 60,
    schema: r#"{"type": "object", "additionalProperties": false, "properties": {
        "minutes": {"type": "integer", "minimum": 0, "maximum": 10080, "default": 10,
                    "description": "How long a job waits for linked cards"}}}"#,
});

#[cfg(test)]
mod tests {
    use super::*;
    use crater_sdk::testing::{NodeSpec, Tester, card, job, node};

    fn codes(waited: i32) -> Vec<i32> {
        let with = |groups: [i32; 2], free| -> NodeSpec {
            groups.iter().fold(node(), |n, group| n.card(card().link_group(*group).free(free)))
        };
        let nodes = [with([1, 1], 1000), with([1, 2], 1000), with([1, 1], 400)];
        let tester = Tester::new(&native(), "{}").unwrap();
        tester.codes(&job().whole(2).set(JOB_WAITED, waited), &nodes)
    }

    #[test]
    fn ten_minutes_for_links_then_anything() {
        assert_eq!(codes(0), [0, -600, -600]);
        assert_eq!(codes(540), [0, -60, -60]);
        assert_eq!(codes(600), [0, 0, 0]);
    }

    #[test]
    fn one_card_needs_no_link() {
        let tester = Tester::new(&native(), "{}").unwrap();
        assert_eq!(tester.codes(&job().whole(1), &[node().cards([1000])]), [0]);
    }
}
