//! Every scenario under tests/scenarios passes, and one that does not says
//! what is wrong.
#![allow(missing_docs)]

use crater_engine::{Policy, Strings};
use crater_sim::scenario::{Scenario, run_dir, run_file};
use crater_sim::world::scripted::Scripted;
use crater_sim::world::{NoPolicies, PolicySource};
use expect_test::{Expect, expect};
use std::path::Path;
use std::sync::Arc;

fn folder() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/scenarios").canonicalize().unwrap()
}

#[test]
fn every_scenario_passes() {
    let ran = run_dir(&folder(), &NoPolicies).expect("the folder can be read");
    assert!(ran.len() >= 20, "only {} scenarios were found", ran.len());
    let failures: Vec<String> =
        ran.iter().filter_map(|(_, ran)| ran.as_ref().err()).map(ToString::to_string).collect();
    assert!(failures.is_empty(), "\n{}", failures.join("\n\n"));
    for (path, ran) in ran {
        let expectations = ran.map_or(0, |outcome| outcome.expectations);
        assert!(expectations > 0, "{} expects nothing", path.display());
    }
}

#[test]
fn a_scenario_runs_twice_to_the_same_journal() {
    for file in ["bad-wire.scenario", "c59-bad-answers-fall-back.scenario"] {
        let run = || run_file(&folder().join(file), &NoPolicies).unwrap();
        let (one, two) = (run(), run());
        assert!(one.journal == two.journal && one.timeline == two.timeline, "{file}");
    }
}

fn check(text: &str, expected: &Expect) {
    let ran = Scenario::parse("x.scenario", text).and_then(|s| s.run(&Named));
    let found = match ran {
        Ok(outcome) => outcome.to_string(),
        Err(error) => error.to_string(),
    };
    expected.assert_eq(&format!("{found}\n"));
}

/// Knows one policy, by the name `picky`.
struct Named;

impl PolicySource for Named {
    fn load(&self, name: &str, config: &str) -> Result<Arc<dyn Policy>, String> {
        match name {
            "picky" => Scripted::new(config)
                .map(|p| Arc::new(p) as Arc<dyn Policy>)
                .map_err(|e| e.to_string()),
            _ => Err(format!("no policy {name}")),
        }
    }

    fn strings(&self) -> Arc<Strings> {
        Arc::default()
    }
}

#[test]
fn an_expectation_that_fails_says_where_and_what_happened_until_then() {
    check(
        "node n1 cpu=4 memory=8Gi cards=A100:80Gi\nqueue q policy=picky config='filter=0'\n\
         at 0s submit a gpu=0.4 cpu=1 memory=1Gi\nat 1m submit b gpu=0.7 cpu=1 memory=1Gi\n\
         expect a running by policy\nexpect b running on n1\n",
        &expect![[r#"
            x.scenario:6: expected b running
              found b waiting, decided by policy, 0 starts, because "0/1 nodes are available: 1 no card with room for the request (freest card: 0.6 and 48Gi; most idle cards on a node: 0)"
            timeline:
                  0s  node n1: cpu 4, memory 8Gi, 1 cards
                  0s  queue q: fallback binpack
                  0s  queue q: policy picky
                  0s  a submitted to q
                  0s  a/0 goes to n1: cpu 1, memory 1Gi, card 0: 0.4 and 32Gi
                  0s  a is Starting
                  0s  a is Running
                  1m  b submitted to q
                  1m  b waits: 0/1 nodes are available: 1 no card with room for the request (freest card: 0.6 and 48Gi; most idle cards on a node: 0)

        "#]],
    );
}

#[test]
fn figures_say_what_was_found() {
    check(
        "node n1 cpu=4 memory=8Gi cards=2xA100:80Gi\nqueue q\nsubmit a gpu=0.4 cpu=1 memory=1Gi\n\
         expect card n1:0 used gpu=0.4 memory>=32Gi\nexpect node n1 free gpu>=1.6 cpu=4\n",
        &expect![[r"
            x.scenario:5: expected node n1 free cpu=4
              found cpu=3
            timeline:
                  0s  node n1: cpu 4, memory 8Gi, 2 cards
                  0s  queue q: fallback binpack
                  0s  a submitted to q
                  0s  a/0 goes to n1: cpu 1, memory 1Gi, card 0: 0.4 and 32Gi
                  0s  a is Starting
                  0s  a is Running

        "]],
    );
}

#[test]
fn what_is_refused_must_be_expected() {
    let node = "node n1 cpu=4 memory=8Gi\nqueue q\n";
    check(
        &format!("{node}submit a gpu=NaN\nsubmit b cpu=1\nexpect b running\n"),
        &expect![[r#"
            x.scenario:3: submit job a was refused: gpu: "NaN" is refused: expected cards in steps of 0.1, such as 0.5, 500m or 4
        "#]],
    );
    check(
        &format!("{node}submit a gpu=NaN\nexpect a refused cpu\n"),
        &expect![[r#"
            x.scenario:4: expected a refused for cpu
              found gpu: "NaN" is refused: expected cards in steps of 0.1, such as 0.5, 500m or 4
            timeline:
                  0s  submit job a refused: gpu: "NaN" is refused: expected cards in steps of 0.1, such as 0.5, 500m or 4
                  0s  node n1: cpu 4, memory 8Gi, 0 cards
                  0s  queue q: fallback binpack

        "#]],
    );
    check(
        &format!("{node}remove n2\nfinish a\nexpect node n1 free cpu=4\n"),
        &expect![[r"
            x.scenario:3: remove node n2 was refused: there is no node n2
        "]],
    );
    check(
        &format!("{node}policy q nowhere\n"),
        &expect![[r"
            x.scenario:3: policy nowhere for queue q was refused: no policy nowhere
        "]],
    );
    check(
        "node n1 cpu=4 memory=8Gi cards=2xT4:15Gi:mig\n",
        &expect![[r#"
            x.scenario:1: node n1 was refused: mig: "T4" is refused: expected a card model that MIG can cut
        "#]],
    );
    check(
        &format!(
            "{node}policy q picky config='admit=refuse:not-on-a-Monday'\nat 1s submit a cpu=1\nexpect a refused policy 'not on a Monday'\n"
        ),
        &expect![[r"
                  0s  node n1: cpu 4, memory 8Gi, 0 cards
                  0s  queue q: fallback binpack
                  0s  queue q: policy picky
                  1s  submit job a refused: the queue's policy refused the job: not on a Monday
            1 expectations, 3 entries, 0 placements
        "]],
    );
}

#[test]
fn lines_that_are_not_understood_are_named() {
    for (text, expected) in [
        ("nod n1", "x.scenario:1: expected node, change,"),
        ("\nat 5 submit a", "x.scenario:2: expected at: \"5\" is refused"),
        ("at 5s submit a\nat 4s submit b", "x.scenario:2: expected a time not before 5s"),
        ("queue q\nexpect j1 happy", "x.scenario:2: expected waiting, starting,"),
        ("queue q\nset seed=1", "x.scenario:2: expected set before everything else"),
        ("expect 'a", "x.scenario:1: expected ' that is closed"),
        ("node n2 like n1", "x.scenario:1: expected an earlier node in place of n1"),
        ("submit a, gpu=1", "x.scenario:1: expected a name, a list"),
        ("run", "x.scenario:1: expected run until TIME"),
        ("remove n1 n2", "x.scenario:1: expected nothing after the names"),
    ] {
        let ran = Scenario::parse("x.scenario", text).and_then(|s| s.run(&NoPolicies));
        let error = ran.unwrap_err().to_string();
        assert!(error.starts_with(expected), "{text}: {error}");
    }
}

#[test]
fn what_cannot_be_read_is_named() {
    let error = run_file(Path::new("/nowhere/x.scenario"), &NoPolicies).unwrap_err();
    assert_eq!(error.to_string(), "/nowhere/x.scenario cannot be read");
}
