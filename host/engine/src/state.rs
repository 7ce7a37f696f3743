//! The books: a fold over the journal.

use crate::cow::{Changes, Cow};
use crate::node::{NodeState, Owner};
use crate::quota::{self, Level, Quotas};
use crate::strings::Strings;
use crater_model::event::Entry;
use crater_model::{
    Cause, Claim, ClaimState, ClaimUid, Digest, Event, Hold, JobChanges, JobSpec, JobState, JobUid,
    Kind, NodeSpec, NodeUid, Priority, QueueName, QueueSpec, Share, Time,
};
use smallvec::SmallVec;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use thiserror::Error;

/// A job and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// Identity; greater means submitted later.
    pub uid: JobUid,
    /// What was submitted.
    pub spec: Arc<JobSpec>,
    /// Whose it is, as numbers.
    pub owner: Owner,
    /// Where it stands.
    pub state: JobState,
    /// When it was submitted.
    pub submitted: Time,
    /// When it began to wait, or to run.
    pub since: Time,
    /// Claims that are not gone.
    pub claims: SmallVec<[ClaimUid; 1]>,
    /// Members that ended well since it last started.
    pub ended: u32,
    /// Starts so far.
    pub attempts: u32,
    /// Times that it was evicted to be started again.
    pub preemptions: u32,
    /// Why it had to go, until it starts again.
    pub evicted: Option<Cause>,
    /// When it last saved its progress.
    pub checkpointed: Option<Time>,
    /// Times in a row that an executor refused to start it.
    pub refusals: u32,
    /// Not tried again before this.
    pub not_before: Time,
    /// A member ended badly.
    pub failed: bool,
    /// Why it ended, or why its start was refused.
    pub reason: Arc<str>,
}

impl Job {
    /// Whether it is over and holds nothing any more.
    pub fn may_be_forgotten(&self) -> bool {
        self.state.ended() && self.claims.is_empty()
    }

    /// Whether it holds something and lets itself be preempted.
    pub(crate) fn may_go(&self) -> bool {
        let up =
            matches!(self.state, JobState::Starting | JobState::Running | JobState::Preempting);
        up && self.spec.preemptible && self.spec.kind != Kind::Inference && !self.claims.is_empty()
    }

    /// Its place among all jobs: greater goes first and may preempt less.
    pub fn rank(&self) -> (Priority, Reverse<Kind>) {
        (self.spec.priority, Reverse(self.spec.kind))
    }
}

/// A waiting job's place in the host's own order: priority, then kind, then
/// age.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Waiting {
    priority: Reverse<Priority>,
    kind: Kind,
    /// The job.
    pub job: JobUid,
}

impl Waiting {
    pub(crate) fn new(job: &Job) -> Self {
        Self { priority: Reverse(job.spec.priority), kind: job.spec.kind, job: job.uid }
    }
}

/// A queue and its waiting jobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queue {
    /// Description.
    pub spec: Arc<QueueSpec>,
    /// Policy, configuration and prepared data that decide, if there is one.
    pub policy: Option<Digest>,
    /// Jobs that wait, in the host's own order.
    pub waiting: Arc<BTreeSet<Waiting>>,
    /// Jobs that hold something.
    pub running: Arc<BTreeSet<JobUid>>,
    /// When jobs of it were evicted, in the last hour before the last time.
    pub evictions: Arc<VecDeque<Time>>,
}

impl Queue {
    /// A queue without jobs.
    pub fn new(spec: Arc<QueueSpec>, policy: Option<Digest>) -> Self {
        let (waiting, running) = (Arc::default(), Arc::default());
        Self { spec, policy, waiting, running, evictions: Arc::default() }
    }
}

/// An entry that does not follow from those before it. The journal is damaged
/// or of another program; nothing of the entry was applied.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ApplyError {
    /// Numbers must count up by one.
    #[error("journal entry {found} follows entry {last}")]
    Gap {
        /// The last one applied.
        last: u64,
        /// The one that came.
        found: u64,
    },
    /// It names something that is not there, or that is there already.
    #[error("journal entry {seq}: {what} {uid} is {problem}")]
    Unknown {
        /// The entry.
        seq: u64,
        /// Sort of thing.
        what: &'static str,
        /// Which.
        uid: String,
        /// `unknown` or `there already`.
        problem: &'static str,
    },
    /// A claim does not fit where the entry puts it.
    #[error("journal entry {seq}: {claim} does not fit on {node}: {reason}")]
    Oversold {
        /// The entry.
        seq: u64,
        /// The claim.
        claim: ClaimUid,
        /// The node.
        node: NodeUid,
        /// What is short.
        reason: crater_model::Reason,
    },
    /// A claim cannot go that way.
    #[error("journal entry {seq}: {claim} cannot go from {from:?} to {to:?}")]
    Transition {
        /// The entry.
        seq: u64,
        /// The claim.
        claim: ClaimUid,
        /// Where it stands.
        from: ClaimState,
        /// Where it should go.
        to: ClaimState,
    },
}

/// The books. A clone is a snapshot: it shares all that does not change later.
///
/// **Architecture Invariant**: `apply` is the only function that changes them.
#[derive(Clone, Debug, Default)]
pub struct State {
    /// The last entry applied.
    pub seq: u64,
    /// When it was journalled.
    pub at: Time,
    /// Texts behind numbers that policies may look up.
    pub strings: Arc<Strings>,
    /// Tenants and queues, which policies see as numbers only.
    pub(crate) owners: Arc<Strings>,
    pub(crate) nodes: Cow<NodeState>,
    pub(crate) jobs: Cow<Job>,
    pub(crate) claims: Cow<Claim>,
    pub(crate) queues: Arc<BTreeMap<QueueName, Queue>>,
    pub(crate) quotas: Quotas,
    /// Room that is kept for waiting jobs.
    pub(crate) holds: Arc<BTreeMap<JobUid, Hold>>,
    /// Jobs that run with fewer members than they could, or must.
    pub(crate) elastic: Arc<BTreeSet<JobUid>>,
    /// Jobs that hold something and let themselves be preempted.
    pub(crate) victims: Arc<BTreeSet<JobUid>>,
    /// Claims that are releasing.
    pub(crate) leaving: Arc<BTreeSet<ClaimUid>>,
    pub(crate) changes: Changes,
    pub(crate) stamp: u64,
}

impl State {
    /// Empty books.
    pub fn new(strings: Arc<Strings>) -> Self {
        Self { strings, ..Self::default() }
    }

    /// A node.
    pub fn node(&self, uid: NodeUid) -> Option<&Arc<NodeState>> {
        self.nodes.get(uid.0 as usize)
    }

    /// All nodes, oldest first.
    pub fn nodes(&self) -> impl Iterator<Item = &Arc<NodeState>> {
        self.nodes.iter().map(|(_, n)| n)
    }

    /// One more than the greatest node number ever given.
    pub fn node_slots(&self) -> usize {
        self.nodes.len()
    }

    /// A job.
    pub fn job(&self, uid: JobUid) -> Option<&Arc<Job>> {
        self.jobs.get(uid.0 as usize)
    }

    /// All jobs, oldest first.
    pub fn jobs(&self) -> impl Iterator<Item = &Arc<Job>> {
        self.jobs.iter().map(|(_, j)| j)
    }

    /// A claim that is not gone.
    pub fn claim(&self, uid: ClaimUid) -> Option<&Arc<Claim>> {
        self.claims.get(uid.0 as usize)
    }

    /// All claims that are not gone.
    pub fn claims(&self) -> impl Iterator<Item = &Arc<Claim>> {
        self.claims.iter().map(|(_, c)| c)
    }

    /// The queues by name.
    pub fn queues(&self) -> &BTreeMap<QueueName, Queue> {
        &self.queues
    }

    /// Room that is kept for waiting jobs.
    pub fn holds(&self) -> &BTreeMap<JobUid, Hold> {
        &self.holds
    }

    /// Tenants with what they may use and do use.
    pub fn quotas(&self) -> &Quotas {
        &self.quotas
    }

    /// What a department, project or person may use and does use; `None` if it
    /// was never made and never used anything.
    pub fn level(&self, path: &str) -> Option<&Arc<Level>> {
        self.quotas.level(self.known_owner(path)?)
    }

    /// The number of a tenant's path or a queue's name, if it has one.
    pub(crate) fn known_owner(&self, text: &str) -> Option<i32> {
        self.owners.known(text)
    }

    /// Which nodes changed, in order.
    pub fn changes(&self) -> &Changes {
        &self.changes
    }

    /// The next node's identity.
    pub fn next_node(&self) -> NodeUid {
        NodeUid(self.nodes.len() as u64)
    }

    /// The next job's identity. Counts from 1.
    pub fn next_job(&self) -> JobUid {
        JobUid(self.jobs.len().max(1) as u64)
    }

    /// The next claim's identity. Counts from 1.
    pub fn next_claim(&self) -> ClaimUid {
        ClaimUid(self.claims.len().max(1) as u64)
    }

    /// Whose a job is, as numbers.
    pub fn owner(&self, spec: &JobSpec) -> Owner {
        Owner {
            department: self.owners.id(spec.tenant.department()),
            project: self.owners.id(spec.tenant.project()),
            user: self.owners.id(spec.tenant.as_str()),
            queue: self.owners.id(&spec.queue),
        }
    }

    /// Applies the next entry, or nothing of it.
    pub fn apply(&mut self, entry: &Entry) -> Result<(), ApplyError> {
        if entry.seq != self.seq + 1 {
            return Err(ApplyError::Gap { last: self.seq, found: entry.seq });
        }
        let unknown =
            |what, uid: String, problem| ApplyError::Unknown { seq: entry.seq, what, uid, problem };
        match &entry.event {
            Event::NodeAdded { node, spec } => {
                if *node != self.next_node() {
                    return Err(unknown("node", node.to_string(), "not the next"));
                }
                self.add_node(*node, spec);
            }
            Event::NodeChanged { node, spec } => {
                let (spec, strings) = (spec.clone(), self.strings.clone());
                self.change(*node, |n| n.describe(spec, &strings))
                    .ok_or_else(|| unknown("node", node.to_string(), "unknown"))?;
                self.drop_holds(*node, false);
            }
            Event::NodeRemoved { node } => {
                if self.node(*node).is_none() {
                    return Err(unknown("node", node.to_string(), "unknown"));
                }
                self.remove_node(*node, entry.at);
            }
            Event::QueueSet { spec } => {
                let queues = Arc::make_mut(&mut self.queues);
                let new = || Queue::new(spec.clone(), None);
                let queue = queues.entry(spec.name.clone()).or_insert_with(new);
                queue.spec = spec.clone();
            }
            Event::PolicySet { queue, digest } => {
                Arc::make_mut(&mut self.queues)
                    .get_mut(queue)
                    .ok_or_else(|| unknown("queue", queue.to_string(), "unknown"))?
                    .policy = Some(*digest);
            }
            Event::JobSubmitted { job, spec } => {
                if *job != self.next_job() {
                    return Err(unknown("job", job.to_string(), "not the next"));
                }
                if !self.queues.contains_key(&spec.queue) {
                    return Err(unknown("queue", spec.queue.to_string(), "unknown"));
                }
                self.add_job(*job, spec, entry.at);
            }
            Event::TenantSet { spec } => {
                let id = self.owners.id(spec.path.as_str());
                self.quotas.set(Some(id), spec);
            }
            Event::TenantRemoved { path } => {
                let id = self.owners.id(path.as_str());
                if !self.quotas.remove(id, path) {
                    return Err(unknown("tenant", path.to_string(), "unknown"));
                }
            }
            Event::PlatformSet { spec } => self.quotas.set_platform(*spec),
            Event::JobUpdated { job, changes } => {
                if self.job(*job).is_none_or(|j| j.state.ended()) {
                    return Err(unknown("job", job.to_string(), "unknown or over"));
                }
                self.update_job(*job, *changes);
            }
            Event::JobEnded { job, state, reason } => {
                let known = self.job(*job).filter(|j| !j.state.ended());
                if known.is_none() {
                    return Err(unknown("job", job.to_string(), "unknown or over"));
                }
                self.end_job(*job, *state, reason.clone(), entry.at);
            }
            Event::PlanCommitted { claims } => self.commit(entry.seq, claims, entry.at)?,
            Event::ClaimMoved { claim, state } => {
                let found = self
                    .claim(*claim)
                    .ok_or_else(|| unknown("claim", claim.to_string(), "unknown"))?;
                if !found.state.may_become(*state) {
                    let (from, to) = (found.state, *state);
                    return Err(ApplyError::Transition { seq: entry.seq, claim: *claim, from, to });
                }
                self.move_claim(*claim, *state, entry.at);
            }
            Event::MemberEnded { claim, success, how } => {
                let found = self
                    .claim(*claim)
                    .ok_or_else(|| unknown("claim", claim.to_string(), "unknown"))?;
                let job = found.job;
                self.member_ended(job, *claim, *success, how.as_deref(), entry.at);
            }
            Event::RoomMade { evictions, hold } => {
                self.check_room(evictions, hold.as_ref())
                    .map_err(|(what, uid, problem)| unknown(what, uid, problem))?;
                self.make_room(evictions, hold.as_ref(), entry.at);
            }
            Event::RoomGivenUp { job, .. } => {
                if Arc::make_mut(&mut self.holds).remove(job).is_none() {
                    return Err(unknown("job", job.to_string(), "without room"));
                }
            }
            Event::StartRefused { claim, reason } => {
                if self.claim(*claim).is_none() {
                    return Err(unknown("claim", claim.to_string(), "unknown"));
                }
                self.refuse_start(*claim, reason.clone(), entry.at);
            }
            Event::Checkpointed { job } => {
                if self.job(*job).is_none_or(|j| j.state.ended()) {
                    return Err(unknown("job", job.to_string(), "unknown or over"));
                }
                if let Some(job) = self.jobs.get_mut(job.0 as usize) {
                    job.checkpointed = Some(entry.at);
                }
            }
            Event::LendingSet { open } => self.quotas.set_open(*open),
            Event::JobsForgotten { jobs } => {
                let known = |job: JobUid| self.job(job).is_some_and(|j| j.may_be_forgotten());
                if let Some(job) = jobs.iter().find(|job| !known(**job)) {
                    return Err(unknown("job", job.to_string(), "unknown or not over"));
                }
                for job in jobs {
                    self.jobs.set(job.0 as usize, None);
                }
            }
        }
        self.seq = entry.seq;
        self.at = entry.at;
        Ok(())
    }

    fn touch(&mut self, slot: usize) {
        self.changes.push(slot as u32);
    }

    fn add_node(&mut self, node: NodeUid, spec: &Arc<NodeSpec>) {
        self.stamp += 1;
        let state = NodeState::new(node, spec.clone(), &self.strings, self.stamp);
        self.nodes.set(node.0 as usize, Some(Arc::new(state)));
        self.touch(node.0 as usize);
    }

    /// Changes a node under a new stamp.
    fn change<R>(&mut self, node: NodeUid, f: impl FnOnce(&mut NodeState) -> R) -> Option<R> {
        let slot = node.0 as usize;
        let state = self.nodes.get_mut(slot)?;
        self.stamp += 1;
        let result = f(state);
        state.stamp = self.stamp;
        self.touch(slot);
        Some(result)
    }

    fn remove_node(&mut self, node: NodeUid, at: Time) {
        let lost: Vec<_> =
            self.claims().filter(|c| c.node == node).map(|c| (c.uid, c.job)).collect();
        // While the node is there: what a claim counts for depends on its cards.
        for (claim, _) in &lost {
            self.drop_claim(*claim, at);
        }
        self.nodes.set(node.0 as usize, None);
        self.touch(node.0 as usize);
        self.drop_holds(node, true);
        let jobs: BTreeSet<_> = lost.into_iter().map(|(_, job)| job).collect();
        for job in jobs {
            self.lost_member(job, at);
        }
    }

    /// An elastic job goes on with at least its minimum; any other that lost a
    /// member starts over as a whole once the rest has gone.
    pub(crate) fn lost_member(&mut self, job: JobUid, at: Time) {
        let Some(known) = self.job(job).filter(|j| !j.state.ended()).cloned() else { return };
        if known.state != JobState::Preempting && self.enough(&known) {
            self.note_job(job);
            return;
        }
        if let Some(job) = self.jobs.get_mut(job.0 as usize).filter(|j| j.evicted.is_none()) {
            job.evicted = Some(Cause::LostNode);
        }
        if known.claims.is_empty() {
            self.requeue(job, at);
            return;
        }
        self.set_job(job, JobState::Preempting, at);
        for claim in &known.claims {
            self.move_claim(*claim, ClaimState::Releasing, at);
        }
    }

    fn add_job(&mut self, job: JobUid, spec: &Arc<JobSpec>, at: Time) {
        let owner = self.owner(spec);
        // Numbered from when they are journalled, as a node's texts are.
        for model in &spec.request.models {
            self.strings.id(model);
        }
        if let Some(Share::Mig { profile }) = spec.request.gpu.as_ref().map(|g| &g.share) {
            self.strings.id(profile);
        }
        let state = Job {
            uid: job,
            spec: spec.clone(),
            owner,
            state: JobState::Pending,
            submitted: at,
            since: at,
            claims: SmallVec::new(),
            ended: 0,
            attempts: 0,
            preemptions: 0,
            evicted: None,
            checkpointed: None,
            refusals: 0,
            not_before: Time(0),
            failed: false,
            reason: "".into(),
        };
        let key = Waiting::new(&state);
        self.jobs.set(job.0 as usize, Some(Arc::new(state)));
        self.queue_sets(&spec.queue, |waiting, _| {
            waiting.insert(key);
        });
    }

    pub(crate) fn queue_sets(
        &mut self,
        queue: &QueueName,
        f: impl FnOnce(&mut BTreeSet<Waiting>, &mut BTreeSet<JobUid>),
    ) {
        if let Some(queue) = Arc::make_mut(&mut self.queues).get_mut(queue) {
            f(Arc::make_mut(&mut queue.waiting), Arc::make_mut(&mut queue.running));
        }
    }

    pub(crate) fn set_job(&mut self, job: JobUid, state: JobState, at: Time) {
        if let Some(job) = self.jobs.get_mut(job.0 as usize) {
            if job.state != state {
                job.since = at;
            }
            job.state = state;
        }
        self.note_job(job);
    }

    fn requeue(&mut self, job: JobUid, at: Time) {
        self.set_job(job, JobState::Pending, at);
        let Some(state) = self.jobs.get_mut(job.0 as usize) else { return };
        state.failed = false;
        let (queue, key) = (state.spec.queue.clone(), Waiting::new(state));
        self.queue_sets(&queue, |waiting, running| {
            running.remove(&job);
            waiting.insert(key);
        });
    }

    /// Changes a job, and its place if it waits.
    fn update_job(&mut self, job: JobUid, changes: JobChanges) {
        let Some(state) = self.jobs.get_mut(job.0 as usize) else { return };
        let before = Waiting::new(state);
        state.spec = Arc::new(changes.of(&state.spec));
        let (after, queue) = (Waiting::new(state), state.spec.queue.clone());
        if before != after {
            self.queue_sets(&queue, |waiting, _| {
                if waiting.remove(&before) {
                    waiting.insert(after);
                }
            });
        }
        self.note_job(job);
    }

    fn end_job(&mut self, job: JobUid, state: JobState, reason: Arc<str>, at: Time) {
        let Some(known) = self.jobs.get_mut(job.0 as usize) else { return };
        known.reason = reason;
        if self.holds.contains_key(&job) {
            Arc::make_mut(&mut self.holds).remove(&job);
        }
        let Some(known) = self.jobs.get_mut(job.0 as usize) else { return };
        let (claims, queue) = (known.claims.clone(), known.spec.queue.clone());
        let key = Waiting::new(known);
        self.set_job(job, state, at);
        self.queue_sets(&queue, |waiting, _| {
            waiting.remove(&key);
        });
        for claim in claims {
            self.move_claim(claim, ClaimState::Releasing, at);
        }
    }

    fn commit(&mut self, seq: u64, claims: &[Claim], at: Time) -> Result<(), ApplyError> {
        let unknown = |what, uid: String, problem| ApplyError::Unknown { seq, what, uid, problem };
        for (i, claim) in claims.iter().enumerate() {
            if claim.uid.0 != self.next_claim().0 + i as u64 {
                return Err(unknown("claim", claim.uid.to_string(), "not the next"));
            }
            if self.job(claim.job).is_none_or(|j| j.state.ended()) {
                return Err(unknown("job", claim.job.to_string(), "unknown or over"));
            }
        }
        for (i, claim) in claims.iter().enumerate() {
            let owner = self.job(claim.job).map_or_else(Owner::default, |j| j.owner);
            let charged = self.change(claim.node, |n| n.charge(claim.job, owner, &claim.held));
            let problem = match charged {
                Some(Ok(())) => continue,
                None => unknown("node", claim.node.to_string(), "unknown"),
                Some(Err(reason)) => {
                    ApplyError::Oversold { seq, claim: claim.uid, node: claim.node, reason }
                }
            };
            for done in &claims[..i] {
                self.change(done.node, |n| n.release(done.job, &done.held));
            }
            return Err(problem);
        }
        for claim in claims {
            self.count(claim);
            self.claims.set(claim.uid.0 as usize, Some(Arc::new(claim.clone())));
            let Some(job) = self.jobs.get_mut(claim.job.0 as usize) else { continue };
            if job.claims.is_empty() {
                job.attempts += 1;
                job.ended = 0;
            }
            job.claims.push(claim.uid);
            let (queue, key) = (job.spec.queue.clone(), Waiting::new(job));
            if job.state == JobState::Pending {
                job.evicted = None;
                self.set_job(claim.job, JobState::Starting, at);
                self.queue_sets(&queue, |waiting, running| {
                    waiting.remove(&key);
                    running.insert(claim.job);
                });
                if self.holds.contains_key(&claim.job) {
                    Arc::make_mut(&mut self.holds).remove(&claim.job);
                }
            }
        }
        for job in claims.iter().map(|c| c.job).collect::<BTreeSet<_>>() {
            self.note_job(job);
        }
        Ok(())
    }

    /// Adds a claim to what its tenants use.
    pub(crate) fn count(&mut self, claim: &Claim) {
        if let (Some(job), Some(node)) = (self.job(claim.job), self.node(claim.node)) {
            let (owner, amounts) = (job.owner, quota::amounts(&claim.held, &node.spec));
            self.quotas.charge(owner, &amounts, &self.owners);
        }
        for loan in &claim.loans {
            self.quotas.lend(self.owners.id(&loan.tenant), &loan.amounts);
        }
    }

    /// Takes a claim from what its tenants use.
    fn discount(&mut self, claim: &Claim) {
        if let (Some(job), Some(node)) = (self.job(claim.job), self.node(claim.node)) {
            let (owner, amounts) = (job.owner, quota::amounts(&claim.held, &node.spec));
            self.quotas.release(owner, &amounts);
        }
        for loan in &claim.loans {
            self.quotas.pay_back(self.owners.id(&loan.tenant), &loan.amounts);
        }
    }

    pub(crate) fn move_claim(&mut self, claim: ClaimUid, state: ClaimState, at: Time) {
        let Some(known) = self.claims.get_mut(claim.0 as usize) else { return };
        if !known.state.may_become(state) {
            return;
        }
        known.state = state;
        let job = known.job;
        if state == ClaimState::Releasing {
            Arc::make_mut(&mut self.leaving).insert(claim);
        }
        match state {
            ClaimState::Held => self.run_if_up(job, at),
            ClaimState::Gone => {
                self.drop_claim(claim, at);
                self.lost_member(job, at);
            }
            _ => {}
        }
    }

    /// A job runs once its minimum of members runs or has run.
    fn run_if_up(&mut self, job: JobUid, at: Time) {
        let Some(known) = self.job(job).filter(|j| j.state == JobState::Starting) else { return };
        let held = known.claims.iter().filter_map(|c| self.claim(*c));
        let held = held.filter(|c| c.state == ClaimState::Held).count();
        if held + known.ended as usize >= known.spec.min_members as usize {
            self.set_job(job, JobState::Running, at);
            if let Some(job) = self.jobs.get_mut(job.0 as usize) {
                (job.refusals, job.not_before) = (0, Time(0));
            }
        }
    }

    fn member_ended(
        &mut self,
        job: JobUid,
        claim: ClaimUid,
        success: bool,
        how: Option<&str>,
        at: Time,
    ) {
        let member = self.claim(claim).map_or(0, |claim| claim.member);
        let told_to = self.claim(claim).is_some_and(|c| c.state == ClaimState::Releasing);
        self.drop_claim(claim, at);
        let Some(known) = self.jobs.get_mut(job.0 as usize) else { return };
        if known.state.ended() {
            return;
        }
        if known.state == JobState::Preempting {
            if known.claims.is_empty() {
                self.requeue(job, at);
            }
            return;
        }
        if told_to && !known.claims.is_empty() {
            // An elastic job gave it up: how it ended says nothing of the job.
            return self.lost_member(job, at);
        }
        known.failed |= !success;
        known.ended += u32::from(success);
        if known.failed {
            let reason = match (how, known.spec.members) {
                (None, _) => "a member failed".into(),
                (Some(how), 1) => how.into(),
                (Some(how), _) => format!("member {member}: {how}").into(),
            };
            self.end_job(job, JobState::Failed, reason, at);
        } else if known.claims.is_empty() {
            self.end_job(job, JobState::Succeeded, "".into(), at);
        } else {
            self.run_if_up(job, at);
            self.note_job(job);
        }
    }

    /// Takes a claim off the books: the one place where amounts come back.
    pub(crate) fn drop_claim(&mut self, uid: ClaimUid, _at: Time) {
        let Some(claim) = self.claim(uid).cloned() else { return };
        self.discount(&claim);
        self.change(claim.node, |n| n.release(claim.job, &claim.held));
        self.claims.set(uid.0 as usize, None);
        if claim.state == ClaimState::Releasing || self.leaving.contains(&uid) {
            Arc::make_mut(&mut self.leaving).remove(&uid);
        }
        let Some(job) = self.jobs.get_mut(claim.job.0 as usize) else { return };
        job.claims.retain(|c| *c != uid);
        if job.claims.is_empty() {
            let queue = job.spec.queue.clone();
            self.queue_sets(&queue, |_, running| {
                running.remove(&claim.job);
            });
        }
        self.note_job(claim.job);
    }

    /// Compares the sums on every node and of every tenant with a recount from
    /// the claims, and each node's sum with what the node has. For tests and for `crater` after a
    /// recovery; costs a walk over all claims.
    pub fn audit(&self) -> Result<(), String> {
        let mut recount: BTreeMap<NodeUid, NodeState> = self
            .nodes()
            .map(|n| (n.uid, NodeState::new(n.uid, n.spec.clone(), &self.strings, n.stamp)))
            .collect();
        let mut used = quota::Tentative::default();
        let mut lent: BTreeMap<Arc<str>, crater_model::Usage> = BTreeMap::new();
        for claim in self.claims() {
            let node = recount
                .get_mut(&claim.node)
                .ok_or_else(|| format!("{} is on {}, which is gone", claim.uid, claim.node))?;
            let job = self.job(claim.job).ok_or_else(|| format!("{} has no job", claim.uid))?;
            if !job.claims.contains(&claim.uid) {
                return Err(format!("{} does not know {}", job.uid, claim.uid));
            }
            node.add_unchecked(claim.job, job.owner, &claim.held);
            used.charge(job.owner, quota::amounts(&claim.held, &node.spec));
            for loan in &claim.loans {
                lent.entry(loan.tenant.clone()).or_default().add(&loan.amounts);
            }
        }
        self.quotas.audit_loans(&lent)?;
        self.audit_lists()?;
        self.quotas.audit(&used)?;
        for node in self.nodes() {
            let other = recount.remove(&node.uid).unwrap_or_else(|| NodeState::clone(node));
            if !node.same_sums(&other) {
                return Err(format!("{} does not add up: {node:?} against {other:?}", node.uid));
            }
            node.never_oversold()?;
        }
        Ok(())
    }
}
