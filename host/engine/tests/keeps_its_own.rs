//! Who borrowed keeps its own limit, whatever else of it goes.
#![allow(missing_docs)]

mod common;

use common::{Bench, job, node, request};
use crater_model::{
    Cause, ClaimState, JobSpec, JobState, JobUid, Kind, PlatformSpec, QueueSpec, RoomRules,
    TenantPath, TenantSpec,
};

/// One machine, on which `ai/nlp` may always use two cards and `ai/vision` six,
/// and borrowing is open.
fn bench(cards: usize) -> Bench {
    let mut bench = Bench::new([node("n", 64_000, 1 << 20, cards, 16_384)]);
    let platform = PlatformSpec {
        borrowing: true,
        borrow_opens_below_percent: 100,
        borrow_closes_at_percent: 100,
        ..PlatformSpec::default()
    };
    let at = bench.now;
    bench.ledger.set_platform(at, platform).unwrap();
    bench.ledger.note_use(at, Some(0)).unwrap();
    limit(&mut bench, "ai/nlp", "2");
    limit(&mut bench, "ai/vision", "6");
    let room = RoomRules { minimum_run: 0, ..RoomRules::default() };
    bench.ledger.set_queue(at, QueueSpec { room, ..QueueSpec::new("q", Kind::Training) }).unwrap();
    bench
}

fn limit(bench: &mut Bench, path: &str, hard: &str) {
    let mut spec = TenantSpec::new(TenantPath::parse("tenant", path).unwrap());
    spec.hard.field("gpu", hard).unwrap();
    spec.soft.field("gpu", "60").unwrap();
    bench.ledger.set_tenant(bench.now, spec).unwrap();
}

fn of(tenant: &str, members: u32, min: u32) -> JobSpec {
    JobSpec {
        tenant: TenantPath::parse("tenant", tenant).unwrap(),
        preemptible: true,
        members,
        min_members: min,
        ..job("j", request(1000, 0, 1000, 1024))
    }
}

/// Submits a job that starts at once and runs.
fn runs(bench: &mut Bench, spec: JobSpec) -> JobUid {
    let uid = bench.submit(spec);
    assert!(bench.round().placed(uid));
    for claim in bench.ledger.state().job(uid).unwrap().claims.clone() {
        bench.ledger.move_claim(bench.now, claim, ClaimState::Held).unwrap();
    }
    bench.now = crater_model::Time(bench.now.0 + 1000);
    uid
}

/// Two jobs of `ai/nlp` that borrowed, of which only one is above its own by now,
/// on a cluster that is full.
fn one_too_many(bench: &mut Bench) -> [JobUid; 2] {
    let own = [(); 2].map(|()| runs(bench, of("ai/nlp", 1, 1)));
    let lent = [(); 2].map(|()| runs(bench, of("ai/nlp", 1, 1)));
    let claim = bench.ledger.state().job(own[0]).unwrap().claims[0];
    bench.ledger.member_ended(bench.now, claim, true).unwrap();
    runs(bench, JobSpec { preemptible: false, ..of("hr", 1, 1) });
    lent
}

fn state(bench: &Bench, job: JobUid) -> JobState {
    bench.ledger.state().job(job).unwrap().state
}

#[test]
fn what_leaves_already_counts_as_gone() {
    let mut bench = bench(4);
    let lent = one_too_many(&mut bench);

    bench.submit(of("ai/vision", 1, 1));
    bench.round();
    assert_eq!(lent.map(|job| state(&bench, job)), [JobState::Running, JobState::Preempting]);
    // It has not gone yet. A second one would take what is not borrowed any more.
    let late = bench.submit(of("ai/vision", 1, 1));
    let plan = bench.round();
    assert_eq!(
        (state(&bench, lent[0]), state(&bench, late)),
        (JobState::Running, JobState::Pending)
    );
    assert_eq!(plan.rooms, []);
}

#[test]
fn two_that_ask_in_one_round_do_not_take_the_same_twice() {
    let mut bench = bench(4);
    let lent = one_too_many(&mut bench);
    bench.submit(of("ai/vision/mei", 1, 1));
    bench.submit(of("ai/vision/bob", 1, 1));
    assert_eq!(bench.round().rooms.len(), 1);
    assert_eq!(lent.map(|job| state(&bench, job)), [JobState::Running, JobState::Preempting]);
}

#[test]
fn what_an_elastic_job_owns_is_not_taken_back_below_its_tenants_own() {
    let mut bench = bench(6);
    let elastic = runs(&mut bench, of("ai/nlp", 4, 2));
    let lent = runs(&mut bench, of("ai/nlp", 1, 1));
    runs(&mut bench, JobSpec { preemptible: false, ..of("hr", 1, 1) });
    // Three are borrowed: two members and a job. Four cards are not to be had.
    let four = bench.submit(of("ai/vision", 4, 4));
    assert_eq!(bench.round().rooms, []);
    bench.ledger.end_job(bench.now, four, JobState::Cancelled, "").unwrap();
    bench.submit(of("ai/vision", 3, 3));
    let plan = bench.round();
    let gone: Vec<_> =
        plan.rooms[0].evictions.iter().map(|e| (e.job, e.claims.len(), e.whole)).collect();
    assert_eq!(gone, [(elastic, 2, false), (lent, 1, true)]);
}

#[test]
fn where_too_many_sets_are_to_be_tried_an_allowed_one_is_found() {
    let mut bench = bench(64);
    limit(&mut bench, "ai/speech", "0");
    runs(&mut bench, of("ai/nlp", 2, 2));
    for _ in 0..30 {
        runs(&mut bench, of("ai/nlp", 1, 1));
    }
    let other = runs(&mut bench, of("ai/speech", 4, 4));
    runs(&mut bench, JobSpec { preemptible: false, ..of("hr", 28, 28) });
    // Of thirty that borrowed all but two hold what is their tenant's by now, so
    // there are ten thousands of ways in which four of them may not go. They are
    // cheaper than the one that may.
    limit(&mut bench, "ai/nlp", "30");
    bench.submit(of("ai/vision", 4, 4));
    let plan = bench.round();
    let gone: Vec<_> = plan.rooms[0].evictions.iter().map(|e| (e.job, e.cause)).collect();
    assert_eq!(gone, [(other, Cause::Reclaim)]);
}
