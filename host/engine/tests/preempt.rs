//! Who goes for whom: as few as need be, the cheapest, and nobody for nothing.
#![allow(missing_docs)]

mod common;

use common::{Bench, job, node, request};
use crater_engine::{Outcome, Plan};
use crater_model::{
    Cause, ClaimState, JobSpec, JobState, JobUid, Kind, Need, Priority, QueueSpec, Request,
    RoomRules, TenantPath, TenantSpec, Time, Together,
};

/// Preemptible training of so many cards, cores and this priority.
fn training(name: &str, gpu: u64, cpu: u64, priority: u16) -> JobSpec {
    let spec = job(name, request(1000 * gpu, 0, 1000 * cpu, 1024));
    JobSpec { preemptible: true, priority: Priority(priority), ..spec }
}

fn inference(name: &str, gpu: u64, cpu: u64) -> JobSpec {
    let spec = training(name, gpu, cpu, 100);
    JobSpec { kind: Kind::Inference, preemptible: false, ..spec }
}

fn of(tenant: &str, spec: JobSpec) -> JobSpec {
    JobSpec { tenant: TenantPath::parse("tenant", tenant).unwrap(), ..spec }
}

trait Run {
    fn pass(&mut self, secs: u64);
    fn run(&mut self, job: JobUid);
    fn placed(&mut self, spec: JobSpec) -> JobUid;
    fn gone(&mut self, job: JobUid);
    fn evicted(&mut self) -> Vec<(JobUid, usize, bool)>;
    fn state_of(&self, job: JobUid) -> JobState;
    fn rules(&mut self, room: RoomRules);
    fn why(&self, plan: &Plan, job: JobUid) -> String;
}

impl Run for Bench {
    fn pass(&mut self, secs: u64) {
        self.now = Time(self.now.0 + 1000 * secs);
    }

    /// Starts what a job was given.
    fn run(&mut self, job: JobUid) {
        for claim in self.ledger.state().job(job).unwrap().claims.clone() {
            self.ledger.move_claim(self.now, claim, ClaimState::Held).unwrap();
        }
    }

    /// Submits a job that starts at once.
    fn placed(&mut self, spec: JobSpec) -> JobUid {
        let job = self.submit(spec);
        assert!(self.round().placed(job));
        self.run(job);
        self.pass(1);
        job
    }

    /// Lets go what a job is to give up.
    fn gone(&mut self, job: JobUid) {
        for claim in self.ledger.state().job(job).unwrap().claims.clone() {
            if self.ledger.state().claim(claim).unwrap().state == ClaimState::Releasing {
                self.ledger.move_claim(self.now, claim, ClaimState::Gone).unwrap();
            }
        }
    }

    /// A round; who gives up how many claims, and whether all.
    fn evicted(&mut self) -> Vec<(JobUid, usize, bool)> {
        let plan = self.round();
        let all = plan.rooms.iter().flat_map(|r| &r.evictions);
        all.map(|e| (e.job, e.claims.len(), e.whole)).collect()
    }

    fn state_of(&self, job: JobUid) -> JobState {
        self.ledger.state().job(job).unwrap().state
    }

    fn rules(&mut self, room: RoomRules) {
        let spec = QueueSpec { room, ..QueueSpec::new("q", Kind::Training) };
        self.ledger.set_queue(self.now, spec).unwrap();
    }

    fn why(&self, plan: &Plan, job: JobUid) -> String {
        match &plan.record(job).unwrap().outcome {
            Outcome::Waits(reasons) => reasons.to_string(),
            Outcome::Placed(_) => "placed".to_owned(),
        }
    }
}

fn bench(nodes: usize, cpu: u64, cards: usize) -> Bench {
    let name = |i| format!("n{i}");
    Bench::new((0..nodes).map(|i| node(&name(i), 1000 * cpu, 1 << 20, cards, 81_920)))
}

#[test]
fn c44_one_is_needed_and_one_goes() {
    let mut bench = bench(1, 11, 0);
    let elastic = JobSpec { members: 11, min_members: 1, ..training("e", 0, 1, 10) };
    let elastic = bench.placed(elastic);
    bench.pass(100);
    let urgent = bench.submit(inference("i", 0, 1));
    assert_eq!(bench.evicted(), [(elastic, 1, false)]);
    assert_eq!(bench.evicted(), [], "evictions under way are remembered");
    assert_eq!(bench.state_of(elastic), JobState::Running);
    bench.gone(elastic);
    assert!(bench.round().placed(urgent));
    let left = bench.ledger.state().job(elastic).unwrap().claims.len();
    assert_eq!((left, bench.ledger.state().holds().len()), (10, 0));
    // It has its member back when there is room again.
    bench.run(urgent);
    let claim = bench.ledger.state().job(urgent).unwrap().claims[0];
    bench.ledger.member_ended(bench.now, claim, true).unwrap();
    bench.round();
    assert_eq!(bench.ledger.state().job(elastic).unwrap().claims.len(), 11);
}

#[test]
fn c45_nobody_goes_for_nothing() {
    let mut bench = bench(1, 64, 2);
    let low = [(); 2].map(|()| bench.placed(training("t", 1, 1, 10)));
    bench.pass(100);
    bench
        .ledger
        .set_tenant(bench.now, {
            let mut spec = TenantSpec::new(TenantPath::parse("tenant", "ops/web").unwrap());
            spec.hard.field("gpu", "1").unwrap();
            spec
        })
        .unwrap();
    let job = bench.submit(of("ops/web", inference("i", 2, 1)));
    let plan = bench.round();
    assert_eq!(plan.rooms, []);
    let why = bench.why(&plan, job);
    assert!(why.contains("more than the whole quota"), "{why}");
    assert_eq!(low.map(|j| bench.state_of(j)), [JobState::Running; 2]);
}

#[test]
fn c45_topology_is_simulated_before_anybody_goes() {
    let mut spec = node("n1", 64_000, 1 << 20, 4, 81_920);
    spec.links.groups = vec![0, 0, 1, 1];
    let mut bench = Bench::new([spec]);
    // One of each pair cannot be evicted.
    let fixed = JobSpec { preemptible: false, ..training("f", 1, 1, 10) };
    let nvlinked = |name, preemptible| {
        let base = training(name, 2, 1, 10);
        let request = Request { nvlink: Need::Required, ..Request::clone(&base.request) };
        JobSpec { request: request.into(), preemptible, ..base }
    };
    let first = bench.placed(nvlinked("pair", true));
    bench.placed(fixed.clone());
    bench.placed(training("t", 1, 1, 10));
    bench.pass(100);
    let wants = JobSpec {
        kind: Kind::Inference,
        preemptible: false,
        priority: Priority(100),
        ..nvlinked("w", false)
    };
    let job = bench.submit(wants);
    assert_eq!(bench.evicted(), [(first, 1, true)], "the pair, not the one beside the fixed job");
    bench.gone(first);
    assert!(bench.round().placed(job));
}

#[test]
fn c47_sets_are_compared_by_their_dearest_victim() {
    let mut bench = bench(2, 64, 2);
    // n0: priorities 900 and 0 fill it; n1: one of 100.
    bench.placed(training("a", 1, 1, 900));
    bench.placed(training("b", 1, 1, 0));
    let middle = bench.placed(training("c", 2, 1, 100));
    bench.pass(100);
    let urgent = JobSpec { priority: Priority(1000), ..inference("i", 2, 1) };
    let urgent = bench.submit(urgent);
    assert_eq!(bench.evicted(), [(middle, 1, true)]);
    bench.gone(middle);
    assert!(bench.round().placed(urgent));
    assert_eq!(bench.state_of(middle), JobState::Pending);
    assert_eq!(bench.ledger.state().job(middle).unwrap().evicted, Some(Cause::Preempt));
}

#[test]
fn among_equals_the_youngest_goes() {
    let mut bench = bench(1, 64, 3);
    let jobs = [(); 3].map(|()| bench.placed(training("t", 1, 1, 50)));
    bench.pass(100);
    bench.submit(inference("i", 1, 1));
    assert_eq!(bench.evicted(), [(jobs[2], 1, true)]);
    bench.gone(jobs[2]);
    bench.round();
    bench.pass(1000);
    // A checkpoint makes the oldest the cheapest: nearly nothing would be lost.
    bench.ledger.checkpointed(bench.now, jobs[0]).unwrap();
    bench.submit(inference("i", 1, 1));
    assert_eq!(bench.evicted(), [(jobs[0], 1, true)]);
}

#[test]
fn equal_and_lower_ranks_wait_and_inference_stays() {
    let mut bench = bench(1, 64, 1);
    bench.placed(training("t", 1, 1, 50));
    bench.pass(100);
    bench.submit(JobSpec { preemptible: false, ..training("equal", 1, 1, 50) });
    bench.submit(JobSpec { kind: Kind::Offline, ..training("below", 1, 1, 50) });
    assert_eq!(bench.evicted(), []);
    let mut bench = serving();
    bench.submit(JobSpec { priority: Priority(1000), ..training("t", 1, 1, 50) });
    assert_eq!(bench.evicted(), [], "inference is not preempted");
}

/// One card, which serves.
fn serving() -> Bench {
    let mut bench = bench(1, 64, 1);
    bench.placed(inference("i", 1, 1));
    bench.pass(100);
    bench
}

#[test]
fn fresh_work_and_budgets_protect() {
    let mut bench = bench(1, 64, 2);
    bench.rules(RoomRules { preemptions_per_hour: 1, ..RoomRules::default() });
    let jobs = [(); 2].map(|()| bench.placed(training("t", 1, 1, 50)));
    bench.pass(30);
    let first = bench.submit(inference("i", 1, 1));
    assert_eq!(bench.evicted(), [], "it has run for less than a minute");
    bench.pass(60);
    assert_eq!(bench.evicted(), [(jobs[1], 1, true)]);
    bench.gone(jobs[1]);
    assert!(bench.round().placed(first));
    bench.submit(inference("j", 1, 1));
    assert_eq!(bench.evicted(), [], "one in an hour");
    bench.pass(3600);
    assert_eq!(bench.evicted(), [(jobs[0], 1, true)]);
}

#[test]
fn room_is_kept_from_others_until_it_is_used() {
    let mut bench = bench(1, 64, 2);
    let pair = bench.placed(training("pair", 2, 1, 50));
    bench.pass(100);
    let urgent = bench.submit(inference("i", 1, 1));
    assert_eq!(bench.evicted(), [(pair, 1, true)]);
    bench.gone(pair);
    // The pair waits for two cards; one is kept, and a small job takes the other.
    let small = bench.submit(JobSpec { preemptible: false, ..training("s", 1, 1, 100) });
    let plan = bench.round();
    assert!(plan.placed(urgent) && plan.placed(small));
    assert!(!plan.placed(pair));
    // Cancelled while room is made: nothing is kept any more.
    let late = bench.submit(JobSpec { priority: Priority(200), ..inference("late", 1, 1) });
    assert_eq!(bench.evicted(), []);
    bench.ledger.end_job(bench.now, late, JobState::Cancelled, "").unwrap();
    assert_eq!(bench.ledger.state().holds().len(), 0);
}

#[test]
fn a_cancelled_preemptor_leaves_nothing_behind() {
    // C12: the machine goes, another comes under its name.
    let mut bench = bench(1, 64, 1);
    let victim = bench.placed(training("p", 1, 1, 10));
    bench.pass(100);
    let preemptor = bench.submit(inference("x", 1, 1));
    assert_eq!(bench.evicted(), [(victim, 1, true)]);
    bench.ledger.end_job(bench.now, preemptor, JobState::Cancelled, "").unwrap();
    let old = bench.ledger.state().nodes().next().unwrap().uid;
    bench.ledger.remove_node(bench.now, old).unwrap();
    bench.ledger.add_node(bench.now, node("n0", 64_000, 1 << 20, 1, 81_920)).unwrap();
    let next = bench.submit(JobSpec { priority: Priority(90), ..inference("y", 1, 1) });
    assert!(bench.round().placed(next));
}

#[test]
fn a_machine_that_goes_takes_the_room_with_it() {
    let mut bench = bench(2, 64, 1);
    let jobs = [(); 2].map(|()| bench.placed(training("t", 1, 1, 10)));
    bench.pass(100);
    let urgent = bench.submit(inference("i", 1, 1));
    assert_eq!(bench.evicted(), [(jobs[1], 1, true)]);
    let hold = bench.ledger.state().holds()[&urgent].clone();
    bench.ledger.remove_node(bench.now, hold.members[0].node).unwrap();
    assert_eq!(bench.ledger.state().holds().len(), 0);
    assert_eq!(bench.evicted(), [(jobs[0], 1, true)]);
}

#[test]
fn a_gang_preempts_as_few_as_it_needs() {
    let mut bench = bench(4, 64, 1);
    let low = [(); 4].map(|()| bench.placed(training("t", 1, 1, 10)));
    bench.pass(100);
    let gang = JobSpec { members: 4, min_members: 3, ..training("g", 1, 1, 60) };
    let gang = bench.submit(gang);
    let mut gone = bench.evicted();
    gone.sort_unstable();
    assert_eq!(gone, [(low[1], 1, true), (low[2], 1, true), (low[3], 1, true)]);
    bench.gone(low[1]);
    bench.gone(low[2]);
    assert!(!bench.round().placed(gang), "all or nothing");
    bench.gone(low[3]);
    assert!(bench.round().placed(gang));
    assert_eq!(bench.ledger.state().job(gang).unwrap().claims.len(), 3);
}

#[test]
fn c43_a_refused_start_backs_off_and_lets_others_by() {
    let mut bench = bench(1, 64, 1);
    let doomed = bench.submit(JobSpec { preemptible: false, ..training("d", 1, 1, 100) });
    let other = bench.submit(JobSpec { preemptible: false, ..training("o", 1, 1, 50) });
    let plan = bench.round();
    assert!(plan.placed(doomed) && !plan.placed(other));
    let claim = bench.ledger.state().job(doomed).unwrap().claims[0];
    bench.ledger.refuse_start(bench.now, claim, "no such image").unwrap();
    let plan = bench.round();
    assert!(plan.placed(other));
    let why = bench.why(&plan, doomed);
    assert_eq!(why, "its start was refused 1 time: no such image; tried again in 5 s");
    assert_eq!(plan.wake, Some(Time(bench.now.0 + 5000)));
    // Longer each time, up to five minutes.
    let running = bench.ledger.state().job(other).unwrap().claims[0];
    bench.ledger.member_ended(bench.now, running, true).unwrap();
    let mut waits = vec![];
    for _ in 0..8 {
        let from = bench.now;
        bench.now = bench.ledger.state().job(doomed).unwrap().not_before;
        waits.push(bench.now.secs_since(from));
        assert!(bench.round().placed(doomed));
        let claim = bench.ledger.state().job(doomed).unwrap().claims[0];
        bench.ledger.refuse_start(bench.now, claim, "no such image").unwrap();
    }
    assert_eq!(waits, [5, 10, 20, 40, 80, 160, 300, 300]);
}

#[test]
fn c42_a_blocked_job_keeps_room_and_short_ones_run_before_it() {
    let mut bench = bench(1, 64, 8);
    bench.rules(RoomRules { reserve_after: 1, ..RoomRules::default() });
    let plain = |name: &str, gpu, limit| JobSpec {
        preemptible: false,
        run_limit: limit,
        ..training(name, gpu, 1, 50)
    };
    bench.placed(plain("a", 6, 3600));
    let large = bench.submit(plain("large", 8, 0));
    bench.pass(2);
    let cpu = bench.submit(training("cpu", 0, 4, 50));
    let plan = bench.round();
    assert!(plan.placed(cpu), "what needs no cards is not held back");
    assert!(bench.why(&plan, large).contains("planned to start"), "{}", bench.why(&plan, large));
    let short = bench.submit(plain("short", 1, 600));
    let long = bench.submit(plain("long", 1, 7200));
    let endless = bench.submit(plain("endless", 1, 0));
    let given_back = bench.submit(JobSpec { preemptible: true, ..training("p", 1, 1, 10) });
    let plan = bench.round();
    let placed = [short, long, endless, given_back].map(|j| plan.placed(j));
    assert_eq!(placed, [true, false, false, true]);
}

#[test]
fn a_full_disk_takes_nothing_new_and_nobody_goes_for_it() {
    let mut bench = bench(1, 64, 2);
    bench.placed(training("t", 1, 1, 10));
    bench.pass(100);
    let node = bench.ledger.state().nodes().next().unwrap();
    let (uid, spec) = (node.uid, (*node.spec).clone());
    let set = |bench: &mut Bench, disk_full| {
        let spec = crater_model::NodeSpec { disk_full, ..spec.clone() };
        bench.ledger.change_node(bench.now, uid, spec).unwrap();
    };
    set(&mut bench, true);
    let urgent = bench.submit(inference("i", 1, 1));
    let plan = bench.round();
    assert!(!plan.placed(urgent) && plan.rooms.is_empty());
    let why = bench.why(&plan, urgent);
    assert!(why.contains("disk IO full (> 90 % in use)"), "{why}");
    set(&mut bench, false);
    assert!(bench.round().placed(urgent));
}

#[test]
fn room_that_is_kept_for_nothing_is_given_up() {
    let mut bench = bench(2, 64, 8);
    bench.rules(RoomRules { reserve_after: 1, ..RoomRules::default() });
    let plain = |name: &str, gpu| JobSpec { preemptible: false, ..training(name, gpu, 1, 50) };
    bench.placed(plain("a", 6));
    bench.placed(plain("b", 7));
    let large = bench.submit(plain("large", 8));
    bench.pass(2);
    bench.round();
    let hold = bench.ledger.state().holds()[&large].clone();
    let kept = hold.members[0].node;
    // One is left that could ever have it: the other.
    let spec = bench.ledger.state().node(kept).unwrap().spec.clone();
    let cordoned = crater_model::NodeSpec { cordoned: true, ..(*spec).clone() };
    bench.ledger.change_node(bench.now, kept, cordoned).unwrap();
    let plan = bench.round();
    assert_eq!(plan.given_up.iter().map(|(job, _)| *job).collect::<Vec<_>>(), [large]);
    bench.round();
    assert_ne!(bench.ledger.state().holds()[&large].members[0].node, kept);
}

#[test]
fn members_that_must_be_together_are_and_the_tightest_group_is_taken() {
    let in_domain = |name: &str, domain: &str| {
        let mut spec = node(name, 64_000, 1 << 20, 2, 81_920);
        spec.domain = domain.into();
        spec
    };
    let nodes = [("a1", "a"), ("a2", "a"), ("a3", "a"), ("b1", "b"), ("b2", "b")];
    let mut bench = Bench::new(nodes.map(|(n, d)| in_domain(n, d)));
    let gang = |name: &str, members, need| {
        let together = Some(Together { level: "domain".into(), need });
        JobSpec { members, min_members: members, together, ..training(name, 2, 1, 50) }
    };
    let two = bench.submit(gang("two", 2, Need::Required));
    let three = bench.submit(gang("three", 3, Need::Required));
    let again = bench.submit(gang("again", 2, Need::Required));
    let plan = bench.round();
    expect_test::expect![[r"
        two → b1 [0:1/80Gi 1:1/80Gi]
        two → b2 [0:1/80Gi 1:1/80Gi]
        three → a1 [0:1/80Gi 1:1/80Gi]
        three → a2 [0:1/80Gi 1:1/80Gi]
        three → a3 [0:1/80Gi 1:1/80Gi]
        again waits: no domain has room for 2 members together (most: b with room for 0)
    "]]
    .assert_eq(&bench.lines(&plan));
    for job in [two, three] {
        bench.run(job);
    }
    bench.pass(100);
    // Preemption knows of it, too: one group is emptied, not two halves.
    bench.ledger.end_job(bench.now, again, JobState::Cancelled, "").unwrap();
    let urgent = JobSpec { priority: Priority(100), ..gang("urgent", 2, Need::Required) };
    bench.submit(urgent);
    let gone = bench.evicted();
    assert_eq!(gone.len(), 1, "{gone:?}");
}
