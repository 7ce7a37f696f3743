//! What a configured policy has done, for status and metrics.

use crater_engine::policy::Fault;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Counts since the policy was configured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Decision calls, failed ones included.
    pub calls: u64,
    /// Calls that trapped.
    pub traps: u64,
    /// Calls that ran past their time.
    pub deadlines: u64,
    /// Calls that failed for memory.
    pub memory: u64,
    /// Calls with an unusable answer.
    pub bad_answers: u64,
    /// Calls for which there was no instance, or no budget.
    pub unavailable: u64,
    /// Wall time in the guest and at its border.
    pub guest: Duration,
    /// The longest call.
    pub longest: Duration,
    /// Instances made.
    pub instances_made: u64,
    /// Instances thrown away: after a fault, for age or for size.
    pub instances_dropped: u64,
}

impl Counters {
    /// Calls that gave no answer.
    pub fn faults(&self) -> u64 {
        self.traps + self.deadlines + self.memory + self.bad_answers + self.unavailable
    }
}

/// The counters as they are counted. Each is exact; a reading of all of them
/// is not of one moment.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    calls: AtomicU64,
    traps: AtomicU64,
    deadlines: AtomicU64,
    memory: AtomicU64,
    bad_answers: AtomicU64,
    unavailable: AtomicU64,
    guest_ns: AtomicU64,
    longest_ns: AtomicU64,
    made: AtomicU64,
    dropped: AtomicU64,
}

impl Meter {
    pub(crate) fn call(&self, took: Duration) {
        let ns = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.guest_ns.fetch_add(ns, Relaxed);
        if ns > self.longest_ns.load(Relaxed) {
            self.longest_ns.fetch_max(ns, Relaxed);
        }
    }

    pub(crate) fn asked(&self) {
        self.calls.fetch_add(1, Relaxed);
    }

    pub(crate) fn fault(&self, fault: &Fault) {
        let counter = match fault {
            Fault::Trap { .. } => &self.traps,
            Fault::Deadline { .. } => &self.deadlines,
            Fault::Memory { .. } => &self.memory,
            Fault::BadAnswer { .. } => &self.bad_answers,
            Fault::Unavailable { .. } => &self.unavailable,
        };
        counter.fetch_add(1, Relaxed);
    }

    pub(crate) fn made(&self) {
        self.made.fetch_add(1, Relaxed);
    }

    pub(crate) fn dropped(&self) {
        self.dropped.fetch_add(1, Relaxed);
    }

    /// Forgets all but the number of instances.
    pub(crate) fn reset(&self) {
        for counter in [
            &self.calls,
            &self.traps,
            &self.deadlines,
            &self.memory,
            &self.bad_answers,
            &self.unavailable,
            &self.guest_ns,
            &self.longest_ns,
        ] {
            counter.store(0, Relaxed);
        }
    }

    pub(crate) fn guest_ns(&self) -> u64 {
        self.guest_ns.load(Relaxed)
    }

    pub(crate) fn read(&self) -> Counters {
        Counters {
            calls: self.calls.load(Relaxed),
            traps: self.traps.load(Relaxed),
            deadlines: self.deadlines.load(Relaxed),
            memory: self.memory.load(Relaxed),
            bad_answers: self.bad_answers.load(Relaxed),
            unavailable: self.unavailable.load(Relaxed),
            guest: Duration::from_nanos(self.guest_ns.load(Relaxed)),
            longest: Duration::from_nanos(self.longest_ns.load(Relaxed)),
            instances_made: self.made.load(Relaxed),
            instances_dropped: self.dropped.load(Relaxed),
        }
    }
}
