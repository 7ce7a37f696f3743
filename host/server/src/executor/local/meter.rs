//! What members use, by their control groups.

use crate::collector::{Amounts, Gauge, held};
use crater_engine::State;
use crater_local::groups::{Found, Group, Used};
use crater_local::local::Local;
use crater_model::{Claim, ClaimState, ClaimUid, Time};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// Reads control groups; rates are those since a claim was last looked at.
#[derive(Debug)]
pub struct Meter {
    found: Found,
    groups: String,
    before: Mutex<BTreeMap<ClaimUid, (Time, Used)>>,
}

impl Meter {
    /// Of a runner's groups.
    pub fn new(local: &Local) -> Self {
        let (found, groups) = (local.found().clone(), local.groups().to_owned());
        Self { found, groups, before: Mutex::default() }
    }

    /// A claim is over.
    pub fn forget(&self, claim: ClaimUid) {
        self.before.lock().unwrap_or_else(PoisonError::into_inner).remove(&claim);
    }
}

impl Gauge for Meter {
    fn used(&self, _: &State, claim: &Claim, at: Time) -> Option<Amounts> {
        if !matches!(claim.state, ClaimState::Held | ClaimState::Releasing) {
            return Some(Amounts::default());
        }
        let used = Group::at(&self.found, &format!("{}/{}", self.groups, claim.uid.0)).used();
        let mut before = self.before.lock().unwrap_or_else(PoisonError::into_inner);
        let last = before.insert(claim.uid, (at, used));
        let mut rates = (0, 0);
        if let Some((then, last)) = last {
            let millis = at.0.saturating_sub(then.0).max(1);
            let cpu = used.cpu.saturating_sub(last.cpu).as_micros();
            let cpu = u64::try_from(cpu).unwrap_or(u64::MAX) / millis;
            let bytes = used.disk.bytes.saturating_sub(last.disk.bytes);
            rates = (cpu, bytes / 1000 / millis);
        }
        // How much of a card is used is not measured here: what is held counts.
        let [gpu, gpu_memory, ..] = held(claim);
        Some([gpu, gpu_memory, rates.0, used.memory >> 20, rates.1])
    }
}
