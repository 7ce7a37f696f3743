//! Order and number of arrivals of the published experiment.

use crater_model::{Mib, MilliCards, MilliCores, NodeSpec};
use crater_sim::trace::{Pod, node_order, yardstick_arrivals};
use expect_test::expect;

fn pods(count: u64, milli: u64) -> Vec<Pod> {
    (0..count)
        .map(|i| Pod {
            name: format!("p-{i:02}").into(),
            cpu: MilliCores(1000),
            memory: Mib(1024),
            cards: u64::from(milli > 0),
            card_milli: MilliCards(milli),
            models: vec![],
            spec: "".into(),
            arrive: None,
            leave: None,
            qos: None,
        })
        .collect()
}

fn names(pods: &[Pod]) -> String {
    pods.iter().map(|p| &*p.name).collect::<Vec<_>>().join(" ")
}

fn asked(pods: &[Pod]) -> u64 {
    pods.iter().map(|p| p.gpu().0).sum()
}

#[test]
fn copies_of_originals_fill_up_to_the_target() {
    let all = yardstick_arrivals(&pods(6, 500), 4, 42);
    // A change here changes every published number: the streams are part of
    // what a seed means.
    expect!["p-02 p-01 p-05 p-04 p-03 p-00 p-03.1 p-04.2 p-03.3 p-01.4 p-00.5"]
        .assert_eq(&names(&all));
    assert_eq!(asked(&all), 5500, "the first sum at or above 1.3 × 4 cards");
}

#[test]
fn pods_are_left_out_down_to_the_target() {
    let all = yardstick_arrivals(&pods(20, 1000), 10, 42);
    assert_eq!((all.len(), asked(&all)), (13, 13_000));
    assert!(all.iter().all(|p| !p.name.contains('.')), "{}", names(&all));
}

#[test]
fn only_names_and_the_seed_decide() {
    let mut input = pods(20, 700);
    let first = yardstick_arrivals(&input, 20, 7);
    input.reverse();
    assert_eq!(yardstick_arrivals(&input, 20, 7), first);
    assert_ne!(yardstick_arrivals(&input, 20, 8), first);
}

#[test]
fn a_load_without_gpus_is_only_shuffled() {
    assert_eq!(yardstick_arrivals(&pods(5, 0), 100, 1).len(), 5);
    assert_eq!(yardstick_arrivals(&[], 100, 1), []);
}

#[test]
fn every_node_has_a_place_of_its_own() {
    let node = |name: &str| NodeSpec::new(name, MilliCores(1000), Mib(1024));
    let order = node_order(&[node("a"), node("b"), node("c"), node("d")], 42);
    expect!["[2, 3, 1, 0]"].assert_eq(&format!("{order:?}"));
    let other = node_order(&[node("d"), node("c"), node("b"), node("a")], 42);
    assert_eq!(
        other.iter().rev().copied().collect::<Vec<_>>(),
        order,
        "the file's order is nothing"
    );
}
