//! How many equal members a machine takes at once, by trying every way to
//! place them one after another.

use super::room::Room;
use crater_model::{Held, Need, Request, Share};

/// Steps of one search. Beyond them the answer stays open.
const STEPS: u32 = 5000;

/// The most members that fit at once, counted up to `enough`; `None` if there
/// are too many ways to try them all.
pub fn most(room: &Room, request: &Request, enough: u64) -> Option<u64> {
    let mut steps = STEPS;
    best(room, request, enough, &[], &mut steps)
}

fn best(
    room: &Room,
    request: &Request,
    enough: u64,
    tried: &[Held],
    steps: &mut u32,
) -> Option<u64> {
    let mut most = 0;
    if enough == 0 {
        return Some(0);
    }
    // Members are equal, so a way that an earlier branch began with need not
    // be taken later on: that branch has seen all of its companions.
    let ways: Vec<Held> =
        room.ways(request).into_iter().filter(|way| !tried.contains(way)).collect();
    let mut tried = tried.to_vec();
    for way in ways {
        *steps = steps.checked_sub(1)?;
        let mut next = room.clone();
        next.add(&way);
        most = most.max(1 + best(&next, request, enough - 1, &tried, steps)?);
        if most >= enough {
            break;
        }
        if any_way(request) {
            break;
        }
        tried.push(way);
    }
    Some(most)
}

/// Whether which cards a member takes cannot matter to the next one: each
/// takes one share of one card, or whole cards that nothing must join.
fn any_way(request: &Request) -> bool {
    let joined = request.nvlink == Need::Required || request.numa == Need::Required;
    request.gpu.as_ref().is_none_or(|ask| match ask.share {
        Share::Mig { .. } => false,
        Share::Whole => ask.cards == 1 || !joined,
        _ => ask.cards == 1,
    })
}
