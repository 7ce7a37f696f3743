//! One time of leading: decide, promise, bind, tell.

use crate::bind::{Binder, Bound};
use crate::cache::{Cache, Change};
use crate::claims::{Claims, ClaimsSeen, Written};
use crate::lease::Tenure;
use crate::mirror::{Mirror, Promised, Standing};
use crate::objects::ClaimsSpec;
use crate::pod::PodSeen;
use crate::say::{self, Word};
use crate::settings::{Fence, Settings};
use crate::stats::Stats;
use crater_engine::{Decider, Outcome, Refusal, Round, mix};
use crater_model::{Reasons, Time};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tokio::runtime::Handle;

/// What came of something that a leader had sent.
#[derive(Debug)]
pub enum Done {
    /// A node's promises, for these pods.
    Written(Arc<str>, Vec<Promised>, Written),
    /// A pod's binding.
    Bound(Promised, Bound),
}

/// How a leader reaches out.
#[derive(Clone)]
pub struct Hands {
    /// Where requests run.
    pub runtime: Handle,
    /// Writes promises.
    pub claims: Claims,
    /// Binds.
    pub binder: Binder,
    /// Takes words for pods; full: they are lost.
    pub words: tokio::sync::mpsc::Sender<Word>,
    /// Takes what came of it, with the epoch.
    pub done: Arc<dyn Fn(u64, Done) + Send + Sync>,
}

/// When a pod is told again that it waits.
#[derive(Debug)]
struct Told {
    why: Arc<str>,
    next: Instant,
    pause: Duration,
}

/// A pod that the API server refused to bind.
#[derive(Debug)]
struct Aside {
    until: Instant,
    pause: Duration,
}

/// One time of leading.
pub struct Leader {
    settings: Arc<Settings>,
    stats: Arc<Stats>,
    hands: Hands,
    /// The tenure.
    pub tenure: Arc<Tenure>,
    /// The books.
    pub mirror: Mirror,
    decider: Decider,
    /// Nodes' objects as last written or seen.
    objects: BTreeMap<Arc<str>, ClaimsSeen>,
    /// Promises to be written, by node.
    unwritten: BTreeMap<Arc<str>, Vec<Promised>>,
    /// Nodes whose object is being written.
    writing: BTreeSet<Arc<str>>,
    told: BTreeMap<Arc<str>, Told>,
    aside: BTreeMap<Arc<str>, Aside>,
    /// The books' sequence when the last round had placed all it could.
    settled: Option<u64>,
    wake: Option<Time>,
    swept: Instant,
}

impl Leader {
    /// Books made from what was listed after the tenure began, with the
    /// promises of earlier leaders honoured.
    pub fn new(
        settings: Arc<Settings>,
        stats: Arc<Stats>,
        hands: Hands,
        tenure: Arc<Tenure>,
        cache: &Cache,
    ) -> Result<Self, Refusal> {
        let now = now();
        let mut mirror = Mirror::new(now, &settings.queues, settings.strings.clone())?;
        for inventory in cache.inventories.values() {
            mirror.inventory(now, &inventory.name, Some(inventory.clone()));
        }
        for node in cache.nodes.values() {
            mirror.node_seen(now, node.clone());
        }
        // In a fixed order, so that equal clusters give equal books: first who
        // has cards by name, then who must be given some of the rest.
        for with_cards in [true, false] {
            for pod in cache.pods.values().filter(|p| p.assigned.is_some() == with_cards) {
                mirror.pod_seen(now, pod);
            }
        }
        let mut leader = Self {
            settings,
            stats,
            hands,
            tenure,
            mirror,
            decider: Decider::default(),
            objects: cache.claims.clone(),
            unwritten: BTreeMap::new(),
            writing: BTreeSet::new(),
            told: BTreeMap::new(),
            aside: BTreeMap::new(),
            settled: None,
            wake: None,
            swept: Instant::now(),
        };
        for object in cache.claims.values() {
            leader.honour(object);
        }
        leader.send();
        Ok(leader)
    }

    /// Takes another leader's promises on a node for our own.
    fn honour(&mut self, object: &ClaimsSeen) {
        if self.mirror.node_uid(&object.node).is_none_or(|uid| **uid != *object.spec.node_uid) {
            // Of a machine that is gone.
            return;
        }
        for promise in &object.spec.claims {
            if self.mirror.honour(now(), &object.node, promise) {
                self.stats.honoured.fetch_add(1, Ordering::Relaxed);
                let seen = self.mirror.pod(&promise.pod_uid).map(|e| e.seen.clone());
                let promised = seen.and_then(|s| self.mirror.promise(&s));
                self.unwritten.entry(object.node.clone()).or_default().extend(promised);
            }
        }
    }

    /// Follows what was seen.
    pub fn change(&mut self, change: Change) {
        let now = now();
        match change {
            Change::Pod(pod) => self.mirror.pod_seen(now, &pod),
            Change::PodGone(uid) => {
                self.mirror.pod_gone(now, &uid);
                self.told.remove(&uid);
                self.aside.remove(&uid);
            }
            Change::Node(node) => self.mirror.node_seen(now, node),
            Change::NodeGone(name, uid) => {
                if self.mirror.node_uid(&name) == Some(&uid) {
                    self.mirror.node_gone(now, &name);
                }
            }
            Change::Inventory(seen) => {
                let name = seen.name.clone();
                self.mirror.inventory(now, &name, Some(seen));
            }
            Change::InventoryGone(name) => self.mirror.inventory(now, &name, None),
        }
    }

    /// Learns what came of something sent.
    pub fn done(&mut self, done: Done) {
        match done {
            Done::Written(node, pods, written) => self.written(&node, pods, written),
            Done::Bound(promised, bound) => self.bound(promised, bound),
        }
    }

    fn written(&mut self, node: &Arc<str>, pods: Vec<Promised>, written: Written) {
        self.writing.remove(node);
        match written {
            Written::Done(object) => {
                self.stats.claim_writes.fetch_add(1, Ordering::Relaxed);
                self.objects.insert(node.clone(), object);
                for promised in pods {
                    self.bind(promised);
                }
            }
            Written::Other(object, on_node) => {
                self.stats.claims_of_others.fetch_add(1, Ordering::Relaxed);
                // What we wanted there was decided without knowing of this.
                let ours = self.unwritten.remove(node).unwrap_or_default();
                for promised in pods.iter().chain(&ours) {
                    self.mirror.refused_binding(now(), &promised.pod.uid);
                }
                for pod in on_node {
                    self.mirror.pod_seen(now(), &pod);
                }
                self.honour(&object);
                self.objects.insert(node.clone(), object);
            }
            Written::Over => {}
        }
        self.send();
    }

    fn bound(&mut self, promised: Promised, bound: Bound) {
        let uid = promised.pod.uid.clone();
        match bound {
            Bound::Here => {
                self.stats.bound.fetch_add(1, Ordering::Relaxed);
                self.mirror.binding_done(now(), &uid);
                self.told.remove(&uid);
                self.aside.remove(&uid);
                // Full: the word is lost.
                let _ = self.hands.words.try_send(Word::Scheduled(promised.pod, promised.node));
            }
            // The pod is bound by another; its room here is kept until the
            // watch says where, which frees it.
            Bound::Elsewhere | Bound::Over => {}
            Bound::Gone => self.mirror.pod_gone(now(), &uid),
            Bound::Refused(why) => {
                self.stats.refused.fetch_add(1, Ordering::Relaxed);
                self.mirror.refused_binding(now(), &uid);
                self.mirror.set_aside(now(), &uid, &format!("the binding was refused: {why}"));
                let pause = self.aside.get(&uid).map_or(1, |a| a.pause.as_secs() * 2).min(60);
                let pause = Duration::from_secs(pause);
                self.aside.insert(uid, Aside { until: Instant::now() + pause, pause });
            }
        }
    }

    fn bind(&self, promised: Promised) {
        let (hands, tenure) = (self.hands.clone(), self.tenure.clone());
        self.hands.runtime.spawn(async move {
            let bound = hands.binder.bind(&tenure, &promised).await;
            (hands.done)(tenure.epoch, Done::Bound(promised, bound));
        });
    }

    /// Sends what is promised on its way: a write for each node that has none
    /// under way, with all that gathered meanwhile.
    fn send(&mut self) {
        if self.settings.fence == Fence::Admission {
            for promised in std::mem::take(&mut self.unwritten).into_values().flatten() {
                self.bind(promised);
            }
            return;
        }
        let ready: Vec<Arc<str>> =
            self.unwritten.keys().filter(|n| !self.writing.contains(*n)).cloned().collect();
        for node in ready {
            let pods = self.unwritten.remove(&node).unwrap_or_default();
            self.write(node, pods);
        }
    }

    fn write(&mut self, node: Arc<str>, pods: Vec<Promised>) {
        let Some(node_uid) = self.mirror.node_uid(&node) else { return };
        let spec = ClaimsSpec {
            epoch: self.tenure.epoch,
            node_uid: node_uid.to_string(),
            claims: self.mirror.promises(&node),
        };
        let none = || ClaimsSeen { node: node.clone(), ..ClaimsSeen::default() };
        let last = self.objects.get(&node).cloned().unwrap_or_else(none);
        self.writing.insert(node.clone());
        let (hands, tenure) = (self.hands.clone(), self.tenure.clone());
        self.hands.runtime.spawn(async move {
            let written = hands.claims.write(&tenure, last, spec).await;
            (hands.done)(tenure.epoch, Done::Written(node, pods, written));
        });
    }

    /// Decides a round if anything changed, and sends what came of it.
    pub fn round(&mut self) -> Result<(), Refusal> {
        let now = now();
        let due: Vec<Arc<str>> = self
            .aside
            .iter()
            .filter(|(_, a)| a.until <= Instant::now())
            .map(|(uid, _)| uid.clone())
            .collect();
        for uid in due {
            if let Some(aside) = self.aside.get_mut(&uid) {
                aside.until = Instant::now() + Duration::from_hours(1);
            }
            self.mirror.resubmit(now, &uid);
        }
        let woken = self.wake.is_some_and(|w| w <= now);
        if self.settled == Some(self.mirror.state().seq) && !woken {
            self.sweep();
            return Ok(());
        }
        let room = self.settings.outstanding.saturating_sub(self.mirror.outstanding());
        if room == 0 || !self.tenure.lasts() {
            return Ok(());
        }
        let began = Instant::now();
        let number = self.stats.rounds.fetch_add(1, Ordering::Relaxed);
        let seed = mix(self.tenure.epoch ^ mix(number));
        let round = Round { limit: room.min(self.settings.round), ..Round::new(now, seed) };
        let plan = self.decider.decide(self.mirror.state(), &self.settings.policies, round);
        let promised = self.mirror.commit(now, &plan)?;
        let spent = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.stats.deciding_ns.fetch_add(spent, Ordering::Relaxed);
        if promised.is_empty() {
            self.settled = Some(self.mirror.state().seq);
            self.wake = plan.wake;
        }
        for promised in promised {
            self.unwritten.entry(promised.node.clone()).or_default().push(promised);
        }
        self.send();
        let mut texts = Texts::default();
        for record in &plan.records {
            if let Outcome::Waits(reasons) = &record.outcome
                && let Some(entry) = self.mirror.pod_of(record.job)
            {
                let seen = entry.seen.clone();
                self.waits(&seen, || texts.of(reasons));
            }
        }
        Ok(())
    }

    /// Tells a pod that it waits: at once when it is first seen to, then when
    /// the reason changed, ever more rarely.
    fn waits(&mut self, pod: &Arc<PodSeen>, why: impl FnOnce() -> Arc<str>) {
        let at = Instant::now();
        if self.told.get(&pod.uid).is_some_and(|t| t.next > at) {
            return;
        }
        let why = why();
        let pause = match self.told.get(&pod.uid) {
            Some(told) if told.why == why => (told.pause * 2).min(Duration::from_mins(5)),
            _ => Duration::from_secs(5),
        };
        let known = pod.told.as_deref() == Some(&*why)
            || self.told.get(&pod.uid).is_some_and(|t| t.why == why);
        if !known && self.hands.words.try_send(Word::Waits(pod.clone(), why.clone())).is_err() {
            // No room for words: later.
            return;
        }
        self.told.insert(pod.uid.clone(), Told { why, next: at + pause, pause });
    }

    /// When nothing else is to be done: tells refused pods why, and takes
    /// promises that are bound out of some objects.
    fn sweep(&mut self) {
        if self.swept.elapsed() < Duration::from_secs(1) {
            return;
        }
        self.swept = Instant::now();
        let refused: Vec<(Arc<PodSeen>, Arc<str>)> = self
            .mirror
            .pods()
            .filter_map(|e| match &e.standing {
                Standing::Refused(why) => Some((e.seen.clone(), why.clone())),
                _ => None,
            })
            .collect();
        for (pod, why) in refused {
            self.waits(&pod, || why);
        }
        if self.settings.fence == Fence::Admission || !self.writing.is_empty() {
            return;
        }
        let stale = |o: &&ClaimsSeen| {
            !o.spec.claims.is_empty() && self.mirror.promises(&o.node) != o.spec.claims
        };
        let stale: Vec<Arc<str>> =
            self.objects.values().filter(stale).take(50).map(|o| o.node.clone()).collect();
        for node in stale {
            self.write(node, vec![]);
        }
    }

    /// Copies what went wrong into the counts.
    pub fn count(&self) {
        let troubles = self.mirror.troubles;
        self.stats.overpromised.store(troubles.overpromised, Ordering::Relaxed);
        self.stats.defects.store(troubles.defects, Ordering::Relaxed);
    }
}

/// Texts of reasons, each made once a round.
#[derive(Default)]
struct Texts(Vec<(*const Reasons, Arc<str>)>);

impl Texts {
    fn of(&mut self, reasons: &Arc<Reasons>) -> Arc<str> {
        let key = Arc::as_ptr(reasons);
        if let Some((_, text)) = self.0.iter().find(|(k, _)| *k == key) {
            return text.clone();
        }
        let text: Arc<str> = say::message(reasons).into();
        if self.0.len() < 64 {
            self.0.push((key, text.clone()));
        }
        text
    }
}

/// The wall clock, for the books.
pub fn now() -> Time {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    Time(since.map_or(0, |d| u64::try_from(d.as_millis()).unwrap_or(u64::MAX)))
}
