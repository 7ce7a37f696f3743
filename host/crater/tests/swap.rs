//! A replay whose policy is replaced twenty times on the way, by good versions
//! and by everything that can be wrong with one.
#![allow(missing_docs)]

#[path = "../../policy/tests/runtime/guest.rs"]
#[allow(dead_code)]
mod guest;

use crater_engine::facts::facts;
use crater_engine::{By, Decider, Policy, Strings};
use crater_model::Digest;
use crater_policy::{Candidate, Runtime, Setting, Slot};
use crater_sim::generate::Generate;
use crater_sim::yardstick::Yardstick;
use guest::{Guest, KEEP, SUM};
use std::collections::BTreeSet;
use std::sync::Arc;

/// A version that scores; each number is another policy.
fn good(version: u32) -> Vec<u8> {
    Guest::default().with("score", SUM).named("good", &version.to_string()).build()
}

/// What is wrong with a version, the component, and words that its author
/// must be told.
fn bad() -> Vec<(&'static str, Vec<u8>, &'static [&'static str])> {
    let guest = || Guest::default().with("filter", KEEP);
    let mistyped = guest().edit(
        "filter: func(context: values, job: values, nodes: table) -> list<s32>;",
        "filter: func(context: values, job: values, nodes: table) -> list<s64>;",
    );
    vec![
        ("garbage", b"not a component at all".to_vec(), &["not WebAssembly", "component"]),
        (
            "another contract version",
            guest().edit("crater:policy@0.1.0", "crater:policy@0.2.0").build(),
            &["0.2.0", "0.1.0"],
        ),
        ("a mistyped interface", mistyped.build(), &["filter", "s64"]),
        ("a trap", guest().with("score", "unreachable").build(), &["score", "trap"]),
        ("a refusing configure", refusing(), &["configuration"]),
    ]
}

/// Refuses every configuration.
fn refusing() -> Vec<u8> {
    let refuse = "(call $refuse (i32.const 1024) (i32.const 5))";
    Guest::default().with("filter", KEEP).configure(refuse).build()
}

/// A component that wants the time of the system.
fn wants_wasi() -> Vec<u8> {
    let text = r#"(component
        (import "wasi:clocks/wall-clock@0.2.0" (instance (export "now" (func (result u64))))))"#;
    wat::parse_str(text).unwrap()
}

#[test]
fn no_decision_is_lost_or_doubled_and_each_names_one_live_policy() {
    let trace = Generate { nodes: 60, pods: 900, ..Generate::default() }.trace().unwrap();
    let strings = Arc::new(Strings::default());
    let yardstick = Yardstick::new(&trace, strings.clone()).unwrap();
    let facts = facts(&[], yardstick.cluster(1).unwrap().state());
    let runtime = Runtime::builder().compile_here().build().unwrap();
    let slot = Slot::new(runtime);
    let mut bad = bad();
    bad.push(("a WASI import", wants_wasi(), &["wasi:clocks/wall-clock"]));
    let mut live: Vec<Option<Digest>> = vec![];
    let (mut tries, mut swaps, mut refused) = (0, 0, BTreeSet::new());
    let run = yardstick
        .conduct(1, Decider::default(), &mut |moment| {
            let arrival = live.len();
            let mut next = None;
            if arrival.is_multiple_of(25) && tries <= 20 {
                // The first one is good, then every second one.
                let (wasm, wrong) = if tries % 2 == 0 {
                    (good(tries), None)
                } else {
                    let (what, wasm, words) = &bad[tries as usize / 2 % bad.len()];
                    (wasm.clone(), Some((*what, *words)))
                };
                tries += 1;
                let setting =
                    Setting { config: "{}", facts: &facts, strings: strings.clone(), limits: None };
                let candidate = Candidate { wasm: &wasm, setting, at: moment.now };
                let before = slot.live().map(|l| l.policy.digest());
                let warm = |policy: &Arc<crater_policy::Configured>| {
                    moment.decider.warm(moment.state, "trace", &**policy, moment.now);
                };
                match (slot.swap(&candidate, warm), wrong) {
                    (Ok(version), None) => {
                        swaps += 1;
                        next = Some(version.policy as Arc<dyn Policy>);
                    }
                    (Err(refusal), Some((what, words))) => {
                        refused.insert(what);
                        for word in words {
                            assert!(refusal.text.contains(word), "{what}: {refusal}");
                        }
                        let after = slot.live().map(|l| l.policy.digest());
                        assert_eq!(before, after, "{what}: the last good one stays");
                    }
                    (Ok(_), Some((what, _))) => panic!("{what} went live"),
                    (Err(refusal), None) => panic!("a good version was refused: {refusal}"),
                }
            }
            live.push(slot.live().map(|l| l.policy.digest()));
            next
        })
        .unwrap();
    assert_eq!((tries, swaps, refused.len()), (21, 11, bad.len()));
    assert_eq!(run.decided.len(), live.len(), "one decision an arrival");
    let jobs: BTreeSet<_> = run.decided.iter().map(|d| d.job).collect();
    assert_eq!(jobs.len(), run.decided.len(), "no job twice");
    for (decided, live) in run.decided.iter().zip(&live) {
        assert_eq!((decided.policy, decided.by), (*live, By::Policy));
    }
    let digests: BTreeSet<_> = run.decided.iter().map(|d| d.policy).collect();
    assert_eq!(digests.len(), swaps);
}
