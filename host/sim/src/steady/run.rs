//! The loop: the next arrival, departure or wake-up, and a round after each.

use super::meter::{Meter, Run};
use super::workload::{Arrival, Coming, Workload};
use super::{Ask, Steady, SteadyError};
use crater_engine::{Decider, Ledger, MemoryJournal, Policies, Policy, Refusal, Round, mix};
use crater_model::{ClaimUid, JobUid, QueueName, Time};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

/// Of the measured arrivals, this part may come again while the last of them
/// wait.
const PATIENCE: u64 = 4;

struct Loop<'a> {
    workload: &'a Workload,
    trace: &'a str,
    seed: u64,
    ledger: Ledger<MemoryJournal>,
    policies: Policies,
    decider: Decider,
    meter: Meter,
    /// What came, by the job's number less one: the ledger counts from 1.
    came: Vec<u32>,
    departures: BinaryHeap<Reverse<(Time, ClaimUid)>>,
    /// When the policy wants to be asked again.
    wake: Option<Time>,
    rounds: u64,
    decisions: u64,
    faults: u64,
}

/// Runs the experiment.
pub(super) fn run(
    steady: &Steady<'_>,
    ask: Ask,
    policy: Option<Arc<dyn Policy>>,
    tick: &mut dyn FnMut(),
) -> Result<Run, SteadyError> {
    let workload = &steady.workload;
    let queue = QueueName::from("trace");
    let mut life = Loop {
        workload,
        trace: &steady.trace.name,
        seed: ask.seed,
        // Its journal keeps nothing.
        ledger: steady.cluster(ask.seed)?,
        policies: policy.map(|policy| (queue, policy)).into_iter().collect(),
        decider: Decider::default(),
        meter: Meter::default(),
        came: vec![],
        departures: BinaryHeap::new(),
        wake: None,
        rounds: 0,
        decisions: 0,
        faults: 0,
    };
    let warm = (workload.warm_up_arrivals(ask.load), Time(0) + workload.warm_up_time());
    let mut after = 0;
    for (number, arrival) in (0..).zip(workload.arrivals(ask.load, ask.seed)) {
        life.until(arrival.at)?;
        life.meter.advance(arrival.at);
        if life.meter.first().is_none() && number >= warm.0 && arrival.at >= warm.1 {
            life.meter.begin(number);
        }
        if let Some(first) = life.meter.first() {
            if number < first + ask.arrivals {
                life.meter.came();
            } else {
                life.meter.close();
                after = number - first - ask.arrivals;
                if life.meter.open() == 0 || after >= ask.arrivals / PATIENCE {
                    break;
                }
            }
        }
        life.arrive(arrival)?;
        tick();
    }
    let run = life.finish(steady.trace.gpus())?;
    Ok(Run { after, left_out: workload.left_out(), ..run })
}

impl<'a> Loop<'a> {
    fn refused<T>(
        &self,
        what: &dyn std::fmt::Display,
        done: Result<T, Refusal>,
    ) -> Result<T, SteadyError> {
        let named = |source| SteadyError::Refused {
            trace: self.trace.to_owned(),
            what: what.to_string(),
            source,
        };
        done.map_err(named)
    }

    fn books(&self, what: String) -> SteadyError {
        SteadyError::Books { trace: self.trace.to_owned(), what }
    }

    fn coming(&self, job: JobUid) -> &'a Coming {
        &self.workload.pods()[self.came[job.0 as usize - 1] as usize]
    }

    /// Lets all happen that is due at `now` or before.
    fn until(&mut self, now: Time) -> Result<(), SteadyError> {
        loop {
            let gone = self.departures.peek().map(|Reverse((at, _))| *at).filter(|at| *at <= now);
            // A departure at the same moment decides as well.
            let woken = self.wake.filter(|at| *at <= now && gone.is_none_or(|gone| *at < gone));
            if let Some(at) = woken {
                self.meter.advance(at);
                self.decide(at)?;
            } else if gone.is_none() {
                return Ok(());
            } else if let Some(Reverse((at, claim))) = self.departures.pop() {
                self.depart(at, claim)?;
            }
        }
    }

    fn arrive(&mut self, arrival: Arrival<'_>) -> Result<(), SteadyError> {
        let submitted = self.ledger.submit(arrival.at, arrival.coming.spec.clone());
        let job = self.refused(&arrival.coming.spec.name, submitted)?;
        self.came.push(arrival.pod as u32);
        if job.0 as usize != self.came.len() {
            return Err(self.books(format!("{job} is not the next")));
        }
        self.meter.waiting += 1;
        self.meter.waiting_gpu += u64::from(arrival.coming.cards > 0);
        self.decide(arrival.at)
    }

    fn depart(&mut self, now: Time, claim: ClaimUid) -> Result<(), SteadyError> {
        self.meter.advance(now);
        let job = self.ledger.state().claim(claim).map(|c| c.job);
        // Its one member ended well, and with it the job.
        let ended = self.ledger.member_ended(now, claim, true);
        match (job, self.refused(&claim, ended)?) {
            (Some(job), true) => self.meter.allocated -= self.coming(job).gpu.0,
            _ => return Err(self.books(format!("{claim} was gone before it ended"))),
        }
        if self.meter.waiting > 0 { self.decide(now) } else { Ok(()) }
    }

    fn decide(&mut self, now: Time) -> Result<(), SteadyError> {
        self.rounds += 1;
        let round = Round::new(now, mix(self.seed ^ self.rounds));
        let plan = self.decider.decide(self.ledger.state(), &self.policies, round);
        self.decisions += plan.records.len() as u64;
        self.faults += plan.records.iter().filter(|r| r.fault.is_some()).count() as u64;
        self.wake = plan.wake.filter(|at| *at > now);
        if plan.placements.is_empty() {
            return Ok(());
        }
        let committed = self.ledger.commit(now, &plan);
        let committed = self.refused(&"a plan", committed)?;
        if let Some((job, reason)) = committed.stale.first() {
            return Err(self.books(format!("{job} does not fit where it was planned: {reason}")));
        }
        for claim in committed.claims {
            let job = self.ledger.state().claim(claim).and_then(|c| self.ledger.state().job(c.job));
            let Some(job) = job else { return Err(self.books(format!("{claim} has no job"))) };
            let (uid, waited) = (job.uid, now.0 - job.submitted.0);
            let coming = self.coming(uid);
            self.meter.waiting -= 1;
            self.meter.waiting_gpu -= u64::from(coming.cards > 0);
            self.meter.allocated += coming.gpu.0;
            self.meter.started(uid.0 - 1, waited);
            self.departures.push(Reverse((now + coming.life, claim)));
        }
        Ok(())
    }

    fn finish(self, cards: u64) -> Result<Run, SteadyError> {
        let state = self.ledger.state();
        state.audit().map_err(|what| self.books(what))?;
        let used: u64 = state.nodes().flat_map(|n| &n.cards).map(|c| c.milli.0).sum();
        if used != self.meter.allocated {
            let counted = self.meter.allocated;
            return Err(self.books(format!("{used} thousandths are allocated, not {counted}")));
        }
        let end = state.at;
        let (pods, came) = (self.workload.pods(), &self.came);
        let run = self.meter.finish(cards, |arrival| {
            let submitted = state.job(JobUid(arrival + 1)).map_or(end, |job| job.submitted);
            (&pods[came[arrival as usize] as usize], end.0 - submitted.0)
        });
        let Self { rounds, decisions, faults, .. } = self;
        Ok(Run { rounds, decisions, faults, ..run })
    }
}
