//! The published files, where they are at hand.

use crater_model::{Mib, MilliCores};
use crater_sim::trace::{Class, Traces, traces_dir, workload_mix, yardstick_arrivals};
use std::collections::BTreeMap;
use std::path::Path;

pub fn traces() -> Option<Traces> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let found = traces_dir(None).or_else(|_| Traces::at(&beside)).ok();
    if found.is_none() {
        println!("skipped, no traces");
    }
    found
}

#[test]
fn the_default_trace_is_the_published_one() {
    let Some(trace) = traces().and_then(|t| t.openb("default").ok()) else { return };
    assert_eq!((trace.nodes.len(), trace.gpus()), (1213, 6212));
    let cpu: MilliCores = trace.nodes.iter().map(|n| n.cpu).sum();
    let memory: Mib = trace.nodes.iter().map(|n| n.memory).sum();
    assert_eq!((cpu, memory), (MilliCores(107_018_000), Mib(503_828_480)));
    let mut models = BTreeMap::new();
    for card in trace.nodes.iter().flat_map(|n| &n.cards) {
        *models.entry(&*card.model).or_insert(0) += 1;
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
    assert_eq!(models, BTreeMap::from(published));
    let count = |class| trace.pods.iter().filter(|p| p.class() == class).count();
    assert_eq!(Class::ALL.map(count), [1088, 3078, 3911, 75]);
    for pod in &trace.pods {
        pod.request().check().unwrap();
    }
    let mix = workload_mix(&trace.pods);
    assert_eq!(mix.iter().map(|s| s.count).sum::<u64>(), 8152);
    assert_eq!((mix[0].count, mix[0].milli.0), (1047, 810));
    let arrivals = yardstick_arrivals(&trace.pods, trace.gpus(), 42);
    assert!((10_600..11_000).contains(&arrivals.len()), "{}", arrivals.len());
}

#[test]
fn every_published_trace_is_read() {
    let Some(traces) = traces() else { return };
    for name in traces.openb_names().unwrap() {
        let trace = traces.openb(&name).unwrap();
        assert!(trace.pods.len() > 7000, "{name}");
        let gpus: u64 = yardstick_arrivals(&trace.pods, 6212, 42).iter().map(|p| p.gpu().0).sum();
        assert!(gpus.abs_diff(1300 * 6212) <= 8000, "{name}: {gpus}");
    }
}

#[test]
fn the_philly_trace_is_the_published_one() {
    let Some(jobs) = traces().and_then(|t| t.philly().ok()) else { return };
    assert_eq!(jobs.len(), 82_247);
    assert!(jobs.is_sorted_by_key(|j| j.submitted));
    assert_eq!(jobs.iter().filter(|j| j.gpus == 1).count(), 76_627);
}
