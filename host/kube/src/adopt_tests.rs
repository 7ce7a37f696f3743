//! What runs already and what is said of it.

use super::*;
use crate::cards::Assigned;
use crate::mirror::Troubles;
use crate::objects::{Mig, MigInstance};
use crate::pod::Phase;
use crate::world::{T, World, card, foreign, pod};
use crater_model::{GpuAsk, PlatformSpec, TenantPath, TenantSpec};

/// Words about a card of a node, as JSON would have them.
fn says(node: &str, index: u8, milli: u64, memory_mib: u64) -> Assigned {
    Assigned {
        uuid: format!("GPU-{node}-{index}").into(),
        index,
        milli,
        memory_mib,
        instance: None,
    }
}

/// A pod whose author chose its node and wrote what it holds.
fn forged(uid: &str, cards: u64, assigned: Vec<Assigned>) -> PodSeen {
    PodSeen {
        node: Some("n".into()),
        phase: Phase::Running,
        assigned: Some(assigned),
        ..pod(uid, cards)
    }
}

/// Cards of node `n` in the books: thousandths and MiB.
fn cards_of(world: &World) -> Vec<(u64, u64)> {
    world.mirror.figures()[0].cards.clone()
}

const FULL: (u64, u64) = (1000, 40_960);

#[test]
fn what_runs_is_charged_above_any_quota_and_counts_against_it() {
    let mut world = World::new(&[("n", 8)]);
    let ai = TenantPath::parse("tenant", "ai").unwrap();
    let mut limit = TenantSpec::new(ai);
    limit.hard.field("gpu", "2").unwrap();
    world.run(&pod("j1", 4));
    world.mirror.ledger.set_tenant(T, limit).unwrap();
    // Bound by others, by an earlier leader, and promised by one.
    world.see(&PodSeen { node: Some("n".into()), ..pod("j2", 1) });
    world.see(&foreign("f", "n", 1));
    world.see(&pod("j3", 1));
    let card = says("n", 0, 1000, 40_960);
    let promise = Promise { pod_uid: "j3".into(), pod: "ai/j3".into(), cards: vec![card] };
    let idle = (0..8).find(|i| cards_of(&world)[*i] == (0, 0)).unwrap();
    let cards = vec![says("n", idle as u8, 1000, 40_960)];
    assert!(world.mirror.honour(T, &"n".into(), &Promise { cards, ..promise }));
    assert_eq!(world.milli("n"), 7000);
    assert_eq!(world.mirror.troubles, Troubles::default());
    // Whoever asks next finds the limit passed, not the room short.
    world.see(&pod("j4", 1));
    assert!(world.decide().is_empty());
    let used = world.mirror.state().level("ai").unwrap().used.clone();
    assert_eq!(used.get(&crater_model::Resource::Gpu), 7000);
}

#[test]
fn what_runs_is_charged_while_the_quotas_are_not_known() {
    let mut world = World::new(&[("n", 2)]);
    let unknown = PlatformSpec { quotas_known: false, ..PlatformSpec::default() };
    world.mirror.ledger.set_platform(T, unknown).unwrap();
    world.see(&PodSeen { node: Some("n".into()), ..pod("j1", 1) });
    world.see(&pod("j2", 1));
    assert!(world.decide().is_empty(), "limits that are not known start nobody");
    assert_eq!((world.milli("n"), world.mirror.troubles), (1000, Troubles::default()));
}

#[test]
fn a_pod_that_says_it_holds_less_than_it_asks_for_is_charged_what_it_asks_for() {
    let mut world = World::new(&[("n", 4)]);
    world.see(&forged("j1", 2, vec![says("n", 1, 1, 1)]));
    assert_eq!(cards_of(&world).iter().filter(|c| **c == FULL).count(), 2);
    assert_eq!(cards_of(&world)[1], FULL, "the card that it named, and another");
    let told = world.mirror.doubted();
    assert_eq!((told.len(), world.mirror.troubles.doubted), (1, 1));
    assert!(told[0].1.contains("names 1 cards and the pod asks for 2"), "{}", told[0].1);
    // Once, however often it is seen.
    world.see(&forged("j1", 2, vec![says("n", 1, 1, 1)]));
    assert_eq!((world.mirror.doubted().len(), world.mirror.troubles.doubted), (0, 1));
    assert_eq!(cards_of(&world.again()), cards_of(&world));
}

#[test]
fn no_pod_holds_more_of_a_card_than_there_is() {
    let mut world = World::new(&[("n", 2)]);
    let twice = vec![says("n", 0, 90_000, 1 << 40), says("n", 0, 0, 0)];
    world.see(&forged("j1", 0, twice));
    // It asked for none: what it may use is taken for used, and told.
    assert_eq!(cards_of(&world), [FULL, (0, 0)]);
    assert_eq!(world.mirror.doubted().len(), 1);
    assert_eq!(world.mirror.troubles.overpromised, 0);
    // A card that is nowhere holds nothing.
    world.see(&forged("j2", 0, vec![says("elsewhere", 0, 1000, 40_960)]));
    assert_eq!(cards_of(&world), [FULL, (0, 0)]);
    world.mirror.pod_gone(T, "j1");
    assert_eq!(world.milli("n"), 0);
}

#[test]
fn a_mig_instance_is_charged_as_its_profile_says() {
    let mut world = World::new(&[]);
    let cut = crate::objects::Card { mig: Some(Mig::default()), ..card(0, "n") };
    world.cards("n", vec![cut, card(1, "n")]);
    world.mirror.node_seen(T, crate::world::node("n", "u", true));
    let mut own = forged("j1", 0, vec![]);
    let Some(Ok(spec)) = &mut own.wants else { unreachable!() };
    Arc::make_mut(&mut Arc::make_mut(spec).request).gpu = Some(GpuAsk::mig(1, "2g.10gb"));
    let instance = Some(MigInstance { profile: "2g.10gb".into(), start: 2 });
    let little = Assigned { instance, ..says("n", 0, 1, 1) };
    world.see(&PodSeen { assigned: Some(vec![little]), ..own.clone() });
    let charged = cards_of(&world)[0];
    assert!(charged.0 == 286 && charged.1 > 9000, "{charged:?}");
    // A share of another card is no instance: one is given beside it.
    let other = PodSeen { uid: "j2".into(), ..own };
    world.see(&PodSeen { assigned: Some(vec![says("n", 1, 1, 1)]), ..other });
    assert_eq!((cards_of(&world)[0].0, cards_of(&world)[1].0), (572, 1));
}

#[test]
fn who_names_a_card_of_another_takes_it_from_nobody() {
    let mut world = World::new(&[("n", 2)]);
    let genuine = world.run(&pod("j1", 1));
    let named = genuine.assigned.clone().unwrap();
    world.see(&forged("f", 1, named.clone()));
    assert_eq!(world.mirror.troubles.overpromised, 1, "seen, and not doubled");
    assert_eq!(world.milli("n"), 1000);
    // A new leader may hear of the forged one first. Once it is gone the card
    // is still the other's.
    let mut next = World::new(&[("n", 2)]);
    next.see(&forged("f", 1, named));
    next.see(&genuine);
    assert_eq!(next.milli("n"), 1000);
    next.mirror.pod_gone(T, "f");
    assert_eq!(next.milli("n"), 1000);
    next.see(&pod("j2", 1));
    assert_ne!(next.decide()[0].cards, genuine.assigned.unwrap());
}

#[test]
fn words_that_cannot_be_read_are_no_words() {
    let mut world = World::new(&[("n", 2)]);
    world.see(&forged("j1", 1, vec![]));
    assert_eq!((world.milli("n"), world.mirror.doubted().len()), (1000, 1));
}

#[test]
fn where_it_runs_is_a_fact_though_the_node_is_closed() {
    let mut world = World::new(&[("n", 2)]);
    world.mirror.node_seen(T, crate::world::node("n", "n-uid", false));
    world.see(&PodSeen { node: Some("n".into()), ..pod("j1", 2) });
    assert_eq!((world.milli("n"), world.mirror.troubles), (2000, Troubles::default()));
}
