//! Integer amounts, each a type of its own so that units cannot be mixed.
//!
//! Sums and differences saturate: an amount never wraps and never goes below
//! zero. What is charged is checked before, so saturation is met only by input
//! that no machine could hold.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Mul, Sub, SubAssign};

macro_rules! amount {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(
            Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
        )]
        #[serde(transparent)]
        pub struct $name(pub u64);

        impl $name {
            /// Nothing.
            pub const ZERO: Self = Self(0);

            /// Whether there is none.
            pub const fn is_zero(self) -> bool {
                self.0 == 0
            }

            /// For a policy: saturates at the largest s32.
            pub fn to_s32(self) -> i32 {
                i32::try_from(self.0).unwrap_or(i32::MAX)
            }
        }

        impl Add for $name {
            type Output = Self;
            fn add(self, other: Self) -> Self {
                Self(self.0.saturating_add(other.0))
            }
        }

        impl Sub for $name {
            type Output = Self;
            fn sub(self, other: Self) -> Self {
                Self(self.0.saturating_sub(other.0))
            }
        }

        impl Mul<u64> for $name {
            type Output = Self;
            fn mul(self, times: u64) -> Self {
                Self(self.0.saturating_mul(times))
            }
        }

        impl AddAssign for $name {
            fn add_assign(&mut self, other: Self) {
                *self = *self + other;
            }
        }

        impl SubAssign for $name {
            fn sub_assign(&mut self, other: Self) {
                *self = *self - other;
            }
        }

        impl Sum for $name {
            fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
                all.fold(Self::ZERO, Add::add)
            }
        }
    };
}

amount!(
    /// Share of GPUs: 1000 is one card.
    MilliCards
);
amount!(
    /// CPU: 1000 is one core.
    MilliCores
);
amount!(
    /// Memory of a card or a machine: 1 MiB is 1,048,576 bytes.
    Mib
);
amount!(
    /// Disk bandwidth: 1 MB/s is 1,000,000 bytes a second.
    MbPerSec
);
amount!(
    /// Disk operations a second.
    Iops
);

impl MilliCards {
    /// One whole card.
    pub const CARD: Self = Self(1000);
}

/// Prints thousandths as a decimal number without trailing zeros.
fn thousandths(f: &mut fmt::Formatter<'_>, n: u64) -> fmt::Result {
    let (whole, rest) = (n / 1000, n % 1000);
    if rest == 0 {
        return write!(f, "{whole}");
    }
    write!(f, "{whole}.{}", format!("{rest:03}").trim_end_matches('0'))
}

impl fmt::Display for MilliCards {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        thousandths(f, self.0)
    }
}

impl fmt::Display for MilliCores {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        thousandths(f, self.0)
    }
}

impl fmt::Display for Mib {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            n if n != 0 && n % 1024 == 0 => write!(f, "{}Gi", n / 1024),
            n => write!(f, "{n}Mi"),
        }
    }
}

impl fmt::Display for MbPerSec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} MB/s", self.0)
    }
}

impl fmt::Display for Iops {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} IOPS", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_saturate_and_never_go_negative() {
        assert_eq!(MilliCards(u64::MAX) + MilliCards(5), MilliCards(u64::MAX));
        assert_eq!(Mib(3) - Mib(5), Mib(0));
        assert_eq!(MilliCards(4_000_000_000_000_000_000) * 3000, MilliCards(u64::MAX));
        assert_eq!(MilliCores(u64::MAX).to_s32(), i32::MAX);
    }

    #[test]
    fn amounts_read_as_people_write_them() {
        assert_eq!(MilliCards(500).to_string(), "0.5");
        assert_eq!(MilliCores(2050).to_string(), "2.05");
        assert_eq!(Mib(40960).to_string(), "40Gi");
        assert_eq!(Mib(8000).to_string(), "8000Mi");
    }
}
