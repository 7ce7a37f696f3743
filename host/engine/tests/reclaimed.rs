//! On small random clusters with quotas and loans, the jobs that go for one that
//! reclaims are the cheapest set that may go, found by trying all of them.
#![allow(missing_docs)]

mod common;

use common::{Bench, job, node, request};
use crater_engine::fit::{Choice, choose, fits};
use crater_engine::node::NodeState;
use crater_engine::{Job, State, mix};
use crater_model::{
    Cause, Claim, ClaimState, JobSpec, JobUid, Kind, PlatformSpec, Priority, QueueSpec, Resource,
    RoomRules, TenantPath, TenantSpec, Time,
};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = mix(self.0.wrapping_add(0x9E37_79B9_7F4A_7C15));
        self.0 % n
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize]
    }
}

/// Two departments: one lends among its projects and persons, the other to it.
/// The last but two use little before they ask.
const TENANTS: [&str; 6] =
    ["ai/nlp/mei", "ai/nlp/bob", "ai/vision", "hr/web", "ai/speech", "hr/shop"];

fn milli(job: &Job, state: &State) -> u64 {
    claims(job, state).map(|claim| claim.held.milli().0).sum()
}

fn claims<'a>(job: &'a Job, state: &'a State) -> impl Iterator<Item = &'a Arc<Claim>> {
    job.claims.iter().filter_map(|uid| state.claim(*uid))
}

fn within(path: &str, level: &str) -> bool {
    path.strip_prefix(level).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The levels of a path, from the department down.
fn levels(path: &TenantPath) -> Vec<String> {
    let ends = path.as_str().match_indices('/').map(|(at, _)| at);
    let ends = ends.chain([path.as_str().len()]);
    ends.map(|end| path.as_str()[..end].to_owned()).collect()
}

/// Milli-cards that a level uses and may always use.
fn gpu(state: &State, level: &str) -> (u64, Option<u64>) {
    state.level(level).map_or((0, None), |l| (l.used.get(&Resource::Gpu), l.hard(&Resource::Gpu)))
}

/// The levels whose loans of this job the asker may take back: where their paths
/// part the asker has a limit, there or below, and is within every one up to there.
fn contested(state: &State, asker: &Job, asked: u64, victim: &Job) -> Vec<Arc<str>> {
    let own = levels(&asker.spec.tenant);
    let borrowers = claims(victim, state).flat_map(|c| &c.loans).map(|loan| loan.tenant.clone());
    let mut borrowers: Vec<Arc<str>> = borrowers.collect();
    borrowers.sort_unstable();
    borrowers.dedup();
    // What its own department borrowed is the asker's loan, too.
    borrowers.retain(|borrower| !own.iter().any(|level| **level == **borrower));
    borrowers.retain(|borrower| {
        let Some(part) = own.iter().position(|level| !within(borrower, level)) else {
            return false;
        };
        let below = &own[part..];
        let limited = below.iter().any(|level| gpu(state, level).1.is_some());
        limited
            && below.iter().all(|level| {
                let (used, hard) = gpu(state, level);
                hard.is_none_or(|hard| used + asked <= hard)
            })
    });
    borrowers
}

/// One who may go.
struct Victim {
    job: Arc<Job>,
    cause: Cause,
    /// Borrowed last: then by priority, what is lost, age and number.
    price: (bool, u16, u64, Reverse<Time>, Reverse<JobUid>),
    /// Levels at which it is taken back.
    back: Vec<Arc<str>>,
}

fn victims(bench: &Bench, asker: &Job, asked: u64, all: &[JobUid]) -> Vec<Victim> {
    let state = bench.ledger.state();
    let jobs = all.iter().filter_map(|uid| state.job(*uid)).filter(|j| j.spec.preemptible);
    let victim = |job: &Arc<Job>| {
        let back = contested(state, asker, asked, job);
        let cause = match () {
            () if asker.rank() > job.rank() => Cause::Preempt,
            () if !back.is_empty() && job.owner.user != asker.owner.user => Cause::Reclaim,
            () => return None,
        };
        let owned = claims(job, state).all(|claim| claim.loans.is_empty());
        let lost = bench.now.secs_since(job.since) * milli(job, state).max(1) / 1000;
        let price = (owned, job.spec.priority.0, lost, Reverse(job.since), Reverse(job.uid));
        let back = if cause == Cause::Reclaim { back } else { vec![] };
        Some(Victim { job: job.clone(), cause, price, back })
    };
    jobs.filter_map(victim).collect()
}

/// Whether each from whom something is taken back keeps its own.
fn keep_their_own(state: &State, set: &[&Victim]) -> bool {
    set.iter().flat_map(|victim| &victim.back).all(|level| {
        let (used, hard) = gpu(state, level);
        let under = set.iter().filter(|v| within(v.job.spec.tenant.as_str(), level));
        let gone: u64 = under.map(|v| milli(&v.job, state)).sum();
        used - gone >= hard.unwrap_or(0)
    })
}

/// Whether the asker starts without them: on the machines and within its quotas.
fn starts_without(state: &State, asker: &Job, asked: u64, set: &[&Victim]) -> bool {
    let may_borrow = asker.spec.preemptible;
    let allowed = levels(&asker.spec.tenant).iter().all(|level| {
        let (used, hard) = gpu(state, level);
        let under = set.iter().filter(|v| within(v.job.spec.tenant.as_str(), level));
        let gone: u64 = under.map(|v| milli(&v.job, state)).sum();
        // Nobody's soft limit is in the way here.
        hard.is_none_or(|hard| may_borrow || used - gone + asked <= hard)
    });
    let mut room = 0;
    for node in state.nodes() {
        let (mut node, uid) = (NodeState::clone(node), node.uid);
        for victim in set {
            for claim in claims(&victim.job, state).filter(|claim| claim.node == uid) {
                node.release(victim.job.uid, &claim.held);
            }
        }
        while room < asker.spec.min_members && fits(&node, &asker.spec.request).is_ok() {
            let held = choose(&node, &asker.spec.request, Choice::Roomiest).unwrap();
            node.charge(asker.uid, asker.owner, &held).unwrap();
            room += 1;
        }
    }
    allowed && room >= asker.spec.min_members
}

/// The cheapest set by trying all: compared by its dearest job, then the next,
/// the shorter before the longer.
fn exhaustive(
    state: &State,
    asker: &Job,
    asked: u64,
    victims: &[Victim],
) -> Option<BTreeMap<JobUid, Cause>> {
    let mut best: Option<(Vec<_>, BTreeMap<JobUid, Cause>)> = None;
    for bits in 0..1_u32 << victims.len() {
        let set: Vec<&Victim> = victims
            .iter()
            .enumerate()
            .filter(|(i, _)| bits >> i & 1 == 1)
            .map(|(_, v)| v)
            .collect();
        if !keep_their_own(state, &set) || !starts_without(state, asker, asked, &set) {
            continue;
        }
        let mut prices: Vec<_> = set.iter().map(|victim| victim.price).collect();
        prices.sort_unstable_by_key(|price| Reverse(*price));
        if best.as_ref().is_none_or(|(least, _)| prices < *least) {
            best = Some((prices, set.iter().map(|v| (v.job.uid, v.cause)).collect()));
        }
    }
    best.map(|(_, set)| set)
}

/// A full cluster in which some use what others could have.
fn lent(random: &mut Random) -> (Bench, Vec<JobUid>) {
    let nodes = 1 + random.below(3);
    let cards = 2 + random.below(3);
    let all = 1000 * nodes * cards;
    let mut bench = Bench::new(
        (0..nodes).map(|i| node(&format!("n{i}"), 64_000, 1 << 20, cards as usize, 16_384)),
    );
    let at = bench.now;
    let platform = PlatformSpec {
        borrowing: true,
        borrow_opens_below_percent: 100,
        borrow_closes_at_percent: 100,
        ..PlatformSpec::default()
    };
    bench.ledger.set_platform(at, platform).unwrap();
    bench.ledger.note_use(at, Some(0)).unwrap();
    for path in ["ai", "hr", "ai/nlp", "ai/nlp/mei", "ai/vision", "hr/web", "ai/speech", "hr/shop"]
    {
        if random.below(6) == 0 {
            continue;
        }
        let mut spec = TenantSpec::new(TenantPath::parse("tenant", path).unwrap());
        let (least, most) = match path {
            "ai" | "hr" => (all / 1000, all / 500),
            "ai/speech" | "hr/shop" => (4, 8),
            _ => (0, 5),
        };
        spec.hard.set(&Resource::Gpu, Some(500 * (least + random.below(most - least))));
        spec.soft.set(&Resource::Gpu, Some(100 * all));
        bench.ledger.set_tenant(at, spec).unwrap();
    }
    // Nobody goes while it fills.
    spare(&mut bench, u32::MAX);
    let mut running = vec![];
    for i in 0..9 + random.below(3) {
        let members = 1 + random.below(4) as u32 / 3;
        let spec = JobSpec {
            tenant: TenantPath::parse("tenant", random.of(&TENANTS[..5])).unwrap(),
            priority: Priority(random.of(&[50, 50, 50, 20])),
            preemptible: random.below(8) > 0,
            members,
            min_members: members,
            ..job(&format!("j{i}"), request(random.of(&[1000, 1000, 500, 2000]), 0, 1000, 1024))
        };
        let uid = bench.submit(spec);
        if !bench.round().placed(uid) {
            bench.ledger.end_job(bench.now, uid, crater_model::JobState::Cancelled, "").unwrap();
            continue;
        }
        for claim in bench.ledger.state().job(uid).unwrap().claims.clone() {
            bench.ledger.move_claim(bench.now, claim, ClaimState::Held).unwrap();
        }
        bench.now = Time(bench.now.0 + 1000 * (1 + random.below(30)));
        running.push(uid);
    }
    (bench, running)
}

/// Nobody goes who has run for less than this.
fn spare(bench: &mut Bench, minimum_run: u32) {
    let room = RoomRules { minimum_run, ..RoomRules::default() };
    let queue = QueueSpec { room, ..QueueSpec::new("q", Kind::Training) };
    bench.ledger.set_queue(bench.now, queue).unwrap();
}

/// How a world ended: victims by cause.
fn one(seed: u64) -> (usize, usize) {
    let mut random = Random(seed);
    let (mut bench, running) = lent(&mut random);
    bench.now = Time(bench.now.0 + 100_000);
    spare(&mut bench, 0);
    let members = 1 + random.below(3) as u32 / 2;
    let spec = JobSpec {
        tenant: TenantPath::parse("tenant", TENANTS[random.below(12).min(5) as usize]).unwrap(),
        preemptible: random.below(3) == 0,
        members,
        min_members: members,
        ..job("asker", request(random.of(&[1000, 2000, 500]), 0, 1000, 1024))
    };
    let asked = spec.request.gpu.as_ref().map_or(0, |gpu| match gpu.share {
        crater_model::Share::Part { milli, .. } => milli.0,
        _ => 1000 * gpu.cards,
    }) * u64::from(members);
    let uid = bench.submit(spec);
    let state = bench.ledger.state().clone();
    let asker = state.job(uid).unwrap().clone();
    let victims = victims(&bench, &asker, asked, &running);
    let expected = exhaustive(&state, &asker, asked, &victims);
    let plan = bench.round();
    let chosen: Option<BTreeMap<JobUid, Cause>> = if plan.placed(uid) {
        Some(BTreeMap::new())
    } else {
        plan.rooms.first().map(|r| r.evictions.iter().map(|e| (e.job, e.cause)).collect())
    };
    assert_eq!(chosen, expected, "seed {seed}: {}", bench.lines(&plan));
    let count = |cause| expected.iter().flatten().filter(|(_, c)| **c == cause).count();
    (count(Cause::Reclaim), count(Cause::Preempt))
}

#[test]
fn what_is_taken_back_is_the_cheapest_set_that_leaves_everybody_their_own() {
    let (mut reclaims, mut several, mut both) = (0, 0, 0);
    for seed in 0..1000 {
        let (reclaimed, preempted) = one(seed);
        reclaims += u64::from(reclaimed > 0);
        several += u64::from(reclaimed > 1);
        both += u64::from(reclaimed > 0 && preempted > 0);
    }
    assert!(reclaims > 120 && several > 12 && both > 12, "{reclaims} {several} {both}");
}
