//! What tenants held, from a claim until it is gone.
//!
//! The store says up to which entry and moment all is counted. What ended since
//! was counted in the transaction of its end; what is held still counts from
//! that moment on, or from its own beginning where that is later. So a restart
//! counts nothing twice and leaves nothing out.

use crater_engine::{Job, State};
use crater_model::{Claim, ClaimUid, Event, JobUid, Time};
use crater_store::{Counted, DAY_MS, Reader, Store, StoreError, UsageKey, UsageSum};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// The mark cannot be read.
pub type MarkError = StoreError;

/// A claim that is held, and from when it is to be counted.
#[derive(Clone, Copy, Debug)]
struct Open {
    claim: ClaimUid,
    from: Time,
    each: UsageSum,
}

/// A job with claims.
#[derive(Debug)]
struct Holder {
    tenant: Arc<str>,
    queue: Arc<str>,
    open: Vec<Open>,
}

/// Counts usage.
#[derive(Debug, Default)]
pub struct Meter {
    holders: HashMap<JobUid, Holder>,
    sums: BTreeMap<UsageKey, UsageSum>,
}

impl Meter {
    /// On recovered books; `now` for a store that never counted.
    pub fn recover(reader: &Reader, state: &State, now: Time) -> Result<Self, MarkError> {
        let counted = reader.usage_counted()?;
        let mut began: HashMap<ClaimUid, Time> = HashMap::new();
        if let Some(counted) = counted {
            for entry in reader.entries_after(counted.seq)? {
                if let Event::PlanCommitted { claims } = &entry.event {
                    began.extend(claims.iter().map(|claim| (claim.uid, entry.at)));
                }
            }
        }
        let mark = counted.map_or(now, |counted| counted.at);
        let mut meter = Self::default();
        for claim in state.claims() {
            let from = began.get(&claim.uid).copied().unwrap_or(mark);
            if let Some(job) = state.job(claim.job) {
                meter.holder(job).open.push(Open { claim: claim.uid, from, each: each(claim) });
            }
        }
        Ok(meter)
    }

    fn holder(&mut self, job: &Job) -> &mut Holder {
        self.holders.entry(job.uid).or_insert_with(|| Holder {
            tenant: job.spec.tenant.as_str().into(),
            queue: (&*job.spec.queue).into(),
            open: vec![],
        })
    }

    /// Follows what a job holds: what is gone is counted, what is new begins.
    pub fn follow(&mut self, state: &State, uid: JobUid, job: Option<&Arc<Job>>, at: Time) {
        let claims = job.map_or(&[][..], |job| &job.claims[..]);
        if let Some(holder) = self.holders.get_mut(&uid) {
            let (tenant, queue) = (holder.tenant.clone(), holder.queue.clone());
            let mut gone = vec![];
            holder.open.retain(|open| {
                let held = claims.contains(&open.claim);
                if !held {
                    gone.push(*open);
                }
                held
            });
            if holder.open.is_empty() && claims.is_empty() {
                self.holders.remove(&uid);
            }
            for open in gone {
                add(&mut self.sums, &tenant, &queue, &open, at);
            }
        }
        let Some(job) = job else { return };
        for claim in claims.iter().filter_map(|claim| state.claim(*claim)) {
            let holder = self.holder(job);
            if !holder.open.iter().any(|open| open.claim == claim.uid) {
                holder.open.push(Open { claim: claim.uid, from: at, each: each(claim) });
            }
        }
    }

    /// Writes what was summed since the last time.
    pub fn write(&mut self, store: &mut Store) -> Result<(), StoreError> {
        if self.sums.is_empty() {
            return Ok(());
        }
        store.add_usage(&std::mem::take(&mut self.sums))
    }

    /// Counts what is held up to now and says so, in one transaction.
    pub fn mark(&mut self, store: &mut Store, state: &State, now: Time) -> Result<(), StoreError> {
        // The journal's time never goes back, whatever the clock does.
        let now = now.max(state.at);
        for holder in self.holders.values_mut() {
            for open in &mut holder.open {
                add(&mut self.sums, &holder.tenant, &holder.queue, open, now);
                open.from = open.from.max(now);
            }
        }
        self.write(store)?;
        store.set_usage_counted(Counted { seq: state.seq, at: now })
    }
}

/// What a claim holds.
fn each(claim: &Claim) -> UsageSum {
    UsageSum {
        gpu: claim.held.milli().0,
        gpu_memory: claim.held.gpu_memory().0,
        cpu: claim.held.cpu.0,
        memory: claim.held.memory.0,
    }
}

/// Adds what was held until a moment, day by day.
fn add(
    sums: &mut BTreeMap<UsageKey, UsageSum>,
    tenant: &Arc<str>,
    queue: &Arc<str>,
    open: &Open,
    until: Time,
) {
    let mut from = open.from.0;
    while from < until.0 {
        let day = from / DAY_MS;
        let end = until.0.min((day + 1) * DAY_MS);
        let key = UsageKey { day, tenant: tenant.clone(), queue: queue.clone() };
        sums.entry(key).or_default().add(&open.each.times(end - from));
        from = end;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_over_midnight_counts_on_both_days() {
        let mut sums = BTreeMap::new();
        let each = UsageSum { gpu: 500, gpu_memory: 1, cpu: 1000, memory: 2 };
        let open = Open { claim: ClaimUid(1), from: Time(DAY_MS - 2000), each };
        add(&mut sums, &"ai".into(), &"q".into(), &open, Time(2 * DAY_MS + 1000));
        let days: Vec<_> = sums.iter().map(|(key, sum)| (key.day, sum.gpu)).collect();
        assert_eq!(days, [(0, 1_000_000), (1, 500 * DAY_MS), (2, 500_000)]);
        // A clock that went back counts nothing.
        let before = sums.clone();
        add(&mut sums, &"ai".into(), &"q".into(), &open, Time(0));
        assert_eq!(sums, before);
    }
}
