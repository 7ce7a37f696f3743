//! Looks at the disk again and again: who gives way, and whether it is full.

use crater_engine::State;
use crater_local::disk::Activity;
use crater_local::governor::{Governor, User};
use crater_local::local::Local;
use crater_model::{ClaimState, ClaimUid, Kind, MbPerSec};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The disk is looked at this often.
const LOOK: Duration = Duration::from_secs(1);

/// The disk on which jobs' files lie.
#[derive(Debug)]
pub struct Io {
    /// Its folder in `/sys/block`.
    folder: PathBuf,
    /// Bytes a second that it can do, if the configuration says it.
    capacity: Option<u64>,
    governor: Governor,
    last: Option<(Instant, Activity)>,
    used: BTreeMap<ClaimUid, u64>,
}

impl Io {
    /// A disk of this name.
    pub fn new(name: &str, capacity: MbPerSec) -> Self {
        Self {
            folder: PathBuf::from("/sys/block").join(name),
            capacity: (!capacity.is_zero()).then(|| capacity.0.saturating_mul(1_000_000)),
            governor: Governor::default(),
            last: None,
            used: BTreeMap::new(),
        }
    }

    /// What a member is held to now.
    pub fn cap(&self, claim: ClaimUid) -> Option<u64> {
        self.governor.cap(claim)
    }

    /// Whether the disk is full.
    pub const fn full(&self) -> bool {
        self.governor.full()
    }

    /// Looks, if it is time to; gives out whose cap changed.
    pub fn look(&mut self, state: &State, local: &Local) -> Vec<ClaimUid> {
        if self.last.is_some_and(|(at, _)| at.elapsed() < LOOK) {
            return vec![];
        }
        let Some(activity) = Activity::of(&self.folder) else { return vec![] };
        let now = Instant::now();
        let Some((then, before)) = self.last.replace((now, activity)) else { return vec![] };
        let millis = u64::try_from(now.duration_since(then).as_millis()).unwrap_or(1).max(1);
        let rate = |now: u64, then: u64| now.saturating_sub(then).saturating_mul(1000) / millis;
        let in_use = match self.capacity {
            Some(capacity) => {
                rate(activity.bytes, before.bytes).saturating_mul(1000) / capacity.max(1)
            }
            None => rate(activity.busy_ms, before.busy_ms),
        };
        let mut used = BTreeMap::new();
        let mut users = vec![];
        for claim in state.claims().filter(|claim| claim.state == ClaimState::Held) {
            let Some(job) = state.job(claim.job) else { continue };
            let bytes = local.disk_used(claim.uid).bytes;
            used.insert(claim.uid, bytes);
            let Some(before) = self.used.get(&claim.uid) else { continue };
            let kind = match job.spec.kind {
                Kind::Inference => 2,
                Kind::Training => 1,
                Kind::Offline => 0,
            };
            let rank = (job.spec.priority.0, kind);
            users.push(User { claim: claim.uid, rank, bytes: rate(bytes, *before) });
        }
        self.used = used;
        self.governor.look(in_use, &users)
    }
}
