//! The figures behind generated clusters and workloads.
//!
//! Sources: the counts, sizes and shares that Weng, Yang et al. (USENIX ATC'23)
//! and the description of Alibaba's cluster-trace-gpu-v2023 give for the
//! cluster and its `default` and `gpuspec33` workloads, as totals by class.
//! Sizes are rounded to 0.1 core and to 256 MiB; what is asked for less often
//! than about once in five hundred is left out.

use crate::trace::{Class, Qos};

/// A kind of machine.
pub(super) struct Kind {
    pub model: &'static str,
    pub cards: usize,
    pub cores: u64,
    pub gib: u64,
    /// How many of the 1,213 published machines are like it.
    pub count: usize,
}

const fn kind(model: &'static str, cards: usize, cores: u64, gib: u64, count: usize) -> Kind {
    Kind { model, cards, cores, gib, count }
}

/// 1,213 machines with 6,212 cards: G2 4392, T4 842, G3 312, P100 265, V100M32
/// 204, V100M16 195, A10 2.
pub(super) const KINDS: [Kind; 13] = [
    kind("G2", 8, 96, 384, 549),
    kind("T4", 2, 104, 512, 387),
    kind("P100", 2, 16, 120, 109),
    kind("G3", 8, 128, 768, 39),
    kind("V100M16", 4, 32, 128, 28),
    kind("P100", 2, 64, 256, 22),
    kind("V100M32", 8, 96, 768, 21),
    kind("V100M16", 1, 8, 32, 19),
    kind("T4", 4, 96, 384, 17),
    kind("V100M32", 4, 48, 368, 9),
    kind("V100M16", 8, 64, 256, 8),
    kind("P100", 1, 8, 60, 3),
    kind("A10", 1, 128, 1024, 2),
];

/// What a pod asks for, and how often in thousandths of its class.
pub(super) struct Size {
    pub weight: u32,
    pub cards: u64,
    pub milli: u64,
    pub cpu: u64,
    pub mib: u64,
}

const fn size(weight: u32, cards: u64, milli: u64, cpu: u64, mib: u64) -> Size {
    Size { weight, cards, milli, cpu, mib }
}

const CPU_ONLY: [Size; 10] = [
    size(338, 0, 0, 12_500, 57_344),
    size(264, 0, 0, 32_000, 49_152),
    size(155, 0, 0, 8_000, 30_720),
    size(110, 0, 0, 15_400, 51_200),
    size(87, 0, 0, 16_500, 51_200),
    size(13, 0, 0, 8_000, 15_360),
    size(11, 0, 0, 11_400, 57_344),
    size(10, 0, 0, 16_000, 31_744),
    size(8, 0, 0, 20_000, 65_536),
    size(4, 0, 0, 12_000, 24_576),
];

const FRACTION: [Size; 26] = [
    size(340, 1, 810, 3_200, 5_632),
    size(10, 1, 810, 4_200, 10_496),
    size(126, 1, 470, 11_900, 47_104),
    size(118, 1, 470, 8_000, 30_720),
    size(36, 1, 320, 4_000, 23_040),
    size(25, 1, 320, 4_000, 15_360),
    size(23, 1, 320, 8_000, 30_720),
    size(15, 1, 320, 4_000, 30_720),
    size(7, 1, 320, 1_000, 2_048),
    size(77, 1, 650, 11_900, 47_104),
    size(5, 1, 650, 8_000, 30_720),
    size(27, 1, 230, 4_000, 30_720),
    size(9, 1, 230, 4_000, 23_040),
    size(9, 1, 230, 8_000, 30_720),
    size(17, 1, 460, 6_000, 6_144),
    size(25, 1, 460, 6_000, 14_336),
    size(24, 1, 590, 3_200, 5_632),
    size(17, 1, 160, 4_000, 15_360),
    size(7, 1, 160, 6_000, 23_040),
    size(23, 1, 550, 4_200, 10_496),
    size(20, 1, 220, 4_000, 15_360),
    size(15, 1, 370, 4_000, 15_360),
    size(8, 1, 110, 4_000, 15_360),
    size(6, 1, 480, 8_000, 30_720),
    size(6, 1, 340, 4_000, 23_040),
    size(5, 1, 50, 1_000, 2_048),
];

const ONE_CARD: [Size; 25] = [
    size(223, 1, 1000, 11_300, 49_152),
    size(137, 1, 1000, 11_400, 48_128),
    size(120, 1, 1000, 3_200, 5_632),
    size(66, 1, 1000, 18_700, 64_512),
    size(50, 1, 1000, 9_800, 41_472),
    size(42, 1, 1000, 12_000, 24_576),
    size(40, 1, 1000, 15_700, 58_368),
    size(41, 1, 1000, 11_900, 47_104),
    size(36, 1, 1000, 12_000, 16_384),
    size(28, 1, 1000, 16_000, 32_768),
    size(28, 1, 1000, 8_000, 16_384),
    size(27, 1, 1000, 4_000, 24_576),
    size(24, 1, 1000, 14_200, 58_368),
    size(21, 1, 1000, 24_200, 93_184),
    size(17, 1, 1000, 11_400, 77_824),
    size(15, 1, 1000, 8_000, 32_768),
    size(13, 1, 1000, 11_900, 77_824),
    size(11, 1, 1000, 8_200, 33_792),
    size(11, 1, 1000, 4_000, 31_232),
    size(9, 1, 1000, 15_200, 80_896),
    size(9, 1, 1000, 16_000, 65_536),
    size(7, 1, 1000, 16_400, 126_976),
    size(5, 1, 1000, 1_000, 6_144),
    size(5, 1, 1000, 15_000, 81_920),
    size(15, 1, 1000, 7_000, 30_720),
];

const SEVERAL_CARDS: [Size; 8] = [
    size(133, 2, 1000, 16_200, 66_560),
    size(40, 2, 1000, 6_000, 65_536),
    size(40, 2, 1000, 30_200, 160_768),
    size(160, 4, 1000, 32_200, 132_096),
    size(40, 4, 1000, 60_200, 320_512),
    size(240, 8, 1000, 88_000, 327_680),
    size(280, 8, 1000, 64_200, 263_168),
    size(67, 8, 1000, 120_000, 698_368),
];

/// What pods of a class ask for.
pub(super) fn sizes(class: Class) -> &'static [Size] {
    match class {
        Class::CpuOnly => &CPU_ONLY,
        Class::Fraction => &FRACTION,
        Class::OneCard => &ONE_CARD,
        Class::SeveralCards => &SEVERAL_CARDS,
    }
}

/// Models that pods with a card are bound to where they are bound at all, in
/// thousandths.
pub(super) const MODEL_SETS: [(u32, &[&str]); 11] = [
    (541, &["T4"]),
    (139, &["G2"]),
    (117, &["P100"]),
    (68, &["V100M16", "V100M32"]),
    (43, &["P100", "V100M16", "V100M32"]),
    (36, &["G3"]),
    (16, &["G2", "P100", "T4", "V100M16", "V100M32"]),
    (14, &["P100", "T4", "V100M16", "V100M32"]),
    (14, &["A10", "G2", "T4", "V100M16", "V100M32"]),
    (9, &["V100M32"]),
    (3, &["A10", "T4"]),
];

/// What pods of a class are promised, in thousandths.
pub(super) fn promises(class: Class) -> [(u32, Qos); 4] {
    let weights = match class {
        Class::CpuOnly => [584, 414, 1, 1],
        Class::Fraction => [247, 753, 0, 0],
        Class::OneCard => [818, 161, 19, 2],
        Class::SeveralCards => [693, 0, 307, 0],
    };
    let [a, b, c, d] = weights;
    [(a, Qos::LatencySensitive), (b, Qos::BestEffort), (c, Qos::Burstable), (d, Qos::Guaranteed)]
}

/// How long pods of a class run: the median in seconds and the standard
/// deviation of the natural logarithm. A log-normal law with the published
/// medians; its tail is set by the published 75th to 99th percentiles.
pub(super) fn life(class: Class) -> (f64, f64) {
    match class {
        Class::CpuOnly => (460.0, 2.0),
        Class::Fraction => (440.0, 1.9),
        Class::OneCard => (630.0, 1.8),
        Class::SeveralCards => (610.0, 2.6),
    }
}

/// The longest run in seconds: what the published months can show.
pub(super) const LONGEST: f64 = 12_900_000.0;
