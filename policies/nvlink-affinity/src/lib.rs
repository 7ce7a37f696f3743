//! `nvlink-affinity`: jobs with several cards get those with the best links
//! between them, and small jobs stay off large groups of linked cards.
//!
//! **Several cards.** The set whose slowest link is fastest; among equals the
//! one that leaves the fewest free cards behind in the groups that it touches,
//! then the one with the most bandwidth over all. A node scores 100 for each
//! GB/s of the slowest link, less one for each card left behind. Sets are grown
//! from each card in turn by the card that adds most: the best there is where
//! links are alike within a group (a switch, a mesh of four), else a good one.
//!
//! **One card or a share.** A card in use before an idle one, the tightest
//! first; then an idle card with the fewest idle ones linked to it.
//!
//! Bandwidth is the host's link matrix; where that is unknown, cards of one
//! link group count as 1 GB/s and others as 0. Cards that a job *requires* to be
//! joined by links or by a NUMA node are taken from one group or NUMA node only.

mod links;

use crater_sdk::prelude::*;
use links::Links;

/// It takes no configuration.
#[derive(Debug)]
pub struct NvlinkAffinity;

/// For a job that needs one card: thousands for a card in use, less what would
/// stay free on it; else hundreds, less the idle cards beside it.
fn single(ask: &Ask, node: &Node) -> Score {
    let idle = |card: &Card| card.get(CARD_FREE) == 1000;
    let beside = |card: &Card| {
        let group = card.get(CARD_LINK_GROUP);
        node.cards().filter(|c| idle(c) && c.get(CARD_LINK_GROUP) == group).count() as i32 - 1
    };
    let mut best = Score::default();
    for card in node.cards().filter(|card| card.bit() != 0 && ask.fits(card)) {
        let value =
            if idle(&card) { 999 - beside(&card).min(900) } else { 2000 - card.get(CARD_FREE) };
        if best.cards == 0 || value > best.value {
            best = Score::on(value, card.bit());
        }
    }
    best
}

impl Policy for NvlinkAffinity {
    fn configure(config: &str, _: &[u8]) -> Result<Self, String> {
        Settings::none(config).map(|()| Self)
    }

    fn score(&self, _: &Context, job: &Job, node: &Node) -> Score {
        let ask = Ask::of(job);
        if ask.cards == 0 || job.get(JOB_MIG_PROFILE) != 0 {
            // Its cards are none, or slices that the host places: stay where
            // the fewest cards are idle.
            return Score::from(-node.get(NODE_CARDS_IDLE));
        }
        if ask.cards == 1 {
            return single(&ask, node);
        }
        let links = Links::new(node, &ask, job.get(JOB_NVLINK) == 2, job.get(JOB_NUMA) == 2);
        match links.best(ask.cards) {
            Some(set) => {
                let slowest = set.slowest.min(20_000);
                Score::on(slowest * 100 - set.left.min(99), set.mask)
            }
            None => Score::from(-100),
        }
    }
}

crater_sdk::export!(NvlinkAffinity {
    name: "nvlink-affinity",
    exports: [score],
    wants: [
        JOB_CARDS,
        JOB_CARD_MILLI,
        JOB_CARD_MIB,
        JOB_WHOLE_CARDS,
        JOB_MODELS,
        JOB_MIG_PROFILE,
        JOB_NVLINK,
        JOB_NUMA,
        NODE_CARDS_IDLE,
        CARD_FREE,
        CARD_MEMORY_FREE,
        CARD_MEMORY_TOTAL,
        CARD_MODEL,
        CARD_NUMA,
        CARD_LINK_GROUP,
        LINK_BANDWIDTH
    ],
});

#[cfg(test)]
mod tests;
