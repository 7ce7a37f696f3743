//! Quota truth: random operations on the real books, held against a flat list
//! of claims whose sums are made anew each time.
#![allow(missing_docs)]

mod common;

use common::request;
use crater_engine::{
    Committed, Decider, Ledger, MemoryJournal, Outcome, Plan, Policies, Record, Round, Strings, mix,
};
use crater_model::{
    CardSpec, Claim, ClaimState, ClaimUid, Held, JobChanges, JobSpec, JobState, JobUid, Kind, Mib,
    MilliCores, NodeSpec, PlatformSpec, Priority, QueueSpec, Reason, Reasons, Request, Resource,
    Share, TenantPath, TenantSpec, Time,
};
use std::collections::BTreeMap;
use std::sync::Arc;

const OPERATIONS: u64 = 100_000;
const TENANTS: [&str; 9] = [
    "ai",
    "ai/nlp",
    "ai/nlp/mei",
    "ai/nlp/bob",
    "ai/vision",
    "ai/vision/mei",
    "ops",
    "ops/web/eve",
    "free/lab",
];
/// Models with their cards' memory.
const CARDS: [(&str, u64); 2] = [("T4", 16_384), ("A100", 81_920)];

type Amounts = BTreeMap<Resource, u64>;

/// The whole of what is right, in the plainest words.
#[derive(Default)]
struct Truth {
    tenants: BTreeMap<String, TenantSpec>,
    claims: Vec<(ClaimUid, String, Amounts)>,
    /// What each claim borrowed when it was admitted: of which level, of what,
    /// how much.
    loans: BTreeMap<ClaimUid, Vec<(String, Resource, u64)>>,
    unknown: bool,
    borrowing: bool,
    open: bool,
}

/// What may be used with what is borrowed: one and a half times hard.
const SOFT_PERCENT: u64 = 150;

fn under(tenant: &str, level: &str) -> bool {
    tenant == level || tenant.starts_with(&format!("{level}/"))
}

impl Truth {
    fn used(&self, level: &str, resource: &Resource) -> u64 {
        let of_level = self.claims.iter().filter(|(_, tenant, _)| under(tenant, level));
        of_level.map(|(_, _, a)| a.get(resource).copied().unwrap_or(0)).sum()
    }

    /// Only who can be made to give it back borrows, and only while it is open.
    fn may_borrow(&self, job: &JobSpec) -> bool {
        self.borrowing && self.open && job.preemptible
    }

    /// What a claim would borrow of each level.
    fn borrows(&self, tenant: &str, amounts: &Amounts) -> Vec<(String, Resource, u64)> {
        let mut loans = vec![];
        for (level, spec) in self.tenants.iter().filter(|(level, _)| under(tenant, level)) {
            for (resource, hard) in spec.hard.iter() {
                let used = self.used(level, &resource);
                let asked = amounts.get(&resource).copied().unwrap_or(0);
                let over = (used + asked).saturating_sub(hard.max(used));
                if over > 0 {
                    loans.push((level.clone(), resource, over));
                }
            }
        }
        loans
    }

    fn allows(&self, tenant: &str, amounts: &Amounts, times: u64, borrow: bool) -> bool {
        let levels = self.tenants.iter().filter(|(level, _)| under(tenant, level));
        let mut limits =
            levels.flat_map(|(level, s)| s.hard.iter().map(move |(r, n)| (level, r, n)));
        limits.all(|(level, resource, hard)| {
            let asked = amounts.get(&resource).copied().unwrap_or(0) * times;
            let limit = if borrow { hard * SOFT_PERCENT / 100 } else { hard };
            asked == 0 || self.used(level, &resource) + asked <= limit
        })
    }

    fn ceiling(&self, tenant: &str) -> Option<Priority> {
        let levels = self.tenants.iter().filter(|(level, _)| under(tenant, level));
        levels.filter_map(|(_, s)| s.ceiling).min()
    }
}

/// What is held counts as charged, by the model of the cards.
fn amounts(held: &Held, model: &str) -> Amounts {
    let mut all = Amounts::new();
    let (cpu, memory, disk) = (held.cpu.0, held.memory.0, held.disk.0);
    all.extend([(Resource::Cpu, cpu), (Resource::Memory, memory), (Resource::Disk, disk)]);
    let milli = held.cards.iter().map(|c| c.milli.0).sum();
    let mib = held.cards.iter().map(|c| c.memory.0).sum();
    all.extend([(Resource::Gpu, milli), (Resource::GpuMemory, mib)]);
    all.insert(Resource::Model(model.into()), milli);
    all
}

/// The table of charges.
fn charge(request: &Request, model: &str, card: u64) -> Option<Amounts> {
    let (cpu, memory) = (request.cpu.0, request.memory.0);
    let mut all = Amounts::from([(Resource::Cpu, cpu), (Resource::Memory, memory)]);
    let Some(ask) = &request.gpu else { return Some(all) };
    if !request.models.is_empty() && !request.models.iter().any(|m| **m == *model) {
        return None;
    }
    let (milli, mib) = match &ask.share {
        Share::Whole => (1000, card),
        Share::Part { milli, memory: None } => (milli.0, card * milli.0 / 1000),
        Share::Part { milli, memory: Some(m) } => (milli.0, m.0),
        Share::Memory { memory: m } => ((1000 * m.0).div_ceil(card), m.0),
        Share::Mig { .. } => return None,
    };
    if mib > card {
        return None;
    }
    let (milli, mib) = (milli * ask.cards, mib * ask.cards);
    all.extend([(Resource::Gpu, milli), (Resource::GpuMemory, mib)]);
    all.insert(Resource::Model(model.into()), milli);
    Some(all)
}

struct World {
    ledger: Ledger<MemoryJournal>,
    decider: Decider,
    truth: Truth,
    random: u64,
    now: Time,
    /// How often each thing was seen, so that the test shows that it tests.
    seen: BTreeMap<&'static str, u64>,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut ledger = Ledger::new(MemoryJournal::default(), Arc::new(Strings::default()));
        let now = Time::from_secs(1);
        ledger.set_queue(now, QueueSpec::new("q", Kind::Training)).unwrap();
        for i in 0..6 {
            let (model, memory) = CARDS[i % 2];
            let card = CardSpec::new(model, Mib(memory));
            let spec = NodeSpec::new(&format!("n{i}"), MilliCores(64_000), Mib(262_144));
            ledger.add_node(now, spec.with_cards(8, &card)).unwrap();
        }
        let (decider, truth) = (Decider::default(), Truth::default());
        Self { ledger, decider, truth, random: seed, now, seen: BTreeMap::new() }
    }

    fn below(&mut self, n: u64) -> u64 {
        self.random = mix(self.random.wrapping_add(0x9E37_79B9_7F4A_7C15));
        self.random % n
    }

    fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        let at = self.below(from.len() as u64) as usize;
        from[at].clone()
    }

    fn saw(&mut self, what: &'static str) {
        *self.seen.entry(what).or_default() += 1;
    }

    fn any_job(&mut self, wanted: impl Fn(JobState) -> bool) -> Option<JobUid> {
        let state = self.ledger.state();
        let mut jobs: Vec<JobUid> = state.queues()["q"].waiting.iter().map(|w| w.job).collect();
        jobs.extend(state.queues()["q"].running.iter());
        jobs.retain(|job| state.job(*job).is_some_and(|j| wanted(j.state)));
        if jobs.is_empty() { None } else { Some(self.pick(&jobs)) }
    }

    fn step(&mut self) {
        self.now = Time(self.now.0 + 1);
        match self.below(100) {
            0..28 => self.submit(),
            28..45 => self.decide(false),
            45..52 => self.decide(true),
            52..62 => self.end_job(),
            62..86 => self.end_claim(),
            86..93 => self.quota(),
            93..95 => self.remove_tenant(),
            95..98 => self.update_job(),
            98 => self.usage(),
            _ => self.platform(),
        }
    }

    fn job(&mut self) -> JobSpec {
        let requests = [
            request(1000, 0, 1000, 4096),
            request(2000, 0, 4000, 8192),
            request(500, 0, 500, 1000),
            request(300, 4096, 100, 100),
            request(0, 8192, 2000, 1024),
            request(0, 20_000, 1000, 1024),
            request(2000, 16_384, 1000, 1024),
            request(0, 0, 3000, 6000),
            request(0, 0, 0, 0),
        ];
        let tenant = TenantPath::parse("tenant", self.pick(&TENANTS)).unwrap();
        let mut spec = JobSpec::new("j", "q", tenant, self.pick(&requests));
        if spec.request.gpu.is_some() && self.below(5) == 0 {
            let (model, _) = self.pick(&CARDS);
            Arc::make_mut(&mut spec.request).models = vec![model.into()];
        }
        if self.below(3) == 0 {
            spec.members = 1 + self.below(5) as u32;
            spec.min_members = 1 + self.below(u64::from(spec.members)) as u32;
        }
        spec.priority = Priority(self.pick(&[10, 50, 50, 100]));
        spec.preemptible = self.below(2) == 0;
        spec
    }

    fn submit(&mut self) {
        if self.ledger.state().queues()["q"].waiting.len() > 40 {
            let job = self.any_job(|s| s == JobState::Pending).unwrap();
            self.ledger.end_job(self.now, job, JobState::Cancelled, "").unwrap();
            return;
        }
        let spec = self.job();
        let above = self.truth.ceiling(spec.tenant.as_str()).is_some_and(|c| spec.priority > c);
        let submitted = self.ledger.submit(self.now, spec);
        assert_eq!(submitted.is_err(), above, "{submitted:?}");
        if let Err(refused) = submitted {
            assert!(refused.to_string().starts_with("priority: "), "{refused}");
            self.saw("refused above the ceiling");
        }
    }

    /// A round, with other things happening between decision and commit or not.
    fn decide(&mut self, disturbed: bool) {
        // Who goes for whom is another test's.
        let mut round = Round { makes_room: false, ..Round::new(self.now, self.random) };
        round.limit = if self.below(10) == 0 { 2 } else { usize::MAX };
        let plan = self.decider.decide(self.ledger.state(), &Policies::new(), round);
        self.judge(&plan);
        if self.below(10) == 0 {
            let plainly = Decider::forgetful().decide(self.ledger.state(), &Policies::new(), round);
            // Room only shrinks within a round, so that figures of nodes may be
            // of a moment before; what comes of each job is the same.
            let outcomes = |plan: &Plan| {
                let of = |r: &Record| match &r.outcome {
                    Outcome::Placed(placement) => (r.job, Ok(placement.clone())),
                    Outcome::Waits(reasons) => (r.job, Err(reasons.quota.clone())),
                };
                plan.records.iter().map(of).collect::<Vec<_>>()
            };
            assert_eq!(outcomes(&plan), outcomes(&plainly), "memory changes nothing");
            self.saw("decided twice alike");
        }
        if disturbed {
            for _ in 0..3 {
                match self.below(4) {
                    0 => self.decide(false),
                    1 => self.end_claim(),
                    _ => self.quota(),
                }
            }
        }
        let next = self.ledger.state().next_claim();
        let committed = self.ledger.commit(self.now, &plan).unwrap();
        assert!(disturbed || committed.stale.is_empty(), "{committed:?}");
        self.judge_commit(&plan, &committed, next);
    }

    fn model(&self, claim: &Claim) -> String {
        self.ledger.state().node(claim.node).unwrap().spec.cards[0].model.to_string()
    }

    /// Every placement within every quota, one after the other; every refusal
    /// for a quota with the right figures, and no other way to start.
    fn judge(&mut self, plan: &Plan) {
        let before = self.truth.claims.len();
        let state = self.ledger.state().clone();
        for record in &plan.records {
            let job = state.job(record.job).unwrap();
            let (tenant, request) = (job.spec.tenant.as_str(), &job.spec.request);
            let borrow = self.truth.may_borrow(&job.spec);
            match &record.outcome {
                Outcome::Placed(placement) => {
                    assert!(!self.truth.unknown);
                    // A job that runs already is elastic, and has one more.
                    let waits = job.state == JobState::Pending;
                    let least = if waits { job.spec.min_members } else { 1 };
                    assert!(placement.members.len() as u32 >= least);
                    for member in &placement.members {
                        let model = &state.node(member.node).unwrap().spec.cards[0].model;
                        let amounts = amounts(&member.held, model);
                        let allowed = self.truth.allows(tenant, &amounts, 1, borrow);
                        assert!(allowed, "{tenant}: {amounts:?}");
                        self.truth.claims.push((ClaimUid(0), tenant.to_owned(), amounts));
                    }
                    self.saw("placed");
                }
                Outcome::Waits(reasons) => {
                    self.waits(tenant, request, u64::from(job.spec.min_members), borrow, reasons);
                }
            }
        }
        self.truth.claims.truncate(before);
    }

    fn waits(
        &mut self,
        tenant: &str,
        request: &Request,
        min: u64,
        borrow: bool,
        reasons: &Reasons,
    ) {
        if self.truth.unknown {
            assert!(reasons.to_string().contains("limits not available"), "{reasons}");
            self.saw("held: limits unknown");
            return;
        }
        let charges = CARDS.iter().filter_map(|(model, memory)| charge(request, model, *memory));
        let charges: Vec<Amounts> = charges.collect();
        let Some(over) = &reasons.quota else {
            let plain = Request { gpu: None, ..request.clone() };
            let plain = charge(&plain, "", 0).unwrap();
            let allowed = self.truth.allows(tenant, &plain, min, borrow);
            assert!(allowed, "{tenant} waits for {reasons}");
            self.saw("waits for room");
            return;
        };
        assert!(under(tenant, &over.tenant), "{tenant}: {over}");
        assert_eq!(self.truth.used(&over.tenant, &over.resource), over.used, "{over}");
        let hard = self.truth.tenants[&*over.tenant].hard.get(&over.resource);
        let limit = hard.map(|n| if borrow { n * SOFT_PERCENT / 100 } else { n });
        assert_eq!(limit, Some(over.hard), "{over}");
        assert!(over.used + over.asked > over.hard && over.asked > 0, "{over}");
        if reasons.counts.is_empty() {
            let open = charges.iter().find(|c| self.truth.allows(tenant, c, min, borrow));
            assert!(open.is_none(), "{tenant}: {over}, but {min} times {open:?} are allowed");
            self.saw("waits for a quota");
        } else {
            self.saw("waits for a quota on some models and for room on others");
        }
    }

    fn judge_commit(&mut self, plan: &Plan, committed: &Committed, mut next: ClaimUid) {
        let state = self.ledger.state().clone();
        for placement in &plan.placements {
            let spec = &state.job(placement.job).unwrap().spec;
            let (tenant, borrow) = (spec.tenant.as_str().to_owned(), self.truth.may_borrow(spec));
            let stale = committed.stale.iter().find(|(job, _)| *job == placement.job);
            let before = self.truth.claims.len();
            let mut allowed = !self.truth.unknown;
            for member in &placement.members {
                let model = state.node(member.node).unwrap().spec.cards[0].model.to_string();
                let amounts = amounts(&member.held, &model);
                allowed &= self.truth.allows(&tenant, &amounts, 1, borrow);
                let loans = self.truth.borrows(&tenant, &amounts);
                if self.truth.borrowing && !loans.is_empty() && stale.is_none() {
                    self.saw("borrowed");
                    self.truth.loans.insert(next, loans);
                }
                self.truth.claims.push((next, tenant.clone(), amounts));
                next = ClaimUid(next.0 + 1);
            }
            match stale {
                None => assert!(allowed, "{tenant} was let above a quota: {placement:?}"),
                Some((_, reason)) => {
                    if matches!(reason, Reason::Quota(_) | Reason::QuotasUnknown) {
                        assert!(!allowed, "{tenant} was refused: {reason}");
                        self.saw("stale for a quota");
                    }
                    let members = self.truth.claims.len() - before;
                    next = ClaimUid(next.0 - members as u64);
                    self.truth.claims.truncate(before);
                }
            }
        }
        assert_eq!(next, state.next_claim());
        for claim in &committed.claims {
            let claim = state.claim(*claim).unwrap();
            let (_, _, counted) =
                self.truth.claims.iter().find(|(uid, _, _)| *uid == claim.uid).unwrap();
            assert_eq!(*counted, amounts(&claim.held, &self.model(claim)));
        }
    }

    fn end_job(&mut self) {
        let Some(job) = self.any_job(|s| !s.ended()) else { return };
        // What it holds counts until each claim is gone.
        self.ledger.end_job(self.now, job, JobState::Cancelled, "").unwrap();
        self.saw("job ended");
    }

    fn end_claim(&mut self) {
        let claims: Vec<ClaimUid> = self.truth.claims.iter().map(|(uid, _, _)| *uid).collect();
        if claims.is_empty() {
            return;
        }
        let claim = self.pick(&claims);
        let now = self.now;
        let gone = match self.below(8) {
            0 => self.ledger.move_claim(now, claim, ClaimState::Held).map(|_| false),
            1 => self.ledger.move_claim(now, claim, ClaimState::Releasing).map(|_| false),
            2 => self.ledger.member_ended(now, claim, false),
            3..6 => self.ledger.member_ended(now, claim, true),
            _ => self.ledger.move_claim(now, claim, ClaimState::Gone),
        };
        if gone.unwrap() {
            self.truth.claims.retain(|(uid, _, _)| *uid != claim);
            self.truth.loans.remove(&claim);
            self.saw("claim gone");
        }
    }

    fn quota(&mut self) {
        let tenant = self.pick(&TENANTS[..8]);
        let mut spec = self
            .truth
            .tenants
            .get(tenant)
            .cloned()
            .unwrap_or_else(|| TenantSpec::new(TenantPath::parse("tenant", tenant).unwrap()));
        let (field, amounts): (&str, &[&str]) = self.pick(&[
            ("gpu", &["0", "0.5", "2", "3.5", "8", "none"][..]),
            ("gpu-memory", &["0", "10000", "100000", "400000", "none"][..]),
            ("cpu", &["0", "2", "7.15", "20", "none"][..]),
            ("memory", &["1000", "10Gi", "64Gi", "none"][..]),
            ("gpu.T4", &["0", "0.5", "3", "none"][..]),
            ("gpu.A100", &["0", "1", "4", "none"][..]),
        ]);
        let amount = self.pick(amounts);
        spec.hard.field(field, amount).unwrap();
        if self.below(4) == 0 {
            spec.ceiling = self.pick(&[None, Some(Priority(10)), Some(Priority(50))]);
        }
        let claims = self.ledger.state().claims().count();
        self.ledger.set_tenant(self.now, spec.clone()).unwrap();
        assert_eq!(claims, self.ledger.state().claims().count(), "a quota evicts nobody");
        // Quotas are set in steps, rounded up.
        spec.hard.cpu = spec.hard.cpu.map(|n| MilliCores(n.0.div_ceil(100) * 100));
        spec.hard.memory = spec.hard.memory.map(|n| Mib(n.0.div_ceil(128) * 128));
        self.truth.tenants.insert(tenant.to_owned(), spec);
        let level = self.ledger.state().level(tenant).unwrap();
        if !level.excess().is_empty() {
            self.saw("in excess");
        }
    }

    fn remove_tenant(&mut self) {
        let tenant = self.pick(&TENANTS);
        let path = TenantPath::parse("tenant", tenant).unwrap();
        let known = self.truth.tenants.remove(tenant).is_some();
        assert_eq!(self.ledger.remove_tenant(self.now, &path).is_ok(), known);
    }

    fn update_job(&mut self) {
        let Some(job) = self.any_job(|s| !s.ended()) else { return };
        let before = self.ledger.state().job(job).unwrap().spec.clone();
        let priority = Priority(self.pick(&[5, 40, 90]));
        let above = self.truth.ceiling(before.tenant.as_str()).is_some_and(|c| priority > c);
        let changes = JobChanges { priority: Some(priority), ..JobChanges::default() };
        let updated = self.ledger.update_job(self.now, job, changes);
        let refused = above && priority > before.priority;
        assert_eq!(updated.is_err(), refused, "{updated:?}");
        let state = self.ledger.state().job(job).unwrap();
        let expected = if refused { before.priority } else { priority };
        assert_eq!(state.spec.priority, expected);
        self.saw("job updated");
    }

    fn platform(&mut self) {
        self.truth.unknown = !self.truth.unknown && self.below(3) == 0;
        let quotas_known = !self.truth.unknown;
        self.truth.borrowing = self.below(3) > 0;
        let spec = PlatformSpec {
            quotas_known,
            borrowing: self.truth.borrowing,
            soft_quota_ratio_percent: SOFT_PERCENT as u32,
            ..PlatformSpec::default()
        };
        self.ledger.set_platform(self.now, spec).unwrap();
        self.usage();
    }

    /// How much of the cluster is said to be used: open below 50, closed from 55.
    fn usage(&mut self) {
        let used = self.pick(&[None, Some(20), Some(49), Some(52), Some(60)]);
        self.truth.open = self.truth.borrowing
            && used.is_some_and(|used| used < 50 || (self.truth.open && used < 55));
        self.ledger.note_use(self.now, used).unwrap();
    }

    /// What every level uses, by the books and by the list.
    fn compare(&self) {
        let state = self.ledger.state();
        state.audit().unwrap();
        assert_eq!(state.claims().count(), self.truth.claims.len());
        for level in TENANTS.iter().copied().chain(["ops/web", "free"]) {
            let mut resources = Resource::COMMON.to_vec();
            resources.extend(CARDS.map(|(model, _)| Resource::Model(model.into())));
            for resource in resources {
                let used = state.level(level).map_or(0, |l| l.used.get(&resource));
                assert_eq!(used, self.truth.used(level, &resource), "{level}: {resource}");
                let borrowed = state.level(level).map_or(0, |l| l.borrowed.get(&resource));
                let loans = self.truth.loans.values().flatten();
                let of = loans.filter(|(l, r, _)| l == level && *r == resource);
                assert_eq!(borrowed, of.map(|(_, _, n)| n).sum(), "{level} borrows {resource}");
            }
        }
    }
}

#[test]
fn a_hundred_thousand_operations_keep_to_the_rules() {
    let mut world = World::new(1);
    for operation in 0..OPERATIONS {
        world.step();
        if operation % 20 == 0 {
            world.compare();
        }
    }
    world.compare();
    println!("{:#?}", world.seen);
    for (what, least) in [
        ("placed", 5000),
        ("waits for a quota", 5000),
        ("waits for a quota on some models and for room on others", 10),
        ("waits for room", 1000),
        ("stale for a quota", 100),
        ("refused above the ceiling", 500),
        ("held: limits unknown", 100),
        ("in excess", 500),
        ("borrowed", 200),
        ("claim gone", 5000),
        ("job updated", 500),
        ("decided twice alike", 500),
    ] {
        let seen = world.seen.get(what).copied().unwrap_or(0);
        assert!(seen >= least, "{what}: {seen} times");
    }
}
