//! The part of a node's free GPU that its free cores cannot serve.
//!
//! The fluid problem of one node: of the GPU that the mix asks for, a free GPU
//! with r cores takes at most what the mix brings of each shape, and cores for
//! no more than r. The best is to serve first who needs the fewest cores a GPU,
//! so that what is left over, F(r), is had without a solver: 1 without cores,
//! falling and convex, 0 from the mix's mean on. Work without a GPU takes
//! cores, too; its part makes r count for less.

use crate::mix::Prepared;

/// Steps of F from no cores to the mean.
pub const STEPS: usize = 256;

/// F at each step, in millionths, and the mean of the cores a GPU, in
/// milli-cores, from what jobs ask for: GPU and CPU in any unit, their ratio
/// in milli-cores. Empty if they ask for no cores.
pub fn table(asked: &[(f64, f64)]) -> (i64, Vec<i32>) {
    let mut asked: Vec<(f64, f64)> = asked.iter().copied().filter(|(gpu, _)| *gpu > 0.0).collect();
    asked.sort_unstable_by(|a, b| (a.1 / a.0).total_cmp(&(b.1 / b.0)).then(a.0.total_cmp(&b.0)));
    let gpu: f64 = asked.iter().map(|(gpu, _)| gpu).sum();
    let cpu: f64 = asked.iter().map(|(_, cpu)| cpu).sum();
    if cpu <= 0.0 {
        return (0, vec![]);
    }
    let mean = cpu / gpu;
    let mut jobs = asked.into_iter().peekable();
    // GPU and cores of the shapes that are served in full.
    let mut full = (0.0, 0.0);
    let left = |step: usize| {
        let cores = cpu * step as f64 / STEPS as f64;
        while let Some((g, c)) = jobs.next_if(|(_, c)| full.1 + c <= cores) {
            full = (full.0 + g, full.1 + c);
        }
        let part = jobs.peek().map_or(0.0, |(g, c)| g * (cores - full.1) / c);
        (1e6 * (1.0 - (full.0 + part) / gpu)).round().max(0.0) as i32
    };
    let table = (0..=STEPS).map(left).collect();
    (mean.round() as i64, table)
}

/// F, ready to be looked up.
#[derive(Clone, Debug, Default)]
pub struct Cores {
    /// By step, in GPUs; empty if nothing can lack cores.
    table: Vec<f64>,
    /// Steps for each milli-core of a milli-GPU.
    steps: f64,
}

impl Cores {
    /// From the prepared table. `others` is how much of the cores that work
    /// without a GPU asks for with each GPU is set aside.
    pub fn new(prepared: &Prepared, others: f64) -> Self {
        let (own, all) = (prepared.own_cores as f64, prepared.cores as f64);
        let needed = own + others * (all - own).max(0.0);
        if prepared.lack.len() != STEPS + 1 || needed <= 0.0 {
            return Self::default();
        }
        let table = prepared.lack.iter().map(|part| f64::from(*part) / 1e6).collect();
        Self { table, steps: 1000.0 * STEPS as f64 / needed }
    }

    /// GPUs that lack cores of `gpu` milli-cards with `cpu` milli-cores.
    #[inline]
    pub fn lacking(&self, gpu: i32, cpu: i32) -> f64 {
        if gpu <= 0 {
            return 0.0;
        }
        let at = f64::from(cpu.max(0)) / f64::from(gpu) * self.steps;
        let step = at as usize;
        let (Some(low), Some(high)) = (self.table.get(step), self.table.get(step + 1)) else {
            return 0.0;
        };
        f64::from(gpu) / 1000.0 * (low + (high - low) * (at - step as f64))
    }
}

#[cfg(test)]
#[allow(clippy::float_cmp, reason = "exact figures")]
mod tests {
    use super::*;

    fn cores(asked: &[(f64, f64)], all: i64, others: f64) -> Cores {
        let (own_cores, lack) = table(asked);
        let prepared = Prepared { cores: all, own_cores, lack, ..Prepared::default() };
        Cores::new(&prepared, others)
    }

    #[test]
    fn who_needs_few_cores_is_served_first() {
        // Half of the GPU takes 4 cores a GPU, half 12: 8 on average.
        let asked = [(3.0, 36_000.0), (3.0, 12_000.0)];
        let lacking = |cpu| (cores(&asked, 8_000, 1.0).lacking(1000, cpu) * 1e4).round() / 1e4;
        assert_eq!((lacking(0), lacking(1_000), lacking(2_000)), (1.0, 0.75, 0.5));
        assert_eq!((lacking(5_000), lacking(8_000), lacking(90_000)), (0.25, 0.0, 0.0));
        // Four GPUs with four times the cores are four times that; none lack none.
        assert_eq!(cores(&asked, 8_000, 1.0).lacking(4000, 4_000), 3.0);
        assert_eq!(cores(&asked, 8_000, 1.0).lacking(0, 4_000), 0.0);
    }

    #[test]
    fn work_without_a_gpu_takes_its_part_of_the_cores() {
        // As many cores are asked for without a GPU as with one.
        let of = |others| cores(&[(1.0, 8_000.0)], 16_000, others).lacking(1000, 8_000);
        assert_eq!((of(0.0), of(1.0)), (0.0, 0.5));
    }

    #[test]
    fn where_nobody_asks_for_cores_none_are_lacking() {
        assert_eq!(table(&[(1.0, 0.0)]), (0, vec![]));
        assert_eq!(cores(&[(1.0, 0.0)], 5_000, 1.0).lacking(1000, 0), 0.0);
        assert_eq!(table(&[]), (0, vec![]));
        // Who asks for none is served without any.
        assert_eq!(cores(&[(1.0, 0.0), (1.0, 8_000.0)], 4_000, 1.0).lacking(1000, 0), 0.5);
    }

    #[test]
    fn it_falls_and_is_convex() {
        let (mean, table) = table(&[(5.0, 20.0), (1.0, 90.0), (3.0, 0.0), (0.5, 7.0), (2.0, 30.0)]);
        assert_eq!((mean, table.len(), table[STEPS]), (13, STEPS + 1, 0));
        let steps: Vec<i32> = table.windows(2).map(|w| w[0] - w[1]).collect();
        assert!(steps.iter().all(|s| *s >= 0), "{table:?}");
        assert!(steps.windows(2).all(|w| w[0] + 2 >= w[1]), "{steps:?}");
    }
}
