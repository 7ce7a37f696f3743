//! What arrives, when, and for how long it runs.

use crate::trace::stream::{Use, stream};
use crate::trace::{Class, Pod, Trace};
use crate::yardstick::job;
use crater_engine::State;
use crater_engine::fit::fits;
use crater_model::{JobSpec, MilliCards, Time};
use rand::Rng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Exp1};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// A pod that may arrive any number of times.
#[derive(Clone, Debug)]
pub struct Coming {
    /// What it submits.
    pub spec: JobSpec,
    /// Its class.
    pub class: Class,
    /// Its cards.
    pub cards: u64,
    /// Share of all its cards together.
    pub gpu: MilliCards,
    /// How long it runs.
    pub life: Duration,
}

/// What may arrive at a cluster, each pod as likely as the other.
#[derive(Clone, Debug)]
pub struct Workload {
    pods: Vec<Coming>,
    left_out: u64,
    /// The cluster's cards.
    cards: f64,
    /// Card-seconds that a pod asks for on average.
    work: f64,
    /// Mean life time in seconds.
    life: f64,
    /// Mean life time in seconds, weighted by the GPU that it is in use for.
    weighted: f64,
}

/// One arrival.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<'a> {
    /// When.
    pub at: Time,
    /// What, by its place in the workload.
    pub pod: usize,
    /// What.
    pub coming: &'a Coming,
}

impl Workload {
    /// The pods of a trace that have a life time and fit on a node of the
    /// empty cluster; `None` if none of them asks for GPU.
    pub fn new(trace: &Trace, empty: &State) -> Option<Self> {
        let lives = trace.pods.iter().filter_map(|p| p.seconds().map(|s| (p, s.max(1))));
        let lives: Vec<(&Pod, u64)> = lives.collect();
        let most = longest(&lives)?;
        let mut pods = vec![];
        let mut left_out = 0;
        for (pod, seconds) in lives {
            let spec = job(pod);
            if !empty.nodes().any(|node| fits(node, &spec.request).is_ok()) {
                left_out += 1;
                continue;
            }
            let (class, cards, gpu) = (pod.class(), pod.cards, pod.gpu());
            let life = Duration::from_secs(seconds.min(most));
            pods.push(Coming { spec, class, cards, gpu, life });
        }
        let mean = |of: &dyn Fn(&Coming, f64) -> f64| {
            let sum: f64 = pods.iter().map(|p| of(p, p.life.as_secs_f64())).sum();
            sum / pods.len() as f64
        };
        let work = mean(&|pod, life| pod.gpu.0 as f64 / 1000.0 * life);
        let weighted = mean(&|pod, life| pod.gpu.0 as f64 / 1000.0 * life * life) / work;
        let life = mean(&|_, life| life);
        let cards = trace.gpus() as f64;
        (work > 0.0).then_some(Self { pods, left_out, cards, work, life, weighted })
    }

    /// Pods that may arrive.
    pub fn pods(&self) -> &[Coming] {
        &self.pods
    }

    /// Pods with a life time that never arrive, since no empty node holds them.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Mean seconds between arrivals at a load in percent of the cards.
    pub fn gap(&self, load: u32) -> f64 {
        self.work * 100.0 / (self.cards * f64::from(load))
    }

    /// Arrivals to let pass before measuring: twice as many as run at a time
    /// if nobody waits.
    pub fn warm_up_arrivals(&self, load: u32) -> u64 {
        (2.0 * self.life / self.gap(load)).ceil() as u64
    }

    /// Time to let pass before measuring: twice the mean life time of the GPU
    /// in use. Of what was in use at the beginning then hardly anything is.
    pub fn warm_up_time(&self) -> Duration {
        Duration::from_secs_f64(2.0 * self.weighted)
    }

    /// About how many arrivals a run sees whose measured pods wait little.
    pub fn about(&self, load: u32, arrivals: u64) -> u64 {
        let by_time = self.warm_up_time().as_secs_f64() / self.gap(load);
        self.warm_up_arrivals(load).max(by_time as u64) + arrivals
    }

    /// The endless stream of arrivals of a seed.
    pub fn arrivals(&self, load: u32, seed: u64) -> Arrivals<'_> {
        Arrivals {
            workload: self,
            gap: self.gap(load) * 1000.0,
            now: 0.0,
            gaps: stream(seed, Use::SteadyGaps),
            draws: stream(seed, Use::SteadyDraws),
        }
    }
}

/// The life time in seconds that 99 of 100 pods do not exceed.
fn longest(lives: &[(&Pod, u64)]) -> Option<u64> {
    let mut seconds: Vec<u64> = lives.iter().map(|(_, s)| *s).collect();
    seconds.sort_unstable();
    seconds.get((seconds.len() * 99).div_ceil(100).checked_sub(1)?).copied()
}

/// Arrivals, in the order of time.
#[derive(Clone, Debug)]
pub struct Arrivals<'a> {
    workload: &'a Workload,
    /// Mean milliseconds between two.
    gap: f64,
    /// Milliseconds since the beginning.
    now: f64,
    gaps: ChaCha8Rng,
    draws: ChaCha8Rng,
}

impl<'a> Iterator for Arrivals<'a> {
    type Item = Arrival<'a>;

    fn next(&mut self) -> Option<Arrival<'a>> {
        let pods = &self.workload.pods;
        // The same draws at every load: only the clock runs at another speed.
        let gap: f64 = Exp1.sample(&mut self.gaps);
        self.now += gap * self.gap;
        let pod = self.draws.random_range(0..pods.len());
        Some(Arrival { at: Time(self.now as u64), pod, coming: &pods[pod] })
    }
}

/// Gives life times to a trace whose file has none, as those of `multigpu*`:
/// that of the pod with the same name in another trace, else those of the
/// other trace's pods of the same class in turn. Pods stay without one if there
/// is none in their class.
pub fn borrow_lives(trace: &mut Trace, from: &Trace) {
    let mut named: BTreeMap<Arc<str>, u64> = BTreeMap::new();
    let mut classes: BTreeMap<Class, (Vec<u64>, usize)> = BTreeMap::new();
    for pod in &from.pods {
        let Some(seconds) = pod.seconds() else { continue };
        named.insert(pod.name.clone(), seconds);
        classes.entry(pod.class()).or_default().0.push(seconds);
    }
    for pod in &mut trace.pods {
        let own = named.get(&pod.name).copied();
        let seconds = own.or_else(|| {
            let (lives, turn) = classes.get_mut(&pod.class())?;
            *turn += 1;
            Some(lives[(*turn - 1) % lives.len()])
        });
        pod.arrive = seconds.map(|_| 0);
        pod.leave = seconds;
    }
}
