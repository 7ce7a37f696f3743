//! Pods: what they ask for, how long they run, when they arrive.

use super::Generate;
use super::tables::{LONGEST, MODEL_SETS, Size, life, promises, sizes};
use crate::trace::stream::{Use, stream};
use crate::trace::{Class, Pod};
use crater_model::{Mib, MilliCards, MilliCores, NodeSpec};
use rand::Rng;
use rand_distr::{Distribution, Exp1, StandardNormal};
use std::collections::BTreeMap;
use std::sync::Arc;

/// One of `all` by weight; `None` if they weigh nothing.
fn pick<'a, T>(random: &mut impl Rng, all: &'a [T], weight: impl Fn(&T) -> u32) -> Option<&'a T> {
    let total: u32 = all.iter().map(&weight).sum();
    if total == 0 {
        return None;
    }
    let mut left = random.random_range(0..total);
    all.iter().find(|one| {
        let weight = weight(one);
        let here = left < weight;
        left = left.saturating_sub(weight);
        here
    })
}

/// The largest machines of each model: enough to know what fits anywhere.
struct Machines(BTreeMap<Arc<str>, Vec<(u64, MilliCores, Mib)>>);

impl Machines {
    fn new(nodes: &[NodeSpec]) -> Self {
        let mut kinds: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for node in nodes {
            let Some(card) = node.cards.first() else { continue };
            let kind = (node.cards.len() as u64, node.cpu, node.memory);
            let known = kinds.entry(Arc::clone(&card.model)).or_default();
            if !known.contains(&kind) {
                known.push(kind);
            }
        }
        Self(kinds)
    }

    /// Whether an empty machine with one of these models holds a pod.
    fn hold(&self, models: &[&str], size: &Size) -> bool {
        models.iter().filter_map(|m| self.0.get(*m)).flatten().any(|(cards, cpu, memory)| {
            *cards >= size.cards && cpu.0 >= size.cpu && memory.0 >= size.mib
        })
    }

    /// Models that a pod is bound to: a published set that some machine of this
    /// cluster can serve, or none.
    fn bind(&self, random: &mut impl Rng, size: &Size) -> Vec<Arc<str>> {
        let weight = |(weight, models): &(u32, &[&str])| {
            if self.hold(models, size) { *weight } else { 0 }
        };
        let set = pick(random, &MODEL_SETS, weight);
        set.map_or_else(Vec::new, |(_, models)| models.iter().map(|m| Arc::from(*m)).collect())
    }
}

/// Pods in the order of arrival.
pub(super) fn pods(ask: &Generate, nodes: &[NodeSpec]) -> Vec<Pod> {
    let machines = Machines::new(nodes);
    let classes: Vec<_> = Class::ALL.into_iter().zip(ask.mix).collect();
    let mut by_size = stream(ask.seed, Use::Sizes);
    let mut by_models = stream(ask.seed, Use::Models);
    let mut by_promise = stream(ask.seed, Use::Promises);
    let mut by_life = stream(ask.seed, Use::Lives);
    let mut lives = vec![];
    let mut pods = vec![];
    for number in 0..ask.pods {
        let class = pick(&mut by_size, &classes, |(_, weight)| *weight).map(|(class, _)| *class);
        let class = class.unwrap_or(Class::CpuOnly);
        let Some(size) = pick(&mut by_size, sizes(class), |s| s.weight) else { continue };
        let bound = by_models.random_range(0..1000) < ask.bound && size.cards > 0;
        let models = if bound { machines.bind(&mut by_models, size) } else { vec![] };
        lives.push(seconds(&mut by_life, class));
        let spec = models.join("|").into();
        pods.push(Pod {
            name: format!("pod-{number:05}").into(),
            cpu: MilliCores(size.cpu),
            memory: Mib(size.mib),
            cards: size.cards,
            card_milli: MilliCards(size.milli),
            models,
            spec,
            arrive: None,
            leave: None,
            qos: pick(&mut by_promise, &promises(class), |(w, _)| *w).map(|(_, qos)| *qos),
        });
    }
    let gap = mean_gap(ask, nodes, &pods, &lives);
    let mut random = stream(ask.seed, Use::Arrivals);
    let mut now = 0.0;
    for (pod, life) in pods.iter_mut().zip(lives) {
        let wait: f64 = Exp1.sample(&mut random);
        now += wait * gap;
        pod.arrive = Some(now as u64);
        pod.leave = Some(now as u64 + life);
    }
    pods
}

/// A run time, at least one second. Whole seconds do not show the last bit of
/// the machine's `exp`.
fn seconds(random: &mut impl Rng, class: Class) -> u64 {
    let (median, sigma) = life(class);
    let normal: f64 = StandardNormal.sample(random);
    (median * (sigma * normal).exp()).clamp(1.0, LONGEST) as u64
}

/// Mean seconds between arrivals (a Poisson process) that offer the load.
fn mean_gap(ask: &Generate, nodes: &[NodeSpec], pods: &[Pod], lives: &[u64]) -> f64 {
    let cards: f64 = nodes.iter().map(|n| n.cards.len() as f64 * 1000.0).sum();
    let cores: f64 = nodes.iter().map(|n| n.cpu.0 as f64).sum();
    let used = |amount: fn(&Pod) -> u64| -> f64 {
        pods.iter().zip(lives).map(|(p, life)| amount(p) as f64 * *life as f64).sum()
    };
    let busy = (used(|p| p.gpu().0) / cards).max(used(|p| p.cpu.0) / cores);
    busy * 100.0 / f64::from(ask.load) / (pods.len().max(1) as f64)
}
