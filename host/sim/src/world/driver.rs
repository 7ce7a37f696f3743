//! The loop: what happens is journalled, then decisions are made and committed
//! until nothing more is placed.

use super::clock::Agenda;
use super::command::Command;
use super::executor::{Alarm, Behaviour, Effects, Executor, Order, Report};
use super::observer::Observer;
use super::wire::{Wire, WireSettings};
use crater_engine::{
    Decider, Ledger, MemoryJournal, Plan, Policies, Refusal, Round, State, Strings, mix,
};
use crater_model::{ClaimState, ClaimUid, JobState, JobUid, NodeUid, QueueName, Time};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// What a world is made from.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where all chance comes from.
    pub seed: u64,
    /// When it begins.
    pub start: Time,
    /// The wire at the beginning.
    pub wire: WireSettings,
    /// How often books and machines compare notes; `None`: only when told to.
    pub resync: Option<Duration>,
    /// Whether the journal's entries are kept.
    pub keep_journal: bool,
    /// Deciders that take turns.
    pub deciders: usize,
    /// Most jobs that one round places.
    pub limit: usize,
    /// Texts behind numbers, which policies must share.
    pub strings: Arc<Strings>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            seed: 0,
            // A Monday: 2026-01-05, 00:00 UTC.
            start: Time::from_secs(1_767_571_200),
            wire: WireSettings::default(),
            resync: None,
            keep_journal: true,
            deciders: 1,
            limit: usize::MAX,
            strings: Arc::default(),
        }
    }
}

/// More rounds than any number of jobs needs at one moment: they undo each other.
const ENDLESS: u32 = 5_000;

/// What is on the agenda.
#[derive(Debug)]
enum Happening {
    Command(Box<Command>),
    Order(Order),
    Report(Report),
    Alarm(Alarm),
    Resync,
    Wake,
}

/// A simulated cluster.
#[derive(Debug)]
pub struct World {
    pub(super) ledger: Ledger<MemoryJournal>,
    pub(super) executor: Executor,
    pub(super) behaviours: BTreeMap<JobUid, Behaviour>,
    /// Progress that jobs saved.
    pub(super) saved: BTreeMap<JobUid, Duration>,
    pub(super) nodes: BTreeMap<Arc<str>, NodeUid>,
    pub(super) jobs: BTreeMap<Arc<str>, JobUid>,
    pub(super) policies: PolicyMap,
    pub(super) wire: Wire,
    agenda: Agenda<Happening>,
    deciders: Vec<Decider>,
    settings: Settings,
    /// Claims that were told to stop.
    stopping: BTreeSet<ClaimUid>,
    rounds: u64,
    /// The books' sequence when the last round had placed all it could.
    settled: u64,
    wake: Option<Time>,
}

/// Policies without a word on their insides.
#[derive(Default)]
pub(super) struct PolicyMap(pub Policies);

impl std::fmt::Debug for PolicyMap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_map().entries(self.0.iter().map(|(queue, p)| (queue, p.digest()))).finish()
    }
}

impl World {
    /// An empty cluster.
    pub fn new(settings: Settings) -> Self {
        let journal = MemoryJournal { keep: settings.keep_journal, ..MemoryJournal::default() };
        let mut agenda = Agenda::new(settings.start);
        if let Some(every) = settings.resync {
            agenda.put(settings.start + every, Happening::Resync);
        }
        Self {
            ledger: Ledger::new(journal, settings.strings.clone()),
            executor: Executor::default(),
            behaviours: BTreeMap::new(),
            saved: BTreeMap::new(),
            nodes: BTreeMap::new(),
            jobs: BTreeMap::new(),
            policies: PolicyMap::default(),
            wire: Wire::new(settings.wire, mix(settings.seed)),
            agenda,
            deciders: (0..settings.deciders.max(1)).map(|_| Decider::default()).collect(),
            stopping: BTreeSet::new(),
            rounds: 0,
            settled: 0,
            wake: None,
            settings,
        }
    }

    /// Lets a command be carried out at a time; what is past, now.
    pub fn schedule(&mut self, at: Time, command: Command) {
        self.agenda.put(at, Happening::Command(Box::new(command)));
    }

    /// The time.
    pub fn now(&self) -> Time {
        self.agenda.now()
    }

    /// The books.
    pub fn state(&self) -> &State {
        self.ledger.state()
    }

    /// The ledger.
    pub fn ledger(&self) -> &Ledger<MemoryJournal> {
        &self.ledger
    }

    /// The machines.
    pub fn executor(&self) -> &Executor {
        &self.executor
    }

    /// The policies that decide.
    pub fn policies(&self) -> &Policies {
        &self.policies.0
    }

    /// The youngest node of a name, removed ones included.
    pub fn node(&self, name: &str) -> Option<NodeUid> {
        self.nodes.get(name).copied()
    }

    /// The youngest job of a name.
    pub fn job(&self, name: &str) -> Option<JobUid> {
        self.jobs.get(name).copied()
    }

    /// Lets everything happen up to and including `until`, and moves the clock
    /// there. Stops early when the observer says so.
    pub fn run_until(&mut self, until: Time, observer: &mut dyn Observer) {
        while let Some(at) = self.agenda.next_time().filter(|at| *at <= until) {
            let mut woken = false;
            while let Some(happening) = self.agenda.take(at) {
                woken |= matches!(happening, Happening::Wake);
                self.happen(happening, observer);
                observer.machines(self.ledger.state(), &self.executor);
                if observer.stop() {
                    return;
                }
            }
            if woken || self.settled != self.state().seq {
                self.decide(observer);
            }
            if observer.stop() {
                return;
            }
        }
        self.agenda.advance(until);
    }

    fn happen(&mut self, happening: Happening, observer: &mut dyn Observer) {
        let now = self.now();
        match happening {
            Happening::Command(command) => {
                if let Err(error) = self.command(&command, observer) {
                    observer.refused(now, &command, &error);
                }
            }
            Happening::Order(order) => {
                // A machine that is gone carries out nothing.
                let gone = matches!(order, Order::Start { node, .. }
                    if self.state().node(node).is_none());
                if !gone {
                    let effects = self.executor.order(now, order);
                    self.carry(effects);
                }
            }
            Happening::Report(report) => self.report(report, observer),
            Happening::Alarm(alarm) => {
                let effects = self.executor.alarm(now, alarm);
                self.carry(effects);
            }
            Happening::Resync => {
                self.resync();
                if let Some(every) = self.settings.resync {
                    self.agenda.put(now + every, Happening::Resync);
                }
            }
            Happening::Wake => self.wake = None,
        }
    }

    /// Sends an executor's reports and remembers its alarms.
    pub(super) fn carry(&mut self, effects: Effects) {
        let now = self.now();
        for report in effects.reports {
            for delay in self.wire.send() {
                self.agenda.put(now + delay, Happening::Report(report));
            }
        }
        for (after, alarm) in effects.alarms {
            self.agenda.put(now + after, Happening::Alarm(alarm));
        }
    }

    fn send(&mut self, order: Order) {
        let now = self.now();
        for delay in self.wire.send() {
            self.agenda.put(now + delay, Happening::Order(order));
        }
    }

    /// Tells the books what an executor said.
    fn report(&mut self, report: Report, observer: &mut dyn Observer) {
        let now = self.now();
        let (Report::Starting(claim)
        | Report::Running(claim)
        | Report::Ended(claim, _)
        | Report::Refused(claim)
        | Report::Stopped(claim)) = report;
        let job = self.state().claim(claim).map(|c| c.job);
        let moved = match report {
            Report::Starting(_) => self.ledger.move_claim(now, claim, ClaimState::Starting),
            Report::Running(_) => self.ledger.move_claim(now, claim, ClaimState::Held),
            Report::Ended(_, success) => self.ledger.member_ended(now, claim, success),
            Report::Stopped(_) => self.ledger.move_claim(now, claim, ClaimState::Gone),
            Report::Refused(_) => self.ledger.refuse_start(now, claim, "the machine says no"),
        };
        match moved {
            Ok(true) => {
                self.applied(observer);
                self.follow(job);
            }
            Ok(false) => {}
            Err(error) => observer.defect(&error_chain(&error)),
        }
    }

    /// How long those have run that may have to go.
    fn ran(&self, plan: &Plan) -> Vec<(JobUid, Duration)> {
        let jobs = plan.rooms.iter().flat_map(|room| &room.evictions).filter(|e| e.whole);
        let running = jobs.filter_map(|e| self.state().job(e.job));
        let running = running.filter(|job| job.state == JobState::Running);
        running.map(|job| (job.uid, self.now() - job.since)).collect()
    }

    /// What a job did up to its last save is done.
    fn save(&mut self, job: JobUid, ran: Duration) {
        let every = self.behaviours.get(&job).and_then(|b| b.saves).map(|e| e.as_millis());
        let evicted = self.state().job(job).is_some_and(|j| j.state != JobState::Running);
        if let Some(every) = every.filter(|every| *every > 0 && evicted) {
            let kept = ran.as_millis() - ran.as_millis() % every;
            let kept = Duration::from_millis(u64::try_from(kept).unwrap_or(u64::MAX));
            *self.saved.entry(job).or_default() += kept;
        }
    }

    /// Says that the entries after `seq` were applied.
    fn applied_since(&self, seq: u64, observer: &mut dyn Observer) {
        let entries = &self.ledger.journal().entries;
        let news = entries.iter().rev().take_while(|e| e.seq > seq).count();
        for entry in &entries[entries.len() - news..] {
            observer.applied(self.ledger.state(), Some(entry));
        }
        if entries.is_empty() && self.state().seq > seq {
            observer.applied(self.ledger.state(), None);
        }
    }

    /// Says that an entry was applied.
    pub(super) fn applied(&self, observer: &mut dyn Observer) {
        observer.applied(self.ledger.state(), self.ledger.journal().entries.last());
    }

    /// Tells machines to stop what the books let go of these jobs.
    pub(super) fn follow(&mut self, jobs: impl IntoIterator<Item = JobUid>) {
        for job in jobs {
            let Some(job) = self.state().job(job).cloned() else { continue };
            for &claim in &job.claims {
                let state = self.state().claim(claim).map(|c| c.state);
                if state == Some(ClaimState::Releasing) && self.stopping.insert(claim) {
                    self.send(Order::Stop(claim));
                }
            }
        }
    }

    /// Decides and commits until nothing more is placed.
    fn decide(&mut self, observer: &mut dyn Observer) {
        for rounds in 0.. {
            if rounds > ENDLESS {
                return observer.defect("decisions at one moment do not come to an end");
            }
            self.note_use(observer);
            let plan = self.round();
            observer.decided(self.ledger.state(), &self.policies.0, &plan);
            let now = self.now();
            let seq = self.state().seq;
            let ran = self.ran(&plan);
            let committed = match self.ledger.commit(now, &plan) {
                Ok(committed) => committed,
                Err(error) => return observer.defect(&error_chain(&error)),
            };
            // Each entry is looked at; the books are those after all of them.
            self.applied_since(seq, observer);
            observer.committed(self.ledger.state(), &plan, &committed);
            for (job, ran) in ran {
                self.save(job, ran);
            }
            self.follow(committed.evicted.iter().copied());
            for claim in &committed.claims {
                if let Some(order) = self.start(*claim) {
                    self.send(order);
                }
            }
            let changed = !committed.claims.is_empty() || !committed.held.is_empty();
            let idle = !changed && plan.given_up.is_empty();
            if idle || observer.stop() {
                self.settled = self.state().seq;
                self.wake_at(plan.wake);
                return observer.settled(self.ledger.state(), &self.policies.0, &plan);
            }
        }
    }

    /// Opens or closes borrowing by what is promised.
    fn note_use(&mut self, observer: &mut dyn Observer) {
        let quotas = self.state().quotas();
        if !quotas.platform().borrowing && !quotas.open() {
            return;
        }
        let used = self.state().allocated_percent();
        match self.ledger.note_use(self.now(), used) {
            Ok(true) => self.applied(observer),
            Ok(false) => {}
            Err(error) => observer.defect(&error_chain(&error)),
        }
    }

    fn round(&mut self) -> Plan {
        self.rounds += 1;
        let round = Round {
            limit: self.settings.limit,
            ..Round::new(self.now(), mix(self.settings.seed ^ self.rounds))
        };
        let turn = self.rounds as usize % self.deciders.len();
        self.deciders[turn].decide(self.ledger.state(), &self.policies.0, round)
    }

    fn wake_at(&mut self, at: Option<Time>) {
        let Some(at) = at else { return };
        if self.wake.is_none_or(|w| at < w) {
            self.wake = Some(at);
            self.agenda.put(at, Happening::Wake);
        }
    }

    fn start(&self, claim: ClaimUid) -> Option<Order> {
        let held = self.state().claim(claim)?;
        let mut behaviour = self.behaviours.get(&held.job).copied().unwrap_or_default();
        // What it saved need not be done again.
        let saved = self.saved.get(&held.job).copied().unwrap_or_default();
        behaviour.run = behaviour.run.map(|run| run.saturating_sub(saved));
        Some(Order::Start { claim, node: held.node, behaviour })
    }

    /// Books and machines tell each other again, without loss, what they know:
    /// what was lost on the wire comes through now.
    pub(super) fn resync(&mut self) {
        let now = self.now();
        let known: BTreeSet<ClaimUid> = self.state().claims().map(|c| c.uid).collect();
        let ghosts: Vec<_> =
            self.executor.live().map(|(c, _)| c).filter(|c| !known.contains(c)).collect();
        let mut orders: Vec<Order> = ghosts.into_iter().map(Order::Stop).collect();
        let mut reports = vec![];
        for claim in self.ledger.state().claims() {
            if claim.state == ClaimState::Releasing {
                orders.push(Order::Stop(claim.uid));
            } else if self.executor.knows(claim.uid) {
                reports.extend(self.executor.status(claim.uid).reports);
            } else {
                orders.extend(self.start(claim.uid));
            }
        }
        for order in orders {
            self.agenda.put(now, Happening::Order(order));
        }
        for report in reports {
            self.agenda.put(now, Happening::Report(report));
        }
        // Whatever was under way when a member ended has arrived after twice
        // the longest delay.
        let horizon = 2 * self.wire.lateness() + Duration::from_secs(1);
        let before = Time(now.0.saturating_sub(horizon.as_millis() as u64));
        self.executor.forget(before, &known);
        self.stopping.retain(|claim| known.contains(claim));
    }

    /// Makes a queue decide by a policy, or by none.
    pub(super) fn use_policy(
        &mut self,
        queue: QueueName,
        policy: Option<Arc<dyn crater_engine::Policy>>,
    ) {
        match policy {
            Some(policy) => self.policies.0.insert(queue, policy),
            None => self.policies.0.remove(&queue),
        };
    }
}

/// An error with what caused it.
fn error_chain(error: &Refusal) -> String {
    use std::error::Error as _;
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
