//! Chance that can be replayed: numbers derived from the decision's seed.

/// A number that looks random, from a seed and what it is for. Equal arguments
/// give equal numbers on every machine. The mixing is `SplitMix64`
/// (Steele, Lea and Flood, 2014).
#[inline]
pub const fn mix(seed: u64, of: u64) -> u64 {
    const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut z = seed.wrapping_add(of.wrapping_add(1).wrapping_mul(GOLDEN));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A number from 0 up to, not including, `end`; 0 if that is 0.
#[inline]
pub const fn below(random: u64, end: u32) -> u32 {
    // The upper half of a product: as even as 64 bits allow, without division.
    (((random >> 32) * end as u64) >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_numbers_are_splitmix64s() {
        // From the reference implementation with state 0.
        assert_eq!(mix(0, 0), 0xe220_a839_7b1d_cdaf);
        assert_eq!(mix(0, 1), 0x6e78_9e6a_a1b9_65f4);
    }

    #[test]
    fn below_reaches_both_ends() {
        assert_eq!((below(0, 6), below(u64::MAX, 6), below(u64::MAX, 0)), (0, 5, 0));
    }
}
