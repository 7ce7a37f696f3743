//! What must hold after every event, whoever decides.

use super::executor::Executor;
use super::observer::Observer;
use crater_engine::{Committed, Job, Outcome, Plan, Policies, State};
use crater_model::event::Entry;
use crater_model::{Claim, ClaimState, ClaimUid, Event, JobState, JobUid};
use std::collections::{BTreeMap, BTreeSet};

/// Looks on, and remembers the first thing that was not as it must be.
#[derive(Debug, Default)]
pub struct Checks {
    violation: Option<String>,
    /// Entries looked at.
    pub entries: u64,
    /// Whose a claim is, from when it was committed.
    jobs: BTreeMap<ClaimUid, JobUid>,
    /// Members that ended well since the job last started.
    ended: BTreeMap<JobUid, u32>,
}

impl Checks {
    /// The first thing that was not as it must be.
    pub fn violation(&self) -> Option<&str> {
        self.violation.as_deref()
    }

    fn require(&mut self, result: Result<(), String>) {
        if let (None, Err(text)) = (&self.violation, result) {
            self.violation = Some(text);
        }
    }

    fn note(&mut self, state: &State, entry: &Entry) {
        match &entry.event {
            Event::PlanCommitted { claims } => {
                for claim in claims {
                    self.jobs.insert(claim.uid, claim.job);
                    // More members of an elastic job do not begin it anew.
                    let new = claims.iter().filter(|c| c.job == claim.job).count();
                    if state.job(claim.job).is_some_and(|j| j.claims.len() == new) {
                        self.ended.remove(&claim.job);
                    }
                }
            }
            Event::MemberEnded { claim, success: true, .. } => {
                if let Some(job) = self.jobs.get(claim) {
                    *self.ended.entry(*job).or_default() += 1;
                }
            }
            _ => {}
        }
    }

    fn job(&self, state: &State, job: &Job) -> Result<(), String> {
        let uid = job.uid;
        let is = |ok: bool, text: &str| {
            if ok { Ok(()) } else { Err(format!("{uid} is {}: {text}", job.state)) }
        };
        let queue = state.queues().get(&job.spec.queue).ok_or("a job without a queue")?;
        let waiting = queue.waiting.iter().any(|w| w.job == uid);
        is(waiting == (job.state == JobState::Pending), "its queue sees that otherwise")?;
        let holds = !job.claims.is_empty();
        is(queue.running.contains(&uid) == holds, "the running set disagrees with its claims")?;
        let claims: Vec<&Claim> =
            job.claims.iter().filter_map(|c| state.claim(*c)).map(|c| &**c).collect();
        is(claims.len() == job.claims.len(), "it names claims that are gone")?;
        let members: BTreeSet<u32> = claims.iter().map(|c| c.member).collect();
        is(members.len() == claims.len(), "a member has two claims")?;
        is(members.last().is_none_or(|m| *m < job.spec.members), "a member too many")?;
        is(claims.iter().all(|c| c.job == uid), "it names another job's claim")?;
        let releasing = claims.iter().all(|c| c.state == ClaimState::Releasing);
        let held = claims.iter().filter(|c| c.state == ClaimState::Held).count();
        let ended = self.ended.get(&uid).copied().unwrap_or(0) as usize;
        let up = held + ended >= job.spec.min_members as usize;
        match job.state {
            JobState::Pending => is(!holds, "it holds something"),
            JobState::Starting => {
                is(holds, "it holds nothing")?;
                is(!up, &format!("{held} members run and {ended} have run"))
            }
            JobState::Running => is(holds && up, "too few of its members ever ran"),
            JobState::Preempting => is(holds && releasing, "it holds on to something"),
            _ => is(releasing, "it holds on to something"),
        }
    }

    fn plan(state: &State, plan: &Plan, committed: &Committed) -> Result<(), String> {
        // In lockstep nobody else commits between a decision and its commit.
        if let Some((job, reason)) = committed.stale.first() {
            return Err(format!("the placement of {job} was refused at once: {reason}"));
        }
        let mut claims = committed.claims.iter();
        let mut jobs = BTreeSet::new();
        for placement in &plan.placements {
            let uid = placement.job;
            let job = state.job(uid).ok_or_else(|| format!("{uid} was placed and is unknown"))?;
            let n = placement.members.len();
            let (min, max) = (job.spec.min_members as usize, job.spec.members as usize);
            // More members of an elastic job that runs have no minimum.
            let grown = job.claims.len() > n;
            let allowed = (min..=max).contains(&n) || (grown && n > 0);
            if !allowed {
                return Err(format!("{uid} starts with {n} members, not {min} to {max}"));
            }
            if !jobs.insert(uid) {
                return Err(format!("{uid} was placed twice in one plan"));
            }
            for member in &placement.members {
                let claim = claims.next().and_then(|c| state.claim(*c));
                let same = claim.is_some_and(|c| {
                    (c.job, c.member, c.node) == (uid, member.member, member.node)
                        && c.held == member.held
                        && c.state == ClaimState::Reserved
                });
                if !same {
                    return Err(format!("member {} of {uid} has no such claim", member.member));
                }
            }
        }
        if claims.next().is_some() {
            return Err("claims without a placement were committed".to_owned());
        }
        Ok(())
    }

    fn reasons(state: &State, policies: &Policies, plan: &Plan) -> Result<(), String> {
        for queue in state.queues().values() {
            let policy = policies.get(&queue.spec.name).map(|p| p.digest());
            for waiting in queue.waiting.iter() {
                let uid = waiting.job;
                let record = plan.record(uid);
                let record = record.ok_or_else(|| format!("{uid} waits and was not looked at"))?;
                if record.policy != policy {
                    return Err(format!("the decision on {uid} names another policy"));
                }
                let Outcome::Waits(reasons) = &record.outcome else {
                    return Err(format!("{uid} was placed and waits"));
                };
                let refused: u64 = reasons.counts.values().sum();
                let told = reasons.job.is_some() || refused == reasons.nodes;
                if !told || reasons.to_string().is_empty() {
                    return Err(format!("{uid} waits without a full reason: {reasons}"));
                }
            }
        }
        Ok(())
    }

    fn all(&self, state: &State) -> Result<(), String> {
        state.audit()?;
        state.jobs().try_for_each(|job| self.job(state, job))
    }
}

impl Observer for Checks {
    fn applied(&mut self, state: &State, entry: Option<&Entry>) {
        self.entries += 1;
        if let Some(entry) = entry {
            self.note(state, entry);
        }
        let found = self.all(state);
        self.require(found);
    }

    fn machines(&mut self, state: &State, executor: &Executor) {
        let ghost = executor.live().find(|(c, _)| state.claim(*c).is_none());
        self.require(ghost.map_or(Ok(()), |(claim, node)| {
            Err(format!("{claim} has processes on {node} and is off the books"))
        }));
    }

    fn defect(&mut self, text: &str) {
        self.require(Err(text.to_owned()));
    }

    fn committed(&mut self, state: &State, plan: &Plan, committed: &Committed) {
        let found = Self::plan(state, plan, committed);
        self.require(found);
    }

    fn settled(&mut self, state: &State, policies: &Policies, plan: &Plan) {
        self.require(Self::reasons(state, policies, plan));
    }

    fn stop(&self) -> bool {
        self.violation.is_some()
    }
}
