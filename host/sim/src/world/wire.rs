//! How messages travel between the books and the machines: late, lost, twice.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::time::Duration;

/// How bad the wire is. The default loses and delays nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WireSettings {
    /// Messages of a hundred that are late.
    pub late: u8,
    /// The most by which they are late.
    pub by: Duration,
    /// Messages of a hundred that are lost, until a resync.
    pub lost: u8,
    /// Messages of a hundred that come twice.
    pub doubled: u8,
}

/// Draws the fate of each message from a seed.
#[derive(Debug)]
pub struct Wire {
    settings: WireSettings,
    random: ChaCha8Rng,
}

impl Wire {
    /// A wire whose faults follow from the seed.
    pub fn new(settings: WireSettings, seed: u64) -> Self {
        Self { settings, random: ChaCha8Rng::seed_from_u64(seed) }
    }

    /// Makes it better or worse from here on.
    pub fn set(&mut self, settings: WireSettings) {
        self.settings = settings;
    }

    /// The most by which a message is late.
    pub fn lateness(&self) -> Duration {
        self.settings.by
    }

    /// After how long a message arrives: never, once or twice.
    pub fn send(&mut self) -> Vec<Duration> {
        if self.settings == WireSettings::default() {
            return vec![Duration::ZERO];
        }
        let copies = if self.happens(self.settings.lost) {
            0
        } else if self.happens(self.settings.doubled) {
            2
        } else {
            1
        };
        (0..copies).map(|_| self.delay()).collect()
    }

    fn happens(&mut self, percent: u8) -> bool {
        self.random.random_range(0..100) < percent
    }

    fn delay(&mut self) -> Duration {
        if !self.happens(self.settings.late) {
            return Duration::ZERO;
        }
        let most = u64::try_from(self.settings.by.as_millis()).unwrap_or(u64::MAX);
        Duration::from_millis(self.random.random_range(0..=most))
    }
}
