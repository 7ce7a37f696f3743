//! Generated clusters and workloads, and how near they come to the published
//! ones.

use crate::real::traces;
use crater_model::{Mib, MilliCores};
use crater_sim::generate::{Generate, cluster};
use crater_sim::trace::{Class, Pod};
use expect_test::expect;
use std::collections::BTreeMap;

/// Shares of the classes in per cent.
fn shares(pods: &[Pod]) -> [f64; 4] {
    let count = |class| pods.iter().filter(|p| p.class() == class).count();
    Class::ALL.map(|class| count(class) as f64 * 100.0 / pods.len() as f64)
}

/// Whether two figures are within some per cent of the second.
fn near(what: &str, got: f64, wanted: f64, percent: f64) {
    assert!((got / wanted - 1.0).abs() * 100.0 <= percent, "{what}: {got} for {wanted}");
}

#[test]
fn the_whole_cluster_is_the_published_one() {
    let nodes = cluster(1213);
    let mut cards = BTreeMap::new();
    for card in nodes.iter().flat_map(|n| &n.cards) {
        *cards.entry(&*card.model).or_insert(0) += 1;
    }
    let published = [
        ("A10", 2),
        ("G2", 4392),
        ("G3", 312),
        ("P100", 265),
        ("T4", 842),
        ("V100M16", 195),
        ("V100M32", 204),
    ];
    assert_eq!(cards, BTreeMap::from(published));
    let cpu: MilliCores = nodes.iter().map(|n| n.cpu).sum();
    let memory: Mib = nodes.iter().map(|n| n.memory).sum();
    near("cores", cpu.0 as f64, 107_018_000.0, 0.1);
    near("memory", memory.0 as f64, 503_828_480.0, 0.1);
    let mut names: Vec<_> = nodes.iter().map(|n| &n.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), 1213);
    for node in &nodes {
        node.check().unwrap();
    }
}

#[test]
fn a_small_cluster_keeps_the_proportions() {
    let names: Vec<_> = cluster(12).iter().map(|n| n.name.to_string()).collect();
    expect!["g2-0000 g2-0001 g2-0002 g2-0003 g2-0004 g2-0005 t4-0000 t4-0001 t4-0002 t4-0003 p100-0000 g3-0000"].assert_eq(&names.join(" "));
    for nodes in [0, 1, 7, 500, 5000] {
        assert_eq!(cluster(nodes).len(), nodes);
    }
}

#[test]
fn a_seed_says_everything() {
    let ask = Generate { nodes: 30, pods: 6, bound: 500, ..Generate::default() };
    let trace = ask.trace().unwrap();
    let shown = trace.pods.iter().map(|p| {
        let (cpu, memory, gpu) = (p.cpu, p.memory, p.gpu());
        let (from, to) = (p.arrive.unwrap(), p.leave.unwrap());
        format!("{}: {gpu} GPU, {cpu} cores, {memory}, {:?}, {from}–{to}\n", p.name, p.models)
    });
    expect![[r#"
        pod-00000: 1 GPU, 3.2 cores, 5632Mi, ["P100", "V100M16", "V100M32"], 0–367
        pod-00001: 1 GPU, 9.8 cores, 41472Mi, ["P100"], 7–961
        pod-00002: 1 GPU, 12 cores, 16Gi, ["G2"], 47–455
        pod-00003: 1 GPU, 18.7 cores, 63Gi, ["P100"], 55–4462
        pod-00004: 1 GPU, 11.3 cores, 48Gi, [], 68–114
        pod-00005: 0.23 GPU, 4 cores, 30Gi, ["T4"], 68–107
    "#]]
    .assert_eq(&shown.collect::<String>());
    assert_eq!(ask.trace().unwrap(), trace);
    let other = Generate { seed: 43, ..ask }.trace().unwrap();
    assert_ne!(other.pods, trace.pods);
}

#[test]
fn binding_to_models_changes_nothing_else() {
    let free = Generate { bound: 0, ..Generate::default() }.trace().unwrap();
    let mut bound = Generate { bound: 330, ..Generate::default() }.trace().unwrap();
    let count = bound.pods.iter().filter(|p| !p.models.is_empty()).count();
    let cards = bound.pods.iter().filter(|p| p.cards > 0).count();
    near("bound", count as f64 * 1000.0 / cards as f64, 330.0, 6.0);
    for pod in &mut bound.pods {
        pod.request().check().unwrap();
        assert!(pod.models.is_sorted(), "{pod:?}");
        pod.models.clear();
        pod.spec = "".into();
    }
    assert_eq!(bound.pods, free.pods);
}

#[test]
fn arrivals_offer_the_load() {
    let trace = Generate { load: 50, ..Generate::default() }.trace().unwrap();
    assert!(trace.pods.is_sorted_by_key(|p| p.arrive));
    let window = trace.pods.last().and_then(|p| p.arrive).unwrap() as f64;
    let per = |amount: fn(&Pod) -> u64, of: u64| {
        let used = trace.pods.iter().map(|p| amount(p) * p.seconds().unwrap());
        used.sum::<u64>() as f64 / of as f64 / window
    };
    let cores = trace.nodes.iter().map(|n| n.cpu.0).sum();
    let busiest = per(|p| p.gpu().0, trace.gpus() * 1000).max(per(|p| p.cpu.0, cores));
    near("load", busiest, 0.5, 5.0);
}

#[test]
fn what_cannot_be_generated_is_refused_by_field() {
    let refused = |ask: Generate| ask.trace().unwrap_err().to_string();
    let all = [
        refused(Generate { nodes: 0, ..Generate::default() }),
        refused(Generate { pods: 10_000_001, ..Generate::default() }),
        refused(Generate { bound: 1001, ..Generate::default() }),
        refused(Generate { load: 0, ..Generate::default() }),
        refused(Generate { mix: [0; 4], ..Generate::default() }),
    ];
    expect![[r#"
        nodes: "0" is refused: expected a whole number from 1 to 100000
        pods: "10000001" is refused: expected a whole number from 0 to 10000000
        bound: "1001" is refused: expected a whole number from 0 to 1000
        load: "0" is refused: expected a whole number from 1 to 1000
        mix: "0 0 0 0" is refused: expected 4 weights that are not all 0"#]]
    .assert_eq(&all.join("\n"));
    let scaled = Generate::default().scaled(100);
    assert_eq!((scaled.nodes, scaled.pods), (100, 672));
}

#[test]
fn the_workload_is_near_the_published_one() {
    let generated = Generate::default().trace().unwrap();
    let Some(real) = traces().and_then(|t| t.openb("default").ok()) else { return };
    for (got, wanted) in shares(&generated.pods).into_iter().zip(shares(&real.pods)) {
        assert!((got - wanted).abs() <= 2.0, "class shares: {got} % for {wanted} %");
    }
    let sum = |pods: &[Pod], amount: fn(&Pod) -> u64| pods.iter().map(amount).sum::<u64>() as f64;
    for (what, amount) in [
        ("GPU", (|p| p.gpu().0) as fn(&Pod) -> u64),
        ("CPU", |p| p.cpu.0),
        ("memory", |p| p.memory.0),
    ] {
        near(what, sum(&generated.pods, amount), sum(&real.pods, amount), 5.0);
    }
    for class in Class::ALL {
        let median = |pods: &[Pod]| {
            let of_class = pods.iter().filter(|p| p.class() == class);
            let mut lives: Vec<_> = of_class.filter_map(Pod::seconds).collect();
            lives.sort_unstable();
            lives[lives.len() / 2] as f64
        };
        // There are 75 pods with several cards: their median is a rough figure.
        let within = if class == Class::SeveralCards { 70.0 } else { 15.0 };
        near(&class.to_string(), median(&generated.pods), median(&real.pods), within);
    }
}
