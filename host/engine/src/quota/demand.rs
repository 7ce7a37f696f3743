//! What a member will count for before its cards are chosen.

use super::levels::Quotas;
use super::tentative::{Ask, Tentative};
use crate::fit::charged;
use crate::node::Owner;
use crate::state::Job;
use crater_model::{
    Borrow, CardSpec, Mib, MigMode, MilliCards, NodeSpec, OverQuota, Request, Resource, Share,
    Usage,
};
use std::collections::BTreeSet;
use std::sync::Arc;

/// What a member counts for at least, on whatever cards. What follows from the
/// card alone is left out.
pub fn least(request: &Request) -> Usage {
    let mut least = Usage {
        cpu: request.cpu,
        memory: request.memory,
        disk: request.disk.bandwidth,
        ..Usage::default()
    };
    let Some(ask) = &request.gpu else { return least };
    // A card may report up to 2 % less than what it is sold with.
    let reported = |memory: Mib| Mib(memory.0.saturating_mul(100) / 102);
    let (milli, memory) = match &ask.share {
        Share::Whole => (MilliCards::CARD, Mib::ZERO),
        Share::Part { milli, memory } => (*milli, memory.map_or(Mib::ZERO, reported)),
        Share::Memory { memory } => (MilliCards(1), reported(*memory)),
        Share::Mig { .. } => (MilliCards(1), Mib::ZERO),
    };
    least.gpu = milli * ask.cards;
    least.gpu_memory = memory * ask.cards;
    if let [model] = &*request.models {
        least.models.push((model.clone(), least.gpu));
    }
    least
}

/// What a job asks for of a resource, as people read it in a refusal: the
/// memory that was said, though a card that reports less is charged less.
pub fn stated(job: &Job, over: &OverQuota) -> u64 {
    let memory = match job.spec.request.gpu.as_ref().map(|g| (g.cards, &g.share)) {
        Some((cards, Share::Memory { memory } | Share::Part { memory: Some(memory), .. }))
            if over.resource == Resource::GpuMemory =>
        {
            memory.0.saturating_mul(cards).saturating_mul(u64::from(job.spec.min_members))
        }
        _ => 0,
    };
    over.asked.max(memory)
}

/// A sort of card that the cluster has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CardKind {
    card: CardSpec,
}

/// The sorts of card of the nodes, as far as a quota tells them apart.
pub fn card_kinds<'a>(nodes: impl Iterator<Item = &'a NodeSpec>) -> Vec<CardKind> {
    let mut kinds: Vec<CardKind> = vec![];
    for card in nodes.flat_map(|n| &n.cards) {
        let same = |k: &CardKind| {
            let k = &k.card;
            k.model == card.model
                && k.memory == card.memory
                && k.slice == card.slice
                && (k.mig == MigMode::Off) == (card.mig == MigMode::Off)
        };
        // Nodes come in sorts: the last one is mostly the one.
        if !kinds.iter().rev().any(same) {
            kinds.push(CardKind { card: card.clone() });
        }
    }
    kinds
}

/// The card models on which every level allows so many more members, if there
/// are some and the job may use others besides.
pub fn open_models(
    quotas: &Quotas,
    tentative: &Tentative,
    (owner, borrow): (Owner, Borrow),
    (request, members): (&Request, u64),
    kinds: &[CardKind],
) -> Option<Vec<Arc<str>>> {
    let ask = request.gpu.as_ref()?;
    let usable =
        |kind: &&CardKind| request.models.is_empty() || request.models.contains(&kind.card.model);
    let (mut open, mut shut) = (BTreeSet::new(), BTreeSet::new());
    for CardKind { card } in kinds.iter().filter(usable) {
        let amounts = match &ask.share {
            // The amounts follow from the profile, not from the card.
            Share::Mig { .. } => Some((MilliCards(1), Mib::ZERO)),
            share => charged(card, share),
        };
        let Some((milli, memory)) = amounts else { continue };
        let mut member = least(request);
        member.gpu = milli * ask.cards;
        member.gpu_memory = memory * ask.cards;
        member.models.clear();
        member.models.push((card.model.clone(), member.gpu));
        let nothing = Usage::default();
        let ask =
            Ask { owner, borrow, before: &nothing, member: &member, now: members, together: 1 };
        let set = if tentative.check(quotas, &ask).is_ok() { &mut open } else { &mut shut };
        set.insert(card.model.clone());
    }
    let fewer = !open.is_empty() && shut.iter().any(|model| !open.contains(model));
    fewer.then(|| open.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crater_model::{GpuAsk, MilliCores};

    #[test]
    fn the_least_is_never_more_than_what_any_card_is_charged() {
        let sizes = [15_109, 32_768, 40_960, 81_559, 81_920];
        let asks = [
            (Some(500), None),
            (Some(300), Some(8000)),
            (None, Some(81_920)),
            (None, Some(1)),
            (Some(2000), None),
            (Some(2000), Some(2 * 40_960)),
            (None, Some(15_360)),
        ];
        for (gpu, memory) in asks {
            let gpu = GpuAsk::new(gpu.map(MilliCards), memory.map(Mib), false).unwrap();
            let ask = gpu.clone().unwrap();
            let request = Request { gpu, cpu: MilliCores(1), ..Request::default() };
            for size in sizes {
                let card = CardSpec { slice: Some(Mib(1000)), ..CardSpec::new("x", Mib(size)) };
                let Some((milli, memory)) = charged(&card, &ask.share) else { continue };
                let least = least(&request);
                assert!(least.gpu <= milli * ask.cards, "{ask:?} on {size}");
                assert!(least.gpu_memory <= memory * ask.cards, "{ask:?} on {size}");
            }
        }
    }
}
