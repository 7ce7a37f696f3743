//! Orders of events that a real API server can give, one by one.

use super::*;
use crate::objects::{Card, Mig, MigInstance};
use crate::pod::Phase;
use crate::world::{T, World, card, foreign, node, pod};
use crater_model::GpuAsk;

#[test]
fn a_promise_stands_until_its_pod_is_bound_or_gone() {
    // C09: nothing expires. The second waits however long the first's binding takes.
    let mut world = World::new(&[("n", 1)]);
    world.see(&pod("j1", 1));
    let promised = world.decide();
    world.see(&pod("j2", 1));
    assert!(world.decide().is_empty());
    let bound = world.bind(&promised[0]);
    assert!(world.decide().is_empty());
    world.mirror.pod_gone(T, &bound.uid);
    assert_eq!(&*world.decide()[0].pod.uid, "j2");
}

#[test]
fn what_a_refused_binding_held_is_free_again() {
    let mut world = World::new(&[("n", 1)]);
    world.see(&pod("j1", 1));
    world.decide();
    world.mirror.refused_binding(T, "j1");
    assert_eq!((world.idle("n"), world.mirror.outstanding()), (1, 0));
    assert_eq!(world.decide().len(), 1, "it waited on");
}

#[test]
fn a_list_that_lacks_a_pod_frees_its_cards() {
    // C11: the delete was never seen; the next list is enough.
    let mut world = World::new(&[("n", 8)]);
    let a = world.run(&pod("a", 8));
    world.see(&pod("b", 8));
    assert!(world.decide().is_empty());
    world.mirror.pod_gone(T, &a.uid);
    assert_eq!(world.decide().len(), 1);
    assert_eq!(world.milli("n"), 8000);
}

#[test]
fn a_machine_that_comes_back_under_a_name_is_another() {
    // C12.
    let mut world = World::new(&[("n", 1)]);
    world.run(&pod("p", 1));
    world.see(&pod("x", 1));
    world.mirror.pod_gone(T, "x");
    world.mirror.node_gone(T, "n");
    world.mirror.pod_gone(T, "p");
    world.mirror.node_seen(T, node("n", "another", true));
    world.see(&pod("y", 1));
    assert_eq!(world.decide()[0].node_uid, "another".into());
}

#[test]
fn a_changed_uid_alone_is_a_new_machine_and_a_new_pod() {
    // C12, both merged into one event: the pods of the old machine that are
    // still there hold room on what is now called so.
    let mut world = World::new(&[("n", 2)]);
    world.run(&pod("p", 1));
    world.mirror.node_seen(T, node("n", "another", true));
    world.mirror.audit().unwrap();
    assert_eq!(world.idle("n"), 1);
    world.mirror.pod_gone(T, "p");
    assert_eq!(world.idle("n"), 2);
}

#[test]
fn an_over_full_node_still_takes_what_fits() {
    // C15: a card is lost under a job that holds all eight.
    let mut world = World::new(&[("n", 8)]);
    world.run(&pod("j0", 8));
    world.cards("n", (0..7).map(|i| card(i, "n")).collect());
    world.see(&pod("g", 1));
    assert!(world.decide().is_empty(), "no card");
    let cpu_only = world.run(&pod("j1", 0));
    assert_eq!(cpu_only.node, Some("n".into()));
    // And a new leader's books agree, though the lost card is in no list.
    let mut again = world.again();
    assert!(again.decide().is_empty());
    assert_eq!(again.mirror.troubles, Troubles::default());
    again.run(&pod("j2", 0));
}

#[test]
fn a_node_that_is_not_ready_keeps_what_it_holds() {
    // C17.
    let mut world = World::new(&[("n1", 4), ("n2", 4)]);
    let j1 = world.run(&pod("j1", 4));
    let home = j1.node.clone().unwrap();
    let other = if &*home == "n1" { "n2" } else { "n1" };
    world.mirror.node_seen(T, node(&home, &format!("{home}-uid"), false));
    assert_eq!(&*world.run(&pod("j2", 4)).node.unwrap(), other);
    world.see(&pod("j3", 4));
    assert!(world.decide().is_empty());
    world.mirror.node_seen(T, node(&home, &format!("{home}-uid"), true));
    assert!(world.decide().is_empty(), "its job still runs there");
    assert_eq!(world.milli(&home), 4000);
}

#[test]
fn terminating_is_not_gone() {
    // C18.
    let mut world = World::new(&[("n", 2)]);
    let j1 = world.run(&pod("j1", 2));
    world.see(&PodSeen { terminating: true, ..j1.clone() });
    world.see(&pod("j2", 2));
    assert!(world.decide().is_empty());
    let mut again = world.again();
    assert!(again.decide().is_empty(), "for a new leader neither");
    world.mirror.pod_gone(T, "j1");
    assert_eq!(world.decide().len(), 1);
}

#[test]
fn work_of_others_is_charged_once_and_counts_for_no_queue() {
    // C24, whole cards.
    let mut world = World::new(&[("n", 4)]);
    world.see(&foreign("f", "n", 3));
    assert_eq!(world.idle("n"), 1);
    world.see(&pod("j2", 2));
    assert!(world.decide().is_empty());
    world.mirror.pod_gone(T, "j2");
    world.run(&pod("j1", 1));
    let training = &world.mirror.state().queues()["training"];
    assert_eq!(training.running.len(), 1);
    let again = world.again();
    assert_eq!((again.idle("n"), again.milli("n")), (0, 4000));
    assert_eq!(again.mirror.state().queues()["training"].running.len(), 1);
    assert_eq!(again.mirror.figures(), world.mirror.figures());
}

#[test]
fn a_node_s_cards_may_be_known_after_its_pods() {
    let mut world = World::new(&[]);
    world.see(&foreign("f", "n", 1));
    world.mirror.node_seen(T, node("n", "u", true));
    world.cards("n", vec![card(0, "n"), card(1, "n")]);
    world.mirror.audit().unwrap();
    assert_eq!(world.idle("n"), 1);
    world.see(&pod("j", 2));
    assert!(world.decide().is_empty());
    // Cards that go and come again are still held.
    world.cards("n", vec![]);
    world.cards("n", vec![card(0, "n"), card(1, "n")]);
    world.mirror.audit().unwrap();
    assert_eq!(world.idle("n"), 1);
}

#[test]
fn mig_instances_of_others_are_charged_once() {
    // C24 as reported: two instances, one of them somebody else's.
    let mut world = World::new(&[]);
    let instances = [5, 6].map(|start| MigInstance { profile: "1g.5gb".into(), start });
    let cut = Card { mig: Some(Mig { instances: instances.into() }), ..card(0, "n") };
    world.cards("n", vec![cut]);
    world.mirror.node_seen(T, node("n", "u", true));
    let mut other = foreign("f", "n", 0);
    other.takes.mig.insert("1g.5gb".into(), 1);
    world.see(&other);
    let mut own = pod("j1", 0);
    let mig = Some(GpuAsk::mig(1, "1g.5gb"));
    let Some(Ok(spec)) = &mut own.wants else { unreachable!() };
    Arc::make_mut(&mut Arc::make_mut(spec).request).gpu = mig;
    world.run(&own);
    let free = |w: &World| {
        let node = w.mirror.node("n").unwrap();
        w.mirror.state().node(node).unwrap().place_instance(0, "1g.5gb")
    };
    assert_eq!(free(&world), None);
    assert_eq!(free(&world.again()), None);
    world.mirror.pod_gone(T, "f");
    assert!(free(&world).is_some());
}

#[test]
fn what_an_earlier_leader_promised_is_honoured() {
    let mut world = World::new(&[("n", 2)]);
    world.see(&pod("j1", 1));
    let promised = world.decide();
    let written = world.mirror.promises("n");
    // The old leader may bind it at any moment: its card is nobody else's.
    let mut next = world.again();
    assert!(next.mirror.honour(T, &"n".into(), &written[0]));
    next.see(&pod("j2", 1));
    let others = next.decide();
    assert_ne!(others[0].cards, promised[0].cards);
    assert_eq!(next.mirror.promises("n").len(), 2);
    assert!(!next.mirror.honour(T, &"n".into(), &written[0]), "once");
}

#[test]
fn a_pod_bound_elsewhere_than_promised_is_charged_where_it_is() {
    let mut world = World::new(&[("n1", 1), ("n2", 1)]);
    world.see(&pod("j1", 1));
    let promised = &world.decide()[0];
    let other = if &*promised.node == "n1" { "n2" } else { "n1" };
    world.see(&PodSeen { node: Some(other.into()), ..pod("j1", 1) });
    assert_eq!((world.idle(&promised.node), world.idle(other)), (1, 0));
}

#[test]
fn a_card_promised_twice_by_others_is_seen_and_never_doubled() {
    let mut world = World::new(&[("n", 1)]);
    let j1 = world.run(&pod("j1", 1));
    world.see(&PodSeen { uid: "forged".into(), ..j1 });
    assert_eq!(world.mirror.troubles.overpromised, 1);
    assert_eq!(world.milli("n"), 1000);
}

#[test]
fn gates_and_edits_are_followed() {
    let mut world = World::new(&[("n", 2)]);
    world.see(&PodSeen { gated: true, ..pod("j1", 1) });
    assert!(world.decide().is_empty());
    world.see(&pod("j1", 4));
    assert!(world.decide().is_empty(), "too many");
    world.see(&pod("j1", 1));
    assert_eq!(world.decide().len(), 1);
    world.see(&PodSeen { phase: Phase::Over(false), ..pod("j1", 1) });
    assert_eq!(world.idle("n"), 2);
}

#[test]
fn a_pod_that_cannot_be_meant_is_refused_and_harms_nobody() {
    let mut world = World::new(&[("n", 2)]);
    let error = crater_model::FieldError::new("crater.io/gpu", "NaN", "a number");
    world.see(&PodSeen { wants: Some(Err(error)), ..pod("bad", 1) });
    assert!(matches!(world.mirror.pod("bad").unwrap().standing, Standing::Refused(_)));
    world.run(&pod("good", 1));
}
