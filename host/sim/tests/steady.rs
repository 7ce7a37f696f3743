//! The steady state: waits that queueing theory knows, and what must hold of
//! any run.
#![allow(missing_docs)]

use crater_engine::{Policy, Strings};
use crater_model::{CardSpec, Mib, MilliCards, MilliCores, NodeSpec};
use crater_sim::generate::Generate;
use crater_sim::steady::{Ask, Group, Run, Steady, SteadyError, borrow_lives};
use crater_sim::trace::{Pod, Trace};
use crater_sim::world::scripted::Scripted;
use std::sync::Arc;

const TIGHT: &str = "score=-node-cpu-free";
const LOOSE: &str = "score=node-cpu-free";

fn scripted(line: &str) -> Arc<dyn Policy> {
    Arc::new(Scripted::new(line).unwrap())
}

fn pod(name: &str, cards: u64, milli: u64, seconds: u64) -> Pod {
    Pod {
        name: name.into(),
        cpu: MilliCores(100),
        memory: Mib(100),
        cards,
        card_milli: MilliCards(milli),
        models: vec![],
        spec: "".into(),
        arrive: Some(10),
        leave: Some(10 + seconds),
        qos: None,
    }
}

fn node(name: &str, cards: usize) -> NodeSpec {
    let card = CardSpec::new("T4", Mib(16_000));
    NodeSpec::new(name, MilliCores(64_000), Mib(256_000)).with_cards(cards, &card)
}

fn trace(nodes: Vec<NodeSpec>, pods: Vec<Pod>) -> Trace {
    Trace { name: "made-up".into(), nodes, pods }
}

fn run(trace: &Trace, ask: Ask, policy: Option<Arc<dyn Policy>>) -> Run {
    let steady = Steady::new(trace, Arc::new(Strings::default())).unwrap();
    steady.run(ask, policy, &mut || {}).unwrap()
}

/// Pollaczek and Khinchine: the mean wait before one server that Poisson
/// arrivals keep busy for `load` of the time, in the order of arrival.
fn theory(load: f64, lives: &[f64]) -> f64 {
    let mean = lives.iter().sum::<f64>() / lives.len() as f64;
    let square = lives.iter().map(|l| l * l).sum::<f64>() / lives.len() as f64;
    load / mean * square / (2.0 * (1.0 - load))
}

#[test]
fn one_card_waits_as_queueing_theory_says() {
    for lives in [&[100][..], &[20, 30, 250], &[1, 1, 1, 1, 97]] {
        let pods = lives.iter().enumerate().map(|(i, l)| pod(&format!("p-{i}"), 1, 1000, *l));
        let trace = trace(vec![node("n-0", 1)], pods.collect());
        let run = run(&trace, Ask { seed: 1, load: 70, arrivals: 100_000 }, None);
        let lives: Vec<f64> = lives.iter().map(|l| *l as f64).collect();
        let expected = theory(0.7, &lives);
        let waits = &run.waits[&Group::OneCard];
        let ratio = waits.mean / expected;
        assert!((ratio - 1.0).abs() < 0.05, "{lives:?}: {} against {expected}", waits.mean);
        // Of Poisson arrivals as many find the card taken as it is taken.
        assert!((waits.waited_pct - 70.0).abs() < 1.0, "{}", waits.waited_pct);
        assert!((run.unallocated_pct - 30.0).abs() < 1.0, "{}", run.unallocated_pct);
        assert_eq!(run.unallocated_while_waiting_pct, Some(0.0));
        // Little: those that wait are the rate times the wait.
        let little = run.queue * run.seconds / waits.pods as f64;
        assert!((little / waits.mean - 1.0).abs() < 0.01, "{little} against {}", waits.mean);
        assert_eq!((waits.pods, waits.still), (100_000, 0));
    }
}

#[test]
fn far_below_capacity_nobody_waits() {
    let trace = Generate { nodes: 40, pods: 500, ..Generate::default() }.trace().unwrap();
    let run = run(&trace, Ask { seed: 3, load: 10, arrivals: 5_000 }, None);
    let all = &run.waits[&Group::All];
    assert_eq!((all.pods, all.mean, all.waited_pct, all.still), (5_000, 0.0, 0.0, 0));
    assert_eq!((run.queue, run.unallocated_while_waiting_pct, run.after), (0.0, None, 0));
    assert!((run.unallocated_pct - 90.0).abs() < 2.0, "{}", run.unallocated_pct);
}

#[test]
fn a_seed_gives_one_result_and_one_stream_under_every_policy() {
    let trace = Generate { nodes: 10, pods: 300, ..Generate::default() }.trace().unwrap();
    let ask = Ask { seed: 5, load: 95, arrivals: 1_000 };
    let (tight, loose) =
        (run(&trace, ask, Some(scripted(TIGHT))), run(&trace, ask, Some(scripted(LOOSE))));
    assert_eq!(tight, run(&trace, ask, Some(scripted(TIGHT))));
    assert_ne!(tight.waits, loose.waits, "the policies differ");
    let stream = |run: &Run| {
        let pods: Vec<_> = run.waits.iter().map(|(group, waits)| (*group, waits.pods)).collect();
        (pods, run.before, run.seconds)
    };
    assert_eq!(stream(&tight), stream(&loose));
    let other = run(&trace, Ask { seed: 6, ..ask }, Some(scripted(LOOSE)));
    assert_ne!(stream(&other), stream(&loose));
    assert_eq!(tight.faults, 0);
}

#[test]
fn nothing_is_oversold_where_more_is_asked_for_than_there_is() {
    // The run audits the books at its end and refuses a sum that is off.
    let trace = Generate { nodes: 10, pods: 300, ..Generate::default() }.trace().unwrap();
    let run = run(&trace, Ask { seed: 7, load: 150, arrivals: 1_000 }, Some(scripted(LOOSE)));
    let all = &run.waits[&Group::All];
    assert!(all.still > 0 && all.mean > 0.0 && run.after == 250, "{run:?}");
    assert!((0.0..=100.0).contains(&run.unallocated_pct), "{}", run.unallocated_pct);
}

#[test]
fn a_policy_that_fails_is_told_of() {
    let trace = trace(vec![node("n-0", 2)], vec![pod("a", 1, 500, 60)]);
    let broken = scripted("score=hash:9 fault=count@score:100");
    let run = run(&trace, Ask { seed: 1, load: 50, arrivals: 100 }, Some(broken));
    assert!(run.faults >= 100, "{run:?}");
}

#[test]
fn what_can_never_start_never_comes() {
    let pods = vec![pod("fits", 1, 1000, 60), pod("too-large", 4, 1000, 60), pod("cpu", 0, 0, 60)];
    let steady = trace(vec![node("n-0", 2)], pods);
    let run = run(&steady, Ask { seed: 1, load: 50, arrivals: 1_000 }, None);
    assert_eq!(run.left_out, 1);
    assert!(!run.waits.contains_key(&Group::SeveralCards), "{run:?}");
    assert!(run.waits[&Group::CpuOnly].pods > 400, "{run:?}");

    let never = trace(vec![node("n-0", 2)], vec![pod("cpu", 0, 0, 60)]);
    let refused = Steady::new(&never, Arc::new(Strings::default())).err();
    assert!(matches!(refused, Some(SteadyError::NoLoad(_))), "{refused:?}");
}

#[test]
fn life_times_are_borrowed_by_name_then_by_class() {
    let from =
        trace(vec![], vec![pod("a", 1, 1000, 7), pod("b", 2, 1000, 8), pod("c", 4, 1000, 9)]);
    let mut to =
        trace(vec![], ["a", "x", "y", "z", "cpu"].map(|name| pod(name, 2, 1000, 1)).into());
    to.pods[4].cards = 0;
    borrow_lives(&mut to, &from);
    let lives: Vec<_> = to.pods.iter().map(Pod::seconds).collect();
    assert_eq!(lives, [Some(7), Some(8), Some(9), Some(8), None]);
}
