//! `packing`: shared cards first, then idle cards of begun nodes, then idle
//! nodes.
//!
//! | the node | score |
//! |---|---|
//! | all its n cards are idle | max(33 − n, n) |
//! | the job would open k idle cards | max(50 − k, 33) |
//! | none | max(100 − Σ free% / 10, 50) over the cards it would share |
//!
//! The least free cards that fit are taken first; a job without a GPU scores 0
//! everywhere. This is GPU Packing as Weng, Yang et al. measured it (USENIX
//! ATC'23), after Weng et al., "`MLaaS` in the wild" (NSDI'22).
//!
//! Cards are left to the host: with the fallback `binpack` those with the
//! least free that fit, the lowest-numbered among equals.

use crater_sdk::prelude::*;

/// It takes no configuration.
#[derive(Debug)]
pub struct Packing;

impl Policy for Packing {
    fn configure(config: &str, _: &[u8]) -> Result<Self, String> {
        Settings::none(config).map(|()| Self)
    }

    fn score(&self, _: &Context, job: &Job, node: &Node) -> Score {
        let ask = Ask::of(job);
        if ask.cards == 0 {
            return Score::from(0);
        }
        let cards = node.card_column(CARD_FREE);
        if cards.iter().all(|free| *free == 1000) {
            let n = cards.len() as i32;
            return Score::from((33 - n).max(n));
        }
        let taken = node.tightest(&ask);
        let (mut opened, mut percent) = (0, 0);
        for card in node.chosen(taken) {
            match card.get(CARD_FREE) {
                1000 => opened += 1,
                free => percent += free / 10,
            }
        }
        Score::from(if opened > 0 { (50 - opened).max(33) } else { (100 - percent / 10).max(50) })
    }
}

crater_sdk::export!(Packing {
    name: "packing",
    exports: [score],
    wants: [
        JOB_CARDS,
        JOB_CARD_MILLI,
        JOB_CARD_MIB,
        JOB_WHOLE_CARDS,
        JOB_MODELS,
        CARD_FREE,
        CARD_MEMORY_FREE,
        CARD_MEMORY_TOTAL,
        CARD_MODEL
    ],
});

#[cfg(test)]
mod tests {
    use super::*;
    use crater_sdk::testing::{Tester, job, node};

    #[test]
    fn shared_then_begun_then_idle() {
        let tester = Tester::new(&native(), "{}").unwrap();
        let nodes = [
            node().cards([500, 1000]),
            node().cards([200, 1000]),
            node().cards([1000, 1000]),
            node().cards([1000; 20]),
        ];
        // 50 % free on the card it shares; an idle card opened; two idle nodes.
        assert_eq!(tester.scores(&job().share(300), &nodes), [95, 49, 31, 20]);
        assert_eq!(tester.scores(&job().cpu(1_000), &nodes), [0; 4]);
        assert_eq!(tester.scores(&job().whole(3), &[node().cards([0, 1000, 1000, 1000])]), [47]);
    }
}
