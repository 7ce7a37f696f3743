//! Which cards of a machine are taken.
#![allow(missing_docs)]

mod common;

use common::{Bench, job, node, request};
use crater_engine::{Outcome, Plan};
use crater_model::{CardSpec, Fallback, JobSpec, JobState, Kind, Links, Mib, NodeSpec, QueueSpec};

fn cards(plan: &Plan) -> Vec<Vec<u8>> {
    let members = plan.records.iter().flat_map(|r| match &r.outcome {
        Outcome::Placed(placement) => placement.members.to_vec(),
        Outcome::Waits(_) => vec![],
    });
    members.map(|m| m.held.cards.iter().map(|c| c.card).collect()).collect()
}

/// A bench whose cards hold these shares, 0 for none.
fn bench(spec: NodeSpec, held: &[u64], order: Fallback) -> Bench {
    let mut bench = Bench::new([spec]);
    // Spread gives each of them a card of its own, in order.
    let queue = |fallback| QueueSpec { fallback, ..QueueSpec::new("q", Kind::Training) };
    bench.ledger.set_queue(bench.now, queue(Fallback::Spread)).unwrap();
    let mut idle = vec![];
    for (i, share) in held.iter().enumerate() {
        let uid = bench.submit(job(&format!("h{i}"), request((*share).max(1), 0, 1, 1)));
        if *share == 0 {
            idle.push(uid);
        }
        bench.round();
    }
    for uid in idle {
        let claim = bench.ledger.state().job(uid).unwrap().claims[0];
        bench.ledger.end_job(bench.now, uid, JobState::Cancelled, "").unwrap();
        bench.ledger.member_ended(bench.now, claim, true).unwrap();
    }
    bench.ledger.set_queue(bench.now, queue(order)).unwrap();
    bench
}

#[test]
fn shares_of_several_cards_go_by_the_order() {
    // Half of two cards each, 40 GiB on each.
    let two = || job("two", request(2000, 81_920, 1, 1));
    let spec = || node("n1", 64_000, 65_536, 3, 81_920);
    let mut pack = bench(spec(), &[0, 500, 500], Fallback::Binpack);
    pack.submit(two());
    assert_eq!(cards(&pack.round()), [vec![1, 2]]);
    let mut spread = bench(spec(), &[500, 0, 0], Fallback::Spread);
    spread.submit(two());
    assert_eq!(cards(&spread.round()), [vec![1, 2]]);
}

#[test]
fn a_gang_takes_other_cards_where_the_order_leaves_no_room_for_it() {
    let gang = |members| {
        let request = request(2000, 81_920, 1, 1);
        JobSpec { members, min_members: members, ..job("gang", request) }
    };
    // Both members must use the idle card.
    let spec = || node("n1", 64_000, 65_536, 3, 81_920);
    let mut packed = bench(spec(), &[500, 500, 0], Fallback::Binpack);
    packed.submit(gang(2));
    assert_eq!(cards(&packed.round()), [vec![0, 2], vec![1, 2]]);
    // Also across link groups, where nothing asks for one of them.
    let links = Links { groups: vec![0, 0, 1], bandwidth: vec![] };
    let mut linked = bench(NodeSpec { links, ..spec() }, &[500, 500, 0], Fallback::Spread);
    linked.submit(gang(2));
    assert_eq!(cards(&linked.round()).len(), 2);
    // One more does not fit, in whatever way.
    let mut full = bench(spec(), &[500, 500, 0], Fallback::Binpack);
    full.submit(gang(3));
    assert_eq!(cards(&full.round()), [] as [Vec<u8>; 0]);
}

#[test]
fn room_is_counted_in_members_where_cards_differ() {
    // 5,000 MiB on each of three cards: the large ones take four, the small two.
    let mut spec = node("n1", 64_000, 65_536, 0, 1);
    spec.cards = [10_240, 20_480, 10_240, 20_480].map(|m| CardSpec::new("odd", Mib(m))).to_vec();
    let mut bench = bench(spec, &[], Fallback::Spread);
    let request = request(3000, 15_000, 1, 1);
    bench.submit(JobSpec { members: 4, min_members: 4, ..job("gang", request) });
    assert_eq!(cards(&bench.round()).len(), 4);
}

/// Of all sets of cards in the chosen group the one that is chosen reaches each
/// other best, found here by looking at every subset.
#[test]
fn the_cards_of_a_job_are_the_best_linked_set_there_is() {
    let mut random = 7_u64;
    let mut below = |n: u64| {
        random = crater_engine::mix(random.wrapping_add(0x9E37_79B9_7F4A_7C15));
        random % n
    };
    for round in 0..300 {
        let n = 2 + below(7) as usize;
        let mut spec = node("n", 64_000, 1 << 20, n, 81_920);
        spec.links.bandwidth = vec![0; n * n];
        for a in 0..n {
            for b in 0..a {
                let speed = [16, 32, 64, 300, 600][below(5) as usize];
                spec.links.bandwidth[a * n + b] = speed;
                spec.links.bandwidth[b * n + a] = speed;
            }
        }
        let speeds = spec.links.bandwidth.clone();
        let count = 2 + below(n as u64 - 1) as usize;
        let of = |cards: &[usize]| {
            let pairs = cards
                .iter()
                .enumerate()
                .flat_map(|(i, a)| cards[i + 1..].iter().map(move |b| (*a, *b)));
            let speed = |(a, b): (usize, usize)| u64::from(speeds[a * n + b]);
            let all: Vec<u64> = pairs.map(speed).collect();
            (all.iter().copied().min().unwrap_or(0), all.iter().sum::<u64>())
        };
        let best = (0_u32..1 << n)
            .filter(|set| set.count_ones() as usize == count)
            .map(|set| of(&(0..n).filter(|i| set >> i & 1 == 1).collect::<Vec<_>>()))
            .max();
        let mut bench = Bench::new([spec]);
        bench.submit(job("j", request(1000 * count as u64, 0, 1000, 1024)));
        let plan = bench.round();
        let held = &plan.placements[0].members[0].held;
        let chosen: Vec<usize> = held.cards.iter().map(|c| usize::from(c.card)).collect();
        assert_eq!(Some(of(&chosen)), best, "round {round}: {count} of {n}: {chosen:?}");
    }
}
