//! Random machines.

use rand::Rng;
use rand::seq::IndexedRandom;
use rand_chacha::ChaCha8Rng;

/// Card models with the memory that they report.
const MODELS: [(&str, &str); 6] = [
    ("T4", "15109Mi"),
    ("V100", "32Gi"),
    ("A100-40", "40Gi"),
    ("A100", "80Gi"),
    ("H100", "81559Mi"),
    ("odd", "10Gi"),
];

/// The name of a model that some machine may have.
pub fn model(random: &mut ChaCha8Rng) -> &'static str {
    MODELS.choose(random).map_or("T4", |m| m.0)
}

pub fn chance(random: &mut ChaCha8Rng, percent: u32) -> bool {
    random.random_range(0..100) < percent
}

pub fn pick<'a>(random: &mut ChaCha8Rng, from: &[&'a str]) -> &'a str {
    from.choose(random).copied().unwrap_or_default()
}

/// The fields of a node line.
pub fn machine(random: &mut ChaCha8Rng) -> String {
    let cpu = pick(random, &["4", "8", "15.5", "32", "64"]);
    let memory = pick(random, &["16Gi", "64Gi", "100000Mi", "512Gi"]);
    let mut line = vec![format!("cpu={cpu} memory={memory}")];
    if chance(random, 80) {
        line.push(format!("cards={}", cards(random)));
    }
    if chance(random, 30) {
        line.push(format!("disk={}", pick(random, &["100", "500"])));
    }
    if chance(random, 15) {
        line.push("iops=1000".to_owned());
    }
    if chance(random, 10) {
        line.push(format!("members={}", random.random_range(1..5)));
    }
    if chance(random, 5) {
        line.push("cordoned=true".to_owned());
    }
    line.push(marks(random));
    line.join(" ")
}

/// Labels, taints, domain and zone.
pub fn marks(random: &mut ChaCha8Rng) -> String {
    let mut line = vec![];
    if chance(random, 40) {
        let tier = pick(random, &["fast", "slow"]);
        line.push(format!("labels=tier={tier},gen={}", random.random_range(7..10)));
    }
    if chance(random, 15) {
        let key = pick(random, &["gpu", "spot"]);
        let effect = pick(random, &["NoSchedule", "PreferNoSchedule", "NoExecute"]);
        line.push(format!("taints={key}:{effect}"));
    }
    if chance(random, 50) {
        line.push(format!("domain={}", pick(random, &["d1", "d2"])));
    }
    if chance(random, 50) {
        line.push(format!("zone={}", pick(random, &["a", "b", "c"])));
    }
    line.join(" ")
}

/// The value of `cards=`.
pub fn cards(random: &mut ChaCha8Rng) -> String {
    let n = *[1, 2, 2, 4, 8].choose(random).unwrap_or(&1);
    let (model, memory) = *MODELS.choose(random).unwrap_or(&MODELS[0]);
    let cuttable = model.contains("100") && model != "V100";
    // Some worlds know nothing of sockets or links.
    let (numa, link) = (chance(random, 60), random.random_range(0..4));
    let mut groups = vec![];
    for i in 0..n {
        let mut card = vec![format!("{model}:{memory}")];
        if model == "odd" && i % 2 == 1 {
            card = vec!["odd:20Gi".to_owned()];
        }
        if numa && !chance(random, 3) {
            card.push(format!("numa({})", 2 * i / n));
        }
        match link {
            0 => {}
            1 => card.push("link(0)".to_owned()),
            2 => card.push(format!("link({})", i / 2)),
            _ => card.push(format!("link({})", 2 * i / n)),
        }
        if cuttable && chance(random, 15) {
            let cut = if chance(random, 50) || model == "H100" {
                "mig"
            } else if model == "A100" {
                "mig(2g.20gb@0+2g.20gb@2+1g.10gb@4+1g.10gb@6)"
            } else {
                "mig(3g.20gb@0+2g.10gb@4+1g.5gb@6)"
            };
            card.push(cut.to_owned());
        } else if chance(random, 8) {
            card.push("slice(8Gi)".to_owned());
        }
        if chance(random, 4) {
            card.push("sick".to_owned());
        }
        groups.push(card.join(":"));
    }
    groups.join(",")
}
