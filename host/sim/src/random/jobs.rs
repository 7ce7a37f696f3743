//! Random jobs.

use super::cluster::{chance, model, pick};
use rand::Rng;
use rand_chacha::ChaCha8Rng;

/// What a member asks for, as fields of a submit line. Jobs of one world share
/// a few of these, as the jobs of one team do.
pub fn request(random: &mut ChaCha8Rng) -> String {
    let mut line = vec![format!(
        "cpu={} memory={}",
        pick(random, &["0.5", "1", "2", "3.5", "8"]),
        pick(random, &["512Mi", "1Gi", "4Gi", "30Gi"])
    )];
    line.push(match random.random_range(0..20) {
        0..=3 => String::new(),
        4..=6 => format!("gpu={}", pick(random, &["0.1", "0.25", "0.5", "0.999", "0.007"])),
        7..=8 => format!(
            "gpu={} gpu-memory={}",
            pick(random, &["0.1", "0.5", "0.7"]),
            pick(random, &["1000", "8Gi", "15109", "40Gi"])
        ),
        9..=10 => format!(
            "gpu-memory={}",
            pick(random, &["1", "1000", "8Gi", "10000", "20Gi", "81920", "81559", "80Gi"])
        ),
        11..=14 => format!("gpu={}", pick(random, &["1", "1", "2", "2", "4", "8"])),
        15 => format!("gpu={} gpu-exclusive=true gpu-memory=7", pick(random, &["1", "2"])),
        16..=17 => {
            let n = random.random_range(2..5);
            let each = [1000, 5000, 8192, 16384][random.random_range(0..4)];
            format!("gpu={n} gpu-memory={}", n * each)
        }
        _ => format!(
            "mig={}{}",
            pick(random, &["", "", "2x"]),
            pick(
                random,
                &[
                    "1g.5gb",
                    "1g.10gb",
                    "2g.10gb",
                    "2g.20gb",
                    "3g.20gb",
                    "3g.40gb",
                    "7g.80gb",
                    "1g.10gb.me"
                ]
            )
        ),
    });
    if chance(random, 15) {
        line.push(format!("models={},{}", model(random), model(random)));
    }
    if chance(random, 15) {
        let selector = pick(
            random,
            &["tier=fast", "gen>7", "!tier", "tier in (slow,fast),gen<9", "tier=slow|gen=8"],
        );
        line.push(format!("selector='{selector}'"));
    }
    if chance(random, 20) {
        line.push(format!("tolerate={}", pick(random, &["*", "gpu", "spot:NoExecute"])));
    }
    if chance(random, 25) {
        line.push(format!("nvlink={}", pick(random, &["preferred", "required"])));
    }
    if chance(random, 25) {
        line.push(format!("numa={}", pick(random, &["preferred", "required"])));
    }
    if chance(random, 10) {
        line.push(format!("disk-mbps={} disk-io=200", pick(random, &["50", "100"])));
    }
    if chance(random, 5) {
        line.push("disk-iops=400".to_owned());
    }
    line.join(" ")
}

/// Everything else on a submit line.
pub fn rest(random: &mut ChaCha8Rng) -> String {
    let mut line = vec![format!(
        "tenant=lab{}",
        pick(random, &["", "/red", "/blue", "/blue/ann", "/blue/bob"])
    )];
    if chance(random, 30) {
        let members = random.random_range(2..7);
        line.push(format!("members={members}"));
        if chance(random, 50) {
            line.push(format!("min={}", random.random_range(1..=members)));
        }
    }
    if chance(random, 30) {
        line.push(format!("priority={}", pick(random, &["low", "high", "50", "1000"])));
    }
    match random.random_range(0..10) {
        0 => line.push("kind=inference".to_owned()),
        1 => line.push("kind=offline preemptible=true".to_owned()),
        2..=4 => line.push("kind=training preemptible=true".to_owned()),
        _ => {}
    }
    if chance(random, 3) {
        line.push("refuses=true".to_owned());
    }
    if chance(random, 5) {
        line.push(format!("together={}", pick(random, &["domain", "zone:preferred", "gen"])));
    }
    if chance(random, 10) {
        line.push(format!("run-limit={}s", random.random_range(100..500)));
    }
    if chance(random, 55) {
        let key = if chance(random, 12) { "fails" } else { "duration" };
        line.push(format!("{key}={}s", random.random_range(0..400)));
    }
    if chance(random, 15) {
        line.push(format!("shutdown={}s", random.random_range(0..60)));
    }
    if chance(random, 15) {
        line.push(format!("start-delay={}s", random.random_range(0..30)));
    }
    line.join(" ")
}

/// A line on a tenant or on all of them.
pub fn tenant(random: &mut ChaCha8Rng) -> String {
    if chance(random, 6) {
        return format!("quotas {}", pick(random, &["known", "known", "unknown"]));
    }
    if chance(random, 10) {
        let opens = random.random_range(0..=100);
        return format!(
            "platform borrowing={} opens-below={opens} closes-at={}",
            pick(random, &["true", "true", "false"]),
            random.random_range(opens..=100)
        );
    }
    let path = pick(random, &["lab", "lab/red", "lab/blue", "lab/blue/ann"]);
    if chance(random, 10) {
        return format!("tenant {path} remove");
    }
    let mut line = vec![format!("tenant {path} hard")];
    for _ in 0..random.random_range(1..3) {
        line.push(match random.random_range(0..6) {
            0 | 1 => format!("gpu={}", pick(random, &["0", "0.5", "1", "2", "4", "none"])),
            2 => format!("gpu-memory={}", pick(random, &["8Gi", "20Gi", "100Gi", "none"])),
            3 => format!("cpu={}", pick(random, &["0.5", "2", "6", "20", "none"])),
            4 => format!("memory={}", pick(random, &["1Gi", "5Gi", "50Gi", "none"])),
            _ => format!("gpu.{}={}", model(random), pick(random, &["0", "0.5", "1", "2", "none"])),
        });
    }
    if chance(random, 8) {
        line.push(format!("ceiling={}", pick(random, &["60", "high", "none"])));
    }
    line.join(" ")
}
