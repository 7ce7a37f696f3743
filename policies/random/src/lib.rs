//! `random`: any node that fits, each as likely, and on it any card that fits.
//! What a clever policy must beat.
//!
//! All chance comes from the decision's seed, so a decision can be replayed; a
//! node's draw depends on the node alone, so it does not matter in which parts
//! the host asks. Whole cards are the lowest-numbered idle ones.

use crater_sdk::chance::{below, mix};
use crater_sdk::prelude::*;

/// It takes no configuration.
#[derive(Debug)]
pub struct Random;

impl Policy for Random {
    fn configure(config: &str, _: &[u8]) -> Result<Self, String> {
        Settings::none(config).map(|()| Self)
    }

    fn score(&self, context: &Context, job: &Job, node: &Node) -> Score {
        let draw = mix(context.seed(), u64::from(node.get(NODE_ID).cast_unsigned()));
        let ask = Ask::of(job);
        let cards = if ask.cards == 1 && !ask.takes_all() && !ask.by_host {
            let fitting = || node.cards().filter(|card| card.bit() != 0 && ask.fits(card));
            // A draw of its own, or the card would follow from the score.
            let nth = below(mix(draw, 0), fitting().count() as u32);
            fitting().nth(nth as usize).map_or(0, |card| card.bit())
        } else {
            node.tightest(&ask)
        };
        Score::on((draw >> 32) as i32, cards)
    }
}

crater_sdk::export!(Random {
    name: "random",
    exports: [score],
    wants: [
        SEED,
        NODE_ID,
        JOB_CARDS,
        JOB_CARD_MILLI,
        JOB_CARD_MIB,
        JOB_WHOLE_CARDS,
        JOB_MODELS,
        JOB_MIG_PROFILE,
        JOB_NVLINK,
        JOB_NUMA,
        CARD_FREE,
        CARD_MEMORY_FREE,
        CARD_MEMORY_TOTAL,
        CARD_MODEL
    ],
});

#[cfg(test)]
mod tests {
    use super::*;
    use crater_sdk::testing::{NodeSpec, Tester, job, node};

    fn tester(seed: u64) -> Tester {
        Tester::new(&native(), "{}").unwrap().seed(seed)
    }

    #[test]
    fn every_node_and_every_card_that_fits_comes_up_about_as_often() {
        let nodes: Vec<NodeSpec> = (0..5).map(|id| node().id(id).cards([1000, 100, 600])).collect();
        let (mut by_node, mut by_card) = ([0; 5], [0; 3]);
        for seed in 0..2000 {
            let tester = tester(seed);
            let at = tester.best(&job().share(500), &nodes).unwrap();
            by_node[at] += 1;
            by_card[tester.masks(&job().share(500), &nodes)[at].trailing_zeros() as usize] += 1;
        }
        assert!(by_node.iter().all(|n| (340..460).contains(n)), "{by_node:?}");
        assert!((900..1100).contains(&by_card[0]) && by_card[1] == 0, "{by_card:?}");
    }

    #[test]
    fn the_same_seed_gives_the_same_answer_in_any_parts() {
        let nodes: Vec<NodeSpec> = (0..9).map(|id| node().id(id).cards([1000; 4])).collect();
        let whole = tester(7).answer(&job().share(1), &nodes);
        let parts: Vec<i32> =
            nodes.chunks(2).flat_map(|part| tester(7).scores(&job().share(1), part)).collect();
        assert_eq!(whole.values, parts);
        assert_ne!(whole.values, tester(8).scores(&job().share(1), &nodes));
        assert_eq!(tester(7).masks(&job().whole(2), &nodes), [0b11; 9]);
    }
}
