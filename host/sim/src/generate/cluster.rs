//! Machines in the published proportions.

use super::tables::{KINDS, Kind};
use crate::trace::openb;
use crater_model::{Mib, MilliCores, NodeSpec};

/// As many machines of each kind as fit the published proportions best: the
/// whole part of each share, then one more by the largest remainders.
fn counts(nodes: usize) -> [usize; KINDS.len()] {
    let all: usize = KINDS.iter().map(|k| k.count).sum();
    let mut counts = KINDS.map(|k| nodes * k.count / all);
    let mut rest: Vec<usize> = (0..KINDS.len()).collect();
    rest.sort_by_key(|i| std::cmp::Reverse(nodes * KINDS[*i].count % all));
    let missing = nodes - counts.iter().sum::<usize>();
    for i in rest.into_iter().take(missing) {
        counts[i] += 1;
    }
    counts
}

fn node(kind: &Kind, number: usize) -> Option<NodeSpec> {
    let name = format!("{}-{number:04}", kind.model.to_ascii_lowercase());
    let (cpu, memory) = (MilliCores(kind.cores * 1000), Mib(kind.gib * 1024));
    Some(NodeSpec::new(&name, cpu, memory).with_cards(kind.cards, &openb::card(kind.model)?))
}

/// `nodes` machines with the published mix of card models, CPU and memory;
/// 1,213 of them are the published cluster with 6,212 cards. At most
/// [`super::MOST_NODES`].
pub fn cluster(nodes: usize) -> Vec<NodeSpec> {
    let counts = counts(nodes.min(super::MOST_NODES));
    let mut out: Vec<NodeSpec> = vec![];
    for (i, kind) in KINDS.iter().enumerate() {
        // Numbers go on over the kinds of one model.
        let before: usize =
            (0..i).filter(|j| KINDS[*j].model == kind.model).map(|j| counts[j]).sum();
        out.extend((before..before + counts[i]).filter_map(|number| node(kind, number)));
    }
    out
}
