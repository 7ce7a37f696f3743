//! What a simulated member uses: the declared part of what it holds, with a
//! variation that is the same for everyone who looks at the same moment.
//!
//! `CRATER_SIMULATE_UTILISATION` in a job's environment is that part, 0 to 1.

use crate::collector::{Amounts, Gauge, held};
use crater_engine::{State, mix};
use crater_model::{Claim, ClaimState, Time};

/// What a member uses that does not say it.
const USUAL: f64 = 0.6;
/// MB/s that a disk weight of 100 stands for at full use.
const DISK: f64 = 10.0;
/// Use changes this often, in milliseconds.
const STEP: u64 = 5000;

/// Reads simulated machines.
#[derive(Clone, Copy, Debug, Default)]
pub struct Declared;

impl Gauge for Declared {
    fn used(&self, state: &State, claim: &Claim, at: Time) -> Option<Amounts> {
        if claim.state != ClaimState::Held {
            return Some(Amounts::default());
        }
        let job = state.job(claim.job)?;
        let declared = job.spec.task.env.get("CRATER_SIMULATE_UTILISATION");
        let declared = declared.and_then(|text| text.parse::<f64>().ok());
        let part = declared.filter(|part| (0.0..=1.0).contains(part)).unwrap_or(USUAL);
        let [gpu, gpu_memory, cpu, memory, disk] = held(claim);
        let weight = f64::from(job.spec.request.disk.weight) / 100.0 * DISK;
        let vary = |n: u64, spread: f64| {
            let drawn = mix(claim.uid.0 ^ mix(at.0 / STEP) ^ mix(n)) % 2001;
            1.0 + spread * (drawn as f64 / 1000.0 - 1.0)
        };
        let of = |amount: u64, n: u64, spread: f64| {
            ((amount as f64 * part * vary(n, spread)) as u64).min(amount)
        };
        Some([
            of(gpu, 1, 0.15),
            of(gpu_memory, 2, 0.02),
            of(cpu, 3, 0.25),
            of(memory, 4, 0.03),
            // Without a reservation a disk is shared by weight.
            if disk > 0 { of(disk, 5, 0.3) } else { (weight * part * vary(5, 0.3)) as u64 },
        ])
    }
}
