//! Quotas on small clusters, read as text.
#![allow(missing_docs)]

mod common;

use common::{Bench, job, node, request};
use crater_engine::quota::preview;
use crater_engine::{Refusal, Snapshot, State};
use crater_model::{
    CardSpec, ClaimState, JobChanges, JobSpec, JobState, JobUid, Mib, MilliCores, NodeSpec,
    PlatformSpec, Priority, Reason, Resource, TenantPath, TenantSpec,
};
use expect_test::{Expect, expect};
use std::sync::Arc;

fn path(text: &str) -> TenantPath {
    TenantPath::parse("tenant", text).unwrap()
}

fn tenant(path_text: &str, hard: &[(&str, &str)]) -> TenantSpec {
    let mut spec = TenantSpec::new(path(path_text));
    for (field, text) in hard {
        spec.hard.field(field, text).unwrap();
    }
    spec
}

fn of(tenant: &str, name: &str, request: crater_model::Request) -> JobSpec {
    JobSpec { tenant: path(tenant), ..job(name, request) }
}

fn check(bench: &mut Bench, jobs: Vec<JobSpec>, expected: &Expect) {
    for job in jobs {
        bench.submit(job);
    }
    let plan = bench.round();
    expected.assert_eq(&bench.lines(&plan));
}

impl Bench {
    fn tenant(&mut self, path: &str, hard: &[(&str, &str)]) {
        self.ledger.set_tenant(self.now, tenant(path, hard)).unwrap();
    }

    /// Ends a job and all that it holds.
    fn end(&mut self, job: JobUid) {
        let claims = self.ledger.state().job(job).unwrap().claims.clone();
        self.ledger.end_job(self.now, job, JobState::Cancelled, "").unwrap();
        for claim in claims {
            self.ledger.move_claim(self.now, claim, ClaimState::Gone).unwrap();
        }
        self.ledger.state().audit().unwrap();
    }

    fn used(&self, path: &str, resource: &Resource) -> u64 {
        self.ledger.state().level(path).map_or(0, |l| l.used.get(resource))
    }
}

fn cluster() -> Bench {
    Bench::new([node("n1", 64_000, 262_144, 8, 40_960)])
}

#[test]
fn each_level_is_checked_and_the_reason_says_which_and_how_much() {
    let mut bench = cluster();
    bench.tenant("ai", &[("gpu", "3")]);
    bench.tenant("ai/nlp", &[("gpu", "2"), ("cpu", "6")]);
    let one = || request(1000, 0, 1000, 1024);
    check(
        &mut bench,
        vec![
            of("ai/nlp/mei", "mei1", one()),
            of("ai/nlp/bob", "bob1", request(500, 0, 4000, 1024)),
            of("ai/nlp/bob", "bob2", one()),
            of("ai/nlp", "nlp1", request(0, 0, 2000, 1024)),
            of("ai/vision", "vision1", request(500, 0, 1000, 1024)),
            of("ai/vision", "vision2", request(2000, 0, 1000, 1024)),
            of("ops", "ops1", one()),
        ],
        &expect![[r"
            mei1 → n1 [0:1/40Gi]
            bob1 → n1 [1:0.5/20Gi]
            bob2 waits: quota of ai/nlp: gpu 1.5 of 2 used, 1 asked
            nlp1 waits: quota of ai/nlp: cpu 5 of 6 used, 2 asked
            vision1 → n1 [1:0.5/20Gi]
            vision2 waits: quota of ai: gpu 2 of 3 used, 2 asked
            ops1 → n1 [2:1/40Gi]
        "]],
    );
    let level = bench.ledger.state().level("ai").unwrap();
    assert_eq!((level.used.gpu.0, level.free(&Resource::Gpu)), (2000, Some(1000)));
    assert_eq!(bench.used("ai/nlp/mei", &Resource::Cpu), 1000);
    assert_eq!(bench.used("ops", &Resource::Gpu), 1000, "counted also without a quota");
}

#[test]
fn a_gang_is_within_the_quota_whole_or_waits() {
    let mut bench = cluster();
    bench.tenant("ai", &[("gpu", "4")]);
    let gang = |name, members, min| JobSpec {
        members,
        min_members: min,
        ..of("ai", name, request(1000, 0, 1000, 1024))
    };
    check(
        &mut bench,
        vec![gang("five", 5, 5), gang("three", 3, 3), gang("two", 2, 2), gang("elastic", 4, 1)],
        &expect![[r"
            five waits: quota of ai: gpu 0 of 4 used, 5 asked, more than the whole quota
            three → n1 [0:1/40Gi]
            three → n1 [1:1/40Gi]
            three → n1 [2:1/40Gi]
            two waits: quota of ai: gpu 3 of 4 used, 2 asked
            elastic → n1 [3:1/40Gi]
        "]],
    );
}

#[test]
fn what_follows_from_the_card_is_checked_when_the_card_is_chosen() {
    let mut bench = cluster();
    bench.tenant("ai/nlp", &[("gpu", "1.2")]);
    bench.tenant("ai/vision", &[("gpu-memory", "25600")]);
    check(
        &mut bench,
        vec![
            // A quarter each, and three quarters.
            of("ai/nlp", "a", request(0, 10_240, 1000, 1024)),
            of("ai/nlp", "b", request(0, 10_240, 1000, 1024)),
            of("ai/nlp", "c", request(0, 30_720, 1000, 1024)),
            // The whole card's memory though none was said (C30).
            of("ai/vision", "whole", request(1000, 0, 1000, 1024)),
            of("ai/vision", "small", request(0, 1024, 1000, 1024)),
        ],
        &expect![[r"
            a → n1 [0:0.25/10Gi]
            b → n1 [0:0.25/10Gi]
            c waits: quota of ai/nlp: gpu 0.5 of 1.2 used, 0.75 asked
            whole waits: quota of ai/vision: gpu-memory 0Mi of 25Gi used, 40Gi asked, more than the whole quota
            small → n1 [0:0.025/1Gi]
        "]],
    );
}

#[test]
fn memory_is_counted_as_it_is_charged_in_slices() {
    let card = CardSpec { slice: Some(Mib(8192)), ..CardSpec::new("A100", Mib(40_960)) };
    let spec = NodeSpec::new("n1", MilliCores(64_000), Mib(262_144)).with_cards(2, &card);
    let mut bench = Bench::new([spec]);
    bench.tenant("ai", &[("gpu-memory", "20000")]);
    let small = || request(0, 1000, 100, 100);
    check(
        &mut bench,
        vec![of("ai", "a", small()), of("ai", "b", small()), of("ai", "c", small())],
        &expect![[r"
            a → n1 [0:0.2/8Gi]
            b → n1 [0:0.2/8Gi]
            c waits: quota of ai: gpu-memory 16Gi of 20000Mi used, 8Gi asked
        "]],
    );
}

#[test]
fn equal_jobs_of_another_tenant_are_not_held_back() {
    let mut bench = cluster();
    bench.tenant("ai", &[("gpu-memory", "50000")]);
    let one = || request(1000, 0, 1000, 1024);
    check(
        &mut bench,
        vec![
            of("ai", "a1", one()),
            of("ai", "a2", one()),
            of("ops", "o1", one()),
            of("ai", "a3", one()),
        ],
        &expect![[r"
            a1 → n1 [0:1/40Gi]
            a2 waits: quota of ai: gpu-memory 40Gi of 50000Mi used, 40Gi asked
            o1 → n1 [1:1/40Gi]
            a3 waits: quota of ai: gpu-memory 40Gi of 50000Mi used, 40Gi asked
        "]],
    );
}

fn two_models() -> Bench {
    let machine = |name: &str, model: &str, gib: u64| {
        NodeSpec::new(name, MilliCores(64_000), Mib(262_144))
            .with_cards(2, &CardSpec::new(model, Mib(gib * 1024)))
    };
    Bench::new([machine("small", "T4", 16), machine("large", "A100", 80)])
}

#[test]
fn a_model_without_quota_leaves_the_others() {
    let mut bench = two_models();
    bench.tenant("ai", &[("gpu.T4", "1")]);
    let one = || request(1000, 0, 1000, 1024);
    let only = |name| {
        let mut job = of("ai", name, one());
        Arc::make_mut(&mut job.request).models = vec!["T4".into()];
        job
    };
    let jobs = vec![
        of("ai", "a", one()),
        of("ai", "b", one()),
        only("c"),
        of("ai", "d", one()),
        of("ai", "e", one()),
    ];
    check(
        &mut bench,
        jobs,
        &expect![[r"
            a → small [0:1/16Gi]
            b → large [0:1/80Gi]
            c waits: quota of ai: gpu.T4 1 of 1 used, 1 asked
            d → large [1:1/80Gi]
            e waits: quota of ai: gpu.T4 1 of 1 used, 1 asked; 0/2 nodes are available: 1 no card of the asked model, 1 no card with room for the request (freest card: 1 and 16Gi; most idle cards on a node: 1)
        "]],
    );
}

#[test]
fn memory_alone_goes_where_its_share_is_within_the_quota() {
    let mut bench = two_models();
    bench.tenant("ai", &[("gpu", "0.5")]);
    bench.tenant("ops", &[("gpu", "0.45")]);
    let half = || request(0, 8192, 1000, 1024);
    let gang = JobSpec { members: 4, min_members: 4, ..of("ops", "gang", half()) };
    check(
        &mut bench,
        vec![of("ai", "half", half()), of("ops", "tenth", half()), gang],
        &expect![[r"
            half → small [0:0.5/8Gi]
            tenth → large [0:0.1/8Gi]
            gang waits: quota of ops: gpu 0.1 of 0.45 used, 0.4 asked
        "]],
    );
    // The first member alone could have half a small card.
    bench.tenant("ops", &[("gpu", "0.7")]);
    check(
        &mut bench,
        vec![],
        &expect![[r"
            gang → large [0:0.1/8Gi]
            gang → large [0:0.1/8Gi]
            gang → large [0:0.1/8Gi]
            gang → large [0:0.1/8Gi]
        "]],
    );
}

#[test]
fn a_limit_below_the_use_evicts_nobody_and_is_excess() {
    let mut bench = cluster();
    bench.tenant("ai", &[("cpu", "3")]);
    let cpu = |name, milli| of("ai", name, request(0, 0, milli, 1024));
    let running = [cpu("a", 1000), cpu("b", 1000), cpu("c", 1000)].map(|j| bench.submit(j));
    bench.round();
    bench.tenant("ai", &[("cpu", "1")]);
    let level = bench.ledger.state().level("ai").unwrap();
    assert_eq!(level.excess(), [(Resource::Cpu, 2000)]);
    assert_eq!(level.free(&Resource::Cpu), Some(0));
    check(
        &mut bench,
        vec![cpu("none", 0), cpu("one", 1000)],
        &expect![[r"
            none → n1 []
            one waits: quota of ai: cpu 3 of 1 used, 1 asked
        "]],
    );
    for job in running {
        assert!(bench.ledger.state().job(job).unwrap().claims.len() == 1, "nothing is evicted");
    }
    for job in &running[..2] {
        bench.end(*job);
        let plan = bench.round();
        assert!(plan.placements.is_empty());
    }
    bench.end(running[2]);
    check(
        &mut bench,
        vec![],
        &expect![[r"
        one → n1 []
    "]],
    );
}

#[test]
fn a_plan_that_breaks_a_quota_meanwhile_is_decided_again() {
    let mut bench = cluster();
    bench.tenant("ai", &[("gpu", "2")]);
    let jobs = ["a", "b"].map(|n| bench.submit(of("ai", n, request(1000, 0, 1000, 1024))));
    let round = crater_engine::Round::new(bench.now, 1);
    let plan = bench.decider.decide(bench.ledger.state(), &bench.policies, round);
    assert_eq!(plan.placements.len(), 2);
    bench.tenant("ai", &[("gpu", "1")]);
    let committed = bench.ledger.commit(bench.now, &plan).unwrap();
    assert_eq!(committed.claims.len(), 1);
    let [(stale, Reason::Quota(over))] = &*committed.stale else { panic!("{committed:?}") };
    assert_eq!((*stale, over.used, over.asked, over.hard), (jobs[1], 1000, 1000, 1000));
    check(
        &mut bench,
        vec![],
        &expect![[r"
        b waits: quota of ai: gpu 1 of 1 used, 1 asked
    "]],
    );
}

#[test]
fn limits_that_were_not_read_hold_everything() {
    let mut bench = cluster();
    let platform = PlatformSpec { quotas_known: false, ..PlatformSpec::default() };
    let job = bench.submit(of("ai", "a", request(1000, 0, 1000, 1024)));
    let round = crater_engine::Round::new(bench.now, 1);
    let plan = bench.decider.decide(bench.ledger.state(), &bench.policies, round);
    bench.ledger.set_platform(bench.now, platform).unwrap();
    let committed = bench.ledger.commit(bench.now, &plan).unwrap();
    assert_eq!(committed.stale, [(job, Reason::QuotasUnknown)]);
    check(
        &mut bench,
        vec![],
        &expect![[r"
        a waits: limits not available: the tenants' quotas were not read yet
    "]],
    );
    let known = PlatformSpec::default();
    bench.ledger.set_platform(bench.now, known).unwrap();
    check(
        &mut bench,
        vec![],
        &expect![[r"
        a → n1 [0:1/40Gi]
    "]],
    );
}

#[test]
fn priorities_above_the_ceiling_are_refused_by_field() {
    let mut bench = cluster();
    let ceiling = Some(Priority(60));
    bench.ledger.set_tenant(bench.now, TenantSpec { ceiling, ..tenant("ai", &[]) }).unwrap();
    let of_priority =
        |n| JobSpec { priority: Priority(n), ..of("ai/nlp/mei", "a", request(0, 0, 1000, 1024)) };
    let refused = bench.ledger.submit(bench.now, of_priority(100)).unwrap_err();
    let expected = "priority: \"100\" is refused: expected at most 60, the ceiling of ai";
    assert_eq!(refused.to_string(), expected);
    let job = bench.submit(of_priority(60));
    let raise = |n| JobChanges { priority: Some(Priority(n)), ..JobChanges::default() };
    let refused = bench.ledger.update_job(bench.now, job, raise(61)).unwrap_err();
    assert!(matches!(refused, Refusal::Field(e) if e.field == "priority"));
    // A ceiling that falls leaves what was submitted, which may still fall.
    let ceiling = Some(Priority(10));
    bench.ledger.set_tenant(bench.now, TenantSpec { ceiling, ..tenant("ai", &[]) }).unwrap();
    assert!(bench.ledger.update_job(bench.now, job, raise(50)).unwrap());
    bench.ledger.remove_tenant(bench.now, &path("ai")).unwrap();
    assert!(bench.ledger.update_job(bench.now, job, raise(1000)).unwrap());
    let again = bench.ledger.remove_tenant(bench.now, &path("ai")).unwrap_err().to_string();
    assert_eq!(again, "tenant ai is unknown");
}

#[test]
fn an_updated_job_changes_its_place_and_keeps_its_age() {
    let mut bench = Bench::new([node("n1", 64_000, 262_144, 1, 40_960)]);
    let jobs = ["a", "b", "c"].map(|n| bench.submit(of("ai", n, request(1000, 0, 1000, 1024))));
    let change = |bench: &mut Bench, job, changes| bench.ledger.update_job(bench.now, job, changes);
    let high = JobChanges { priority: Some(Priority(100)), ..JobChanges::default() };
    assert!(change(&mut bench, jobs[2], high).unwrap());
    assert!(!change(&mut bench, jobs[2], high).unwrap(), "nothing changed");
    let bad = JobChanges { disk_weight: Some(0), ..JobChanges::default() };
    assert!(
        matches!(change(&mut bench, jobs[2], bad), Err(Refusal::Field(e)) if e.field == "disk-io")
    );
    let order = |bench: &Bench| {
        let waiting = &bench.ledger.state().queues()["q"].waiting;
        waiting.iter().map(|w| w.job).collect::<Vec<_>>()
    };
    assert_eq!(order(&bench), [jobs[2], jobs[0], jobs[1]]);
    bench.round();
    assert_eq!(order(&bench), [jobs[0], jobs[1]]);
    // Of a running job the priority counts when it waits again.
    let low =
        JobChanges { priority: Some(Priority(1)), disk_weight: Some(7), preemptible: Some(true) };
    assert!(change(&mut bench, jobs[2], low).unwrap());
    let job = bench.ledger.state().job(jobs[2]).unwrap();
    assert_eq!(
        (job.spec.request.disk.weight, job.spec.preemptible, job.claims.len()),
        (7, true, 1)
    );
    bench.end(jobs[2]);
    assert!(matches!(change(&mut bench, jobs[2], high), Err(Refusal::Over { .. })));
    bench.end(jobs[0]);
    assert_eq!(order(&bench), [jobs[1]], "an updated job leaves its place when it ends");
}

#[test]
fn the_preview_says_who_exceeds_waits_and_starts() {
    let mut bench = cluster();
    bench.tenant("ai", &[("gpu", "10")]);
    bench.tenant("ai/nlp", &[("gpu", "4")]);
    let jobs = ["a", "b", "c", "d", "e"]
        .map(|n| bench.submit(of("ai/nlp", n, request(1000, 0, 1000, 1024))));
    bench.round();
    bench
        .ledger
        .set_queue(
            bench.now,
            crater_model::QueueSpec {
                paused: true,
                ..crater_model::QueueSpec::new("q", crater_model::Kind::Training)
            },
        )
        .unwrap();
    let small = bench.submit(of("ai/nlp/mei", "f", request(0, 0, 1000, 1024)));
    let show = |bench: &Bench, spec: &TenantSpec| {
        let before = format!("{:?}", bench.ledger.state());
        let effects = preview(bench.ledger.state(), spec);
        assert_eq!(format!("{:?}", bench.ledger.state()), before, "a preview changes nothing");
        effects.iter().map(|e| serde_json::to_string(e).unwrap() + "\n").collect::<String>()
    };
    assert_eq!((jobs[4], small), (JobUid(5), JobUid(6)));
    expect![[r#"
        {"effect":"exceeds","tenant":"ai/nlp","resource":"gpu","hard":1500,"used":4000,"excess":2500,"claims":[4,3,2]}
        {"effect":"exceeds","tenant":"ai/nlp","resource":"cpu","hard":1000,"used":4000,"excess":3000,"claims":[4,3,2]}
        {"effect":"would-wait","job":6,"over":{"tenant":"ai/nlp","resource":"cpu","hard":1000,"used":4000,"asked":1000}}
    "#]]
    .assert_eq(&show(&bench, &tenant("ai/nlp", &[("gpu", "1.5"), ("cpu", "1")])));
    expect![[r#"
        {"effect":"could-start","job":5,"over":{"tenant":"ai/nlp","resource":"gpu","hard":4000,"used":4000,"asked":1000}}
        {"effect":"not-guaranteed","tenant":"ai","resource":"gpu","available":10000,"promised":12000}
    "#]]
    .assert_eq(&show(&bench, &tenant("ai/nlp", &[("gpu", "12")])));
    let ceiling = Some(Priority(10));
    expect![[r#"
        {"effect":"above-ceiling","job":5,"priority":50,"ceiling":10}
        {"effect":"above-ceiling","job":6,"priority":50,"ceiling":10}
        {"effect":"not-guaranteed","tenant":"","resource":"gpu","available":8000,"promised":10000}
    "#]]
    .assert_eq(&show(&bench, &TenantSpec { ceiling, ..tenant("ai", &[("gpu", "10")]) }));
    assert_eq!(
        show(&bench, &tenant("nobody", &[("gpu", "1")])),
        "{\"effect\":\"not-guaranteed\",\"tenant\":\"\",\"resource\":\"gpu\",\"available\":8000,\"promised\":11000}\n"
    );
}

#[test]
fn books_that_were_read_back_know_tenants_and_use() {
    let mut bench = cluster();
    bench.tenant("ai", &[("gpu", "1")]);
    for name in ["a", "b"] {
        bench.submit(of("ai/nlp", name, request(1000, 0, 1000, 1024)));
    }
    bench.round();
    let json = serde_json::to_string(&bench.ledger.state().snapshot()).unwrap();
    let snapshot: Snapshot = serde_json::from_str(&json).unwrap();
    let state = State::restore(snapshot, Arc::default()).unwrap();
    for path in ["ai", "ai/nlp"] {
        assert_eq!(state.level(path), bench.ledger.state().level(path), "{path}");
    }
    let plan = crater_engine::Decider::default().decide(
        &state,
        &bench.policies,
        crater_engine::Round::new(bench.now, 7),
    );
    assert_eq!(bench.lines(&plan), "b waits: quota of ai: gpu 1 of 1 used, 1 asked\n");
}

#[test]
fn a_lost_machine_gives_its_quota_back() {
    let mut bench = cluster();
    bench.tenant("ai", &[("gpu.A100", "2")]);
    let job = bench.submit(of("ai/nlp", "a", request(2000, 0, 1000, 1024)));
    bench.round();
    let node = bench.ledger.state().nodes().next().unwrap().uid;
    bench.ledger.remove_node(bench.now, node).unwrap();
    bench.ledger.state().audit().unwrap();
    assert!(bench.ledger.state().level("ai").unwrap().used.is_empty());
    assert_eq!(bench.ledger.state().job(job).unwrap().state, JobState::Pending);
}
