//! `decide`: a round of placement decisions on a snapshot.
//!
//! **Architecture Invariant**: the plan is a function of the books, the
//! policies, the time, the seed and, on replay, the recorded faults. What a
//! decider remembers between rounds only makes it faster.

use crate::builtin;
use crate::cache::Cache;
use crate::evaluate::{Evaluation, Found, Scorer};
use crate::figures::Figures;
use crate::fit::{Choice, choose};
use crate::order::Order;
use crate::overlay::Overlay;
use crate::plan::{By, Member, Outcome, Placement, Plan, Record};
use crate::policy::{Fault, Interface, Policy};
use crate::preempt::{Making, failed, kept};
use crate::quota::{Gate, shut};
use crate::rows::{Asking, speaks_of_nodes, whole_table};
use crate::shape::mix;
use crate::state::{Job, Queue, State};
use crate::together::{Groups, within};
use crater_model::{Digest, Fallback, JobUid, Need, QueueName, Reason, Reasons, Share, Time};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// The policies that decide, by queue. A queue without one is decided by its
/// built-in order.
pub type Policies = BTreeMap<QueueName, Arc<dyn Policy>>;

/// What a round is given besides books and policies.
#[derive(Clone, Copy, Debug)]
pub struct Round<'a> {
    /// The time.
    pub now: Time,
    /// The seed.
    pub seed: u64,
    /// Most jobs to place.
    pub limit: usize,
    /// Only this queue; all of them without.
    pub queue: Option<&'a str>,
    /// Whether jobs may be evicted and room be kept, by whoever carries that out.
    pub makes_room: bool,
    /// The plan to decide again: its recorded faults are taken as they were,
    /// since a deadline depends on the machine's load.
    pub replay: Option<&'a Plan>,
}

impl Round<'_> {
    /// A round without bounds.
    pub fn new(now: Time, seed: u64) -> Self {
        Self { now, seed, limit: usize::MAX, queue: None, makes_room: true, replay: None }
    }
}

/// Decides rounds and remembers what makes the next one cheap. Serves one
/// ledger; many deciders may serve the same.
#[derive(Debug)]
pub struct Decider {
    /// Slots that changed, in order; position `start` is its first.
    log: Vec<u32>,
    start: u64,
    /// Position in the books' own log up to which changes are in `log`.
    synced: Option<u64>,
    /// Names tentative contents of nodes; never a stamp of the books.
    stamp: u64,
    caches: FxHashMap<Digest, Box<Cache>>,
    figures: Figures,
    figures_cursor: u64,
    marks: Vec<u64>,
    mark: u64,
    remember: bool,
}

impl Default for Decider {
    fn default() -> Self {
        Self {
            log: vec![],
            start: 0,
            synced: None,
            stamp: 1 << 63,
            caches: FxHashMap::default(),
            figures: Figures::default(),
            figures_cursor: 0,
            marks: vec![],
            mark: 0,
            remember: true,
        }
    }
}

/// What one queue's turn shares between its jobs.
pub(crate) struct Turn<'a> {
    pub queue: &'a Queue,
    pub policy: Option<&'a dyn Policy>,
    /// A fault of this round: the fallback decides for the rest of it.
    pub fault: Option<Fault>,
    /// Shapes for which there was no room, with the reasons.
    pub full: FxHashMap<crate::cache::ShapeKey, (Arc<Reasons>, Found)>,
}

impl Turn<'_> {
    /// The record of a job that nobody has looked at yet.
    pub fn waits(&self, job: JobUid, reasons: Arc<Reasons>) -> Record {
        Record {
            job,
            queue: self.queue.spec.name.clone(),
            by: if self.policy.is_some() { By::Policy } else { By::Builtin },
            policy: self.policy.map(Policy::digest),
            fault: None,
            answers: 0,
            candidates: 0,
            score: 0,
            outcome: Outcome::Waits(reasons),
        }
    }
}

impl Decider {
    /// One that asks about every node anew each time.
    pub fn forgetful() -> Self {
        Self { remember: false, ..Self::default() }
    }

    /// Decides one round.
    pub fn decide(&mut self, state: &State, policies: &Policies, round: Round<'_>) -> Plan {
        self.sync(state);
        let mut plan = Plan {
            seq: state.seq,
            now: round.now,
            seed: round.seed,
            engine: env!("CARGO_PKG_VERSION").to_owned(),
            ..Plan::default()
        };
        let mut overlay = Overlay::new(state, self.stamp);
        self.note(overlay.touched());
        // Faults of the plan that is decided again come as they came.
        plan.failed = round.replay.map(|replay| replay.failed.clone()).unwrap_or_default();
        let mut making = Making::default();
        self.leave_out_lost(&mut making, &mut overlay, round, &mut plan);
        let mut queues: Vec<&Queue> =
            state.queues().values().filter(|q| !q.waiting.is_empty()).collect();
        if let Some(only) = round.queue {
            queues.retain(|queue| &*queue.spec.name == only);
        }
        queues.sort_by_key(|q| std::cmp::Reverse(q.spec.priority));
        for queue in queues {
            self.serve(&mut overlay, queue, policies, round, &mut making, &mut plan);
        }
        self.grow(&mut overlay, policies, round, &mut plan);
        let (touched, stamp) = overlay.finish();
        self.stamp = stamp;
        // What the round tried is gone again until the ledger commits it.
        self.log.extend(touched);
        self.caches.values_mut().for_each(|c| c.rows.bound());
        plan
    }

    /// Warms what a new policy will need before it decides: shapes of the jobs
    /// that wait. Costs one cold evaluation each; changes no decision.
    pub fn warm(&mut self, state: &State, queue: &str, policy: &dyn Policy, now: Time) {
        self.sync(state);
        let Some(queue) = state.queues().get(queue) else { return };
        let overlay = Overlay::new(state, self.stamp);
        self.note(overlay.touched());
        let mut turn =
            Turn { queue, policy: Some(policy), fault: None, full: FxHashMap::default() };
        let mut seen = FxHashSet::default();
        let jobs = queue.waiting.iter().filter_map(|w| state.job(w.job)).take(1000);
        for job in jobs.filter(|j| seen.insert(j.spec.request.clone())).take(100) {
            let asking = Asking { job, placed: 0, now, seed: 0 };
            let _ = self.best(&overlay, asking, &mut turn, Some(policy));
        }
        let (touched, stamp) = overlay.finish();
        self.stamp = stamp;
        self.note(touched);
    }

    /// Remembers that nodes changed.
    pub(crate) fn note(&mut self, slots: impl IntoIterator<Item = u32>) {
        self.log.extend(slots);
    }

    /// Follows the books' changes.
    fn sync(&mut self, state: &State) {
        let changes = state.changes();
        if let Some(since) = self.synced.and_then(|from| changes.since(from)) {
            self.log.extend(since);
        } else {
            // The books are new or ran far ahead: begin again.
            self.start += self.log.len() as u64 + 1;
            self.log = (0..state.node_slots() as u32).collect();
            for cache in self.caches.values_mut() {
                cache.shapes.clear();
            }
            self.figures_cursor = self.start;
        }
        self.synced = Some(changes.end());
        let keep = 4 * state.node_slots() + 4096;
        if self.log.len() > 2 * keep {
            let drop = self.log.len() - keep;
            self.log.drain(..drop);
            self.start += drop as u64;
        }
    }

    fn end(&self) -> u64 {
        self.start + self.log.len() as u64
    }

    /// The slots that changed since a position, each once; all of them if that
    /// is too long ago.
    fn since(&mut self, cursor: u64, slots: usize) -> Vec<u32> {
        if cursor < self.start || cursor > self.end() {
            return (0..slots as u32).collect();
        }
        let news = &self.log[(cursor - self.start) as usize..];
        if news.len() > slots {
            return (0..slots as u32).collect();
        }
        self.mark += 1;
        self.marks.resize(self.marks.len().max(slots), 0);
        let mut once = Vec::with_capacity(news.len());
        for &slot in news {
            if let Some(mark) = self.marks.get_mut(slot as usize)
                && *mark != self.mark
            {
                *mark = self.mark;
                once.push(slot);
            }
        }
        once
    }

    fn serve(
        &mut self,
        overlay: &mut Overlay<'_>,
        queue: &Queue,
        policies: &Policies,
        round: Round<'_>,
        making: &mut Making,
        plan: &mut Plan,
    ) {
        let state = overlay.base();
        let policy = policies.get(&queue.spec.name).map(|p| &**p);
        let mut turn = Turn { queue, policy, fault: None, full: FxHashMap::default() };
        if state.quotas().hold() {
            let reasons = Arc::new(Reasons::quotas_unknown());
            for waiting in queue.waiting.iter() {
                plan.records.push(turn.waits(waiting.job, reasons.clone()));
            }
            return;
        }
        if queue.spec.paused {
            let reasons = Arc::new(Reasons::of_job("the queue is paused"));
            for waiting in queue.waiting.iter() {
                plan.records.push(turn.waits(waiting.job, reasons.clone()));
            }
            return;
        }
        let (mut order, fault) = match ranking_fault(round.replay, queue) {
            Some(fault) => (Order::own(queue), Some(fault)),
            None => Order::new(state, queue, policy, round.now, round.seed),
        };
        turn.fault = fault;
        while let Some(uid) = order.next() {
            if plan.placements.len() >= round.limit {
                return;
            }
            let Some(job) = state.job(uid) else { continue };
            if let Some(replay) = round.replay {
                turn.fault = replay.record(uid).and_then(|r| r.fault.clone());
            }
            if job.not_before > round.now {
                earlier(&mut plan.wake, job.not_before);
                plan.records.push(turn.waits(uid, backs_off(job, round.now)));
                continue;
            }
            // Room that is kept for it is not in its own way.
            let hold = overlay.lift(uid).map(|(hold, slots)| {
                self.note(slots);
                hold
            });
            let aside = self.set_aside(overlay, job, hold.as_ref());
            let mut record = match (shut(overlay, job), &hold) {
                (Some(reasons), _) => turn.waits(uid, reasons),
                (None, None) if aside.is_empty() => {
                    self.decide_job(overlay, job, &mut turn, round, &mut plan.wake)
                }
                (None, _) => {
                    // Where there is no room for others there may be for it.
                    let full = std::mem::take(&mut turn.full);
                    let record = self.decide_job(overlay, job, &mut turn, round, &mut plan.wake);
                    turn.full = full;
                    record
                }
            };
            // Whoever holds when its policy fails makes no room either.
            let stands = turn.fault.is_some() && queue.spec.fallback == Fallback::Hold;
            if let (Outcome::Waits(_), true) = (&record.outcome, stands) {
                if let Some(hold) = hold {
                    self.note(overlay.keep(hold));
                }
            } else if let Outcome::Waits(reasons) = &record.outcome {
                let reasons = reasons.clone();
                // Those who were to end by now may be made to.
                let due = hold.as_ref().and_then(|h| h.starts).is_some_and(|at| at <= round.now);
                let made = if due {
                    self.make_room(making, overlay, job, &turn, policies, round, plan, true)
                } else {
                    None
                };
                let kept = hold.filter(|_| made.is_none()).map(|hold| {
                    let reasons = Arc::new(kept(state, &hold, round.now));
                    self.note(overlay.keep(hold));
                    reasons
                });
                if let Some(done) = made.or(kept) {
                    record.outcome = Outcome::Waits(beside(&done, &reasons));
                } else if let Some(placed) =
                    self.borrow_room(overlay, job, &turn, round, &mut plan.wake)
                {
                    record = placed;
                } else if round.makes_room && !reasons.impossible() {
                    let made =
                        self.make_room(making, overlay, job, &turn, policies, round, plan, false);
                    let made =
                        made.or_else(|| self.reserve(making, overlay, job, &turn, round, plan));
                    if let Some(made) = made {
                        record.outcome = Outcome::Waits(beside(&made, &reasons));
                    }
                }
            }
            for hold in aside {
                self.note(overlay.keep(hold));
            }
            if let Outcome::Placed(placement) = &record.outcome {
                order.placed(state, placement);
                plan.placements.push(placement.clone());
            }
            plan.records.push(record);
        }
    }

    pub(crate) fn decide_job(
        &mut self,
        overlay: &mut Overlay<'_>,
        job: &Job,
        turn: &mut Turn<'_>,
        round: Round<'_>,
        wake: &mut Option<Time>,
    ) -> Record {
        let mut record = turn.waits(job.uid, Arc::default());
        let speaks = turn.policy.filter(|p| speaks_of_nodes(p.manifest()));
        if turn.fault.is_none() {
            let placed = self.place(overlay, job, turn, speaks, round, wake, &mut record);
            match placed {
                Ok(outcome) => {
                    if speaks.is_none() {
                        record.by = By::Builtin;
                    }
                    record.outcome = outcome;
                    return record;
                }
                Err(fault) => turn.fault = Some(fault),
            }
        }
        record.fault.clone_from(&turn.fault);
        record.by = By::Fallback;
        (record.answers, record.candidates, record.score) = (0, 0, 0);
        if turn.queue.spec.fallback == Fallback::Hold {
            let fault = record.fault.as_ref().map(ToString::to_string).unwrap_or_default();
            let text = format!("the queue's policy failed and its fallback is to hold: {fault}");
            record.outcome = Outcome::Waits(Arc::new(Reasons::of_job(&text)));
            return record;
        }
        // The built-in orders do not fault.
        if let Ok(outcome) = self.place(overlay, job, turn, None, round, wake, &mut record) {
            record.outcome = outcome;
        }
        record
    }

    /// Places a job's members, at least its minimum or none, near each other if
    /// it wants that.
    #[allow(clippy::too_many_arguments)]
    pub(crate) fn place(
        &mut self,
        overlay: &mut Overlay<'_>,
        job: &Job,
        turn: &mut Turn<'_>,
        policy: Option<&dyn Policy>,
        round: Round<'_>,
        wake: &mut Option<Time>,
        record: &mut Record,
    ) -> Result<Outcome, Fault> {
        let Some(together) = job.spec.together.as_ref().filter(|t| t.need != Need::None) else {
            return self.place_anywhere(overlay, job, turn, policy, round, wake, record);
        };
        let groups = Groups::of(overlay, job, &together.level);
        for value in groups.fitting() {
            let job = within(job, &together.level, value);
            record.answers = 0;
            let outcome = self.place_anywhere(overlay, &job, turn, policy, round, wake, record)?;
            if let Outcome::Placed(_) = outcome {
                return Ok(outcome);
            }
        }
        record.answers = 0;
        if together.need == Need::Preferred {
            return self.place_anywhere(overlay, job, turn, policy, round, wake, record);
        }
        let text = groups.told(job, &together.level);
        Ok(Outcome::Waits(Arc::new(Reasons::of_job(&text))))
    }

    /// Lets elastic jobs have more members, where room is left after all that
    /// waits was looked at.
    fn grow(
        &mut self,
        overlay: &mut Overlay<'_>,
        policies: &Policies,
        round: Round<'_>,
        plan: &mut Plan,
    ) {
        let state = overlay.base();
        if state.quotas().hold() {
            return;
        }
        for uid in state.elastic.iter() {
            if plan.placements.len() >= round.limit {
                return;
            }
            let Some(job) = state.job(*uid) else { continue };
            let queue = state.queues().get(&job.spec.queue);
            let of_round = |q: &&Queue| round.queue.is_none_or(|only| &*q.spec.name == only);
            let Some(queue) = queue.filter(of_round).filter(|q| !q.spec.paused) else { continue };
            let gives_up = |r: &crate::plan::Room| r.evictions.iter().any(|e| e.job == *uid);
            if plan.rooms.iter().any(gives_up) || failed(plan, *uid) {
                continue;
            }
            let policy = policies.get(&queue.spec.name).map(|p| &**p);
            let mut turn = Turn { queue, policy, fault: None, full: FxHashMap::default() };
            let speaks = policy.filter(|p| speaks_of_nodes(p.manifest()));
            let numbers = missing(state, job);
            let mut record = turn.waits(*uid, Arc::default());
            let own = Choice::Order(card_order(queue.spec.fallback));
            let gate = Gate::of(overlay, job);
            let (wake, record_of) = (&mut plan.wake, &mut record);
            let found = self.members(
                overlay, job, &mut turn, speaks, round, wake, record_of, own, gate, &numbers,
            );
            let members = match found {
                Ok((members, _)) => members,
                Err(fault) => {
                    plan.failed.push((*uid, fault));
                    continue;
                }
            };
            overlay.settle();
            if !members.is_empty() {
                let placement = Placement { job: *uid, members };
                record.outcome = Outcome::Placed(placement.clone());
                plan.placements.push(placement);
                plan.records.push(record);
            }
        }
    }

    /// Places a job's members, at least its minimum or none.
    #[allow(clippy::too_many_arguments)]
    fn place_anywhere(
        &mut self,
        overlay: &mut Overlay<'_>,
        job: &Job,
        turn: &mut Turn<'_>,
        policy: Option<&dyn Policy>,
        round: Round<'_>,
        wake: &mut Option<Time>,
        record: &mut Record,
    ) -> Result<Outcome, Fault> {
        let choice = Choice::Order(card_order(turn.queue.spec.fallback));
        let few = |members: &Members| (members.len() as u32) < job.spec.min_members;
        let gate = Gate::of(overlay, job);
        let numbers: Vec<u32> = (0..job.spec.members).collect();
        let all = &numbers;
        let mut found =
            self.members(overlay, job, turn, policy, round, wake, record, choice, gate, all)?;
        if few(&found.0) && !found.0.is_empty() && shares_several_cards(job) {
            self.undo(overlay);
            record.answers = 0;
            let (choice, gate) = (Choice::Roomiest, Gate::of(overlay, job));
            found =
                self.members(overlay, job, turn, policy, round, wake, record, choice, gate, all)?;
        }
        let over = found.1.as_ref().and_then(|short| short.quota.clone());
        if few(&found.0) && over.is_some() {
            // The cards that its first members took may count for more than
            // others that would do for all of them.
            self.undo(overlay);
            if let Some(gate) = Gate::of_gang(overlay, job, over) {
                record.answers = 0;
                let gate = Some(gate);
                found = self
                    .members(overlay, job, turn, policy, round, wake, record, choice, gate, all)?;
            }
        }
        let (members, short) = found;
        if few(&members) {
            self.undo(overlay);
            self.timed(policy, round, wake);
            let reasons = short.unwrap_or_default();
            return Ok(Outcome::Waits(gang_reasons(job, members.len(), reasons)));
        }
        overlay.settle();
        Ok(Outcome::Placed(Placement { job: job.uid, members }))
    }

    /// Charges as many of a job's members as there is room for, one by one;
    /// for fewer than all of them the reason too. Leaves nothing on a fault.
    #[allow(clippy::too_many_arguments)]
    fn members(
        &mut self,
        overlay: &mut Overlay<'_>,
        job: &Job,
        turn: &mut Turn<'_>,
        policy: Option<&dyn Policy>,
        round: Round<'_>,
        wake: &mut Option<Time>,
        record: &mut Record,
        own: Choice,
        mut gate: Option<Gate>,
        numbers: &[u32],
    ) -> Result<(Members, Option<Arc<Reasons>>), Fault> {
        let mut members = Members::new();
        let mut short = None;
        while let Some(&member) = numbers.get(members.len()) {
            let narrowed = gate.as_ref().and_then(|g| g.narrowed.clone());
            let job = narrowed.as_deref().unwrap_or(job);
            let seed = mix(round.seed ^ mix(job.uid.0)).wrapping_add(u64::from(member));
            let placed = job.claims.len() as u32 + members.len() as u32;
            let asking = Asking { job, placed, now: round.now, seed };
            let found = match self.best(overlay, asking, turn, policy) {
                Ok(found) => found,
                Err(fault) => {
                    self.undo(overlay);
                    return Err(fault);
                }
            };
            if members.is_empty() {
                record.candidates = found.1.candidates;
                record.score = found.1.top.map_or(0, |t| t.score);
            }
            record.answers = mix(record.answers).wrapping_add(found.1.answers);
            let Some(top) = found.1.top else {
                if let Some(secs) = found.1.later {
                    earlier(wake, round.now + Duration::from_secs(u64::from(secs)));
                }
                short = Some(match &gate {
                    Some(gate) => gate.reasons(found.0),
                    None => found.0,
                });
                break;
            };
            let choice = if top.mask == 0 { own } else { Choice::Mask(top.mask) };
            let charged = overlay
                .get(top.slot)
                .ok_or(Reason::Cordoned)
                .and_then(|node| choose(node, &job.spec.request, choice).map(|h| (node.uid, h)))
                .and_then(|(node, held)| {
                    if let Some(gate) = &mut gate {
                        let counts = gate.check(overlay, job, members.len(), top.slot, &held)?;
                        gate.charge(overlay, job, counts);
                    }
                    overlay.charge(top.slot, job.uid, job.owner, &held).map(|()| (node, held))
                });
            let (node, held) = match (charged, &mut gate) {
                (Ok(charged), _) => charged,
                (Err(Reason::Quota(over)), Some(gate)) => {
                    if gate.narrow(overlay, job, over) {
                        continue;
                    }
                    short = Some(gate.reasons(Arc::default()));
                    break;
                }
                (Err(_), _) => {
                    // `fits` and `choose` disagree only by a defect; the job waits.
                    short = Some(Arc::new(Reasons::of_job("the chosen node did not take the job")));
                    break;
                }
            };
            self.log.push(top.slot);
            members.push(Member { member, node, held });
        }
        Ok((members, short))
    }

    fn undo(&mut self, overlay: &mut Overlay<'_>) {
        self.log.extend(overlay.roll_back());
    }

    /// A policy that looks at the time is asked again when its next step comes.
    fn timed(&self, policy: Option<&dyn Policy>, round: Round<'_>, wake: &mut Option<Time>) {
        let Some(policy) = policy else { return };
        let layout = self.caches.get(&policy.digest()).map(|c| &c.layout);
        if let Some(layout) = layout.filter(|l| l.timed()) {
            let step = layout.step();
            earlier(wake, round.now.floor(step) + Duration::from_secs(step));
        }
    }

    /// The best node for one member; without one, why not.
    fn best(
        &mut self,
        overlay: &Overlay<'_>,
        asking: Asking<'_>,
        turn: &mut Turn<'_>,
        policy: Option<&dyn Policy>,
    ) -> Result<(Arc<Reasons>, Found), Fault> {
        let state = overlay.base();
        let slots = state.node_slots();
        let order = card_order(turn.queue.spec.fallback);
        let digest = policy.map_or_else(|| builtin::digest(order), Policy::digest);
        let mut cache = self.caches.remove(&digest).unwrap_or_else(|| Box::new(Cache::new(policy)));
        let scorer = policy.map_or(Scorer::Builtin(order), |p| Scorer::Policy(p, order));
        let evaluation = Evaluation { overlay, asking, scorer };
        if cache.groups.is_some() {
            for slot in self.since(cache.groups_cursor, slots) {
                if let Some(groups) = &mut cache.groups {
                    groups.update(slot, overlay.get(slot));
                }
            }
            cache.groups_cursor = self.end();
        }
        let fresh = !self.remember
            || policy.is_some_and(|p| whole_table(p.manifest()) || cache.layout.chance());
        let found = if fresh {
            evaluation.search(&mut cache, slots as u32)
        } else {
            let key = cache.key(&asking, order, &state.strings);
            if let Some((reasons, found)) = turn.full.get(&key) {
                // Room only shrinks within a round.
                let known = (reasons.clone(), found.clone());
                self.caches.insert(digest, cache);
                return Ok(known);
            }
            let (number, mut shape) = cache.take(&key);
            let news = self.since(shape.cursor, slots);
            let refreshed = evaluation.refresh(&mut cache, number, &mut shape, &news);
            match refreshed.and_then(|()| evaluation.pick(&cache, &shape)) {
                Ok(found) => {
                    shape.cursor = self.end();
                    cache.put(key.clone(), number, shape);
                    if found.top.is_none() && only_shrinks(policy, asking) {
                        let reasons = Arc::new(self.with_figures(overlay, found.reasons.clone()));
                        turn.full.insert(key, (reasons.clone(), found.clone()));
                        self.caches.insert(digest, cache);
                        return Ok((reasons, found));
                    }
                    Ok(found)
                }
                Err(fault) => {
                    cache.forget(&key);
                    Err(fault)
                }
            }
        };
        self.caches.insert(digest, cache);
        let found = found?;
        let reasons = if found.top.is_none() {
            Arc::new(self.with_figures(overlay, found.reasons.clone()))
        } else {
            Arc::default()
        };
        Ok((reasons, found))
    }

    fn with_figures(&mut self, overlay: &Overlay<'_>, mut reasons: Reasons) -> Reasons {
        let slots = overlay.base().node_slots();
        for slot in self.since(self.figures_cursor, slots) {
            self.figures.update(slot, overlay.get(slot));
        }
        self.figures_cursor = self.end();
        reasons.best = self.figures.best();
        reasons
    }
}

/// What is done about a job's waiting, beside why it waits.
fn beside(done: &Reasons, why: &Reasons) -> Arc<Reasons> {
    Arc::new(Reasons { job: done.job.clone(), ..why.clone() })
}

fn backs_off(job: &Job, now: Time) -> Arc<Reasons> {
    let (times, wait) = (job.refusals, job.not_before.secs_since(now));
    let (reason, s) = (&job.reason, if times == 1 { "" } else { "s" });
    let text = format!("its start was refused {times} time{s}: {reason}; tried again in {wait} s");
    Arc::new(Reasons::of_job(&text))
}

/// Numbers of the members that an elastic job could have besides.
fn missing(state: &State, job: &Job) -> Vec<u32> {
    let taken: FxHashSet<u32> =
        job.claims.iter().filter_map(|c| state.claim(*c)).map(|c| c.member).collect();
    let more = (job.spec.members - job.ended.min(job.spec.members)) as usize;
    let more = more.saturating_sub(job.claims.len());
    (0..job.spec.members).filter(|n| !taken.contains(n)).take(more).collect()
}

/// Members that were given a place.
type Members = SmallVec<[Member; 1]>;

/// Whether the cards that one member takes may be those without which the next
/// one does not fit, although others would do.
fn shares_several_cards(job: &Job) -> bool {
    let gpu = job.spec.request.gpu.as_ref();
    job.spec.members > 1 && gpu.is_some_and(|g| g.cards > 1 && g.share != Share::Whole)
}

/// Whether no room found now means none for equal jobs later in the round. A
/// filter may say yes to what is placed meanwhile, and a gang's own charges may
/// still come back.
fn only_shrinks(policy: Option<&dyn Policy>, asking: Asking<'_>) -> bool {
    asking.placed == 0 && policy.is_none_or(|p| !p.manifest().exports(Interface::Filter))
}

/// The fault with which a queue's ranking failed in the plan that is decided
/// again: it holds for all of the queue's decisions, the first included.
fn ranking_fault(replay: Option<&Plan>, queue: &Queue) -> Option<Fault> {
    let first = replay?.records.iter().find(|r| r.queue == queue.spec.name)?;
    first.fault.clone().filter(|fault| fault.interface() == Interface::Rank)
}

/// The order in which the host chooses cards where the policy leaves it to it.
fn card_order(fallback: Fallback) -> Fallback {
    if fallback == Fallback::Hold { Fallback::Binpack } else { fallback }
}

fn earlier(wake: &mut Option<Time>, at: Time) {
    *wake = Some(wake.map_or(at, |w| w.min(at)));
}

fn gang_reasons(job: &Job, placed: usize, reasons: Arc<Reasons>) -> Arc<Reasons> {
    if job.spec.members == 1 || placed == 0 || reasons.quota.is_some() {
        return reasons;
    }
    let (members, min) = (job.spec.members, job.spec.min_members);
    let text =
        format!("room for {placed} of {members} members, at least {min} must start together");
    Arc::new(Reasons { job: Some(text.into()), ..Reasons::clone(&reasons) })
}

/// Whether a policy orders its queue.
pub(crate) fn ranks(policy: Option<&dyn Policy>) -> Option<&dyn Policy> {
    policy.filter(|p| p.manifest().exports(Interface::Rank))
}
