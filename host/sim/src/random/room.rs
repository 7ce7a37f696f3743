//! What fits where, recounted from the claims alone and decided in the plainest
//! way there is: by trying every set of cards. It shares no code with the
//! engine's own search, so that the two can be held against each other.

use crater_engine::State;
use crater_model::mig::Instance;
use crater_model::select::Effect;
use crater_model::{
    CardShare, CardSpec, ClaimUid, GpuAsk, Held, Iops, MbPerSec, Mib, MigMode, MilliCards,
    MilliCores, Need, NodeSpec, NodeUid, Request, Share,
};
use std::collections::BTreeMap;
use std::sync::Arc;

#[derive(Clone, Debug, Default)]
struct Card {
    milli: u64,
    memory: u64,
    claims: u64,
    instances: Vec<Instance>,
}

/// A machine and what its claims add up to.
#[derive(Clone, Debug)]
pub struct Room {
    spec: Arc<NodeSpec>,
    members: u32,
    cpu: u64,
    memory: u64,
    disk: u64,
    iops: u64,
    cards: Vec<Card>,
}

impl Room {
    /// Every machine of the books.
    pub fn of(state: &State) -> BTreeMap<NodeUid, Self> {
        let empty = |spec: &Arc<NodeSpec>| Self {
            spec: spec.clone(),
            members: 0,
            cpu: 0,
            memory: 0,
            disk: 0,
            iops: 0,
            cards: vec![Card::default(); spec.cards.len()],
        };
        let mut rooms: BTreeMap<_, _> = state.nodes().map(|n| (n.uid, empty(&n.spec))).collect();
        for claim in state.claims() {
            if let Some(room) = rooms.get_mut(&claim.node) {
                room.add(&claim.held);
            }
        }
        rooms
    }

    /// One machine with those of its claims that count.
    pub fn of_node(
        state: &State,
        node: NodeUid,
        counts: &dyn Fn(ClaimUid) -> bool,
    ) -> Option<Self> {
        let spec = state.node(node)?.spec.clone();
        let cards = vec![Card::default(); spec.cards.len()];
        let mut room = Self { spec, members: 0, cpu: 0, memory: 0, disk: 0, iops: 0, cards };
        for claim in state.claims().filter(|c| c.node == node && counts(c.uid)) {
            room.add(&claim.held);
        }
        Some(room)
    }

    /// Charges what is held, asking nothing.
    pub fn add(&mut self, held: &Held) {
        let (MilliCores(cpu), Mib(memory)) = (held.cpu, held.memory);
        let (MbPerSec(disk), Iops(iops)) = (held.disk, held.iops);
        self.members += 1;
        self.cpu += cpu;
        self.memory += memory;
        self.disk += disk;
        self.iops += iops;
        for share in &held.cards {
            if let Some(card) = self.cards.get_mut(usize::from(share.card)) {
                card.milli += share.milli.0;
                card.memory += share.memory.0;
                card.claims += 1;
                card.instances.extend(share.instance.clone());
            }
        }
    }

    /// Whether a member fits now.
    pub fn fits(&self, request: &Request) -> bool {
        if !self.node_fits(request) {
            return false;
        }
        let Some(ask) = &request.gpu else { return true };
        self.sets(ask).any(|set| self.set_fits(request, ask, &set))
    }

    /// Every set of as many cards as are asked for. A random world has 8 cards
    /// at most on a machine.
    fn sets(&self, ask: &GpuAsk) -> impl Iterator<Item = Vec<usize>> + use<> {
        let wanted = ask.cards;
        let all = 0u32..1 << self.cards.len().min(16);
        all.filter(move |set| u64::from(set.count_ones()) == wanted).map(members)
    }

    /// Every way in which a member could be placed now.
    pub fn ways(&self, request: &Request) -> Vec<Held> {
        let empty = Held {
            cpu: request.cpu,
            memory: request.memory,
            disk: request.disk.bandwidth,
            iops: request.disk.iops,
            ..Held::default()
        };
        if !self.node_fits(request) {
            return vec![];
        }
        let Some(ask) = &request.gpu else { return vec![empty] };
        let mut ways = vec![];
        for set in self.sets(ask).filter(|set| self.set_fits(request, ask, set)) {
            let mut of_set = vec![empty.clone()];
            for card in set {
                let shares = self.shares(ask, card);
                of_set = of_set
                    .into_iter()
                    .flat_map(|held| {
                        shares.iter().map(move |share| {
                            let mut held = held.clone();
                            held.cards.push(share.clone());
                            held
                        })
                    })
                    .collect();
            }
            ways.append(&mut of_set);
        }
        ways
    }

    /// What could be held on one card: one share, or an instance at any place.
    fn shares(&self, ask: &GpuAsk, at: usize) -> Vec<CardShare> {
        let spec = &self.spec.cards[at];
        let share = |(milli, memory), instance| CardShare {
            card: at as u8,
            milli: MilliCards(milli),
            memory: Mib(memory),
            instance,
        };
        match &ask.share {
            Share::Mig { profile } => places(spec, &self.cards[at], profile)
                .into_iter()
                .map(|instance| share((0, 0), Some(instance)))
                .collect(),
            other => charge(spec, other).map(|amounts| share(amounts, None)).into_iter().collect(),
        }
    }

    fn node_fits(&self, request: &Request) -> bool {
        let spec = &self.spec;
        let within = |used: u64, more: u64, total: u64| used.saturating_add(more) <= total;
        let borne = spec.taints.iter().all(|taint| {
            taint.effect == Effect::PreferNoSchedule
                || request.tolerations.iter().any(|t| {
                    (t.key.is_empty() || t.key == taint.key)
                        && t.value.as_ref().is_none_or(|v| *v == taint.value)
                        && t.effect.is_none_or(|e| e == taint.effect)
                })
        });
        let selected = request.selectors.is_empty()
            || request.selectors.iter().any(|s| s.matches(&spec.labels));
        let nothing_asked = |ask: u64, used: u64, total: u64| ask == 0 && used > total;
        let amounts = [
            (self.cpu, request.cpu.0, spec.cpu.0),
            (self.memory, request.memory.0, spec.memory.0),
            (self.disk, request.disk.bandwidth.0, spec.disk.0),
            (self.iops, request.disk.iops.0, spec.iops.0),
        ];
        !spec.cordoned
            && borne
            && selected
            && self.members < spec.members
            // What is not asked for cannot be short, however over-full it is.
            && amounts.iter().all(|(used, ask, total)| {
                within(*used, *ask, *total) || nothing_asked(*ask, *used, *total)
            })
    }

    fn set_fits(&self, request: &Request, ask: &GpuAsk, set: &[usize]) -> bool {
        set.iter().all(|card| self.card_fits(request, ask, *card)) && self.joined(request, set)
    }

    /// Whether the cards are joined where the request requires it.
    fn joined(&self, request: &Request, set: &[usize]) -> bool {
        let same = |key: &dyn Fn(usize) -> Option<u16>| {
            set.windows(2).all(|pair| key(pair[0]).is_some() && key(pair[0]) == key(pair[1]))
        };
        let link = |card: usize| self.spec.links.group(card);
        let numa = |card: usize| self.spec.cards[card].numa;
        (request.nvlink != Need::Required || same(&link))
            && (request.numa != Need::Required || same(&numa))
    }

    fn card_fits(&self, request: &Request, ask: &GpuAsk, at: usize) -> bool {
        let (spec, card) = (&self.spec.cards[at], &self.cards[at]);
        if !spec.healthy || !(request.models.is_empty() || request.models.contains(&spec.model)) {
            return false;
        }
        if let Share::Mig { profile } = &ask.share {
            return instance_fits(spec, card, profile);
        }
        let Some((milli, memory)) = charge(spec, &ask.share) else { return false };
        card.milli + milli <= 1000 && card.memory + memory <= spec.memory.0
    }

    /// Charges a placed member, or says what is wrong with it.
    pub fn take(&mut self, request: &Request, held: &Held) -> Result<(), String> {
        let amounts = (held.cpu, held.memory, held.disk, held.iops);
        if amounts != (request.cpu, request.memory, request.disk.bandwidth, request.disk.iops) {
            return Err(format!("it is charged {amounts:?}"));
        }
        if !self.node_fits(request) {
            return Err("the node does not take it".to_owned());
        }
        match &request.gpu {
            None if held.cards.is_empty() => {}
            None => return Err("it is given cards and asked for none".to_owned()),
            Some(ask) => self.cards_right(request, ask, held)?,
        }
        self.add(held);
        Ok(())
    }

    fn cards_right(&self, request: &Request, ask: &GpuAsk, held: &Held) -> Result<(), String> {
        let set: Vec<usize> = held.cards.iter().map(|s| usize::from(s.card)).collect();
        let distinct = set.windows(2).all(|pair| pair[0] < pair[1]);
        if !distinct || set.len() as u64 != ask.cards || set.last() >= Some(&self.cards.len()) {
            return Err(format!("it is given cards {set:?}"));
        }
        if !self.set_fits(request, ask, &set) {
            return Err(format!("cards {set:?} have no room for it or are not joined"));
        }
        for share in &held.cards {
            let spec = &self.spec.cards[usize::from(share.card)];
            let found = (share.milli.0, share.memory.0);
            let right = match (&ask.share, &share.instance) {
                (Share::Mig { profile }, Some(instance)) => {
                    instance.profile == *profile && self.place_free(share.card, instance)
                }
                (Share::Mig { .. }, None) | (_, Some(_)) => false,
                (other, None) => charge(spec, other) == Some(found),
            };
            if !right {
                return Err(format!("card {} is charged {found:?}", share.card));
            }
        }
        let whole = held.cards.iter().all(|s| s.milli == MilliCards::CARD && s.instance.is_none());
        if held.whole != whole {
            return Err(format!("whole is {}", held.whole));
        }
        Ok(())
    }

    fn place_free(&self, card: u8, instance: &Instance) -> bool {
        let (spec, card) = (&self.spec.cards[usize::from(card)], &self.cards[usize::from(card)]);
        places(spec, card, &instance.profile).contains(instance)
    }
}

fn members(set: u32) -> Vec<usize> {
    (0..32).filter(|card| set >> card & 1 == 1).collect()
}

fn instance_fits(spec: &CardSpec, card: &Card, profile: &str) -> bool {
    !places(spec, card, profile).is_empty()
}

/// Where an instance of a profile may lie now.
fn places(spec: &CardSpec, card: &Card, profile: &str) -> Vec<Instance> {
    match &spec.mig {
        MigMode::Off => vec![],
        MigMode::Free(geometry) => {
            let starts = geometry.profile(profile).map(|p| p.starts.clone()).unwrap_or_default();
            let legal = |start| {
                let instance = Instance { profile: profile.into(), start };
                let mut all = card.instances.clone();
                all.push(instance.clone());
                geometry.legal(&all).then_some(instance)
            };
            starts.into_iter().filter_map(legal).collect()
        }
        MigMode::Fixed { instances, .. } => instances
            .iter()
            .filter(|i| &*i.profile == profile && !card.instances.contains(i))
            .cloned()
            .collect(),
    }
}

/// The table of charges, as the design has it: (milli-cards, MiB), `None` for
/// a card that is too small or cut.
fn charge(spec: &CardSpec, share: &Share) -> Option<(u64, u64)> {
    if spec.mig != MigMode::Off {
        return None;
    }
    let total = spec.memory.0;
    let rounded = |asked: u64| {
        let nominal = total.div_ceil(1024) * 1024;
        if asked > total {
            // Up to 2 % more, within the size on the box, means all of it.
            return (asked <= nominal && asked * 100 <= total * 102).then_some(total);
        }
        let slice = spec.slice.map_or(1, |s| s.0.max(1));
        Some((asked.div_ceil(slice) * slice).min(total))
    };
    match share {
        Share::Whole => Some((1000, total)),
        Share::Part { milli, memory: None } => Some((milli.0, rounded(total * milli.0 / 1000)?)),
        Share::Part { milli, memory: Some(memory) } => Some((milli.0, rounded(memory.0)?)),
        Share::Memory { memory } => {
            let memory = rounded(memory.0)?;
            Some(((memory * 1000).div_ceil(total).max(1), memory))
        }
        Share::Mig { .. } => None,
    }
}
