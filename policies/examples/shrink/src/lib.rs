//! `shrink`: elastic jobs shrink to their minimum (8 cards to 4, say) before any
//! job goes altogether.
//!
//! Shrinking is a lower price tier than eviction, and sets of units are compared
//! by their worst member: as long as shrinking alone frees enough, nobody is
//! evicted. Within a tier the least work is lost: card-seconds since the last
//! checkpoint, or since the start without one.

use crater_sdk::prelude::*;

/// It takes no configuration.
#[derive(Debug)]
pub struct Shrink;

impl Policy for Shrink {
    fn configure(config: &str, _: &[u8]) -> Result<Self, String> {
        Settings::none(config).map(|()| Self)
    }

    fn price(&self, _: &Context, _: &Job, unit: &Unit) -> Price {
        let seconds = match unit.get(UNIT_SINCE_CHECKPOINT) {
            -1 => unit.get(UNIT_RUNNING),
            seconds => seconds,
        };
        let lost = i64::from(seconds) * i64::from(unit.get(UNIT_MILLI)) / 1000;
        let tier = i32::from(!unit.is_shrink());
        Price { tier, cost: lost.min(i64::from(i32::MAX)) as i32 }
    }
}

crater_sdk::export!(Shrink {
    name: "shrink",
    exports: [preempt],
    wants: [UNIT_SHRINK, UNIT_MILLI, UNIT_RUNNING, UNIT_SINCE_CHECKPOINT],
});

#[cfg(test)]
mod tests {
    use super::*;
    use crater_sdk::testing::{Tester, job, unit};

    #[test]
    fn shrinking_comes_before_any_eviction() {
        let of = |shrink, milli, since| {
            let unit = unit(1).set(UNIT_SHRINK, shrink).set(UNIT_MILLI, milli);
            unit.set(UNIT_RUNNING, 7_200).set(UNIT_SINCE_CHECKPOINT, since)
        };
        let units = [of(0, 8_000, 10), of(1, 4_000, 3_600), of(0, 1_000, -1)];
        let prices = Tester::new(&native(), "{}").unwrap().prices(&job(), &units);
        assert_eq!(prices, [(1, 80), (0, 14_400), (1, 7_200)]);
    }
}
