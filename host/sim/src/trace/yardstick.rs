//! The order of arrivals and the order among equals of the published
//! experiment.
//!
//! Everything follows from the seed.

use super::Pod;
use super::stream::{Use, stream};
use crater_model::NodeSpec;
use rand::{Rng, seq::SliceRandom};

/// Most pods on a node in the published experiment.
pub const MEMBERS_PER_NODE: u32 = 1001;

/// Pods in the order in which they arrive: sorted by name, shuffled by the
/// seed, and tuned to ask for 1.3 times `gpus_total` cards.
///
/// Below that, copies of uniformly drawn originals are appended until it is
/// reached, each under the original's name with `.1`, `.2` … counted over all
/// copies. Above it, uniformly drawn pods are left out until it is not
/// exceeded. Pods that ask for no GPU at all are not tuned.
pub fn yardstick_arrivals(pods: &[Pod], gpus_total: u64, seed: u64) -> Vec<Pod> {
    let mut originals: Vec<&Pod> = pods.iter().collect();
    originals.sort_by(|a, b| a.name.cmp(&b.name));
    let mut order: Vec<Pod> = originals.iter().copied().cloned().collect();
    order.shuffle(&mut stream(seed, Use::PodOrder));

    let target = u128::from(gpus_total) * 1300;
    let gpu = |pod: &Pod| u128::from(pod.gpu().0);
    let mut asked: u128 = order.iter().map(gpu).sum();
    if asked == 0 {
        return order;
    }
    let mut random = stream(seed, Use::Tuning);
    let mut copies = 0;
    while asked < target {
        let mut copy = originals[random.random_range(0..originals.len())].clone();
        copies += 1;
        copy.name = format!("{}.{copies}", copy.name).into();
        asked += gpu(&copy);
        order.push(copy);
    }
    while copies == 0 && asked > target {
        let pod = order.remove(random.random_range(0..order.len()));
        asked -= gpu(&pod);
    }
    order
}

/// The place of each node among equals: of nodes with the same score the one
/// with the least place is taken. Stands for the experiment's permutation
/// prefix of node names; nodes are taken by name first, so that their order in
/// the file means nothing.
pub fn node_order(nodes: &[NodeSpec], seed: u64) -> Vec<u32> {
    let mut order: Vec<usize> = (0..nodes.len()).collect();
    order.sort_by(|a, b| nodes[*a].name.cmp(&nodes[*b].name));
    order.shuffle(&mut stream(seed, Use::NodeOrder));
    let mut places = vec![0; nodes.len()];
    for (place, node) in order.into_iter().enumerate() {
        places[node] = place as u32;
    }
    places
}
