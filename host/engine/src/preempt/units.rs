//! What may be evicted for a job, and at what price.

use super::Making;
use crate::decider::{Policies, Round};
use crate::node::Owner;
use crate::overlay::{Leaving, Overlay};
use crate::plan::Plan;
use crate::policy::{Column, Fault, Interface, Policy, Table};
use crate::quota::amounts;
use crate::room::HOUR;
use crate::rows::{Asking, Layout, opaque, saturate};
use crate::state::{Job, State};
use crater_model::columns as c;
use crater_model::{
    Cause, Claim, ClaimState, ClaimUid, JobState, JobUid, Loan, QueueName, Resource, Time, Usage,
};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Work younger than this counts as so old: reporting a checkpoint all the time
/// makes nobody the cheapest victim for ever.
const LEAST_LOST: u64 = 60;
/// A tier that spares a unit.
const SPARED: i32 = i32::MAX;

/// A running job that its owner lets be preempted.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The job.
    pub job: Arc<Job>,
    /// What it holds and is not leaving yet: what runs first, then by age.
    pub claims: Vec<Held>,
    /// How many of those an elastic job can do without.
    pub spare: usize,
}

/// A claim of a candidate.
#[derive(Clone, Debug)]
pub struct Held {
    /// Its identity.
    pub claim: ClaimUid,
    /// Whether it runs by now.
    pub runs: bool,
    /// What would be left by it.
    pub leaving: Leaving,
    /// What it counts for.
    pub usage: Usage,
    /// What of it is borrowed.
    pub loans: Vec<Loan>,
}

/// What is evicted together: one member that an elastic job can do without, or
/// all that a job needs to run.
#[derive(Clone, Debug)]
pub struct Unit {
    /// Index of its candidate.
    pub of: usize,
    /// Indices of its claims in the candidate's.
    pub claims: std::ops::Range<usize>,
    /// The job goes with it.
    pub whole: bool,
    /// Why it may be taken.
    pub cause: Cause,
    /// What it may be taken back from, if that is why.
    pub back: Vec<Back>,
    /// Its place: what is cheaper comes first. No two are equal.
    pub key: Key,
}

/// A limit of a tenant that borrowed beyond it and keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Back {
    /// The tenant's level, by its number.
    pub level: i32,
    /// What it borrowed.
    pub resource: Resource,
    /// What it uses by the books.
    pub used: u64,
    /// What it may always use.
    pub hard: u64,
}

/// Borrowed work first; then the policy's tier and cost; then the youngest; then
/// by number.
pub type Key = (bool, i32, i32, Reverse<Time>, Reverse<JobUid>, bool, Reverse<usize>);

/// Every running job that may be evicted at all, what is leaving already, and
/// when the next one may be evicted that may not yet.
pub fn survey(state: &State, now: Time) -> (Vec<Candidate>, Vec<Leaving>, Option<Time>) {
    let (mut candidates, mut leaving) = (vec![], vec![]);
    let mut later: Option<Time> = None;
    for claim in state.leaving.iter().filter_map(|uid| state.claim(*uid)) {
        if let Some(job) = state.job(claim.job) {
            let (slot, held) = (claim.node.0 as u32, claim.held.clone());
            leaving.push(Leaving { slot, job: job.uid, owner: job.owner, held });
        }
    }
    // What each queue has given lately.
    let mut spent: BTreeMap<&QueueName, Option<Time>> = BTreeMap::new();
    for job in state.victims.iter().filter_map(|uid| state.job(*uid)) {
        let Some(queue) = state.queues().get(&job.spec.queue) else { continue };
        let rules = queue.spec.room;
        let spent = *spent.entry(&queue.spec.name).or_insert_with(|| {
            // So many lately; there may be another when the oldest of them is past.
            let most = rules.preemptions_per_hour as usize;
            let mut recent = queue.evictions.iter().filter(|t| now.secs_since(**t) < HOUR);
            let oldest = if most > 0 { recent.nth_back(most - 1) } else { None };
            oldest.map(|t| Time(t.0.saturating_add(1000 * HOUR)))
        });
        let kept = rules.preemptions_per_job > 0 && job.preemptions >= rules.preemptions_per_job;
        if job.state == JobState::Preempting || kept {
            continue;
        }
        let ripe = Time(job.since.0.saturating_add(1000 * u64::from(rules.minimum_run)));
        let from = spent.map_or(ripe, |t| t.max(ripe));
        if from > now {
            later = Some(later.map_or(from, |at| at.min(from)));
            continue;
        }
        let claims = job.claims.iter().filter_map(|uid| state.claim(*uid));
        let held = |claim: &Arc<Claim>| {
            let node = state.node(claim.node)?;
            let (slot, held) = (claim.node.0 as u32, claim.held.clone());
            Some(Held {
                claim: claim.uid,
                runs: claim.state == ClaimState::Held,
                leaving: Leaving { slot, job: job.uid, owner: job.owner, held },
                usage: amounts(&claim.held, &node.spec),
                loans: claim.loans.clone(),
            })
        };
        let mut claims: Vec<Held> =
            claims.filter(|c| c.state != ClaimState::Releasing).filter_map(held).collect();
        if claims.is_empty() {
            continue;
        }
        claims.sort_by_key(|h| (!h.runs, h.claim));
        // Without any member it would not run on, whoever has ended well.
        let needed = job.spec.min_members.saturating_sub(job.ended).max(1) as usize;
        let elastic = job.spec.min_members < job.spec.members;
        let spare = if elastic { claims.len().saturating_sub(needed) } else { 0 };
        candidates.push(Candidate { job: job.clone(), claims, spare });
    }
    (candidates, leaving, later)
}

/// The units of the candidates that may go for a job, cheapest first.
pub fn units(
    making: &mut Making,
    overlay: &Overlay<'_>,
    preemptor: &Job,
    relevant: &dyn Fn(&Candidate) -> bool,
    policies: &Policies,
    round: Round<'_>,
    plan: &mut Plan,
) -> Vec<Unit> {
    let (state, now) = (overlay.base(), round.now);
    let rights = Rights::of(overlay, preemptor);
    let mut legal: BTreeMap<&QueueName, Vec<(usize, Cause)>> = BTreeMap::new();
    for (at, candidate) in making.candidates.iter().enumerate() {
        let victim = &candidate.job;
        if victim.uid == preemptor.uid || making.gone.contains(&victim.uid) {
            continue;
        }
        let cause = if preemptor.rank() > victim.rank() {
            Cause::Preempt
        } else if !rights.back(state, candidate, &candidate.claims).is_empty() {
            Cause::Reclaim
        } else {
            continue;
        };
        if relevant(candidate) {
            legal.entry(&victim.spec.queue).or_default().push((at, cause));
        }
    }
    let mut units = vec![];
    for (queue, legal) in legal {
        let policy = policies.get(queue).map(|p| &**p);
        let mut bare: Vec<Unit> = vec![];
        for (at, cause) in legal {
            let candidate = &making.candidates[at];
            let core = candidate.claims.len() - candidate.spare;
            // With what it needs to run, all that the job borrowed goes.
            let unit = |claims: std::ops::Range<usize>, whole| {
                let held = if whole { 0..candidate.claims.len() } else { claims.clone() };
                let held = &candidate.claims[held];
                let reclaimed = cause == Cause::Reclaim;
                let back = if reclaimed { rights.back(state, candidate, held) } else { vec![] };
                Unit { of: at, claims, whole, cause, back, key: no_key() }
            };
            bare.extend((core..candidate.claims.len()).map(|i| unit(i..i + 1, false)));
            bare.push(unit(0..core, true));
            // A member that borrowed nothing is nobody's to take back.
            bare.retain(|unit| unit.cause != Cause::Reclaim || !unit.back.is_empty());
        }
        let asked = policy.filter(|p| p.manifest().exports(Interface::Preempt));
        let asked = asked.filter(|_| !making.unpriced.contains(queue));
        let fault = asked.and_then(|_| known_fault(round.replay, queue, preemptor.uid));
        let prices = asked.and_then(|policy| {
            let prices = match fault {
                Some(fault) => Err(fault),
                None => priced(making, &bare, policy, preemptor, state, now),
            };
            prices.map_err(|fault| plan.unpriced.push((queue.clone(), preemptor.uid, fault))).ok()
        });
        let own = || bare.iter().map(|unit| own_price(making, unit, now)).collect();
        let prices: Vec<(i32, i32)> = prices.unwrap_or_else(own);
        for (unit, price) in bare.iter_mut().zip(prices) {
            unit.key = key(making, unit, price);
        }
        // A job never goes before what it can do without.
        raise_cores(&mut bare);
        let spared = |u: &Unit| u.key.1 == SPARED && u.key.0;
        units.extend(bare.into_iter().filter(|u| !spared(u)));
    }
    making.unpriced.extend(plan.unpriced.iter().map(|(queue, ..)| queue.clone()));
    units.sort_by_key(|unit| unit.key);
    units
}

/// The fault with which a queue's prices failed for this job in the plan that is
/// decided again.
fn known_fault(replay: Option<&Plan>, queue: &QueueName, job: JobUid) -> Option<Fault> {
    let same = |(q, j, _): &&(QueueName, JobUid, Fault)| q == queue && *j == job;
    replay?.unpriced.iter().find(same).map(|(_, _, fault)| fault.clone())
}

fn no_key() -> Key {
    (true, 0, 0, Reverse(Time(0)), Reverse(JobUid(0)), true, Reverse(0))
}

fn raise_cores(units: &mut [Unit]) {
    let mut dearest: BTreeMap<usize, (bool, i32, i32)> = BTreeMap::new();
    for unit in units.iter().filter(|u| !u.whole) {
        let price = (unit.key.0, unit.key.1, unit.key.2);
        let known = dearest.entry(unit.of).or_insert(price);
        *known = price.max(*known);
    }
    for unit in units.iter_mut().filter(|u| u.whole) {
        if let Some(least) = dearest.get(&unit.of) {
            let own = (unit.key.0, unit.key.1, unit.key.2);
            (unit.key.0, unit.key.1, unit.key.2) = own.max(*least);
        }
    }
}

fn key(making: &Making, unit: &Unit, (tier, cost): (i32, i32)) -> Key {
    let candidate = &making.candidates[unit.of];
    let job = &candidate.job;
    let borrowed = candidate.claims[unit.claims.clone()].iter().any(|h| !h.loans.is_empty());
    let tier = if borrowed && tier == SPARED { SPARED - 1 } else { tier };
    let member = Reverse(unit.claims.start);
    (!borrowed, tier, cost, Reverse(job.since), Reverse(job.uid), unit.whole, member)
}

/// Seconds of work that would be lost.
fn lost(job: &Job, now: Time) -> u64 {
    let running = now.secs_since(job.since);
    let since = job.checkpointed.filter(|at| *at >= job.since);
    since.map_or(running, |at| now.secs_since(at).max(running.min(LEAST_LOST)))
}

fn milli(making: &Making, unit: &Unit) -> u64 {
    let held = &making.candidates[unit.of].claims[unit.claims.clone()];
    held.iter().map(|h| h.usage.gpu.0).sum()
}

/// The host's own price: by priority, then by card-seconds that would be lost;
/// work without cards counts as a thousandth of one.
fn own_price(making: &Making, unit: &Unit, now: Time) -> (i32, i32) {
    let job = &making.candidates[unit.of].job;
    let cost = lost(job, now).saturating_mul(milli(making, unit).max(1)) / 1000;
    (i32::from(job.spec.priority.0), saturate(cost))
}

/// The policy's prices for its queue's units.
fn priced(
    making: &Making,
    units: &[Unit],
    policy: &dyn Policy,
    preemptor: &Job,
    state: &State,
    now: Time,
) -> Result<Vec<(i32, i32)>, Fault> {
    let manifest = policy.manifest();
    let layout = Layout::new(manifest);
    let wanted: Vec<u32> = manifest
        .wants
        .iter()
        .copied()
        .filter(|id| c::info(*id).is_some_and(|i| i.table == c::TableKind::Unit))
        .collect();
    let columns = wanted.iter().map(|&id| {
        let values = units.iter().map(|unit| value(making, unit, id, now)).collect();
        Column { id, values }
    });
    let table = Table { rows: units.len() as u32, columns: columns.collect() };
    let asking = Asking { job: preemptor, placed: 0, now, seed: 0 };
    let context = layout.context(now, crate::shape::mix(preemptor.uid.0));
    let prices = policy.price(&context, &layout.job(&asking, &state.strings), &table)?;
    if prices.len() != units.len() {
        let detail = format!("{} entries for {} rows", prices.len(), units.len());
        return Err(Fault::BadAnswer { interface: Interface::Preempt, detail });
    }
    Ok(prices)
}

fn value(making: &Making, unit: &Unit, id: u32, now: Time) -> i32 {
    let candidate = &making.candidates[unit.of];
    let job = &candidate.job;
    match id {
        c::UNIT_JOB => opaque(job.uid.0),
        c::UNIT_SHRINK => i32::from(!unit.whole),
        c::UNIT_KIND => job.spec.kind.code(),
        c::UNIT_PRIORITY => i32::from(job.spec.priority.0),
        c::UNIT_MEMBERS => saturate(unit.claims.len() as u64),
        c::UNIT_MILLI => saturate(milli(making, unit)),
        c::UNIT_RUNNING => saturate(now.secs_since(job.since)),
        c::UNIT_SINCE_CHECKPOINT => {
            let saved = job.checkpointed.filter(|at| *at >= job.since);
            saved.map_or(-1, |_| saturate(lost(job, now)))
        }
        c::UNIT_PREEMPTIONS => saturate(u64::from(job.preemptions)),
        c::UNIT_BORROWED => {
            let held = &candidate.claims[unit.claims.clone()];
            // The most of any level: what one level lent, the one above counts again.
            let of = |h: &Held| h.loans.iter().map(|l| l.amounts.gpu.0).max().unwrap_or(0);
            saturate(held.iter().map(of).sum())
        }
        c::UNIT_USER => job.owner.user,
        _ => 0,
    }
}

/// What a job may take back.
pub struct Rights {
    owner: Owner,
    /// Levels at which the job stays within its own limits, which it has.
    own: Vec<Arc<str>>,
    /// Its whole path.
    path: [Arc<str>; 3],
}

impl Rights {
    /// By what the job asks for at least.
    pub fn of(overlay: &Overlay<'_>, job: &Job) -> Self {
        let state = overlay.base();
        let tenant = &job.spec.tenant;
        let path = [tenant.department(), tenant.project(), tenant.as_str()].map(Arc::from);
        let mut own = vec![];
        if state.quotas().any_loans() {
            let mut least = Usage::default();
            for _ in 0..job.spec.min_members {
                least.add(&crate::quota::least(&job.spec.request));
            }
            // From the person up: entitled as far as each level stays within
            // its own hard limit.
            let mut levels: Vec<&Arc<str>> = path.iter().collect();
            levels.dedup();
            for level in levels.into_iter().rev() {
                let known = state.level(level).filter(|l| l.spec.is_some());
                let Some(known) = known else {
                    own.push(level.clone());
                    continue;
                };
                let id = state.known_owner(level).unwrap_or_default();
                let quota = overlay.quota();
                let within = known.spec.iter().flat_map(|s| s.hard.iter()).all(|(r, hard)| {
                    let asked = least.get(&r);
                    asked == 0
                        || quota.over(id, &r, known.used.get(&r)).saturating_add(asked) <= hard
                });
                if !within {
                    break;
                }
                own.push(level.clone());
            }
        }
        Self { owner: job.owner, own, path }
    }

    /// What of some claims of a job may be taken back: what a level of its own
    /// borrowed of levels that are the asker's.
    fn back(&self, state: &State, candidate: &Candidate, held: &[Held]) -> Vec<Back> {
        let mut all: Vec<Back> = vec![];
        if self.own.is_empty() || candidate.job.owner.user == self.owner.user {
            return all;
        }
        for loan in held.iter().flat_map(|h| &h.loans).filter(|l| self.contests(state, &l.tenant)) {
            let (Some(level), Some(known)) =
                (state.known_owner(&loan.tenant), state.level(&loan.tenant))
            else {
                continue;
            };
            for (resource, _) in loan.amounts.iter() {
                let (used, hard) = (known.used.get(&resource), known.hard(&resource).unwrap_or(0));
                let back = Back { level, resource, used, hard };
                if !all.contains(&back) {
                    all.push(back);
                }
            }
        }
        all
    }

    /// Whether a level other than the asker's own borrowed something, and the
    /// asker has a limit of its own where their paths part and is below it.
    pub fn contests(&self, state: &State, borrower: &Arc<str>) -> bool {
        if self.path.contains(borrower) {
            return false;
        }
        // The asker's highest level that is not above the borrower, too.
        let above = |level: &str| {
            let rest = borrower.strip_prefix(level);
            rest.is_some_and(|r| r.is_empty() || r.starts_with('/'))
        };
        let Some(part) = self.path.iter().find(|level| !above(level)) else { return false };
        let limited = |l: &Arc<str>| {
            state.level(l).and_then(|l| l.spec.clone()).is_some_and(|s| !s.hard.is_empty())
        };
        // Entitled there, by a limit there or below.
        self.own.contains(part) && self.path.iter().skip_while(|l| *l != part).any(limited)
    }
}
