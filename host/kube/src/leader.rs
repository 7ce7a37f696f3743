//! One time of leading: decide, promise, bind, tell.

use crate::bind::{Binder, Bound};
use crate::cache::{Cache, Change};
use crate::carry::Aside;
use crate::claims::{Claims, ClaimsSeen, Written};
use crate::lease::Tenure;
use crate::mirror::{Mirror, Promised, Standing};
use crate::pod::{Phase, PodSeen};
use crate::say::Word;
use crate::settings::{Fence, Settings};
use crate::stats::Stats;
use crate::told::{Texts, Told};
use crate::underway::UnderWay;
use crater_engine::{Decider, Outcome, Refusal, Round, mix};
use crater_model::Time;
use std::collections::BTreeMap;
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

/// One time of leading.
pub struct Leader {
    pub(crate) settings: Arc<Settings>,
    pub(crate) stats: Arc<Stats>,
    pub(crate) hands: Hands,
    /// The tenure.
    pub tenure: Arc<Tenure>,
    /// The books.
    pub mirror: Mirror,
    decider: Decider,
    /// Nodes' objects as last written or seen.
    pub(crate) objects: BTreeMap<Arc<str>, ClaimsSeen>,
    /// Promises to be written, by node.
    pub(crate) unwritten: BTreeMap<Arc<str>, Vec<Promised>>,
    /// Nodes whose object is being written.
    pub(crate) writing: UnderWay,
    pub(crate) told: BTreeMap<Arc<str>, Told>,
    pub(crate) aside: BTreeMap<Arc<str>, Aside>,
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
            writing: UnderWay::default(),
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

    /// Follows what was seen.
    pub fn change(&mut self, change: Change) {
        let now = now();
        match change {
            Change::Pod(pod) => {
                if matches!(pod.phase, Phase::Over(_)) {
                    self.writing.ended(&pod.uid);
                }
                self.mirror.pod_seen(now, &pod);
            }
            Change::PodGone(uid) => {
                self.writing.ended(&uid);
                self.mirror.pod_gone(now, &uid);
                self.told.remove(&uid);
                self.aside.remove(&uid);
            }
            Change::Node(node) => self.mirror.node_seen(now, node),
            Change::NodeGone(name, uid) => {
                if self.mirror.node_uid(&name) == Some(&uid) {
                    self.mirror.node_gone(now, &name);
                    // Its object goes with it. Where one stays, the next write
                    // finds it, as one of another leader.
                    self.objects.remove(&name);
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

    /// Decides a round if anything changed, and sends what came of it.
    pub fn round(&mut self) -> Result<(), Refusal> {
        let now = now();
        self.tell_doubts();
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
        // Evicting pods comes with the rest of Kubernetes.
        let limit = room.min(self.settings.round);
        let round = Round { limit, makes_room: false, ..Round::new(now, seed) };
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
        self.stats.doubted.store(troubles.doubted, Ordering::Relaxed);
        self.stats.jobs.store(self.mirror.jobs_kept() as u64, Ordering::Relaxed);
    }
}

/// The wall clock, for the books.
pub fn now() -> Time {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    Time(since.map_or(0, |d| u64::try_from(d.as_millis()).unwrap_or(u64::MAX)))
}
