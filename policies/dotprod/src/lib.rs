//! `dotprod`: the node whose free room is least along what the job asks for,
//! so that room of the other sort stays with those who need it.
//!
//! ⌊100 · (1 − ½ [(c / 128000) (cpu / 128000) + (G / 8000) (r / 8000)])⌋, with
//! c and G the node's free CPU and free GPU share, r the share that the job
//! takes, in thousandths of a core and a card. This is `DotProd` as Weng, Yang et
//! al. measured it (USENIX ATC'23), after Grandl et al., "Multi-resource
//! packing for cluster schedulers" (SIGCOMM'14).
//!
//! Cards are left to the host: with the fallback `binpack` those with the
//! least free that fit, the lowest-numbered among equals.

use crater_sdk::prelude::*;

/// It takes no configuration.
#[derive(Debug)]
pub struct DotProd;

/// The largest machine's CPU and GPU share, squared; the first is 256 times
/// the second.
const CPU: i64 = 128_000 * 128_000;
const GPU: i64 = 8_000 * 8_000;
const _: () = assert!(2 * CPU / 100 == 625 << 19);

impl Policy for DotProd {
    fn configure(config: &str, _: &[u8]) -> Result<Self, String> {
        Settings::none(config).map(|()| Self)
    }

    #[inline]
    fn score(&self, _: &Context, job: &Job, node: &Node) -> Score {
        let cpu = i64::from(node.get(NODE_CPU_FREE)) * i64::from(job.get(JOB_CPU));
        let gpu = i64::from(node.get(NODE_GPU_FREE)) * i64::from(node.milli(&Ask::of(job)));
        // Over the common denominator, so that the floor is exact.
        let left = (2 * CPU).saturating_sub(cpu).saturating_sub(gpu.saturating_mul(CPU / GPU));
        // A hundredth of it is 2¹⁹ times 625, which spares a wide division.
        Score::from(((left >> 19).max(i64::from(i32::MIN)) as i32).div_euclid(625))
    }
}

crater_sdk::export!(DotProd {
    name: "dotprod",
    exports: [score],
    wants: [
        JOB_CARDS,
        JOB_CARD_MILLI,
        JOB_CARD_MIB,
        JOB_WHOLE_CARDS,
        JOB_CPU,
        NODE_CPU_FREE,
        NODE_GPU_FREE,
        NODE_GPU_TOTAL,
        NODE_GPU_MEMORY_TOTAL
    ],
});

#[cfg(test)]
mod tests {
    use super::*;
    use crater_sdk::testing::{Tester, job, node};

    #[test]
    fn the_published_formula_to_the_floor() {
        let tester = Tester::new(&native(), "{}").unwrap();
        let full = node().cpu(128_000, 128_000).cards([1000; 8]);
        let half = node().cpu(128_000, 64_000).cards([500; 8]);
        assert_eq!(
            tester.scores(&job().whole(8).cpu(128_000), &[full.clone(), half.clone()]),
            [0, 50]
        );
        // 1 − ½ (0.25 · 1 + 0): work without a GPU looks at CPU alone.
        assert_eq!(tester.scores(&job().cpu(32_000), &[full, half]), [87, 93]);
    }
}
