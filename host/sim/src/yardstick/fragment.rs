//! How much free GPU is a fragment for a workload: the paper's measure, which
//! depends on the cluster alone, whatever policy placed the pods.

use crate::trace::Shape;
use crater_engine::State;
use crater_engine::node::NodeState;
use crater_model::NodeUid;
use std::sync::Arc;

/// A pod that is typical of a workload, and how probable it is.
#[derive(Clone, Debug, PartialEq)]
pub struct TypicalPod {
    /// CPU in milli-cores.
    pub cpu: u64,
    /// Cards.
    pub cards: u64,
    /// Share of each.
    pub milli: u64,
    /// Models; empty means any.
    pub models: Vec<Arc<str>>,
    /// Probability.
    pub p: f64,
}

/// The most frequent shapes until 95 % of the pods are covered, their
/// probabilities adding up to 1.
pub fn typical_pods(mix: &[Shape]) -> Vec<TypicalPod> {
    let total: u64 = mix.iter().map(|s| s.count).sum();
    let mut covered = 0;
    let mut typical = vec![];
    for shape in mix {
        if covered as f64 >= 0.95 * total as f64 {
            break;
        }
        covered += shape.count;
        typical.push(TypicalPod {
            cpu: shape.cpu.0,
            cards: shape.cards,
            milli: shape.milli.0,
            models: shape.models.clone(),
            p: shape.count as f64,
        });
    }
    for pod in &mut typical {
        pod.p /= covered.max(1) as f64;
    }
    typical
}

/// The fragments of a cluster, kept node by node.
pub struct Fragments<'a> {
    typical: &'a [TypicalPod],
    nodes: Vec<f64>,
    sum: f64,
}

impl<'a> Fragments<'a> {
    /// Measures all nodes.
    pub fn new(typical: &'a [TypicalPod], state: &State) -> Self {
        let mut fragments = Self { typical, nodes: vec![0.0; state.node_slots()], sum: 0.0 };
        for node in state.nodes() {
            fragments.set(node);
        }
        fragments
    }

    /// Measures a node again.
    pub fn update(&mut self, state: &State, node: NodeUid) {
        if let Some(node) = state.node(node) {
            self.set(node);
        }
    }

    fn set(&mut self, node: &NodeState) {
        let slot = node.uid.0 as usize;
        let now = self.of(node);
        self.sum += now - self.nodes[slot];
        self.nodes[slot] = now;
    }

    /// Expected fragment of the cluster in milli-cards.
    pub fn milli(&self) -> f64 {
        self.sum
    }

    fn of(&self, node: &NodeState) -> f64 {
        let free: Vec<u64> = (0..node.cards.len()).map(|c| node.card_free(c).0.0).collect();
        let all: u64 = free.iter().sum();
        if all == 0 {
            return 0.0;
        }
        let model = &node.spec.cards[0].model;
        let fragment = |pod: &TypicalPod| {
            let fits = |f: &&u64| **f >= pod.milli;
            let useless = pod.cards == 0
                || (!pod.models.is_empty() && !pod.models.contains(model))
                || node.cpu_free().0 < pod.cpu
                || (free.iter().filter(fits).count() as u64) < pod.cards;
            if useless { all } else { free.iter().filter(|f| !fits(f)).sum() }
        };
        self.typical.iter().map(|pod| pod.p * fragment(pod) as f64).sum()
    }
}
