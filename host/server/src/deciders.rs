//! A thread for each queue that decides on published books.
//!
//! A slow policy keeps nobody waiting but its own queue. Queues of greater
//! priority go first where both have work: the others wait for them on the
//! same books, but no longer than [`COURTESY`].

use crate::books::{Books, Unavailable, now};
use crate::metrics::Metrics;
use crate::policies::Policies;
use crate::timed::Timed;
use crater_engine::{Decider, Outcome, Plan, Round, State};
use crater_model::{Digest, QueueName, Time};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Longest that a queue waits for those of greater priority on the same books.
const COURTESY: Duration = Duration::from_millis(50);
/// Jobs placed in one round: bounds how long one commit takes.
const ROUND: usize = 256;
/// Shortest pause after a round that placed nothing.
const REST: Duration = Duration::from_millis(1);
/// A round is made at least this often while jobs wait.
const AGAIN: Duration = Duration::from_secs(30);

/// What a queue's thread has done, for metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tally {
    /// Rounds.
    pub rounds: u64,
    /// Jobs placed and committed.
    pub placed: u64,
    /// Placements that no longer fitted when they were committed.
    pub stale: u64,
    /// Seconds spent in rounds.
    pub seconds: f64,
    /// The last round's seconds.
    pub last: f64,
}

/// The threads.
pub struct Deciders {
    books: Books,
    policies: Arc<Policies>,
    metrics: Arc<Metrics>,
    progress: Arc<Progress>,
    queues: Mutex<BTreeSet<QueueName>>,
}

/// Up to which books each queue has decided.
#[derive(Default)]
struct Progress {
    seen: Mutex<BTreeMap<QueueName, (u64, Tally)>>,
    moved: Condvar,
}

impl Deciders {
    /// Without any thread yet.
    pub fn new(books: Books, policies: Arc<Policies>, metrics: Arc<Metrics>) -> Self {
        Self { books, policies, metrics, progress: Arc::default(), queues: Mutex::default() }
    }

    /// Makes the threads fit the queues that there are.
    pub fn follow(&self, state: &State) -> std::io::Result<()> {
        let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        for name in state.queues().keys() {
            if queues.contains(name) {
                continue;
            }
            let thread = Thread {
                queue: name.clone(),
                books: self.books.clone(),
                policies: self.policies.clone(),
                metrics: self.metrics.clone(),
                progress: self.progress.clone(),
                decider: Decider::default(),
                timed: BTreeMap::new(),
            };
            std::thread::Builder::new().name(format!("queue {name}")).spawn(|| thread.run())?;
            queues.insert(name.clone());
        }
        Ok(())
    }

    /// What each queue's thread has done.
    pub fn tallies(&self) -> BTreeMap<QueueName, Tally> {
        let seen = self.progress.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.iter().map(|(queue, (_, tally))| (queue.clone(), *tally)).collect()
    }
}

struct Thread {
    queue: QueueName,
    books: Books,
    policies: Arc<Policies>,
    metrics: Arc<Metrics>,
    progress: Arc<Progress>,
    decider: Decider,
    /// The policies that were asked last, with their clocks.
    timed: BTreeMap<QueueName, (Digest, Arc<Timed>)>,
}

impl Thread {
    fn run(mut self) {
        let mut decided = 0;
        let mut wake: Option<Time> = None;
        let mut generation = 0;
        let mut again = Instant::now();
        loop {
            let view = self.books.view();
            let live = self.policies.generation(&self.queue);
            let due = wake.is_some_and(|at| at <= now()) || again.elapsed() >= AGAIN;
            if view.state.seq == decided && live == generation && !due {
                // Briefly, so that time and a new policy are noticed.
                self.books.wait(decided, Duration::from_millis(200));
                continue;
            }
            generation = live;
            let waiting = view.state.queues().get(&self.queue);
            let grows = view.state.elastic(&self.queue);
            if !grows && waiting.is_none_or(|q| q.waiting.is_empty()) {
                decided = view.state.seq;
                wake = None;
                self.refill();
                self.done(decided, Tally::default());
                continue;
            }
            self.courtesy(&view.state);
            again = Instant::now();
            let state = &self.books.view().state;
            let start = Instant::now();
            let span = tracing::info_span!("round", queue = %self.queue, sequence = state.seq,
                placed = tracing::field::Empty, stale = tracing::field::Empty);
            let _entered = span.enter();
            let plan = self.decide(state);
            let seconds = start.elapsed().as_secs_f64();
            wake = plan.wake;
            decided = state.seq;
            self.books.board().note(&plan, state);
            self.count(&plan);
            let (placed, stale) = match self.commit(plan) {
                Ok(outcome) => outcome,
                Err(Unavailable::Stopping | Unavailable::Busy) => return,
            };
            span.record("placed", placed).record("stale", stale);
            self.count_round(placed, stale, start.elapsed());
            self.done(decided, Tally { rounds: 1, placed, stale, seconds, last: seconds });
            if placed == 0 {
                // A queue that finds no room takes at most half of a processor,
                // however often the books change.
                std::thread::sleep(start.elapsed().clamp(REST, AGAIN));
            }
        }
    }

    /// A queue without work begins no rounds, and others ask its policy what
    /// its jobs cost: its budget must not stay spent.
    fn refill(&self) {
        if let Some(live) = self.policies.known(&self.queue) {
            live.start_round(self.policies.budget(&self.queue));
        }
    }

    fn decide(&mut self, state: &State) -> Plan {
        let mut policies = crater_engine::Policies::new();
        // Each queue prices its own jobs, whoever wants their room. Before this
        // queue's round is held, and without holding theirs: a swap of theirs
        // waits for nobody else's round.
        for (queue, live) in self.policies.all_known() {
            if queue != self.queue {
                let policy = timed(&mut self.timed, &live, &queue, &self.metrics);
                policies.insert(queue, policy);
            }
        }
        let slot = self.policies.slot(&self.queue);
        // Held for the round: a swap takes place between rounds.
        let held = slot.as_ref().map(|slot| slot.round());
        if let Some(live) = held.as_ref().and_then(|round| round.as_ref()) {
            live.policy.start_round(self.policies.budget(&self.queue));
            let policy = timed(&mut self.timed, &live.policy, &self.queue, &self.metrics);
            policies.insert(self.queue.clone(), policy);
        }
        let round = Round {
            limit: ROUND,
            queue: Some(&self.queue),
            ..Round::new(now(), crater_engine::mix(state.seq))
        };
        self.decider.decide(state, &policies, round)
    }

    /// Counts what was decided, job by job.
    fn count(&self, plan: &Plan) {
        let mut counts: BTreeMap<(By, bool), u64> = BTreeMap::new();
        for record in &plan.records {
            let placed = matches!(record.outcome, Outcome::Placed(_));
            *counts.entry((By::of(record), placed)).or_default() += 1;
        }
        for ((by, placed), n) in counts {
            let result = if placed { "scheduled" } else { "unschedulable" };
            let labels = [
                ("queue", self.queue.to_string()),
                ("by", by.0.to_owned()),
                ("result", result.to_owned()),
            ];
            self.metrics.decisions.get_or_create(&labels).inc_by(n);
        }
    }

    /// Counts a round that was committed.
    fn count_round(&self, placed: u64, stale: u64, took: Duration) {
        let result = match (placed, stale) {
            (1.., _) => "scheduled",
            (0, 1..) => "stale",
            (0, 0) => "unschedulable",
        };
        let queue = || ("queue", self.queue.to_string());
        let labels = [queue(), ("result", result.to_owned())];
        self.metrics.attempts.get_or_create(&labels).observe(took.as_secs_f64());
        if stale > 0 {
            self.metrics.stale.get_or_create(&[queue()]).inc_by(stale);
        }
    }

    /// Commits what was placed and the room that is made: how many jobs, and how
    /// many no longer fitted.
    fn commit(&self, plan: Plan) -> Result<(u64, u64), Unavailable> {
        if plan.is_idle() {
            return Ok((0, 0));
        }
        let all = (plan.placements.len() + plan.rooms.len()) as u64;
        let committed = self.books.change_blocking(move |writer| {
            let now = writer.now;
            let committed = writer.ledger.commit(now, &plan);
            if let Ok(committed) = &committed {
                let stale = |job| committed.stale.iter().any(|(stale, _)| *stale == job);
                let held = |job| committed.held.contains(&job);
                let done = |job| (plan.placed(job) && !stale(job)) || held(job);
                for record in plan.records.iter().filter(|r| done(r.job)) {
                    if let Err(error) = writer.store().record(&plan, record) {
                        tracing::warn!(%error, job = %record.job, "a decision record is lost");
                    }
                }
            }
            committed
        })?;
        match committed {
            Ok(committed) => {
                let stale = committed.stale.len() as u64;
                Ok((all.saturating_sub(stale), stale))
            }
            Err(error) => {
                tracing::error!(%error, queue = %self.queue, "a plan was refused");
                Ok((0, all))
            }
        }
    }

    /// Lets queues of greater priority decide on these books first.
    fn courtesy(&self, state: &State) {
        let mine = state.queues().get(&self.queue).map_or(0, |q| q.spec.priority);
        let before: Vec<_> = state
            .queues()
            .values()
            .filter(|q| q.spec.priority > mine && !q.waiting.is_empty() && !q.spec.paused)
            .map(|q| q.spec.name.clone())
            .collect();
        if before.is_empty() {
            return;
        }
        let seen = self.progress.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let behind = |seen: &mut BTreeMap<QueueName, (u64, Tally)>| {
            before.iter().any(|name| seen.get(name).is_none_or(|(at, _)| *at < state.seq))
        };
        let waited = self.progress.moved.wait_timeout_while(seen, COURTESY, behind);
        drop(waited);
    }

    fn done(&self, decided: u64, round: Tally) {
        let mut seen = self.progress.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let (at, tally) = seen.entry(self.queue.clone()).or_default();
        *at = decided;
        tally.rounds += round.rounds;
        tally.placed += round.placed;
        tally.stale += round.stale;
        tally.seconds += round.seconds;
        if round.rounds > 0 {
            tally.last = round.last;
        }
        drop(seen);
        self.progress.moved.notify_all();
    }
}

/// Who decided, as a label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct By(&'static str);

impl By {
    const fn of(record: &crater_engine::Record) -> Self {
        Self(match record.by {
            crater_engine::By::Policy => "policy",
            crater_engine::By::Fallback => "fallback",
            crater_engine::By::Builtin => "builtin",
        })
    }
}

/// The policy with a clock; another digest gets another one.
fn timed(
    known: &mut BTreeMap<QueueName, (Digest, Arc<Timed>)>,
    policy: &Arc<crater_policy::Configured>,
    queue: &QueueName,
    metrics: &Arc<Metrics>,
) -> Arc<Timed> {
    let digest = crater_engine::Policy::digest(&**policy);
    match known.get(queue) {
        Some((same, timed)) if *same == digest && timed.is(policy) => timed.clone(),
        _ => {
            if let Some((before, old)) = known.remove(queue)
                && before != digest
            {
                old.retire();
            }
            let new = Arc::new(Timed::new(policy.clone(), queue, metrics.clone()));
            known.insert(queue.clone(), (digest, new.clone()));
            new
        }
    }
}
