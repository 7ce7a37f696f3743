//! What one pool brings: the same generated day on a cluster in two halves, one
//! for each kind of work, and on one pool in which inference preempts training.

mod day;
mod meter;

pub use day::{Arrival, DAY, Settings, day, halved};
pub use meter::{Fared, Meter};

use crate::world::{Command, Settings as WorldSettings, World};
use crater_model::{
    CardSpec, Fallback, Kind, Mib, MilliCores, NodeSpec, QueueSpec, RoomRules, Time,
};
use std::collections::BTreeMap;
use std::time::Duration;

/// How the machines are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// Each kind of work keeps to its own half.
    Halves,
    /// All machines are for all, first come first served.
    Shared,
    /// All machines are for all, and inference preempts training.
    Pool,
    /// The same, but inference is packed as training is, and the first training
    /// job that is blocked has room kept for it.
    Packed,
}

impl Manner {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Halves, Self::Shared, Self::Pool, Self::Packed];

    /// For people.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Halves => "two halves",
            Self::Shared => "one pool, no preemption",
            Self::Pool => "one pool, inference spreads and preempts",
            Self::Packed => "one pool, inference is packed and preempts, room is kept",
        }
    }
}

/// What came of a day.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// By kind of work.
    pub kinds: BTreeMap<Kind, Fared>,
    /// Share of all cards that was promised over the day, in percent.
    pub allocated_pct: f64,
}

/// Lets a day go by.
pub fn run(settings: &Settings, manner: Manner, seed: u64) -> Outcome {
    let mut world = World::new(WorldSettings { seed, ..WorldSettings::default() });
    let start = world.now();
    let at = |seconds: u64| start + Duration::from_secs(seconds);
    let queues = [(Kind::Inference, Fallback::Spread), (Kind::Training, Fallback::Binpack)];
    for (kind, fallback) in queues {
        let packed = manner == Manner::Packed;
        let fallback = if packed { Fallback::Binpack } else { fallback };
        let reserve_after = if packed && kind == Kind::Training { 600 } else { 0 };
        let spec = QueueSpec {
            fallback,
            priority: if kind == Kind::Inference { 100 } else { 50 },
            room: RoomRules { minimum_run: 60, reserve_after, ..RoomRules::default() },
            ..QueueSpec::new(&kind.to_string(), kind)
        };
        world.schedule(start, Command::SetQueue(spec));
    }
    let card = CardSpec::new("H100", Mib(81_559));
    for i in 0..settings.nodes {
        let mut node = NodeSpec::new(&format!("n{i}"), MilliCores(128_000), Mib(1 << 20));
        node = node.with_cards(8, &card);
        let half = if i < settings.nodes / 2 { "inference" } else { "training" };
        node.labels.insert("half".into(), half.into());
        world.schedule(start, Command::AddNode(node));
    }
    let arrivals = day(settings, seed);
    let arrivals = if manner == Manner::Halves { halved(&arrivals) } else { arrivals };
    for mut arrival in arrivals {
        arrival.spec.preemptible &= matches!(manner, Manner::Pool | Manner::Packed);
        let (spec, behaviour) = (arrival.spec, arrival.behaviour);
        world.schedule(at(arrival.at), Command::Submit { spec, behaviour });
    }
    let mut meter = Meter::default();
    world.run_until(at(DAY), &mut meter);
    let end: Time = at(DAY);
    let kinds = meter.figures(world.state(), end);
    let held: f64 = kinds.values().map(|fared| fared.card_hours).sum();
    let cards = f64::from(settings.nodes) * 8.0 * 24.0;
    Outcome { kinds, allocated_pct: 100.0 * held / cards }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_one_pool_inference_waits_less() {
        let settings = Settings { nodes: 8, ..Settings::default() };
        let [halves, shared, _, pool] = Manner::ALL.map(|manner| run(&settings, manner, 7));
        let wait = |outcome: &Outcome| outcome.kinds[&Kind::Inference].percentile(99);
        assert!(wait(&pool) < wait(&halves) && wait(&pool) < wait(&shared));
        assert!(pool.kinds[&Kind::Training].preemptions > 0);
        assert_eq!(run(&settings, Manner::Packed, 7), pool, "a day is a function of its seed");
    }
}
