//! What a workload typically asks for: the fact that policies learn from.

use super::Pod;
use crater_model::{Mib, MilliCards, MilliCores};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Pods that ask for the same, and how many there are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shape {
    /// CPU of each.
    pub cpu: MilliCores,
    /// The most frequent memory among them, the least where several are. It
    /// tells no shapes apart.
    pub memory: Mib,
    /// Cards of each.
    pub cards: u64,
    /// Share of each card.
    pub milli: MilliCards,
    /// Card models that they may use; empty means any.
    pub models: Vec<Arc<str>>,
    /// How many there are.
    pub count: u64,
}

/// Groups pods by CPU, cards, share and what the trace says of models: the most
/// frequent shape first, among equals the one with most CPU, share, cards, and
/// the last by its words for models. That is the authors' order, and which of
/// equal shapes come first decides what is typical.
pub fn workload_mix(pods: &[Pod]) -> Vec<Shape> {
    let mut groups: BTreeMap<_, (_, BTreeMap<Mib, u64>)> = BTreeMap::new();
    for pod in pods {
        let key = (pod.cpu, pod.card_milli, pod.cards, &pod.spec);
        let group = groups.entry(key).or_insert_with(|| (&pod.models, BTreeMap::new()));
        *group.1.entry(pod.memory).or_default() += 1;
    }
    let mut shapes: Vec<_> = groups
        .into_iter()
        .rev()
        .map(|((cpu, milli, cards, _), (models, memories))| {
            let count = memories.values().sum();
            let most = memories.values().copied().max();
            let memory = memories.iter().find(|(_, n)| Some(**n) == most).map(|(m, _)| *m);
            let (memory, models) = (memory.unwrap_or_default(), Vec::clone(models));
            Shape { cpu, memory, cards, milli, models, count }
        })
        .collect();
    // Stable: equal counts stay in the map's order, greatest key first.
    shapes.sort_by_key(|shape| std::cmp::Reverse(shape.count));
    shapes
}
