//! What a bound pod says of its cards, and how far it is believed.
//!
//! A leader's Binding writes the annotation; whoever may write the pod may
//! write it too, unless the API server keeps it for the scheduler
//! (`assigned-at-admission.yaml`). So the books take from it what can be, and
//! where it differs from what the pod asks for, the larger of both: a card that
//! is charged and idle is seen and put right, one that is used and not charged
//! is sold twice.
//!
//! * A card counts if the node has it, with no more than it has. One that the
//!   node does not have holds nothing, whoever names it.
//! * On a card that is named, no less is charged than the pod asks for.
//! * Cards that it asks for and does not name are given to it: idle ones.

use crate::cards;
use crate::pod::PodSeen;
use crater_engine::fit::{Choice, charged, choose};
use crater_engine::node::NodeState;
use crater_model::{
    CardShare, CardSpec, Fallback, GpuAsk, Mib, MigMode, MilliCards, MilliCores, NodeSpec, Request,
    Share,
};
use std::sync::Arc;

/// What a pod is charged for, on a node as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Believed {
    /// Its cards, ascending.
    pub shares: Vec<CardShare>,
    /// Cards that it asks for and for which none was idle.
    pub missing: u64,
    /// Why its words were not taken as they are.
    pub doubt: Option<String>,
}

/// What a pod of ours is charged for.
pub(crate) fn believe(node: &NodeState, uuids: &[Arc<str>], seen: &PodSeen) -> Believed {
    let ask = match &seen.wants {
        Some(Ok(spec)) => spec.request.gpu.as_ref(),
        _ => None,
    };
    let named = seen.assigned.as_deref().unwrap_or_default();
    let (read, lost) = cards::read(named, uuids);
    let mut believed = Believed::default();
    let mut as_asked = lost as u64;
    let mut as_named = true;
    for share in read {
        let possible = node.spec.cards.get(usize::from(share.card));
        let Some(possible) = possible.and_then(|card| possible_share(card, ask, &share)) else {
            as_named = false;
            continue;
        };
        as_named &= possible == share;
        if let Some(last) = believed.shares.last_mut().filter(|s| s.card == possible.card) {
            // A pod holds a card once.
            last.milli = last.milli.max(possible.milli);
            last.memory = last.memory.max(possible.memory);
            as_named = false;
            continue;
        }
        as_asked += u64::from(ask.is_some_and(|a| serves(a, &possible)));
        believed.shares.push(possible);
    }
    if let Some(ask) = ask {
        let missing = ask.cards.saturating_sub(as_asked);
        let (given, missing) = idle(node, ask, &believed.shares, missing);
        believed.shares.extend(given);
        believed.shares.sort_by_key(|s| s.card);
        believed.missing = missing;
    }
    let asked = seen.cards();
    if seen.assigned.is_some() && (!as_named || named.len() as u64 != asked) {
        let charged: Vec<String> = cards::write(&believed.shares, uuids)
            .iter()
            .map(|c| format!("{} {} milli {} MiB", c.uuid, c.milli, c.memory_mib))
            .collect();
        believed.doubt = Some(format!(
            "crater.io/assigned-cards names {} cards and the pod asks for {asked}, or for other \
             amounts; charged: {}. The scheduler writes that annotation; make the pod anew \
             without it",
            named.len(),
            if charged.is_empty() { "none".to_owned() } else { charged.join(", ") },
        ));
    }
    believed
}

/// Whether a share is of the kind that is asked for.
fn serves(ask: &GpuAsk, share: &CardShare) -> bool {
    match (&ask.share, &share.instance) {
        (Share::Mig { profile }, Some(instance)) => instance.profile == *profile,
        (Share::Mig { .. }, None) | (_, Some(_)) => false,
        (_, None) => true,
    }
}

/// A named share as the card can give it, and no less than what is asked for.
fn possible_share(card: &CardSpec, ask: Option<&GpuAsk>, named: &CardShare) -> Option<CardShare> {
    let mut share = named.clone();
    if let Some(instance) = &named.instance {
        let (MigMode::Free(geometry) | MigMode::Fixed { geometry, .. }) = &card.mig else {
            return None;
        };
        let profile = geometry.profile(&instance.profile)?;
        share.milli = MilliCards((1000 * u64::from(profile.compute)).div_ceil(7));
        share.memory = profile.memory;
        return Some(share);
    }
    let asked = ask.and_then(|a| charged(card, &a.share)).unwrap_or((MilliCards(1), Mib::ZERO));
    share.milli = named.milli.max(asked.0).min(MilliCards::CARD);
    share.memory = named.memory.max(asked.1).min(card.memory);
    Some(share)
}

/// So many cards as are missing beside those that are taken, sick ones if need
/// be; the number that there were none for. Where the pod runs is a fact:
/// taints, selectors and wishes do not count any more.
fn idle(
    node: &NodeState,
    ask: &GpuAsk,
    taken: &[CardShare],
    missing: u64,
) -> (Vec<CardShare>, u64) {
    let mut spec = NodeSpec::clone(&node.spec);
    (spec.cordoned, spec.members) = (false, u32::MAX);
    (spec.cpu, spec.memory) = (MilliCores(u64::MAX), Mib(u64::MAX));
    spec.taints.clear();
    let mut node = node.clone();
    for cards in (1..=missing.min(spec.cards.len() as u64)).rev() {
        for sick_too in [false, true] {
            for (i, card) in spec.cards.iter_mut().enumerate() {
                let taken = taken.iter().any(|s| usize::from(s.card) == i);
                card.healthy = !taken && (card.healthy || sick_too);
            }
            node.spec = Arc::new(spec.clone());
            let gpu = Some(GpuAsk { cards, ..ask.clone() });
            let request = Request { gpu, ..Request::default() };
            if let Ok(held) = choose(&node, &request, Choice::Order(Fallback::Binpack)) {
                return (held.cards.into_vec(), missing - cards);
            }
        }
    }
    (vec![], missing)
}
