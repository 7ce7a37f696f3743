//! What is measured.

use super::workload::Coming;
use crater_model::Time;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Pods whose waits are looked at together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Group {
    /// All of them.
    All,
    /// No card.
    CpuOnly,
    /// A part of one card.
    Fraction,
    /// One whole card.
    OneCard,
    /// Two whole cards or more.
    SeveralCards,
    /// Eight cards or more, which are among those with several.
    EightCards,
}

impl Group {
    /// All groups, in order.
    pub const ALL: [Self; 6] = [
        Self::All,
        Self::CpuOnly,
        Self::Fraction,
        Self::OneCard,
        Self::SeveralCards,
        Self::EightCards,
    ];

    fn holds(self, pod: &Coming) -> bool {
        use crate::trace::Class;
        match self {
            Self::All => true,
            Self::CpuOnly => pod.class == Class::CpuOnly,
            Self::Fraction => pod.class == Class::Fraction,
            Self::OneCard => pod.class == Class::OneCard,
            Self::SeveralCards => pod.class == Class::SeveralCards,
            Self::EightCards => pod.cards >= 8,
        }
    }
}

impl std::fmt::Display for Group {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::All => "all",
            Self::CpuOnly => "CPU only",
            Self::Fraction => "part of a card",
            Self::OneCard => "one card",
            Self::SeveralCards => "several cards",
            Self::EightCards => "8 cards",
        })
    }
}

/// How long pods waited, in seconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Waits {
    /// Measured pods.
    pub pods: u64,
    /// Those that waited at all, in percent.
    pub waited_pct: f64,
    /// Those that still waited at the end. They count with the wait so far.
    pub still: u64,
    /// Mean.
    pub mean: f64,
    /// The wait that half of them do not exceed.
    pub median: f64,
    /// The wait that 95 of 100 do not exceed.
    pub p95: f64,
    /// The wait that 99 of 100 do not exceed.
    pub p99: f64,
    /// Mean of those among each tenth of the measured arrivals, 0 where there
    /// is none: in a steady state they show no trend.
    pub tenths: Vec<f64>,
}

/// Waits that are gathered.
#[derive(Debug, Default)]
struct Gathered {
    /// In milliseconds.
    waits: Vec<u64>,
    still: u64,
    /// Sum of the waits and their number, by tenth.
    tenths: [(u64, u64); 10],
}

impl Gathered {
    fn add(&mut self, wait: u64, still: bool, tenth: usize) {
        self.waits.push(wait);
        self.still += u64::from(still);
        self.tenths[tenth].0 += wait;
        self.tenths[tenth].1 += 1;
    }
}

/// Mean in seconds of a sum of milliseconds.
fn mean((sum, number): (u64, u64)) -> f64 {
    figure(sum as f64 / 1000.0 / number.max(1) as f64)
}

/// With six decimals: more say nothing, and what is written is read back the
/// same.
fn figure(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}

impl Waits {
    fn of(gathered: Gathered) -> Self {
        let Gathered { mut waits, still, tenths } = gathered;
        waits.sort_unstable();
        let pods = waits.len() as u64;
        let waited = waits.iter().filter(|w| **w > 0).count();
        let rank = |percent: usize| {
            let at = (waits.len() * percent).div_ceil(100).saturating_sub(1);
            waits.get(at).copied().unwrap_or(0) as f64 / 1000.0
        };
        Self {
            pods,
            waited_pct: figure(waited as f64 * 100.0 / pods.max(1) as f64),
            still,
            mean: mean((waits.iter().sum(), pods)),
            median: rank(50),
            p95: rank(95),
            p99: rank(99),
            tenths: tenths.map(mean).into(),
        }
    }
}

/// One run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Waits by group; those without a measured pod are not there.
    pub waits: BTreeMap<Group, Waits>,
    /// GPU that is not allocated, in percent of the cluster's cards, over time.
    pub unallocated_pct: f64,
    /// The same over the time in which a pod waits that asks for GPU; none if
    /// none ever does.
    pub unallocated_while_waiting_pct: Option<f64>,
    /// Time in which a pod waits that asks for GPU, in percent.
    pub gpu_waits_pct: f64,
    /// Mean number of waiting pods over time.
    pub queue: f64,
    /// Seconds that were measured.
    pub seconds: f64,
    /// Arrivals before the first measured one.
    pub before: u64,
    /// Arrivals after the last measured one.
    pub after: u64,
    /// Pods of the trace that never arrive, since no empty node holds them.
    pub left_out: u64,
    /// Rounds decided over the whole run.
    pub rounds: u64,
    /// Decisions over the whole run: each waiting pod is one in each round.
    pub decisions: u64,
    /// Decisions that a fallback made because the policy failed.
    pub faults: u64,
}

/// What stands at a moment, and its sums over time.
#[derive(Debug, Default)]
pub(super) struct Meter {
    /// Share that is allocated, in thousandths of a card.
    pub allocated: u64,
    /// Pods that wait.
    pub waiting: u64,
    /// Pods that wait and ask for GPU.
    pub waiting_gpu: u64,
    /// The first measured arrival.
    first: Option<u64>,
    /// Whether time is measured now.
    counting: bool,
    last: Time,
    /// Milliseconds measured, and those in which GPU was waited for.
    time: [f64; 2],
    /// Allocated thousandths × milliseconds, likewise.
    used: [f64; 2],
    /// Waiting pods × milliseconds.
    queue: f64,
    /// Waits of measured pods in milliseconds, in the order of arrival.
    waits: Vec<u64>,
    /// Measured pods that wait.
    open: u64,
}

/// The wait of a pod that has not started.
const OPEN: u64 = u64::MAX;

impl Meter {
    /// Sums up what stood until now. To be called before anything changes.
    pub fn advance(&mut self, now: Time) {
        if self.counting {
            let time = (now.0 - self.last.0) as f64;
            let used = self.allocated as f64 * time;
            self.time[0] += time;
            self.used[0] += used;
            self.queue += self.waiting as f64 * time;
            if self.waiting_gpu > 0 {
                self.time[1] += time;
                self.used[1] += used;
            }
        }
        self.last = now;
    }

    /// The first measured arrival, once it has come.
    pub fn first(&self) -> Option<u64> {
        self.first
    }

    /// Measures from this arrival on.
    pub fn begin(&mut self, arrival: u64) {
        self.first = Some(arrival);
        self.counting = true;
    }

    /// Measures time no more.
    pub fn close(&mut self) {
        self.counting = false;
    }

    /// A measured pod came.
    pub fn came(&mut self) {
        self.waits.push(OPEN);
        self.open += 1;
    }

    /// Measured pods that wait.
    pub fn open(&self) -> u64 {
        self.open
    }

    /// A pod started, the `arrival`th of the run.
    pub fn started(&mut self, arrival: u64, waited: u64) {
        let place = self.first.and_then(|first| arrival.checked_sub(first));
        if let Some(wait) = place.and_then(|at| self.waits.get_mut(at as usize)) {
            *wait = waited;
            self.open -= 1;
        }
    }

    /// What came of it. `pod` gives each measured pod and its wait so far.
    pub fn finish<'a>(self, cards: u64, pod: impl Fn(u64) -> (&'a Coming, u64)) -> Run {
        let first = self.first.unwrap_or_default();
        let mut groups: BTreeMap<Group, Gathered> = BTreeMap::new();
        for (i, wait) in self.waits.iter().enumerate() {
            let (coming, so_far) = pod(first + i as u64);
            let still = *wait == OPEN;
            let wait = if still { so_far } else { *wait };
            for group in Group::ALL.into_iter().filter(|g| g.holds(coming)) {
                groups.entry(group).or_default().add(wait, still, i * 10 / self.waits.len());
            }
        }
        let unallocated = |i: usize| {
            let mean = self.used[i] / self.time[i];
            (self.time[i] > 0.0).then(|| figure(100.0 - mean / (10 * cards) as f64))
        };
        let of_time = |sum: f64| if self.time[0] > 0.0 { figure(sum / self.time[0]) } else { 0.0 };
        Run {
            waits: groups.into_iter().map(|(group, all)| (group, Waits::of(all))).collect(),
            unallocated_pct: unallocated(0).unwrap_or_default(),
            unallocated_while_waiting_pct: unallocated(1),
            gpu_waits_pct: of_time(100.0 * self.time[1]),
            queue: of_time(self.queue),
            seconds: self.time[0] / 1000.0,
            before: first,
            ..Run::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_the_nearest() {
        let mut all = Gathered::default();
        (0..200).rev().for_each(|n| all.add(n * 1000, n < 3, n as usize / 20));
        let waits = Waits::of(all);
        assert_eq!((waits.pods, waits.still, waits.waited_pct), (200, 3, 99.5));
        assert_eq!((waits.mean, waits.median, waits.p95, waits.p99), (99.5, 99.0, 189.0, 197.0));
        assert_eq!((waits.tenths[0], waits.tenths[9]), (9.5, 189.5));
        let none = Waits { tenths: vec![0.0; 10], ..Waits::default() };
        assert_eq!(Waits::of(Gathered::default()), none);
    }

    #[test]
    fn levels_count_for_as_long_as_they_stand() {
        let mut meter = Meter { allocated: 500, ..Meter::default() };
        meter.advance(Time(1_000));
        meter.begin(7);
        (meter.waiting, meter.waiting_gpu) = (2, 1);
        meter.advance(Time(2_000));
        (meter.waiting_gpu, meter.allocated) = (0, 1000);
        meter.advance(Time(5_000));
        meter.close();
        meter.advance(Time(9_000));
        let run = meter.finish(2, |_| unreachable!("no pod came"));
        assert_eq!((run.seconds, run.queue, run.gpu_waits_pct, run.before), (4.0, 2.0, 25.0, 7));
        assert_eq!(run.unallocated_while_waiting_pct, Some(75.0));
        // A quarter of two cards for one second, half of them for three.
        let expected = 100.0 - (25.0 + 3.0 * 50.0) / 4.0;
        assert!((run.unallocated_pct - expected).abs() < 1e-6, "{}", run.unallocated_pct);
    }
}
