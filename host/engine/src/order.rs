//! The order in which a queue's waiting jobs are served.

use crate::decider::ranks;
use crate::plan::Placement;
use crate::policy::{Fault, Interface, Policy};
use crate::rows::{Asking, Layout};
use crate::state::{Queue, State};
use crater_model::{Claim, Held, JobUid, Time};
use std::collections::{BTreeMap, VecDeque};

/// Jobs in the order they are served. Classes of a rank merge by live use, so
/// the order takes note of what is placed on the way.
pub struct Order {
    tiers: VecDeque<Tier>,
    class_of: BTreeMap<JobUid, i32>,
    totals: Totals,
}

/// Classes of one tier.
#[derive(Default)]
struct Tier {
    classes: BTreeMap<i32, Class>,
}

#[derive(Default)]
struct Class {
    /// Dominant share of the cluster that running and placed jobs of the class
    /// use, in parts per billion.
    used: u64,
    jobs: VecDeque<JobUid>,
}

/// The cluster's size, for dominant shares.
#[derive(Default)]
struct Totals {
    gpu: u64,
    cpu: u64,
    memory: u64,
}

impl Totals {
    fn of(state: &State) -> Self {
        let mut totals = Self::default();
        for node in state.nodes() {
            totals.gpu += 1000 * node.cards.len() as u64;
            totals.cpu = totals.cpu.saturating_add(node.spec.cpu.0);
            totals.memory = totals.memory.saturating_add(node.spec.memory.0);
        }
        totals
    }

    /// The largest of the shares of the cluster (Ghodsi et al., "Dominant
    /// Resource Fairness", NSDI'11), in parts per billion.
    fn dominant(&self, held: &Held) -> u64 {
        let share = |part: u64, of: u64| {
            (u128::from(part) * 1_000_000_000 / u128::from(of.max(1))).min(1 << 40) as u64
        };
        share(held.milli().0, self.gpu)
            .max(share(held.cpu.0, self.cpu))
            .max(share(held.memory.0, self.memory))
    }
}

impl Order {
    /// The host's own: priority, kind, age.
    pub fn own(queue: &Queue) -> Self {
        let jobs = queue.waiting.iter().map(|w| w.job).collect();
        let classes = BTreeMap::from([(0, Class { used: 0, jobs })]);
        let tiers = VecDeque::from([Tier { classes }]);
        Self { tiers, class_of: BTreeMap::new(), totals: Totals::default() }
    }

    /// The order that the policy gives, or the host's own: priority, kind,
    /// age. A fault leaves the host's own.
    pub fn new(
        state: &State,
        queue: &Queue,
        policy: Option<&dyn Policy>,
        now: Time,
        seed: u64,
    ) -> (Self, Option<Fault>) {
        let own = |fault| (Self::own(queue), fault);
        let Some(policy) = ranks(policy).filter(|_| queue.waiting.len() > 1) else {
            return own(None);
        };
        // In order of submission, whatever the priority.
        let mut waiting: Vec<JobUid> = queue.waiting.iter().map(|w| w.job).collect();
        waiting.sort_unstable();
        let asked: Vec<Asking<'_>> = waiting
            .iter()
            .chain(queue.running.iter())
            .filter_map(|uid| state.job(*uid))
            .map(|job| Asking { job, placed: job.claims.len() as u32, now, seed })
            .collect();
        let layout = Layout::new(policy.manifest());
        let table = layout.jobs(&asked, &state.strings);
        let answers = match policy.rank(&layout.context(now, seed), &table) {
            Ok(answers) if answers.len() == asked.len() => answers,
            Ok(answers) => {
                let detail = format!("{} entries for {} rows", answers.len(), asked.len());
                return own(Some(Fault::BadAnswer { interface: Interface::Rank, detail }));
            }
            Err(fault) => return own(Some(fault)),
        };
        let totals = Totals::of(state);
        let mut used: BTreeMap<i32, u64> = BTreeMap::new();
        let mut class_of = BTreeMap::new();
        for (asking, (_, class, _)) in asked.iter().zip(&answers) {
            class_of.insert(asking.job.uid, *class);
            let claims = asking.job.claims.iter().filter_map(|c| state.claim(*c));
            let sum: u64 = claims.map(|c: &std::sync::Arc<Claim>| totals.dominant(&c.held)).sum();
            *used.entry(*class).or_default() += sum;
        }
        let mut ranked: Vec<_> = asked.iter().zip(&answers).take(waiting.len()).collect();
        ranked.sort_by_key(|(asking, (tier, _, weight))| {
            (*tier, std::cmp::Reverse(*weight), asking.job.uid)
        });
        let mut tiers: BTreeMap<i32, Tier> = BTreeMap::new();
        for (asking, (tier, class, _)) in ranked {
            let tier = tiers.entry(*tier).or_default();
            let class = tier
                .classes
                .entry(*class)
                .or_insert_with(|| Class { used: used[class], jobs: VecDeque::new() });
            class.jobs.push_back(asking.job.uid);
        }
        (Self { tiers: tiers.into_values().collect(), class_of, totals }, None)
    }

    /// The next job: of the first tier, the class that uses least.
    pub fn next(&mut self) -> Option<JobUid> {
        loop {
            let tier = self.tiers.front_mut()?;
            let least = tier.classes.iter().min_by_key(|(id, class)| (class.used, **id));
            let Some(id) = least.map(|(id, _)| *id) else {
                self.tiers.pop_front();
                continue;
            };
            let job = tier.classes.get_mut(&id).and_then(|class| class.jobs.pop_front());
            if job.is_some() {
                return job;
            }
            tier.classes.remove(&id);
        }
    }

    /// Takes note of what a job was given.
    pub fn placed(&mut self, _state: &State, placement: &Placement) {
        let Some(class) = self.class_of.get(&placement.job) else { return };
        let sum: u64 = placement.members.iter().map(|m| self.totals.dominant(&m.held)).sum();
        for tier in &mut self.tiers {
            if let Some(class) = tier.classes.get_mut(class) {
                class.used = class.used.saturating_add(sum);
            }
        }
    }
}
