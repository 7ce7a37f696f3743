//! What the API server says, as commands to the ledger. The API server is the
//! truth: the books are made anew from a full list whenever a leader begins,
//! and follow what is watched from there.
//!
//! **Architecture Invariant**: nothing here does IO or reads a clock, so that
//! every order of events can be tried in a test. Pods and nodes are keyed by
//! uid; a name only says where a pod is bound.

use crate::cards::{self, Assigned};
use crate::machine::{InventorySeen, NodeSeen, describe};
use crate::objects::Promise;
use crate::pod::{Phase, PodSeen};
use crater_engine::{Ledger, MemoryJournal, Plan, Refusal, State, Strings};
use crater_model::{
    ClaimState, ClaimUid, JobSpec, JobState, JobUid, Kind, NodeSpec, NodeUid, QueueSpec, Request,
    TenantPath, Time,
};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The queue under which pods of other schedulers stand in the books. Nothing
/// is ever decided in it.
pub const FOREIGN: &str = "foreign.crater.io";

/// A machine in the books.
#[derive(Debug)]
pub(crate) struct Machine {
    pub seen: NodeSeen,
    pub node: NodeUid,
    pub spec: NodeSpec,
    pub uuids: Vec<Arc<str>>,
}

/// Where a pod stands in the books.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Nowhere: gated, ending before it began, over.
    Nowhere,
    /// Refused as it is; the text says why.
    Refused(Arc<str>),
    /// Waits for room.
    Waiting(JobUid),
    /// It has room, and is being bound.
    Promised(JobUid, ClaimUid),
    /// It is bound and holds its room.
    Bound(JobUid, ClaimUid),
    /// It is bound to a node that is not there (yet).
    Afar,
}

/// A pod in the books.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The pod.
    pub seen: Arc<PodSeen>,
    /// Where it stands.
    pub standing: Standing,
    /// The node that it is promised or bound to.
    pub node: Option<Arc<str>>,
}

/// A decision that took effect and must be carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Promised {
    /// The pod.
    pub pod: Arc<PodSeen>,
    /// The node's name.
    pub node: Arc<str>,
    /// The node's uid.
    pub node_uid: Arc<str>,
    /// The cards.
    pub cards: Vec<Assigned>,
}

/// What went otherwise than it should, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Troubles {
    /// Pods found on cards that were full: a card was promised twice, by
    /// whomever.
    pub overpromised: u64,
    /// Commands that the ledger refused and that it should not have.
    pub defects: u64,
    /// Inventories that contradict themselves.
    pub inventories: u64,
    /// Foreign pods with more cards than the node had idle.
    pub unplaced_cards: u64,
}

/// What the books hold on a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NodeFigures {
    /// Its name.
    pub node: Arc<str>,
    /// Thousandths of cores.
    pub cpu: u64,
    /// MiB.
    pub memory: u64,
    /// Pods.
    pub pods: u32,
    /// Thousandths and MiB, card by card.
    pub cards: Vec<(u64, u64)>,
}

/// The books of a cluster.
#[derive(Debug)]
pub struct Mirror {
    pub(crate) ledger: Ledger<MemoryJournal>,
    pub(crate) machines: BTreeMap<Arc<str>, Machine>,
    inventories: BTreeMap<Arc<str>, InventorySeen>,
    pub(crate) pods: BTreeMap<Arc<str>, Entry>,
    /// Pods that are bound to a node, by its name.
    bound: BTreeMap<Arc<str>, BTreeSet<Arc<str>>>,
    /// Pods that are promised room on a node, by its name.
    promised: BTreeMap<Arc<str>, BTreeSet<Arc<str>>>,
    pub(crate) jobs: BTreeMap<JobUid, Arc<str>>,
    /// What went wrong.
    pub troubles: Troubles,
}

impl Mirror {
    /// Books with these queues and nothing in them.
    pub fn new(now: Time, queues: &[QueueSpec], strings: Arc<Strings>) -> Result<Self, Refusal> {
        let mut ledger = Ledger::new(MemoryJournal::default(), strings);
        let foreign = QueueSpec { paused: true, ..QueueSpec::new(FOREIGN, Kind::Offline) };
        for queue in queues.iter().cloned().chain([foreign]) {
            ledger.set_queue(now, queue)?;
        }
        Ok(Self {
            ledger,
            machines: BTreeMap::new(),
            inventories: BTreeMap::new(),
            pods: BTreeMap::new(),
            bound: BTreeMap::new(),
            promised: BTreeMap::new(),
            jobs: BTreeMap::new(),
            troubles: Troubles::default(),
        })
    }

    /// The books.
    pub fn state(&self) -> &State {
        self.ledger.state()
    }

    /// A pod, by uid.
    pub fn pod(&self, uid: &str) -> Option<&Entry> {
        self.pods.get(uid)
    }

    /// The pod behind a job.
    pub fn pod_of(&self, job: JobUid) -> Option<&Entry> {
        self.pods.get(self.jobs.get(&job)?)
    }

    /// All pods.
    pub fn pods(&self) -> impl Iterator<Item = &Entry> {
        self.pods.values()
    }

    /// Number of pods that are promised room and not yet bound.
    pub fn outstanding(&self) -> usize {
        self.promised.values().map(BTreeSet::len).sum()
    }

    /// A node's uid, by name.
    pub fn node_uid(&self, name: &str) -> Option<&Arc<str>> {
        self.machines.get(name).map(|m| &m.seen.uid)
    }

    /// The node that a name means in the books.
    pub fn node(&self, name: &str) -> Option<NodeUid> {
        self.machines.get(name).map(|m| m.node)
    }

    fn defect<T>(&mut self, done: Result<T, Refusal>) -> Option<T> {
        done.inspect_err(|_| self.troubles.defects += 1).ok()
    }

    /// A Node appeared or changed.
    pub fn node_seen(&mut self, now: Time, seen: NodeSeen) {
        let name = seen.name.clone();
        if self.machines.get(&name).is_some_and(|m| m.seen.uid != seen.uid) {
            self.node_gone(now, &name);
        }
        let (spec, uuids, bad) = describe(&seen, self.inventories.get(&name));
        self.troubles.inventories += u64::from(bad.is_some());
        if let Some(machine) = self.machines.get_mut(&name) {
            machine.seen = seen;
            if machine.spec == spec && machine.uuids == uuids {
                return;
            }
            let other_cards = machine.uuids != uuids;
            machine.spec = spec.clone();
            machine.uuids = uuids;
            let node = machine.node;
            let done = self.ledger.change_node(now, node, spec);
            self.defect(done);
            if other_cards {
                self.give_cards(now, &name);
            }
            return;
        }
        let added = self.ledger.add_node(now, spec.clone());
        let Some(node) = self.defect(added) else { return };
        self.machines.insert(name.clone(), Machine { seen, node, spec, uuids });
        let mut bound: Vec<Arc<str>> =
            self.bound.get(&name).into_iter().flatten().cloned().collect();
        // Who has no cards by name is given some that are left.
        bound.sort_by_key(|uid| self.pods.get(uid).is_none_or(|e| e.seen.assigned.is_none()));
        for uid in bound {
            self.settle(now, &uid);
        }
    }

    /// Charges pods anew that hold fewer cards in the books than they should:
    /// what is said of a node's cards may come after its pods.
    fn give_cards(&mut self, now: Time, name: &str) {
        let short = |uid: &&Arc<str>| {
            let Some(entry) = self.pods.get(*uid) else { return false };
            let Standing::Bound(_, claim) = entry.standing else { return false };
            let held = self.state().claim(claim).map_or(0, |c| c.held.cards.len() as u64);
            held < entry.seen.cards()
        };
        let short: Vec<Arc<str>> =
            self.bound.get(name).into_iter().flatten().filter(short).cloned().collect();
        for uid in &short {
            self.leave_books(now, uid, true);
        }
        for uid in short {
            self.settle(now, &uid);
        }
    }

    /// A Node is gone, and with it what was held on it. Pods that are still
    /// bound to its name hold nothing until a node of that name comes.
    pub fn node_gone(&mut self, now: Time, name: &str) {
        let Some(machine) = self.machines.remove(name) else { return };
        for uid in self.promised.get(name).cloned().unwrap_or_default() {
            self.refused_binding(now, &uid);
        }
        for uid in self.bound.get(name).cloned().unwrap_or_default() {
            self.leave_books(now, &uid, true);
            self.stand(&uid, Standing::Afar);
        }
        let done = self.ledger.remove_node(now, machine.node);
        self.defect(done);
    }

    /// The cards of a node, or `None` when nothing is said of them any more.
    pub fn inventory(&mut self, now: Time, name: &str, seen: Option<InventorySeen>) {
        match seen {
            Some(seen) => self.inventories.insert(name.into(), seen),
            None => self.inventories.remove(name),
        };
        if let Some(machine) = self.machines.get(name) {
            let seen = machine.seen.clone();
            self.node_seen(now, seen);
        }
    }

    /// A pod appeared or changed.
    pub fn pod_seen(&mut self, now: Time, seen: &Arc<PodSeen>) {
        let uid = &seen.uid;
        let known = self.pods.get(uid);
        if known.is_none() && seen.node.is_none() && !seen.ours {
            return;
        }
        let before = known.map(|e| e.seen.clone());
        if let Some(entry) = self.pods.get_mut(uid) {
            entry.seen = seen.clone();
        } else {
            let standing = Standing::Nowhere;
            let entry = Entry { seen: seen.clone(), standing, node: None };
            self.pods.insert(uid.clone(), entry);
        }
        if before.as_ref().is_some_and(|b| b.wants != seen.wants || b.takes != seen.takes) {
            // What a waiting pod asks for may be edited; what is held may not.
            if matches!(self.pods[uid].standing, Standing::Waiting(_) | Standing::Refused(_)) {
                self.leave_books(now, uid, false);
            }
        }
        self.settle(now, uid);
    }

    /// A pod is gone: what it held is free.
    pub fn pod_gone(&mut self, now: Time, uid: &str) {
        let Some(entry) = self.pods.get(uid) else { return };
        let uid = entry.seen.uid.clone();
        self.leave_books(now, &uid, true);
        if let Some(node) = self.pods.remove(&uid).and_then(|e| e.seen.node.clone()) {
            self.off(&node, &uid);
        }
    }

    fn off(&mut self, node: &str, uid: &str) {
        if let Some(pods) = self.bound.get_mut(node) {
            pods.remove(uid);
            if pods.is_empty() {
                self.bound.remove(node);
            }
        }
    }

    fn stand(&mut self, uid: &str, standing: Standing) {
        if let Some(entry) = self.pods.get_mut(uid) {
            entry.standing = standing;
        }
    }

    /// Takes a pod out of the books: its claim is gone, its job over.
    fn leave_books(&mut self, now: Time, uid: &str, success: bool) {
        let Some(entry) = self.pods.get_mut(uid) else { return };
        let standing = std::mem::replace(&mut entry.standing, Standing::Nowhere);
        let node = entry.node.take();
        let job = match standing {
            Standing::Waiting(job) => {
                let done = self.ledger.end_job(now, job, JobState::Cancelled, "the pod is gone");
                self.defect(done);
                job
            }
            Standing::Promised(job, claim) | Standing::Bound(job, claim) => {
                let done = self.ledger.member_ended(now, claim, success);
                self.defect(done);
                job
            }
            Standing::Nowhere | Standing::Refused(_) | Standing::Afar => return,
        };
        self.jobs.remove(&job);
        if let Some(node) = node {
            self.unpromise(&node, uid);
        }
    }

    fn unpromise(&mut self, node: &str, uid: &str) {
        if let Some(pods) = self.promised.get_mut(node) {
            pods.remove(uid);
            if pods.is_empty() {
                self.promised.remove(node);
            }
        }
    }

    /// Brings the books to where a pod is.
    fn settle(&mut self, now: Time, uid: &Arc<str>) {
        let Some(entry) = self.pods.get(uid) else { return };
        let (seen, standing) = (entry.seen.clone(), entry.standing.clone());
        if let Phase::Over(success) = seen.phase {
            self.leave_books(now, uid, success);
            if let Some(node) = &seen.node {
                self.off(node, uid);
            }
            return;
        }
        let Some(node) = &seen.node else {
            let waits = !seen.gated && !seen.terminating;
            match standing {
                Standing::Nowhere if waits && seen.ours => self.submit(now, &seen),
                Standing::Waiting(_) | Standing::Refused(_) if !waits => {
                    self.leave_books(now, uid, false);
                    self.stand(uid, Standing::Nowhere);
                }
                _ => {}
            }
            return;
        };
        self.bound.entry(node.clone()).or_default().insert(uid.clone());
        let here = entry.node.as_ref() == Some(node) && self.as_promised(&seen);
        match standing {
            Standing::Promised(job, claim) if here => self.hold(now, &seen, job, claim),
            Standing::Bound(job, claim) if entry.node.as_ref() == Some(node) => {
                self.hold(now, &seen, job, claim);
            }
            _ => {
                // Bound by somebody else, or elsewhere than was promised.
                self.leave_books(now, uid, false);
                self.adopt_bound(now, &seen, node);
            }
        }
    }

    /// Whether a pod that is bound where it was promised room has the cards
    /// that it was promised.
    fn as_promised(&self, seen: &PodSeen) -> bool {
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

    /// A claim's pod is bound: it holds its room.
    fn hold(&mut self, now: Time, seen: &PodSeen, job: JobUid, claim: ClaimUid) {
        self.stand(&seen.uid, Standing::Bound(job, claim));
        if let Some(node) = self.pods.get(&seen.uid).and_then(|e| e.node.clone()) {
            self.unpromise(&node, &seen.uid);
        }
        let state = match (seen.terminating, seen.phase) {
            (true, _) => ClaimState::Releasing,
            (_, Phase::Running) => ClaimState::Held,
            _ => ClaimState::Starting,
        };
        let done = self.ledger.move_claim(now, claim, state);
        self.defect(done);
    }

    fn submit(&mut self, now: Time, seen: &Arc<PodSeen>) {
        let spec = match &seen.wants {
            Some(Ok(spec)) => JobSpec::clone(spec),
            Some(Err(error)) => {
                return self.stand(&seen.uid, Standing::Refused(error.to_string().into()));
            }
            None => return,
        };
        let standing = match self.ledger.submit(now, spec) {
            Ok(job) => {
                self.jobs.insert(job, seen.uid.clone());
                Standing::Waiting(job)
            }
            Err(error) => Standing::Refused(error.to_string().into()),
        };
        self.stand(&seen.uid, standing);
    }

    /// A job for a pod that is bound already.
    pub(crate) fn submit_bound(&mut self, now: Time, seen: &PodSeen) -> Option<JobUid> {
        if let Some(Ok(spec)) = &seen.wants
            && let Ok(job) = self.ledger.submit(now, JobSpec::clone(spec))
        {
            return Some(job);
        }
        let takes = &seen.takes;
        let request = Request { cpu: takes.cpu, memory: takes.memory, ..Request::default() };
        let tenant = TenantPath::parse("namespace", &seen.namespace).unwrap_or_default();
        let spec = JobSpec::new(&seen.uid, FOREIGN, tenant, request);
        let done = self.ledger.submit(now, spec);
        self.defect(done)
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
        if let Some(node) = entry.node.take() {
            self.unpromise(&node, uid);
        }
        let done = self.ledger.move_claim(now, claim, ClaimState::Gone);
        self.defect(done);
        self.settle(now, &seen.uid);
    }

    /// Takes a waiting pod aside: it is not decided until `resubmit`.
    pub fn set_aside(&mut self, now: Time, uid: &str, why: &str) {
        if matches!(self.pods.get(uid).map(|e| &e.standing), Some(Standing::Waiting(_))) {
            self.leave_books(now, uid, false);
            self.stand(uid, Standing::Refused(why.into()));
        }
    }

    /// Lets a pod that was set aside wait again.
    pub fn resubmit(&mut self, now: Time, uid: &str) {
        let Some(entry) = self.pods.get_mut(uid) else { return };
        if matches!(entry.standing, Standing::Refused(_)) {
            entry.standing = Standing::Nowhere;
            let uid = entry.seen.uid.clone();
            self.settle(now, &uid);
        }
    }

    /// What the books hold, node by node.
    pub fn figures(&self) -> Vec<NodeFigures> {
        let of = |(name, machine): (&Arc<str>, &Machine)| {
            let state = self.state().node(machine.node)?;
            Some(NodeFigures {
                node: name.clone(),
                cpu: state.cpu.0,
                memory: state.memory.0,
                pods: state.members,
                // Not those that are gone: who held them is read without.
                cards: state.cards[..machine.uuids.len().min(state.cards.len())]
                    .iter()
                    .map(|c| (c.milli.0, c.memory.0))
                    .collect(),
            })
        };
        self.machines.iter().filter_map(of).collect()
    }

    /// Compares the ledger's sums with a recount.
    pub fn audit(&self) -> Result<(), String> {
        self.state().audit()
    }
}

#[cfg(test)]
#[path = "mirror_tests.rs"]
mod tests;
