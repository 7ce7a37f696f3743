//! Time as a value: milliseconds since 1970-01-01 UTC.

use serde::{Deserialize, Serialize};
use std::ops::{Add, Sub};
use std::time::Duration;

/// A moment. The core never asks for it; whoever calls the core says it.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Time(
    /// Milliseconds since 1970-01-01 UTC.
    pub u64,
);

impl Time {
    /// A moment given in seconds.
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs.saturating_mul(1000))
    }

    /// Whole seconds since 1970.
    pub const fn secs(self) -> u64 {
        self.0 / 1000
    }

    /// Whole seconds since an earlier moment, 0 if it is later.
    pub const fn secs_since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0) / 1000
    }

    /// Rounded down to a multiple of `step` seconds.
    #[must_use]
    pub const fn floor(self, step: u64) -> Self {
        let ms = step.saturating_mul(1000);
        if ms == 0 { self } else { Self(self.0 - self.0 % ms) }
    }
}

impl Add<Duration> for Time {
    type Output = Self;
    fn add(self, d: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(d.as_millis()).unwrap_or(u64::MAX)))
    }
}

impl Sub for Time {
    type Output = Duration;
    fn sub(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }
}
