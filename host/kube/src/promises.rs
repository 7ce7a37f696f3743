//! Room that is promised and not yet known to be bound: from a committed plan
//! to what came of the binding.

use crate::cards;
use crate::mirror::{Mirror, Promised, Standing};
use crate::objects::Promise;
use crate::pod::PodSeen;
use crater_engine::{Plan, Refusal};
use crater_model::{ClaimState, JobUid, NodeUid, Time};
use std::collections::BTreeMap;
use std::sync::Arc;

impl Mirror {
    /// Commits a plan; what took effect must be carried out.
    pub fn commit(&mut self, now: Time, plan: &Plan) -> Result<Vec<Promised>, Refusal> {
        let committed = self.ledger.commit(now, plan)?;
        let names: BTreeMap<NodeUid, Arc<str>> =
            self.machines.iter().map(|(name, m)| (m.node, name.clone())).collect();
        let mut promised = vec![];
        for uid in committed.claims {
            let Some(claim) = self.ledger.state().claim(uid).cloned() else { continue };
            let (Some(pod), Some(node)) = (self.jobs.get(&claim.job), names.get(&claim.node))
            else {
                continue;
            };
            let Some(seen) = self.pods.get(pod).map(|e| e.seen.clone()) else { continue };
            self.place(&seen, node, Standing::Promised(claim.job, uid), claim.job);
            promised.extend(self.promise(&seen));
        }
        Ok(promised)
    }

    pub(crate) fn place(
        &mut self,
        seen: &PodSeen,
        node: &Arc<str>,
        standing: Standing,
        job: JobUid,
    ) {
        self.jobs.insert(job, seen.uid.clone());
        if matches!(standing, Standing::Promised(..)) {
            self.promised.entry(node.clone()).or_default().insert(seen.uid.clone());
        }
        if let Some(entry) = self.pods.get_mut(&seen.uid) {
            entry.standing = standing;
            entry.node = Some(node.clone());
        }
    }

    /// What a pod is promised.
    pub fn promise(&self, seen: &PodSeen) -> Option<Promised> {
        let entry = self.pods.get(&seen.uid)?;
        let Standing::Promised(_, claim) = entry.standing else { return None };
        let name = entry.node.as_ref()?;
        let machine = self.machines.get(name)?;
        let claim = self.state().claim(claim)?;
        Some(Promised {
            pod: entry.seen.clone(),
            node: name.clone(),
            node_uid: machine.seen.uid.clone(),
            cards: cards::write(&claim.held.cards, &machine.uuids),
        })
    }

    /// Everything that is promised on a node, for its claims object.
    pub fn promises(&self, node: &str) -> Vec<Promise> {
        let pods = self.promised.get(node).into_iter().flatten();
        let promises = pods.filter_map(|uid| self.promise(&self.pods.get(uid)?.seen));
        promises
            .map(|p| Promise { pod_uid: p.pod.uid.to_string(), pod: p.pod.path(), cards: p.cards })
            .collect()
    }

    /// Whether a pod that is bound where it was promised room has the cards
    /// that it was promised.
    pub(crate) fn as_promised(&self, seen: &PodSeen) -> bool {
        let Some(entry) = self.pods.get(&seen.uid) else { return false };
        let (Standing::Promised(_, claim), Some(node)) = (&entry.standing, &entry.node) else {
            return false;
        };
        let Some(claim) = self.state().claim(*claim) else { return false };
        let uuids = self.machines.get(node).map_or(&[][..], |m| &m.uuids);
        match &seen.assigned {
            Some(assigned) => cards::read(assigned, uuids).0 == *claim.held.cards,
            None => claim.held.cards.is_empty(),
        }
    }

    pub(crate) fn unpromise(&mut self, node: &str, uid: &str) {
        if let Some(pods) = self.promised.get_mut(node) {
            pods.remove(uid);
            if pods.is_empty() {
                self.promised.remove(node);
            }
        }
    }

    /// The API server has bound a pod where it was promised room.
    pub fn binding_done(&mut self, now: Time, uid: &str) {
        let Some(entry) = self.pods.get(uid) else { return };
        if let Standing::Promised(job, claim) = entry.standing {
            let seen = entry.seen.clone();
            self.hold(now, &seen, job, claim);
        }
    }

    /// A pod is certain not to be bound by what was tried: its room is free
    /// and it waits on, with its age.
    pub fn refused_binding(&mut self, now: Time, uid: &str) {
        let Some(entry) = self.pods.get_mut(uid) else { return };
        let Standing::Promised(job, claim) = entry.standing else { return };
        let seen = entry.seen.clone();
        entry.standing = Standing::Waiting(job);
        let node = entry.node.take();
        if let Some(node) = &node {
            self.unpromise(node, uid);
        }
        let done = self.ledger.move_claim(now, claim, ClaimState::Gone);
        self.defect(done);
        if let Some(node) = &node {
            self.freed(now, node);
        }
        self.settle(now, &seen.uid);
    }
}
