//! `clustering`: keeps work of one size together (shares of a card, one card,
//! two cards …), so that nodes empty together.
//!
//! With G the node's free GPU share in milli-cards, 25 (8000 − G) / 8000 in
//! whole numbers, and to that 75 if only work of this job's size is on the
//! node, 50 if others are there too, 25 if there is no GPU work, 0 if there is
//! only GPU work of other sizes. A job without a GPU scores 0 everywhere. This
//! is GPU Clustering as Weng, Yang et al. measured it (USENIX ATC'23), after
//! Xiao et al., "Gandiva" (OSDI'18).
//!
//! Cards are left to the host: with the fallback `binpack` those with the
//! least free that fit, the lowest-numbered among equals.

use crater_sdk::prelude::*;

/// It takes no configuration.
#[derive(Debug)]
pub struct Clustering;

/// The bit of a job's size in `node-gpu-classes`.
fn class(ask: &Ask) -> i32 {
    if ask.takes_all() { 1 << ask.cards.min(30) } else { 1 }
}

impl Policy for Clustering {
    fn configure(config: &str, _: &[u8]) -> Result<Self, String> {
        Settings::none(config).map(|()| Self)
    }

    #[inline]
    fn score(&self, _: &Context, job: &Job, node: &Node) -> Score {
        let ask = Ask::of(job);
        if ask.cards == 0 {
            return Score::from(0);
        }
        let class = class(&ask);
        let company = match node.get(NODE_GPU_CLASSES) {
            0 => 25,
            there if there == class => 75,
            there if there & class != 0 => 50,
            _ => 0,
        };
        Score::from(company + 25 * (8_000 - node.get(NODE_GPU_FREE)) / 8_000)
    }
}

crater_sdk::export!(Clustering {
    name: "clustering",
    exports: [score],
    wants: [JOB_CARDS, JOB_CARD_MILLI, JOB_WHOLE_CARDS, NODE_GPU_CLASSES, NODE_GPU_FREE],
});

#[cfg(test)]
mod tests {
    use super::*;
    use crater_sdk::testing::{Tester, job, node};

    #[test]
    fn company_of_the_same_size_first_then_none_then_others() {
        let with = |classes, free| node().set(NODE_GPU_CLASSES, classes).set(NODE_GPU_FREE, free);
        let tester = Tester::new(&native(), "{}").unwrap();
        let nodes = [with(0b1, 4_000), with(0b11, 4_000), with(0, 8_000), with(0b10, 100)];
        assert_eq!(tester.scores(&job().share(300), &nodes), [87, 62, 25, 24]);
        assert_eq!(tester.scores(&job().whole(1), &nodes), [12, 62, 25, 99]);
        assert_eq!(tester.scores(&job().cpu(1_000), &nodes), [0; 4]);
    }
}
