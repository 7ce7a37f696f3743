//! The host's plain orders: what decides where no policy does, and what a
//! queue falls back on.

use crate::node::NodeState;
use crater_model::{Digest, Fallback, Request};

/// What names a built-in order where a policy's digest would stand.
pub fn digest(order: Fallback) -> Digest {
    Digest(*blake3::hash(format!("built-in {order}").as_bytes()).as_bytes())
}

/// The host's score of a node for a member, greater is better. GPU work fills
/// (or spreads over) GPU share, other work CPU; both 0–1000.
pub fn score(order: Fallback, node: &NodeState, request: &Request) -> i32 {
    let (free, total) = if request.gpu.is_some() {
        let total = 1000 * node.spec.cards.iter().filter(|c| c.healthy).count() as u64;
        (node.gpu_free().0, total)
    } else {
        (node.cpu_free().0, node.spec.cpu.0)
    };
    let empty = (free.min(total).saturating_mul(1000) / total.max(1)) as i32;
    if order == Fallback::Spread { empty } else { 1000 - empty }
}
