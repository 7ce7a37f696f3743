//! Random numbers that follow from a seed.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// One use of a seed. Each has a stream of its own, so that drawing more for
/// one of them shifts no other. The numbers are part of what a seed means.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Use {
    /// Order of the experiment's pods.
    PodOrder = 0,
    /// Tuning of the experiment's load.
    Tuning = 1,
    /// Order of the experiment's nodes.
    NodeOrder = 2,
    /// What generated pods ask for.
    Sizes = 3,
    /// Which models they may use.
    Models = 4,
    /// What they are promised.
    Promises = 5,
    /// How long they run.
    Lives = 6,
    /// When they arrive.
    Arrivals = 7,
    /// Gaps between arrivals of the steady state.
    SteadyGaps = 8,
    /// Which pods they are.
    SteadyDraws = 9,
}

/// The stream of one use.
pub(crate) fn stream(seed: u64, purpose: Use) -> ChaCha8Rng {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    random.set_stream(purpose as u64);
    random
}
