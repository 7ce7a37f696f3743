//! A generated day: inference that follows the clock, training that comes at
//! any hour.

use crate::world::Behaviour;
use crater_model::select::Selector;
use crater_model::{
    GpuAsk, JobSpec, Kind, Mib, MilliCards, MilliCores, Priority, Request, TenantPath,
};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::sync::Arc;
use std::time::Duration;

/// Seconds of a day.
pub const DAY: u64 = 86_400;

/// What a day is made from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// Machines of eight cards; an even number.
    pub nodes: u32,
    /// What inference asks for at noon, in percent of half of the cards.
    pub inference_peak: u32,
    /// What it asks for at midnight.
    pub inference_night: u32,
    /// What training asks for all day, in percent of half of the cards.
    pub training: u32,
    /// How often training saves its progress, in seconds.
    pub checkpoint: u64,
    /// From the word to stop until a training job is gone, in seconds.
    pub grace: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            nodes: 40,
            inference_peak: 110,
            inference_night: 20,
            training: 110,
            checkpoint: 600,
            grace: 30,
        }
    }
}

/// A job of the day.
#[derive(Clone, Debug)]
pub struct Arrival {
    /// Seconds after midnight.
    pub at: u64,
    /// What is submitted, to the queue of its kind.
    pub spec: JobSpec,
    /// How it behaves.
    pub behaviour: Behaviour,
}

/// Mean life of an inference job in seconds, and of a training job.
const LIFE: (f64, f64) = (2.0 * 3600.0, 4.0 * 3600.0);

/// The day of a seed, in order.
pub fn day(settings: &Settings, seed: u64) -> Vec<Arrival> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let half = f64::from(settings.nodes) * 8.0 / 2.0;
    let inference = [(500, 3), (1000, 5), (2000, 2)];
    let training = [(1000, 4), (2000, 3), (4000, 2), (8000, 1)];
    let mut day = vec![];
    for second in 0..DAY {
        // Least at midnight, most at noon.
        let phase = second as f64 / DAY as f64 * std::f64::consts::TAU;
        let swing = (1.0 - phase.cos()) / 2.0;
        let (low, high) = (f64::from(settings.inference_night), f64::from(settings.inference_peak));
        let load = (low + (high - low) * swing) / 100.0 * half;
        if random.random_bool(rate(load, &inference, LIFE.0)) {
            day.push(arrival(&mut random, second, Kind::Inference, &inference, settings));
        }
        let load = f64::from(settings.training) / 100.0 * half;
        if random.random_bool(rate(load, &training, LIFE.1)) {
            day.push(arrival(&mut random, second, Kind::Training, &training, settings));
        }
    }
    day
}

/// Arrivals a second that keep so many cards busy.
fn rate(cards: f64, shapes: &[(u64, u32)], life: f64) -> f64 {
    let weight: f64 = shapes.iter().map(|(_, w)| f64::from(*w)).sum();
    let mean: f64 =
        shapes.iter().map(|(milli, w)| *milli as f64 / 1000.0 * f64::from(*w) / weight).sum();
    (cards / mean / life).min(1.0)
}

fn arrival(
    random: &mut ChaCha8Rng,
    at: u64,
    kind: Kind,
    shapes: &[(u64, u32)],
    settings: &Settings,
) -> Arrival {
    let total: u32 = shapes.iter().map(|(_, w)| w).sum();
    let mut drawn = random.random_range(0..total);
    let mut gpu = shapes.first().map_or(1000, |(milli, _)| *milli);
    for (milli, weight) in shapes {
        if drawn < *weight {
            gpu = *milli;
            break;
        }
        drawn -= weight;
    }
    let mean = if kind == Kind::Inference { LIFE.0 } else { LIFE.1 };
    // Exponential, at least a minute and at most a day.
    let life = (-mean * (1.0 - random.random::<f64>()).ln()).clamp(60.0, DAY as f64);
    let request = Request {
        gpu: GpuAsk::new(Some(MilliCards(gpu)), None, false).ok().flatten(),
        cpu: MilliCores(gpu * 4),
        memory: Mib(gpu * 16),
        ..Request::default()
    };
    let queue = if kind == Kind::Inference { "inference" } else { "training" };
    let name = format!("{queue}-{at}");
    let mut spec = JobSpec::new(&name, queue, TenantPath::default(), request);
    spec.kind = kind;
    spec.preemptible = kind == Kind::Training;
    spec.priority = Priority(50);
    let grace = if kind == Kind::Training { settings.grace } else { 5 };
    let behaviour = Behaviour {
        run: Some(Duration::from_secs(life as u64)),
        start: Duration::from_secs(10),
        shutdown: Duration::from_secs(grace),
        saves: (kind == Kind::Training).then(|| Duration::from_secs(settings.checkpoint)),
        ..Behaviour::default()
    };
    Arrival { at, spec, behaviour }
}

/// The same day for a cluster in halves: each kind keeps to its own machines.
pub fn halved(day: &[Arrival]) -> Vec<Arrival> {
    let of = |arrival: &Arrival| {
        let mut arrival = arrival.clone();
        let half = if arrival.spec.kind == Kind::Inference { "inference" } else { "training" };
        let request = Arc::make_mut(&mut arrival.spec.request);
        request.selectors = vec![Selector::label("half", half)];
        arrival
    };
    day.iter().map(of).collect()
}
