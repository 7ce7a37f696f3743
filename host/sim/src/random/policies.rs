//! Random scripts for scripted policies.

use super::Spice;
use super::cluster::{chance, pick};
use crater_model::columns::{COLUMNS, TableKind};
use rand::Rng;
use rand::seq::IndexedRandom;
use rand_chacha::ChaCha8Rng;

/// A queue's policy: `policy=…` and `config=…`.
pub fn policy(random: &mut ChaCha8Rng, spice: Spice) -> (&'static str, String) {
    match random.random_range(0..10) {
        0..=1 => ("binpack", String::new()),
        2..=3 => ("spread", String::new()),
        _ => ("scripted", script(random, spice)),
    }
}

fn script(random: &mut ChaCha8Rng, spice: Spice) -> String {
    let mut words = vec![format!("salt={}", random.random_range(0..1000))];
    let wants = wants(random);
    if !wants.is_empty() {
        words.push(format!("wants={}", wants.join(",")));
    }
    if chance(random, 15) {
        words.push("labels=tier,gen".to_owned());
    }
    if chance(random, 40) {
        words.push(format!("filter={}", pick(random, &["5", "30", "60", "100"])));
    }
    if chance(random, 15) {
        words.push(format!("defer={}:{}", pick(random, &["20", "50"]), pick(random, &["7", "60"])));
    }
    if chance(random, 65) {
        let score = pick(
            random,
            &["hash:1", "hash:3", "hash:100", "hash:1000000", "node-gpu-free", "-node-cpu-free"],
        );
        words.push(format!("score={score}"));
    }
    if chance(random, 30) {
        words.push(format!("masks={}", if chance(random, 85) { "fitting" } else { "wild" }));
    }
    if chance(random, 25) {
        let by = pick(random, &["model", "domain", "zone", "domain+zone", "model+domain+zone"]);
        let what = pick(random, &["hash:5", "hash:1000", "mean"]);
        words.push(format!("groups={by}:{what}"));
    }
    if chance(random, 30) {
        words.push(format!("rank={}:{}", random.random_range(1..4), random.random_range(1..4)));
    }
    if chance(random, 40) {
        let prices = ["equal", "extreme", "spare:30", "spare:100", "hash:1:3", "hash:3:100000"];
        words.push(format!("preempt={}", pick(random, &prices)));
        if chance(random, 50) {
            words.push(format!("wants={}", units(random).join(",")));
        }
    }
    if chance(random, 20) {
        words.push("normalise".to_owned());
    }
    if chance(random, 10) {
        words.push("whole".to_owned());
    }
    if chance(random, 30) {
        words.push(format!("step={}", pick(random, &["1", "30", "300"])));
    }
    if chance(random, 15) {
        words.push(fault(random, spice));
    }
    words.join(" ")
}

/// A few columns of any table that decisions on nodes see.
fn wants(random: &mut ChaCha8Rng) -> Vec<&'static str> {
    let tables = [TableKind::Context, TableKind::Job, TableKind::Node, TableKind::Card];
    let mut names: Vec<&str> = vec![];
    for table in tables {
        let of: Vec<&str> = COLUMNS.iter().filter(|c| c.table == table).map(|c| c.name).collect();
        let most = if table == TableKind::Context { 1 } else { 3 };
        if !chance(random, if table == TableKind::Context { 15 } else { 60 }) {
            continue;
        }
        for _ in 0..random.random_range(1..=most) {
            names.extend(of.choose(random));
        }
    }
    if chance(random, 30) {
        // What nodes are to the job: the easiest to keep for too long.
        let same = ["node-same-job", "node-same-user", "node-same-project", "node-same-queue"];
        names.push(pick(random, &same));
    }
    if chance(random, 5) {
        names.push("link-bandwidth");
    }
    if chance(random, 10) {
        names.push("group-same-job");
    }
    names
}

/// A few columns of the units that it prices.
fn units(random: &mut ChaCha8Rng) -> Vec<&'static str> {
    let of: Vec<&str> =
        COLUMNS.iter().filter(|c| c.table == TableKind::Unit).map(|c| c.name).collect();
    (0..random.random_range(1..=3)).filter_map(|_| of.choose(random).copied()).collect()
}

fn fault(random: &mut ChaCha8Rng, spice: Spice) -> String {
    let (kind, interface) = (
        pick(random, &["trap", "deadline", "memory", "unavailable", "count", "value"]),
        pick(random, &["filter", "score", "score-groups", "rank", "preempt"]),
    );
    if spice.counted_faults && chance(random, 40) {
        return format!("fault={kind}@{interface}#{}", random.random_range(2..20));
    }
    let when = pick(random, &[":5", ":40", ":100", "/2", "/20"]);
    format!("fault={kind}@{interface}{when}")
}
