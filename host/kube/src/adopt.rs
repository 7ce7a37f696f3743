//! Room that is taken already, by whomever: it is charged whether the node has
//! it or not, and whatever quotas say. The one place where the books follow
//! facts that no decision made.

use crate::believe::believe;
use crate::cards;
use crate::mirror::{Mirror, Standing};
use crate::objects::Promise;
use crate::pod::{PodSeen, Takes};
use crater_engine::node::NodeState;
use crater_engine::plan::{Member, Placement};
use crater_model::{
    CardShare, ClaimUid, Held, JobState, JobUid, Mib, MigMode, MilliCards, MilliCores, NodeSpec,
    Time,
};
use smallvec::smallvec;
use std::sync::Arc;

impl Mirror {
    /// Charges a pod that is bound to a node.
    pub(crate) fn adopt_bound(&mut self, now: Time, seen: &Arc<PodSeen>, node: &Arc<str>) {
        if !self.machines.contains_key(node) {
            if let Some(entry) = self.pods.get_mut(&seen.uid) {
                entry.standing = Standing::Afar;
            }
            return;
        }
        let held = self.held_by(seen, node);
        let Some(job) = self.submit_bound(now, seen) else { return };
        let Some(claim) = self.take(now, job, node, &held) else { return };
        self.place(seen, node, Standing::Bound(job, claim), job);
        self.pod_seen(now, seen);
    }

    /// Honours a promise that an earlier leader wrote and that may yet be
    /// bound by it: the same room, and nobody else's. `false`: the promise
    /// concerns no pod that waits.
    pub fn honour(&mut self, now: Time, node: &Arc<str>, promise: &Promise) -> bool {
        let Some(entry) = self.pods.get(&*promise.pod_uid) else { return false };
        let Standing::Waiting(job) = entry.standing else { return false };
        let Some(machine) = self.machines.get(node) else { return false };
        let seen = entry.seen.clone();
        let (shares, lost) = cards::read(&promise.cards, &machine.uuids);
        if lost > 0 {
            // Its card is gone from the node; whoever binds it there finds none.
            return false;
        }
        let held = held(&seen.takes, shares);
        let Some(claim) = self.take(now, job, node, &held) else { return false };
        self.place(&seen, node, Standing::Promised(job, claim), job);
        true
    }

    /// What a bound pod holds: by its words where they can be, by what it asks
    /// for otherwise.
    fn held_by(&mut self, seen: &Arc<PodSeen>, node: &Arc<str>) -> Held {
        let takes = &seen.takes;
        let Some(machine) = self.machines.get(node) else { return held(takes, vec![]) };
        let Some(state) = self.state().node(machine.node) else { return held(takes, vec![]) };
        let speaks = matches!(seen.wants, Some(Ok(_))) || seen.assigned.is_some();
        let (shares, missing) = if seen.ours && speaks {
            let believed = believe(state, &machine.uuids, seen);
            if let Some(why) = believed.doubt {
                self.doubt(seen, why.into());
            }
            (believed.shares, believed.missing)
        } else {
            foreign_cards(state, takes)
        };
        if missing > 0 {
            self.troubles.unplaced_cards += missing;
            self.short.insert(node.clone());
        }
        held(takes, shares)
    }

    /// Remembers that a pod's words were not taken as they are, to be told once.
    fn doubt(&mut self, seen: &Arc<PodSeen>, why: Arc<str>) {
        let before = self.doubts.insert(seen.uid.clone(), why.clone());
        self.troubles.doubted += u64::from(before.is_none());
        if before.as_ref() != Some(&why) {
            self.untold.push((seen.clone(), why));
        }
    }

    /// Charges amounts to a job on a node, also where they do not fit: the
    /// node is taken for larger and healthier for the moment of the charge. A
    /// card never holds more than it has; what is over its brim is counted as
    /// a trouble and charged without cards.
    fn take(&mut self, now: Time, job: JobUid, node: &str, held: &Held) -> Option<ClaimUid> {
        if let Some(claim) = self.charge(now, job, node, held.clone()) {
            return Some(claim);
        }
        let machine = self.machines.get(node)?;
        let (uid, spec) = (machine.node, machine.spec.clone());
        let roomy = roomy(&self.state().node(uid)?.spec);
        let done = self.ledger.change_node(now, uid, roomy);
        self.troubles.defects += u64::from(done.is_err());
        let claim = self.charge(now, job, node, held.clone()).or_else(|| {
            self.troubles.overpromised += 1;
            self.short.insert(node.into());
            let without = Held { cards: smallvec![], whole: false, ..held.clone() };
            self.charge(now, job, node, without)
        });
        let done = self.ledger.change_node(now, uid, spec);
        self.troubles.defects += u64::from(done.is_err());
        if claim.is_none() {
            self.troubles.defects += 1;
            let done = self.ledger.end_job(now, job, JobState::Failed, "not charged");
            self.troubles.defects += u64::from(done.is_err());
        }
        claim
    }

    /// Quotas do not count: what runs was admitted before, or by others, and is
    /// used whatever a limit says.
    fn charge(&mut self, now: Time, job: JobUid, node: &str, held: Held) -> Option<ClaimUid> {
        let member = Member { member: 0, node: self.machines.get(node)?.node, held };
        let adopted = self.ledger.adopt(now, &Placement { job, members: smallvec![member] });
        self.troubles.defects += u64::from(adopted.is_err());
        adopted.ok()?.claims.first().copied()
    }
}

fn held(takes: &Takes, shares: Vec<CardShare>) -> Held {
    let whole = !shares.is_empty()
        && shares.iter().all(|s| s.milli == MilliCards::CARD && s.instance.is_none());
    Held { cpu: takes.cpu, memory: takes.memory, cards: shares.into(), whole, ..Held::default() }
}

/// A node on which only its cards' own size sets a limit.
fn roomy(spec: &NodeSpec) -> NodeSpec {
    let mut roomy = spec.clone();
    roomy.cpu = MilliCores(u64::MAX);
    roomy.memory = Mib(u64::MAX);
    roomy.members = u32::MAX;
    for card in &mut roomy.cards {
        card.healthy = true;
    }
    roomy
}

/// Cards for a pod of another scheduler, which says how many and not which:
/// the idle ones from the far end, where packing comes last. The number that
/// is missing beside them.
fn foreign_cards(node: &NodeState, takes: &Takes) -> (Vec<CardShare>, u64) {
    let mut shares = vec![];
    let mut tried = node.clone();
    let mut missing = takes.cards;
    for card in (0..node.cards.len()).rev() {
        let spec = &node.spec.cards[card];
        if missing == 0 {
            break;
        }
        if spec.mig == MigMode::Off && node.cards[card].shares == 0 {
            let (card, milli, memory) = (card as u8, MilliCards::CARD, spec.memory);
            shares.push(CardShare { card, milli, memory, instance: None });
            missing -= 1;
        }
    }
    for (profile, count) in &takes.mig {
        for _ in 0..*count {
            let free = (0..node.cards.len())
                .rev()
                .filter(|c| shares.iter().all(|s: &CardShare| usize::from(s.card) != *c))
                .find_map(|c| Some((c, tried.place_instance(c, profile)?)));
            let Some((card, instance)) = free else {
                missing += 1;
                continue;
            };
            let (milli, memory) = match &node.spec.cards[card].mig {
                MigMode::Free(geometry) | MigMode::Fixed { geometry, .. } => {
                    let profile = geometry.profile(profile);
                    let compute = profile.map_or(0, |p| u64::from(p.compute));
                    (MilliCards((1000 * compute).div_ceil(7)), profile.map(|p| p.memory))
                }
                MigMode::Off => continue,
            };
            tried.cards[card].instances.push(instance.clone());
            shares.push(CardShare {
                card: card as u8,
                milli,
                memory: memory.unwrap_or_default(),
                instance: Some(instance),
            });
        }
    }
    shares.sort_by_key(|s| s.card);
    (shares, missing)
}

#[cfg(test)]
#[path = "adopt_tests.rs"]
mod tests;
