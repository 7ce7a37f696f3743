//! `bestfit`: the node with the least room left over, CPU and GPU share
//! counting alike.
//!
//! ⌊100 · (1 − ½ (c − cpu) / 128000 − ½ (G − r) / 8000)⌋, then lowest to
//! highest mapped to 0–100 by the host; c and G are the node's free CPU and
//! free GPU share, r the share that the job takes, in thousandths of a core and
//! a card. This is `BestFit` as Weng, Yang et al. measured it (USENIX ATC'23);
//! 128 cores and 8 cards are their largest machine.
//!
//! Cards are left to the host: with the fallback `binpack` those with the
//! least free that fit, the lowest-numbered among equals.

use crater_sdk::prelude::*;

/// It takes no configuration.
#[derive(Debug)]
pub struct BestFit;

impl Policy for BestFit {
    fn configure(config: &str, _: &[u8]) -> Result<Self, String> {
        Settings::none(config).map(|()| Self)
    }

    #[inline]
    fn score(&self, _: &Context, job: &Job, node: &Node) -> Score {
        let cpu = i64::from(node.get(NODE_CPU_FREE)) - i64::from(job.get(JOB_CPU));
        let gpu = i64::from(node.get(NODE_GPU_FREE)) - i64::from(node.milli(&Ask::of(job)));
        // Over the common denominator, so that the floor is exact; 2560 is
        // 512 times 5, which spares a wide division.
        Score::from((((256_000 - cpu - 16 * gpu) >> 9) as i32).div_euclid(5))
    }
}

crater_sdk::export!(BestFit {
    name: "bestfit",
    exports: [score],
    wants: [
        JOB_CARDS,
        JOB_CARD_MILLI,
        JOB_CARD_MIB,
        JOB_WHOLE_CARDS,
        JOB_CPU,
        NODE_CPU_FREE,
        NODE_GPU_FREE,
        NODE_GPU_TOTAL,
        NODE_GPU_MEMORY_TOTAL
    ],
    normalise: true,
});

#[cfg(test)]
mod tests {
    use super::*;
    use crater_sdk::testing::{Tester, card, job, node};

    #[test]
    fn the_published_formula_to_the_floor() {
        let tester = Tester::new(&native(), "{}").unwrap();
        let job = job().share(500).cpu(4_000);
        // Left over: 60 cores of 128 and 1.5 of 8 cards: 1 − 0.234375 − 0.09375.
        assert_eq!(tester.scores(&job, &[node().cpu(96_000, 64_000).cards([1000, 1000])]), [67]);
        // Nothing left over.
        assert_eq!(tester.scores(&job, &[node().cpu(96_000, 4_000).cards([500])]), [100]);
        // More than the largest machine left over.
        let large = node().cpu(384_000, 384_000).cards([1000; 8]);
        assert_eq!(tester.scores(&job, &[large]), [-96]);
    }

    #[test]
    fn memory_that_decides_is_a_share_of_this_nodes_cards() {
        let tester = Tester::new(&native(), "{}").unwrap();
        let job = job().card_memory(1, 8_000);
        let of = |mib| node().cpu(8_000, 0).card(card().memory(mib, mib));
        // 500 of 1000 and 100 of 1000 milli-cards are taken.
        assert_eq!(tester.scores(&job, &[of(16_000), of(80_000)]), [96, 94]);
    }
}
