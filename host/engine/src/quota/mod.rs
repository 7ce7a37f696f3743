//! Quotas: what tenants may use and do use, at every level of their paths.
//!
//! **Architecture Invariant**: a level's sum is that of the claims under it that
//! are not gone, as they are charged on the cards. What is checked and what is
//! charged come from one function, `amounts`; `State::audit` recounts.

mod demand;
mod gate;
mod levels;
mod preview;
mod tentative;

pub use levels::{Level, Quotas};
pub use preview::{Effect, preview};

pub(crate) use demand::{CardKind, card_kinds, least, open_models};
pub(crate) use gate::{Gate, shut};
pub(crate) use tentative::{Ask, Tentative};

use crater_model::{Held, NodeSpec, Usage};

/// What a member counts for, held on this node.
pub fn amounts(held: &Held, node: &NodeSpec) -> Usage {
    let Held { cpu, memory, disk, .. } = *held;
    let mut amounts = Usage { cpu, memory, disk, ..Usage::default() };
    for share in &held.cards {
        if let Some(card) = node.cards.get(usize::from(share.card)) {
            amounts.add_card(&card.model, share.milli, share.memory);
        }
    }
    amounts
}
