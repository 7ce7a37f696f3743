//! The scenarios of tests/scenarios again, each on a real server with simulated
//! machines: the same lines, asked over the API.
#![allow(missing_docs)]

#[path = "../common/ask.rs"]
mod ask;
mod body;
#[path = "../common/mod.rs"]
mod common;
mod look;
mod named;
mod play;
mod say;

use std::collections::{BTreeMap, BTreeSet};

macro_rules! on_a_server {
    ($($test:ident $scenario:literal)*) => {
        $(#[test]
        fn $test() {
            play::play($scenario);
        })*
        /// Tests here, each with the scenario that it plays.
        const PLAYED: &[(&str, &str)] = &[$((stringify!($test), $scenario)),*];
    };
}

on_a_server! {
    c02 "c02-one-card-must-hold-it"
    c03 "c03-bad-amounts-at-the-door"
    c04 "c04-zero-negative-enormous"
    c05 "c05-cards-of-different-sizes"
    c06 "c06-three-halves-at-once"
    c07 "c07-a-failed-start-leaves-nothing"
    c12 "c12-a-promise-on-a-machine-that-was-replaced"
    c12_lost_and_back "node-lost-and-back"
    c15 "c15-over-full-node-serves-cpu-work"
    c16 "sick-cards"
    c18 "c18-terminating-is-not-gone"
    c22 "c22-mig-slots-are-numbered-once"
    c23 "mig-placement"
    c25 "c25-two-cards-are-two-cards"
    c26 "nvlink"
    c27 "spread-and-pack-go-by-load"
    c28 "numa"
    c29 "memory-and-disk"
    c30 "c30-quota-counts-what-is-charged"
    c33 "c33-fits-or-waits"
    c34 "c34-parents-count-too"
    c35 "c35-a-dead-card-takes-nothing-from-the-quota"
    c37 "c37-a-quota-lowered-below-its-use"
    c38 "c38-quota-returns-with-the-last-process"
    c41 "c41-an-impossible-job-stops-nobody"
    c44 "c44-one-is-needed-and-one-goes"
    c45 "c45-nobody-goes-for-nothing"
    c47 "c47-the-least-important-goes"
    c48 "c48-room-first-victims-after"
    c50 "c50-the-evicted-one-does-not-come-back-first"
    c52 "c52-pairs-of-parts"
    c52_all_or_nothing "gang-all-or-nothing"
    c52_loses_a_member "gang-loses-a-member"
    c53 "c53-pieces-count-not-sums"
    c53_totals "pieces-that-do-not-fit"
    ceilings "ceilings-and-updates"
    memory_charges "memory-charges"
    pause_and_cordon "pause-and-cordon"
    quota_by_card_model "quota-by-card-model"
    reclaim "reclaim-at-every-level"
    shares_of_several_cards "shares-of-several-cards"
    together "together-in-one-domain"
}

/// Scenarios that are not: what in them cannot be asked of a server, and the test
/// on a server that shows the same, or why there is none.
const ELSEWHERE: &[(&str, &str, &str)] = &[
    (
        "bad-wire",
        "a wire between books and machines",
        "host/crater/tests/survive.rs::acknowledged_work_outlives_any_death_exactly_once",
    ),
    (
        "borrowing-closes-when-the-cluster-is-busy",
        "borrowing that closes at once",
        "host/crater/tests/room.rs::borrowing_opens_when_little_is_in_use_and_closes_when_much_is",
    ),
    (
        "budgets-of-preemption",
        "strict order between queues",
        "host/crater/tests/room.rs::inference_takes_the_room_of_training_which_goes_on_from_its_checkpoint",
    ),
    (
        "c40-limits-not-read-hold",
        "limits that cannot be read",
        "limits are part of the books, which are read whole or not at all",
    ),
    (
        "c42-filling-without-starving-the-large",
        "45m of its own time",
        "host/crater/tests/room.rs::small_jobs_fill_what_a_large_one_waits_for_and_do_not_delay_it",
    ),
    (
        "c43-a-refused-start-backs-off",
        "1h of its own time",
        "host/crater/tests/room.rs::a_refused_start_waits_longer_each_time_and_keeps_nobody_waiting",
    ),
    (
        "c59-bad-answers-fall-back",
        "policy=scripted",
        "host/crater/tests/reload.rs::a_round_that_is_past_its_budget_is_decided_by_the_fallback",
    ),
    (
        "c60-policies-are-swapped-whole",
        "policy=scripted",
        "host/crater/tests/reload.rs::a_recompiled_policy_is_live_and_a_broken_one_changes_nothing",
    ),
    (
        "labels-and-models",
        "selector=zone in (a,c), gen>8",
        "jobs ask a server for labels by their value only",
    ),
    (
        "policies-that-defer",
        "policy=scripted",
        "examples that wait and that look at the clock are tested with the SDK",
    ),
    (
        "preempted-work-goes-on-from-its-checkpoint",
        "20m11s of its own time",
        "host/crater/tests/room.rs::inference_takes_the_room_of_training_which_goes_on_from_its_checkpoint",
    ),
    (
        "prices-of-a-policy",
        "policy=scripted",
        "host/policy/tests/runtime/services.rs::admit_prices_and_ranks_come_back",
    ),
    (
        "priority-and-order",
        "strict order between queues",
        "each queue has a thread, which waits for those before it no longer than 50 ms",
    ),
    (
        "rank",
        "policy=scripted",
        "host/policy/tests/runtime/services.rs::admit_prices_and_ranks_come_back",
    ),
    ("taints", "taints=", "no machine that a configuration declares has a taint"),
];

#[test]
fn every_scenario_is_played_here_or_cannot_be() {
    let mut files: BTreeSet<String> = BTreeSet::new();
    for entry in std::fs::read_dir(play::file("x").parent().unwrap()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        files.extend(name.strip_suffix(".scenario").map(str::to_owned));
    }
    let mut wrong = vec![];
    let mut listed: BTreeMap<&str, &str> = PLAYED.iter().map(|(_, name)| (*name, "")).collect();
    for (name, what, _) in ELSEWHERE {
        if listed.insert(name, what).is_some() {
            wrong.push(format!("{name} stands here twice"));
        }
    }
    for name in &files {
        let cannot = say::steps(&play::read(name)).err();
        match (listed.remove(name.as_str()), cannot) {
            (None, cannot) => wrong.push(format!("{name} stands nowhere: {cannot:?}")),
            (Some(""), Some(what)) => wrong.push(format!("{name} cannot be played: {what}")),
            (Some(""), None) => {}
            (Some(_), None) => wrong.push(format!("{name} can be played: list it above")),
            (Some(told), Some(what)) if told != what => {
                wrong.push(format!("{name} cannot be played for {what}, not for {told}"));
            }
            (Some(_), Some(_)) => {}
        }
    }
    wrong.extend(listed.keys().map(|name| format!("there is no scenario {name}")));
    for (name, _, test) in ELSEWHERE {
        if test.contains("::") && !named::exists(test) {
            wrong.push(format!("{name}: there is no test {test}"));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}
