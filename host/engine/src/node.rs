//! A node and what is promised on it.

use crate::rows::Texts;
use crate::strings::Strings;
use crater_model::mig::Instance;
use crater_model::{
    CardSpec, Held, Iops, JobUid, MbPerSec, Mib, MigMode, MilliCards, MilliCores, NodeSpec,
    NodeUid, Reason,
};
use smallvec::SmallVec;
use std::sync::Arc;

/// Whose a member is, as opaque numbers that policies may compare.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Owner {
    /// Department.
    pub department: i32,
    /// Department and project.
    pub project: i32,
    /// Department, project and person.
    pub user: i32,
    /// Queue.
    pub queue: i32,
}

/// What is promised on a card.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CardState {
    /// Share.
    pub milli: MilliCards,
    /// Memory.
    pub memory: Mib,
    /// Number of claims on it.
    pub shares: u16,
    /// MIG instances that are claimed.
    pub instances: SmallVec<[Instance; 1]>,
}

/// Members of one job on a node that are of one size: equal requests may take
/// a whole card here and a share of a larger one there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resident {
    /// The job.
    pub job: JobUid,
    /// Whose it is.
    pub owner: Owner,
    /// How many members.
    pub members: u32,
    /// The bit of its size in the `node-gpu-classes` column, -1 without GPU.
    pub class: i8,
}

/// A node: its description and the sum of the claims on it.
///
/// **Architecture Invariant**: `charge` and `release` are the only functions
/// that change the sums, and `charge` refuses whatever would not fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeState {
    /// Identity.
    pub uid: NodeUid,
    /// Description.
    pub spec: Arc<NodeSpec>,
    /// The numbers of its texts.
    pub texts: Arc<Texts>,
    /// CPU promised.
    pub cpu: MilliCores,
    /// Memory promised.
    pub memory: Mib,
    /// Disk bandwidth promised.
    pub disk: MbPerSec,
    /// Disk operations promised.
    pub iops: Iops,
    /// Members on it.
    pub members: u32,
    /// Cards, as many as in the description.
    pub cards: SmallVec<[CardState; 8]>,
    /// Who is on it, in no particular order.
    pub residents: Vec<Resident>,
    /// Names this content: two nodes or two moments with one stamp are equal.
    pub stamp: u64,
}

impl NodeState {
    /// An empty node.
    pub fn new(uid: NodeUid, spec: Arc<NodeSpec>, strings: &Strings, stamp: u64) -> Self {
        Self {
            uid,
            texts: Texts::new(&spec, strings),
            cards: std::iter::repeat_with(CardState::default).take(spec.cards.len()).collect(),
            spec,
            cpu: MilliCores::ZERO,
            memory: Mib::ZERO,
            disk: MbPerSec::ZERO,
            iops: Iops::ZERO,
            members: 0,
            residents: vec![],
            stamp,
        }
    }

    /// CPU that is not promised; 0 on a node that shrank below what it holds.
    pub fn cpu_free(&self) -> MilliCores {
        self.spec.cpu - self.cpu
    }

    /// Memory that is not promised.
    pub fn memory_free(&self) -> Mib {
        self.spec.memory - self.memory
    }

    /// Disk bandwidth that is not promised.
    pub fn disk_free(&self) -> MbPerSec {
        self.spec.disk - self.disk
    }

    /// Disk operations that are not promised.
    pub fn iops_free(&self) -> Iops {
        self.spec.iops - self.iops
    }

    /// Share and memory of a card that may be promised by share: nothing on a
    /// sick card or one that MIG cuts.
    pub fn card_free(&self, card: usize) -> (MilliCards, Mib) {
        let spec = &self.spec.cards[card];
        if !spec.healthy || spec.mig != MigMode::Off {
            return (MilliCards::ZERO, Mib::ZERO);
        }
        let used = &self.cards[card];
        (MilliCards::CARD - used.milli, spec.memory - used.memory)
    }

    /// Whether a card is healthy and nothing of it is promised.
    pub fn card_idle(&self, card: usize) -> bool {
        self.spec.cards[card].healthy && self.cards[card].shares == 0
    }

    /// Number of idle cards.
    pub fn cards_idle(&self) -> usize {
        (0..self.cards.len()).filter(|c| self.card_idle(*c)).count()
    }

    /// Free share over all cards.
    pub fn gpu_free(&self) -> MilliCards {
        (0..self.cards.len()).map(|c| self.card_free(c).0).sum()
    }

    /// Where a MIG instance of `profile` would go on a card.
    pub fn place_instance(&self, card: usize, profile: &str) -> Option<Instance> {
        let used = &self.cards[card].instances;
        match &self.spec.cards[card].mig {
            MigMode::Off => None,
            MigMode::Free(geometry) => geometry.place(profile, used),
            MigMode::Fixed { instances, .. } => {
                instances.iter().find(|i| &*i.profile == profile && !used.contains(i)).cloned()
            }
        }
    }

    /// Checks every amount against what is free and charges all of it, or
    /// changes nothing and says what is short. The node's own mark (`stamp`)
    /// is the caller's to renew.
    pub fn charge(&mut self, job: JobUid, owner: Owner, held: &Held) -> Result<(), Reason> {
        self.check(held)?;
        self.add_unchecked(job, owner, held);
        Ok(())
    }

    /// Adds a claim's amounts without asking whether they fit; for a recount.
    pub(crate) fn add_unchecked(&mut self, job: JobUid, owner: Owner, held: &Held) {
        self.cpu += held.cpu;
        self.memory += held.memory;
        self.disk += held.disk;
        self.iops += held.iops;
        self.members += 1;
        for share in &held.cards {
            let card = &mut self.cards[usize::from(share.card)];
            card.milli += share.milli;
            card.memory += share.memory;
            card.shares += 1;
            card.instances.extend(share.instance.clone());
        }
        let class = class(held);
        let same = |r: &&mut Resident| r.job == job && r.class == class;
        if let Some(resident) = self.residents.iter_mut().find(same) {
            resident.members += 1;
        } else {
            self.residents.push(Resident { job, owner, members: 1, class });
        }
    }

    /// Whether two sums of claims are the same, in whatever order they came.
    pub(crate) fn same_sums(&self, other: &Self) -> bool {
        let key = |n: &Self| {
            let mut n = n.clone();
            n.residents.sort_by_key(|r| (r.job, r.class));
            for card in &mut n.cards {
                card.instances.sort_by(|a, b| (a.start, &a.profile).cmp(&(b.start, &b.profile)));
            }
            n
        };
        key(self) == key(other)
    }

    /// Whether every sum is within what the node was described to have. A
    /// node that shrank or fell sick later may hold more; each card may not.
    pub(crate) fn never_oversold(&self) -> Result<(), String> {
        for (i, (card, spec)) in self.cards.iter().zip(&self.spec.cards).enumerate() {
            let cut = matches!(spec.mig, MigMode::Free(_) | MigMode::Fixed { .. });
            let over = card.milli > MilliCards::CARD || card.memory > spec.memory;
            let legal = match &spec.mig {
                MigMode::Off => card.instances.is_empty(),
                MigMode::Free(geometry) | MigMode::Fixed { geometry, .. } => {
                    geometry.legal(&card.instances)
                }
            };
            if (over && !cut) || !legal {
                return Err(format!("{} card {i} is oversold: {card:?}", self.uid));
            }
        }
        Ok(())
    }

    /// Whether all of `held` is free.
    pub fn check(&self, held: &Held) -> Result<(), Reason> {
        let short = [
            (self.members >= self.spec.members, Reason::Members),
            (held.cpu > self.cpu_free(), Reason::Cpu),
            (held.memory > self.memory_free(), Reason::Memory),
            (held.disk > self.disk_free(), Reason::Disk),
            (held.iops > self.iops_free(), Reason::Iops),
        ];
        if let Some((_, reason)) = short.into_iter().find(|(short, _)| *short) {
            return Err(reason);
        }
        let mut last = None;
        for share in &held.cards {
            // Ascending, so each card is named once.
            if last >= Some(share.card) {
                return Err(Reason::Cards);
            }
            last = Some(share.card);
            self.check_card(
                usize::from(share.card),
                share.milli,
                share.memory,
                share.instance.as_ref(),
            )?;
        }
        Ok(())
    }

    fn check_card(
        &self,
        card: usize,
        milli: MilliCards,
        memory: Mib,
        instance: Option<&Instance>,
    ) -> Result<(), Reason> {
        let Some(spec) = self.spec.cards.get(card) else { return Err(Reason::TooFewCards) };
        if !spec.healthy {
            return Err(Reason::SickCards);
        }
        let Some(instance) = instance else {
            let (free, free_memory) = self.card_free(card);
            let fits = milli <= free && memory <= free_memory && milli > MilliCards::ZERO;
            return if fits { Ok(()) } else { Err(Reason::Cards) };
        };
        let used = &self.cards[card].instances;
        let legal = match &spec.mig {
            MigMode::Off => false,
            MigMode::Free(geometry) => {
                let mut all: Vec<_> = used.iter().cloned().collect();
                all.push(instance.clone());
                geometry.legal(&all)
            }
            MigMode::Fixed { instances, .. } => {
                instances.contains(instance) && !used.contains(instance)
            }
        };
        if legal { Ok(()) } else { Err(Reason::Mig) }
    }

    /// Gives back what `charge` took.
    pub fn release(&mut self, job: JobUid, held: &Held) {
        self.cpu -= held.cpu;
        self.memory -= held.memory;
        self.disk -= held.disk;
        self.iops -= held.iops;
        self.members = self.members.saturating_sub(1);
        for share in &held.cards {
            let Some(card) = self.cards.get_mut(usize::from(share.card)) else { continue };
            card.milli -= share.milli;
            card.memory -= share.memory;
            card.shares = card.shares.saturating_sub(1);
            if let Some(instance) = &share.instance {
                // One of it: room that is kept may name it once more.
                if let Some(at) = card.instances.iter().position(|i| i == instance) {
                    card.instances.remove(at);
                }
            }
        }
        let class = class(held);
        let same = |r: &Resident| r.job == job && r.class == class;
        if let Some(at) = self.residents.iter().position(same) {
            self.residents[at].members -= 1;
            if self.residents[at].members == 0 {
                self.residents.swap_remove(at);
            }
        }
    }

    /// Takes a new description. Cards that are held and that it no longer
    /// names, or describes as other cards than those that are held, stay as
    /// they were, but sick: no claim loses its card or finds it changed, and
    /// nothing new comes onto it.
    pub fn describe(&mut self, spec: Arc<NodeSpec>, strings: &Strings) {
        let held = self.cards.iter().rposition(|c| c.shares > 0).map_or(0, |i| i + 1);
        let mut kept = NodeSpec::clone(&spec);
        for (i, (old, state)) in self.spec.cards.iter().zip(&self.cards).enumerate().take(held) {
            let sick = || CardSpec { healthy: false, ..old.clone() };
            match kept.cards.get_mut(i) {
                None => kept.cards.push(sick()),
                Some(new) if state.shares > 0 && !state.may_be_on(old, new) => *new = sick(),
                Some(_) => {}
            }
        }
        if !kept.links.groups.is_empty() {
            // Cards that are gone are linked to none: a group to each.
            let alone = (0..=u16::MAX).rev();
            kept.links.groups.extend(alone.take(kept.cards.len() - spec.cards.len()));
        }
        if kept.cards.len() != spec.cards.len() {
            kept.links.bandwidth.clear();
        }
        self.cards.resize(kept.cards.len(), CardState::default());
        self.texts = Texts::new(&kept, strings);
        self.spec = if kept == *spec { spec } else { Arc::new(kept) };
    }
}

impl CardState {
    /// Whether what is held on a card described as `old` can be on one that is
    /// described as `new`.
    fn may_be_on(&self, old: &CardSpec, new: &CardSpec) -> bool {
        let by_share = usize::from(self.shares) - self.instances.len();
        old.model == new.model
            && match &new.mig {
                MigMode::Off => self.instances.is_empty() && self.memory <= new.memory,
                MigMode::Free(geometry) => by_share == 0 && geometry.legal(&self.instances),
                MigMode::Fixed { instances, .. } => {
                    by_share == 0 && self.instances.iter().all(|i| instances.contains(i))
                }
            }
    }
}

/// The bit of a member's size in `node-gpu-classes`, -1 without GPU.
fn class(held: &Held) -> i8 {
    match held.cards.len() {
        0 => -1,
        n if held.whole => n.min(30) as i8,
        _ => 0,
    }
}
