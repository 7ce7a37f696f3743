//! A random world: its header, machines, queues, and what happens to them.

use super::cluster::{cards, chance, machine, marks, pick};
use super::jobs::tenant;
use super::policies::policy;
use super::{Spice, jobs};
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// How long after the last event everything has come to rest: longer than any
/// job runs or takes to stop, and several resyncs.
const REST: u64 = 900;

struct Stream {
    random: ChaCha8Rng,
    spice: Spice,
    lines: Vec<String>,
    now: u64,
    nodes: u32,
    queues: u32,
    jobs: u32,
    requests: Vec<String>,
    scripts: Vec<(&'static str, String)>,
    /// Tenants have quotas.
    quotas: bool,
}

/// The world of a seed, as the lines of a scenario.
pub fn world(seed: u64, spice: Spice) -> Vec<String> {
    let mut stream = Stream {
        random: ChaCha8Rng::seed_from_u64(seed),
        spice,
        lines: vec![],
        now: 0,
        nodes: 0,
        queues: 0,
        jobs: 0,
        requests: vec![],
        scripts: vec![],
        quotas: false,
    };
    stream.quotas = stream.chance(40);
    stream.header(seed);
    stream.setup();
    let events = stream.random.random_range(10..90);
    for _ in 0..events {
        if stream.chance(60) {
            stream.now += stream.random.random_range(1..20);
        }
        let event = stream.event();
        stream.lines.push(format!("at {}s {event}", stream.now));
    }
    stream.lines.push(format!("at {}s wire good", stream.now + 1));
    stream.lines.push(format!("run until {}s", stream.now + REST));
    stream.lines
}

impl Stream {
    fn chance(&mut self, percent: u32) -> bool {
        chance(&mut self.random, percent)
    }

    fn header(&mut self, seed: u64) {
        let start = if self.chance(50) { 0 } else { self.random.random_range(1..10) };
        let shutdown = if self.chance(50) { 0 } else { self.random.random_range(1..30) };
        let mut line = format!(
            "set seed={seed} deciders=1 gpu-step=0.001 resync=60s clock={}:00 start-delay={start}s shutdown={shutdown}s",
            self.random.random_range(0..24)
        );
        if self.chance(10) {
            let limit = self.random.random_range(1..4);
            line = format!("{line} limit={limit}");
        }
        self.lines.push(line);
        if self.chance(30) {
            self.lines.push("wire late=30 by=20s lost=10 doubled=10".to_owned());
        }
    }

    fn setup(&mut self) {
        for _ in 0..self.random.random_range(1..4) {
            let script = policy(&mut self.random, self.spice);
            self.scripts.push(script);
        }
        for _ in 0..self.random.random_range(2..8) {
            let request = jobs::request(&mut self.random);
            self.requests.push(request);
        }
        let sorts: Vec<String> =
            (0..self.random.random_range(1..4)).map(|_| machine(&mut self.random)).collect();
        for _ in 0..self.random.random_range(1..=12) {
            let sort = sorts.choose(&mut self.random).cloned().unwrap_or_default();
            let marks = if self.chance(30) { marks(&mut self.random) } else { String::new() };
            self.nodes += 1;
            self.lines.push(format!("node n{} {sort} {marks}", self.nodes));
        }
        for _ in 0..self.random.random_range(1..=4) {
            self.queues += 1;
            let fields = self.queue();
            self.lines.push(format!("queue q{} {fields}", self.queues));
        }
        if self.quotas {
            for _ in 0..self.random.random_range(1..5) {
                let line = tenant(&mut self.random);
                self.lines.push(line);
            }
        }
    }

    fn script(&mut self) -> (&'static str, String) {
        let known = self.scripts.choose(&mut self.random).cloned();
        known.unwrap_or(("binpack", String::new()))
    }

    fn queue(&mut self) -> String {
        let random = &mut self.random;
        let kind = pick(random, &["training", "inference", "offline"]);
        let fallback = pick(random, &["binpack", "spread", "spread", "hold"]);
        let priority = random.random_range(0..3);
        let minimum = pick(random, &["0s", "0s", "10s", "60s"]);
        let reserve = pick(random, &["0s", "0s", "1s", "60s"]);
        let hour = pick(random, &["0", "0", "0", "3"]);
        let rules =
            format!("minimum-run={minimum} reserve-after={reserve} preemptions-per-hour={hour}");
        let (policy, config) = self.script();
        let mut line = format!("kind={kind} priority={priority} policy={policy} {rules}");
        if policy == "scripted" {
            line = format!("{line} fallback={fallback} config='{config}'");
        }
        line
    }

    fn any(&mut self, prefix: &str, count: u32) -> String {
        format!("{prefix}{}", self.random.random_range(1..=count.max(1)))
    }

    fn event(&mut self) -> String {
        if self.quotas && self.chance(10) {
            return tenant(&mut self.random);
        }
        if self.chance(3) {
            let verb = pick(&mut self.random, &["checkpoint", "checkpoint", "requeue"]);
            return format!("{verb} {}", self.any("j", self.jobs));
        }
        if self.chance(2) {
            let priority = pick(&mut self.random, &["low", "60", "high"]);
            return format!("update {} priority={priority}", self.any("j", self.jobs));
        }
        match self.random.random_range(0..100) {
            0..54 => self.submit(),
            54..60 => format!("cancel {}", self.any("j", self.jobs)),
            60..68 => format!("finish {}", self.any("j", self.jobs)),
            68..71 => format!("fail {}", self.any("j", self.jobs)),
            71..73 => format!("remove {}", self.any("n", self.nodes)),
            73..75 => {
                // Now and then a machine comes back under an old name.
                if self.chance(70) {
                    self.nodes += 1;
                }
                let name = if self.chance(70) { self.nodes } else { 1 };
                format!("node n{name} {}", machine(&mut self.random))
            }
            75..80 => self.change(),
            80..88 => {
                let verb = pick(&mut self.random, &["sick", "well"]);
                let card = self.random.random_range(0..4);
                format!("{verb} {} card {card}", self.any("n", self.nodes))
            }
            88..90 => {
                let verb = pick(&mut self.random, &["cordon", "uncordon"]);
                format!("{verb} {}", self.any("n", self.nodes))
            }
            90..95 => {
                let (name, config) = if self.chance(50) {
                    self.script()
                } else {
                    policy(&mut self.random, self.spice)
                };
                let queue = self.any("q", self.queues);
                if config.is_empty() {
                    format!("policy {queue} {name}")
                } else {
                    format!("policy {queue} {name} config='{config}'")
                }
            }
            95..97 => {
                let verb = pick(&mut self.random, &["pause", "resume", "resume"]);
                format!("{verb} {}", self.any("q", self.queues))
            }
            97..98 => {
                let fallback = pick(&mut self.random, &["binpack", "spread"]);
                format!("queue {} fallback={fallback}", self.any("q", self.queues))
            }
            _ => "resync".to_owned(),
        }
    }

    fn submit(&mut self) -> String {
        self.jobs += 1;
        let request = match self.requests.choose(&mut self.random) {
            Some(request) if self.random.random_range(0..100) < 85 => request.clone(),
            _ => jobs::request(&mut self.random),
        };
        let queue = self.any("q", self.queues);
        let rest = jobs::rest(&mut self.random);
        format!("submit j{} queue={queue} {request} {rest}", self.jobs)
    }

    fn change(&mut self) -> String {
        let name = self.any("n", self.nodes);
        let fields = match self.random.random_range(0..5) {
            0 => format!("cpu={}", pick(&mut self.random, &["1", "4", "64"])),
            1 => format!("memory={}", pick(&mut self.random, &["8Gi", "64Gi", "512Gi"])),
            2 => format!("members={}", self.random.random_range(1..6)),
            3 if self.chance(30) => format!("cards={}", cards(&mut self.random)),
            _ => {
                let marks = marks(&mut self.random);
                if marks.is_empty() { "labels= taints=".to_owned() } else { marks }
            }
        };
        format!("change {name} {fields}")
    }
}
