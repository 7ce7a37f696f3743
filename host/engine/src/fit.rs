//! Whether and how a member fits on a node: every resource jointly, card by
//! card, whole sets of cards. Pure; nothing is charged here, but what `choose`
//! returns is exactly what `NodeState::charge` accepts.

use crate::links;
use crate::node::NodeState;
use crater_model::select::untolerated;
use crater_model::{
    CardShare, CardSpec, Fallback, GpuAsk, Held, Mib, MigMode, MilliCards, Need, Reason, Request,
    Share,
};
use smallvec::SmallVec;

/// How the cards are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// By the host's own order.
    Order(Fallback),
    /// Those first that could take the most of such members, whatever is
    /// preferred: the most members fit.
    Roomiest,
    /// These cards and no others: bit 0 is the first card.
    Mask(u32),
}

/// Whether a member fits on the node now.
pub fn fits(node: &NodeState, request: &Request) -> Result<(), Reason> {
    // The usual case first: what fits needs no reason.
    if fits_plainly(node, request) {
        return Ok(());
    }
    static_fit(node, request)?;
    dynamic_fit(node, request)?;
    match &request.gpu {
        None => Ok(()),
        Some(ask) => {
            if ask.cards == 1 && !matches!(ask.share, Share::Mig { .. }) {
                // One card with room is enough, whatever is linked to it.
                let any = (0..node.cards.len()).any(|c| share_of(node, request, ask, c).is_some());
                return if any { Ok(()) } else { Err(no_card(node, request, ask)) };
            }
            let (with_room, count) = with_room(node, request, ask)?;
            linked(node, request, &with_room, count).map(|_| ())
        }
    }
}

/// Whether a member without wishes about nodes and links fits, found with as
/// few looks as can be. `false` may still fit.
fn fits_plainly(node: &NodeState, request: &Request) -> bool {
    let spec = &*node.spec;
    if spec.cordoned
        || !spec.taints.is_empty()
        || !request.selectors.is_empty()
        || request.within.is_some()
        || request.nvlink != Need::None
        || request.numa != Need::None
        || dynamic_fit(node, request).is_err()
    {
        return false;
    }
    let Some(ask) = &request.gpu else { return true };
    if matches!(ask.share, Share::Mig { .. }) {
        return false;
    }
    let mut missing = ask.cards;
    for card in 0..node.cards.len() {
        if missing == 0 {
            break;
        }
        missing -= u64::from(has_room(node, request, ask, card));
    }
    missing == 0
}

/// Whether a card has room for its share; not for MIG.
fn has_room(node: &NodeState, request: &Request, ask: &GpuAsk, card: usize) -> bool {
    let spec = &node.spec.cards[card];
    let (free, free_memory) = node.card_free(card);
    // The share alone rules out most cards.
    let least = match &ask.share {
        Share::Whole => MilliCards::CARD,
        Share::Part { milli, .. } => *milli,
        Share::Memory { .. } | Share::Mig { .. } => MilliCards(1),
    };
    least <= free
        && model_fits(spec, request)
        && charged(spec, &ask.share)
            .is_some_and(|(milli, memory)| milli <= free && memory <= free_memory)
}

/// The amounts that a member would hold on the node.
pub fn choose(node: &NodeState, request: &Request, choice: Choice) -> Result<Held, Reason> {
    static_fit(node, request)?;
    dynamic_fit(node, request)?;
    let mut held = Held {
        cpu: request.cpu,
        memory: request.memory,
        disk: request.disk.bandwidth,
        iops: request.disk.iops,
        cards: SmallVec::new(),
        whole: false,
    };
    let Some(ask) = &request.gpu else { return Ok(held) };
    held.cards = match choice {
        Choice::Order(order) => pick(node, request, ask, order)?,
        Choice::Roomiest => roomiest(node, request, ask)?,
        Choice::Mask(mask) => masked(node, request, ask, mask)?,
    };
    held.whole = !matches!(ask.share, Share::Mig { .. })
        && held.cards.iter().all(|c| c.milli == MilliCards::CARD);
    Ok(held)
}

/// How many members fit on the node now, at most `most`.
pub fn count(node: &NodeState, request: &Request, most: u32) -> u32 {
    if most == 0 || fits(node, request).is_err() {
        return 0;
    }
    if most == 1 {
        return 1;
    }
    let mut tried = node.clone();
    let nobody = crate::node::Owner::default();
    for placed in 0..most {
        let held = choose(&tried, request, Choice::Roomiest);
        let fits = held.and_then(|held| tried.charge(crater_model::JobUid(0), nobody, &held));
        if fits.is_err() {
            return placed;
        }
    }
    most
}

/// Whether the node could hold a member if nothing were on it.
pub fn could_fit(node: &NodeState, request: &Request) -> bool {
    static_fit(node, request).is_ok()
        && request.cpu <= node.spec.cpu
        && request.memory <= node.spec.memory
        && request.disk.bandwidth <= node.spec.disk
        && request.disk.iops <= node.spec.iops
}

/// What only the node's description decides.
fn static_fit(node: &NodeState, request: &Request) -> Result<(), Reason> {
    let spec = &*node.spec;
    if !request.selectors.is_empty() && !request.selectors.iter().any(|s| s.matches(&spec.labels)) {
        return Err(Reason::Selector);
    }
    if let Some(within) = &request.within
        && spec.place(&within.level) != Some(&*within.value)
    {
        return Err(Reason::Elsewhere);
    }
    if let Some(ask) = &request.gpu {
        let mut count = 0;
        let mut large = 0;
        for card in spec.cards.iter().filter(|c| model_fits(c, request)) {
            count += 1;
            large += u64::from(could_hold(card, ask));
        }
        if count == 0 && !request.models.is_empty() {
            return Err(Reason::Model);
        }
        if count < ask.cards {
            return Err(Reason::TooFewCards);
        }
        if large < ask.cards {
            let mig = matches!(ask.share, Share::Mig { .. });
            return Err(if mig { Reason::NoMig } else { Reason::CardTooSmall });
        }
    }
    if spec.cordoned {
        return Err(Reason::Cordoned);
    }
    if !spec.taints.is_empty()
        && let Some(taint) = untolerated(&spec.taints, &request.tolerations)
    {
        return Err(Reason::Taint(taint.key.clone()));
    }
    Ok(())
}

fn model_fits(card: &CardSpec, request: &Request) -> bool {
    request.models.is_empty() || request.models.contains(&card.model)
}

/// Whether the card could hold its share if it were idle.
fn could_hold(card: &CardSpec, ask: &GpuAsk) -> bool {
    match (&ask.share, &card.mig) {
        (Share::Mig { profile }, MigMode::Free(geometry)) => geometry.profile(profile).is_some(),
        (Share::Mig { profile }, MigMode::Fixed { instances, .. }) => {
            instances.iter().any(|i| i.profile == *profile)
        }
        (Share::Mig { .. }, MigMode::Off) | (_, MigMode::Free(_) | MigMode::Fixed { .. }) => false,
        (Share::Whole | Share::Part { memory: None, .. }, MigMode::Off) => true,
        (share, MigMode::Off) => charged(card, share).is_some(),
    }
}

/// What a share means on this card, by the table of charges; `None` if the
/// card is too small. Not for MIG.
pub fn charged(card: &CardSpec, share: &Share) -> Option<(MilliCards, Mib)> {
    let milli_of = |memory: Mib| {
        MilliCards((memory.0.saturating_mul(1000)).div_ceil(card.memory.0.max(1)).max(1))
    };
    let (milli, memory) = match share {
        Share::Whole => (MilliCards::CARD, card.memory),
        Share::Part { milli, memory: None } => {
            (*milli, card.charged(Mib(card.memory.0.saturating_mul(milli.0) / 1000)))
        }
        Share::Part { milli, memory: Some(memory) } => (*milli, card.charged(*memory)),
        Share::Memory { memory } => {
            let memory = card.charged(*memory);
            (milli_of(memory), memory)
        }
        Share::Mig { .. } => return None,
    };
    (memory <= card.memory && milli <= MilliCards::CARD).then_some((milli, memory))
}

fn dynamic_fit(node: &NodeState, request: &Request) -> Result<(), Reason> {
    if node.members >= node.spec.members {
        return Err(Reason::Members);
    }
    if request.cpu > node.cpu_free() {
        return Err(Reason::Cpu);
    }
    if request.memory > node.memory_free() {
        return Err(Reason::Memory);
    }
    if request.disk.bandwidth > node.disk_free() {
        return Err(Reason::Disk);
    }
    if request.disk.iops > node.iops_free() {
        return Err(Reason::Iops);
    }
    if node.spec.disk_full {
        return Err(Reason::DiskFull);
    }
    Ok(())
}

/// What the member would hold on this card now; `None` if it has no room.
fn share_of(node: &NodeState, request: &Request, ask: &GpuAsk, card: usize) -> Option<CardShare> {
    let spec = &node.spec.cards[card];
    if !spec.healthy || !model_fits(spec, request) {
        return None;
    }
    if let Share::Mig { profile } = &ask.share {
        let instance = node.place_instance(card, profile)?;
        let geometry = match &spec.mig {
            MigMode::Free(geometry) | MigMode::Fixed { geometry, .. } => geometry,
            MigMode::Off => return None,
        };
        let profile = geometry.profile(profile)?;
        let milli = MilliCards((1000 * u64::from(profile.compute)).div_ceil(7));
        return Some(CardShare {
            card: card as u8,
            milli,
            memory: profile.memory,
            instance: Some(instance),
        });
    }
    let (free, free_memory) = node.card_free(card);
    if free.is_zero() {
        return None;
    }
    let (milli, memory) = charged(spec, &ask.share)?;
    (milli <= free && memory <= free_memory).then_some(CardShare {
        card: card as u8,
        milli,
        memory,
        instance: None,
    })
}

type Shares = SmallVec<[CardShare; 1]>;

/// The cards with room, at least as many as are asked for, and how many that
/// is.
fn with_room(
    node: &NodeState,
    request: &Request,
    ask: &GpuAsk,
) -> Result<(SmallVec<[CardShare; 8]>, usize), Reason> {
    let with_room: SmallVec<[CardShare; 8]> =
        (0..node.cards.len()).filter_map(|c| share_of(node, request, ask, c)).collect();
    let count = usize::try_from(ask.cards).unwrap_or(usize::MAX);
    if with_room.len() < count || count == 0 {
        return Err(no_card(node, request, ask));
    }
    Ok((with_room, count))
}

/// Chooses the cards that could take the most members. Taking those first
/// fits as many members on a node as any way of choosing does.
fn roomiest(node: &NodeState, request: &Request, ask: &GpuAsk) -> Result<Shares, Reason> {
    let (with_room, count) = with_room(node, request, ask)?;
    let only_required = |need| if need == Need::Required { need } else { Need::None };
    let needs = Request {
        nvlink: only_required(request.nvlink),
        numa: only_required(request.numa),
        ..Request::default()
    };
    let sets = linked(node, &needs, &with_room, count)?;
    let set = sets.into_iter().min_by_key(SmallVec::len).ok_or(Reason::Cards)?;
    let mut keyed: SmallVec<[(u64, CardShare); 8]> =
        set.into_iter().map(|share| (times(node, &share), share)).collect();
    keyed.sort_by_key(|(times, share)| (std::cmp::Reverse(*times), share.card));
    let mut shares: Shares = keyed.into_iter().take(count).map(|(_, share)| share).collect();
    shares.sort_by_key(|c| c.card);
    Ok(shares)
}

/// How often a share would fit on its card.
fn times(node: &NodeState, share: &CardShare) -> u64 {
    let card = usize::from(share.card);
    let Some(instance) = &share.instance else {
        let (free, memory) = node.card_free(card);
        let by_memory = memory.0.checked_div(share.memory.0).unwrap_or(u64::MAX);
        return by_memory.min(free.0 / share.milli.0.max(1));
    };
    let mut taken = node.clone();
    let mut times = 0;
    while let Some(next) = taken.place_instance(card, &instance.profile) {
        taken.cards[card].instances.push(next);
        times += 1;
    }
    times
}

/// Chooses the cards in the host's own order.
fn pick(
    node: &NodeState,
    request: &Request,
    ask: &GpuAsk,
    order: Fallback,
) -> Result<Shares, Reason> {
    let (with_room, count) = with_room(node, request, ask)?;
    let mut sets = linked(node, request, &with_room, count)?;
    // The smallest set that does, so that larger ones stay whole.
    let set = sets.iter_mut().min_by_key(|set| set.len());
    let Some(set) = set else { return Err(Reason::Cards) };
    let free = |c: &CardShare| node.card_free(usize::from(c.card));
    let group = |c: &CardShare| {
        let group = node.spec.links.group(usize::from(c.card));
        group.map_or(0, |g| {
            set.iter().filter(|o| node.spec.links.group(usize::from(o.card)) == Some(g)).count()
        })
    };
    let mut keyed: SmallVec<[(i64, usize, CardShare); 8]> = set
        .iter()
        .map(|c| {
            let (milli, memory) = free(c);
            // A share of the card counts before its memory; both fit 32 bits
            // on any card there is.
            let room = ((milli.0 as i64) << 32) | (memory.0.min(u64::from(u32::MAX)) as i64);
            (if order == Fallback::Spread { -room } else { room }, group(c), c.clone())
        })
        .collect();
    if count > 1 {
        // Several cards: those of one group together, the smallest that does,
        // and among them by the order.
        keyed.sort_by_key(|(room, group, c)| {
            let g = node.spec.links.group(usize::from(c.card));
            let group = (*group < count, if *group < count { usize::MAX - *group } else { *group });
            (group, g, *room, c.card)
        });
        // Within the group that was chosen, those that reach each other best.
        let of = |c: &CardShare| node.spec.links.group(usize::from(c.card));
        let same = |(_, group, c): &&(i64, usize, CardShare)| {
            keyed.first().is_none_or(|(_, _, first)| *group < count || of(c) == of(first))
        };
        let near: SmallVec<[CardShare; 8]> =
            keyed.iter().filter(same).map(|(_, _, c)| c.clone()).collect();
        if let Some(mut shares) = links::best(node, &near, count) {
            shares.sort_by_key(|c| c.card);
            return Ok(shares.into());
        }
    } else {
        keyed.sort_by_key(|(room, group, c)| (*room, *group, c.card));
    }
    let mut shares: Shares = keyed.into_iter().take(count).map(|(_, _, c)| c).collect();
    shares.sort_by_key(|c| c.card);
    Ok(shares)
}

/// The sets of cards with room among which all must be taken: all of them, or
/// those that NVLink or a NUMA node joins.
fn linked(
    node: &NodeState,
    request: &Request,
    with_room: &[CardShare],
    count: usize,
) -> Result<SmallVec<[SmallVec<[CardShare; 8]>; 2]>, Reason> {
    let mut sets: SmallVec<[SmallVec<[CardShare; 8]>; 2]> = SmallVec::new();
    sets.push(with_room.iter().cloned().collect());
    let mut narrow = |need: Need, key: &dyn Fn(usize) -> Option<u16>, reason: Reason| {
        if need == Need::None {
            return Ok(());
        }
        let mut split: SmallVec<[SmallVec<[CardShare; 8]>; 2]> = SmallVec::new();
        for set in &sets {
            let mut keys: SmallVec<[u16; 8]> =
                set.iter().filter_map(|c| key(usize::from(c.card))).collect();
            keys.sort_unstable();
            keys.dedup();
            for k in keys {
                split.push(
                    set.iter().filter(|c| key(usize::from(c.card)) == Some(k)).cloned().collect(),
                );
            }
        }
        split.retain(|set| set.len() >= count);
        if !split.is_empty() {
            sets = split;
            return Ok(());
        }
        if need == Need::Required { Err(reason) } else { Ok(()) }
    };
    // One card is joined to itself, whatever is known of it.
    if count > 1 {
        narrow(request.nvlink, &|c| node.spec.links.group(c), Reason::Nvlink)?;
        narrow(request.numa, &|c| node.spec.cards[c].numa, Reason::Numa)?;
    }
    Ok(sets)
}

/// Takes exactly the cards of the mask.
fn masked(node: &NodeState, request: &Request, ask: &GpuAsk, mask: u32) -> Result<Shares, Reason> {
    if u64::from(mask.count_ones()) != ask.cards {
        return Err(Reason::Cards);
    }
    let mut shares = Shares::new();
    for card in (0..32).filter(|c| mask >> c & 1 == 1) {
        if card >= node.cards.len() {
            return Err(Reason::TooFewCards);
        }
        shares.push(share_of(node, request, ask, card).ok_or(Reason::Cards)?);
    }
    linked(node, request, &shares, shares.len())?;
    Ok(shares)
}

/// Why no set of cards has room.
fn no_card(node: &NodeState, request: &Request, ask: &GpuAsk) -> Reason {
    let usable = node
        .spec
        .cards
        .iter()
        .filter(|c| c.healthy && model_fits(c, request) && could_hold(c, ask))
        .count() as u64;
    if usable < ask.cards {
        return Reason::SickCards;
    }
    if matches!(ask.share, Share::Mig { .. }) { Reason::Mig } else { Reason::Cards }
}

/// Whether the mask names as many cards as are asked for, each with room.
pub fn mask_fits(node: &NodeState, request: &Request, mask: u32) -> bool {
    match &request.gpu {
        None => false,
        Some(ask) if ask.cards == 1 => {
            let card = mask.trailing_zeros() as usize;
            mask.is_power_of_two()
                && card < node.cards.len()
                && share_of(node, request, ask, card).is_some()
        }
        Some(ask) => masked(node, request, ask, mask).is_ok(),
    }
}
