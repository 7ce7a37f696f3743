//! The ledger: the one writer of the books. A command is validated, journalled,
//! then applied; what was not journalled never happened.

use crate::plan::{Placement, Plan};
use crate::quota::{Ask, Tentative, amounts};
use crate::state::{ApplyError, Job, State};
use crate::strings::Strings;
use crater_model::event::Entry;
use crater_model::{
    Claim, ClaimState, ClaimUid, Digest, Event, FieldError, JobChanges, JobSpec, JobState, JobUid,
    NodeSpec, NodeUid, PlatformSpec, QueueSpec, Reason, TenantPath, TenantSpec, Time, Usage,
};
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::sync::Arc;
use thiserror::Error;

/// Where entries are kept. `append` returns once they are durable to the
/// journal's own standard; an error means that none of them is.
pub trait Journal {
    /// Appends entries, all or none.
    fn append(&mut self, entries: &[Entry]) -> Result<(), JournalError>;

    /// Is told that the last entry was applied, with the books after it and the
    /// jobs that it concerned. For what a journal derives from the books; one
    /// that fails here fails at the next `append`.
    fn applied(&mut self, state: &State, entry: &Entry, jobs: &[JobUid]) {
        let _ = (state, entry, jobs);
    }
}

/// The journal could not take an entry.
#[derive(Debug, Error)]
#[error("the journal cannot be written: {0}")]
pub struct JournalError(
    /// What the medium said.
    pub String,
);

/// Keeps entries in memory, or nowhere.
#[derive(Debug, Default)]
pub struct MemoryJournal {
    /// The entries; stays empty unless `keep` is set.
    pub entries: Vec<Entry>,
    /// Whether to keep them.
    pub keep: bool,
}

impl Journal for MemoryJournal {
    fn append(&mut self, entries: &[Entry]) -> Result<(), JournalError> {
        if self.keep {
            self.entries.extend_from_slice(entries);
        }
        Ok(())
    }
}

/// Why a command was refused. Nothing was changed or journalled.
#[derive(Debug, Error)]
pub enum Refusal {
    /// A field's value.
    #[error(transparent)]
    Field(#[from] FieldError),
    /// Something that is not there.
    #[error("{what} {name} is unknown")]
    Unknown {
        /// Sort of thing.
        what: &'static str,
        /// Which.
        name: String,
    },
    /// The job is over.
    #[error("{job} is {state} already")]
    Over {
        /// The job.
        job: JobUid,
        /// How it ended.
        state: JobState,
    },
    /// The journal failed.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The books refused an entry that was validated: a defect.
    #[error("defect: a validated entry was refused")]
    Defect(#[from] ApplyError),
}

/// What became of a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Committed {
    /// Claims now charged.
    pub claims: Vec<ClaimUid>,
    /// Jobs whose placement no longer fitted, with the first reason. They wait
    /// on and are decided again.
    pub stale: Vec<(JobUid, Reason)>,
}

/// The books and their journal.
#[derive(Debug)]
pub struct Ledger<J> {
    state: State,
    journal: J,
}

impl<J: Journal> Ledger<J> {
    /// Empty books.
    pub fn new(journal: J, strings: Arc<Strings>) -> Self {
        Self { state: State::new(strings), journal }
    }

    /// The books of a journal's entries, going on in `journal`.
    pub fn recover<'a>(
        journal: J,
        strings: Arc<Strings>,
        entries: impl IntoIterator<Item = &'a Entry>,
    ) -> Result<Self, ApplyError> {
        let mut ledger = Self::new(journal, strings);
        entries.into_iter().try_for_each(|entry| ledger.state.apply(entry))?;
        Ok(ledger)
    }

    /// Goes on from books that were read back, in `journal`.
    pub fn resume(journal: J, state: State) -> Self {
        Self { state, journal }
    }

    /// The books as they stand.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The journal.
    pub fn journal(&self) -> &J {
        &self.journal
    }

    /// The journal, to sync or compact it.
    pub fn journal_mut(&mut self) -> &mut J {
        &mut self.journal
    }

    /// Journals and applies a validated event.
    fn record(&mut self, at: Time, event: Event) -> Result<(), Refusal> {
        // Time never goes back in the journal, whatever the clock does.
        let entry = Entry { seq: self.state.seq + 1, at: at.max(self.state.at), event };
        let jobs = concerned(&self.state, &entry.event);
        self.journal.append(std::slice::from_ref(&entry))?;
        self.state.apply(&entry)?;
        self.journal.applied(&self.state, &entry, &jobs);
        Ok(())
    }

    /// A machine appears.
    pub fn add_node(&mut self, at: Time, spec: NodeSpec) -> Result<NodeUid, Refusal> {
        spec.check()?;
        let node = self.state.next_node();
        self.record(at, Event::NodeAdded { node, spec: Arc::new(spec) })?;
        Ok(node)
    }

    /// A machine is described anew.
    pub fn change_node(&mut self, at: Time, node: NodeUid, spec: NodeSpec) -> Result<(), Refusal> {
        spec.check()?;
        self.known_node(node)?;
        self.record(at, Event::NodeChanged { node, spec: Arc::new(spec) })
    }

    /// A machine is gone for good.
    pub fn remove_node(&mut self, at: Time, node: NodeUid) -> Result<(), Refusal> {
        self.known_node(node)?;
        self.record(at, Event::NodeRemoved { node })
    }

    fn known_node(&self, node: NodeUid) -> Result<(), Refusal> {
        let unknown = || Refusal::Unknown { what: "node", name: node.to_string() };
        self.state.node(node).map(|_| ()).ok_or_else(unknown)
    }

    /// Makes or changes a queue.
    pub fn set_queue(&mut self, at: Time, spec: QueueSpec) -> Result<(), Refusal> {
        spec.check()?;
        self.record(at, Event::QueueSet { spec: Arc::new(spec) })
    }

    /// Says by which policy a queue decides from here on.
    pub fn set_policy(&mut self, at: Time, queue: &str, digest: Digest) -> Result<(), Refusal> {
        let unknown = || Refusal::Unknown { what: "queue", name: queue.to_owned() };
        let (queue, _) = self.state.queues().get_key_value(queue).ok_or_else(unknown)?;
        let queue = queue.clone();
        self.record(at, Event::PolicySet { queue, digest })
    }

    /// Makes or changes a tenant, its amounts rounded up to the steps of quotas.
    /// A limit below what is used evicts nobody.
    pub fn set_tenant(&mut self, at: Time, spec: TenantSpec) -> Result<(), Refusal> {
        let spec = spec.rounded();
        spec.check()?;
        self.record(at, Event::TenantSet { spec: Arc::new(spec) })
    }

    /// Takes a tenant's quota and ceiling away; its jobs stay.
    pub fn remove_tenant(&mut self, at: Time, path: &TenantPath) -> Result<(), Refusal> {
        if !self.state.quotas().tenants().contains_key(path) {
            return Err(Refusal::Unknown { what: "tenant", name: path.to_string() });
        }
        self.record(at, Event::TenantRemoved { path: path.clone() })
    }

    /// Says what holds for all tenants.
    pub fn set_platform(&mut self, at: Time, spec: PlatformSpec) -> Result<(), Refusal> {
        spec.check()?;
        self.record(at, Event::PlatformSet { spec })
    }

    /// Refuses a priority above its tenant's ceiling.
    fn below_ceiling(&self, spec: &JobSpec) -> Result<(), FieldError> {
        match self.state.quotas().ceiling(&spec.tenant) {
            Some((tenant, ceiling)) if spec.priority > ceiling => {
                let expected = format!("at most {}, the ceiling of {tenant}", ceiling.0);
                Err(FieldError::new("priority", &spec.priority.0.to_string(), expected))
            }
            _ => Ok(()),
        }
    }

    /// Changes a job that is not over; `false` if that changes nothing.
    pub fn update_job(
        &mut self,
        at: Time,
        job: JobUid,
        changes: JobChanges,
    ) -> Result<bool, Refusal> {
        let unknown = || Refusal::Unknown { what: "job", name: job.to_string() };
        let known = self.state.job(job).ok_or_else(unknown)?;
        if known.state.ended() {
            return Err(Refusal::Over { job, state: known.state });
        }
        let changed = changes.of(&known.spec);
        changed.check()?;
        if changed.priority > known.spec.priority {
            self.below_ceiling(&changed)?;
        }
        if changed == *known.spec {
            return Ok(false);
        }
        self.record(at, Event::JobUpdated { job, changes })?;
        Ok(true)
    }

    /// Accepts a job.
    pub fn submit(&mut self, at: Time, spec: JobSpec) -> Result<JobUid, Refusal> {
        spec.check()?;
        self.below_ceiling(&spec)?;
        if !self.state.queues().contains_key(&spec.queue) {
            return Err(Refusal::Unknown { what: "queue", name: spec.queue.to_string() });
        }
        let job = self.state.next_job();
        self.record(at, Event::JobSubmitted { job, spec: Arc::new(spec) })?;
        Ok(job)
    }

    /// Ends a job: a waiting one at once, a running one when its last claim is
    /// gone.
    pub fn end_job(
        &mut self,
        at: Time,
        job: JobUid,
        state: JobState,
        reason: &str,
    ) -> Result<(), Refusal> {
        let known = self
            .state
            .job(job)
            .ok_or_else(|| Refusal::Unknown { what: "job", name: job.to_string() })?;
        if known.state.ended() || !state.ended() {
            return Err(Refusal::Over { job, state: known.state });
        }
        self.record(at, Event::JobEnded { job, state, reason: reason.into() })
    }

    /// A claim moved on, as its executor says. An old message is ignored:
    /// `false` means that nothing changed.
    pub fn move_claim(
        &mut self,
        at: Time,
        claim: ClaimUid,
        state: ClaimState,
    ) -> Result<bool, Refusal> {
        match self.state.claim(claim) {
            Some(known) if known.state.may_become(state) => {
                self.record(at, Event::ClaimMoved { claim, state })?;
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// A member's last process stopped. An old message is ignored.
    pub fn member_ended(
        &mut self,
        at: Time,
        claim: ClaimUid,
        success: bool,
    ) -> Result<bool, Refusal> {
        if self.state.claim(claim).is_none() {
            return Ok(false);
        }
        self.record(at, Event::MemberEnded { claim, success })?;
        Ok(true)
    }

    /// Takes jobs off the books that hold nothing and ended before a moment,
    /// and says how many. Their numbers are never given again. Costs a walk over
    /// the jobs.
    pub fn forget(&mut self, at: Time, ended_before: Time) -> Result<usize, Refusal> {
        let old = |j: &&Arc<Job>| j.may_be_forgotten() && j.since < ended_before;
        let jobs: Vec<_> = self.state.jobs().filter(old).map(|j| j.uid).collect();
        let count = jobs.len();
        if count > 0 {
            self.record(at, Event::JobsForgotten { jobs })?;
        }
        Ok(count)
    }

    /// Checks each placement against the books as they are now, whole gangs at
    /// a time, and charges those that still fit.
    pub fn commit(&mut self, at: Time, plan: &Plan) -> Result<Committed, Refusal> {
        let mut outcome = Committed::default();
        let mut tried = BTreeMap::new();
        let mut quota = Tentative::default();
        let mut claims = vec![];
        for placement in &plan.placements {
            let valid = self
                .within_quota(placement, &mut quota)
                .and_then(|()| self.validate(placement, plan.placements.len() == 1, &mut tried));
            match valid {
                Ok(()) => {
                    quota.settle();
                    self.claims_of(placement, &mut claims);
                }
                Err(reason) => {
                    quota.roll_back();
                    outcome.stale.push((placement.job, reason));
                }
            }
        }
        if !claims.is_empty() {
            outcome.claims = claims.iter().map(|c| c.uid).collect();
            self.record(at, Event::PlanCommitted { claims })?;
        }
        Ok(outcome)
    }

    /// Charges a placement to its tenants in `quota`, as far as there is one.
    fn within_quota(&self, placement: &Placement, quota: &mut Tentative) -> Result<(), Reason> {
        let quotas = self.state.quotas();
        if quotas.hold() {
            return Err(Reason::QuotasUnknown);
        }
        let owner = self.state.job(placement.job).ok_or(Reason::Deferred)?.owner;
        if !quotas.binds(owner) {
            return Ok(());
        }
        let mut before = Usage::default();
        for (i, member) in placement.members.iter().enumerate() {
            let node = self.state.node(member.node).ok_or(Reason::Cordoned)?;
            let amounts = amounts(&member.held, &node.spec);
            let together = (placement.members.len() - i) as u64;
            let ask = Ask { owner, before: &before, member: &amounts, now: 1, together };
            quota.check(quotas, &ask).map_err(|over| Reason::Quota(Arc::from(over)))?;
            before.add(&amounts);
            quota.charge(owner, amounts);
        }
        Ok(())
    }

    /// Charges a placement to copies of its nodes in `tried`, or leaves them
    /// as they were.
    fn validate(
        &self,
        placement: &Placement,
        alone: bool,
        tried: &mut BTreeMap<NodeUid, crate::node::NodeState>,
    ) -> Result<(), Reason> {
        let job = self.state.job(placement.job).filter(|j| j.state == JobState::Pending);
        let owner = job.ok_or(Reason::Deferred)?.owner;
        if let ([member], true) = (&*placement.members, tried.is_empty() && alone) {
            // The usual plan of one member: no copy is needed to try on.
            let node = self.state.node(member.node).ok_or(Reason::Cordoned)?;
            return node.check(&member.held);
        }
        // One member leaves nothing half done: no copy to go back to.
        let before = (placement.members.len() > 1).then(|| tried.clone());
        for member in &placement.members {
            let charged = self
                .node_in(tried, member.node)
                .and_then(|node| node.charge(placement.job, owner, &member.held));
            if let Err(reason) = charged {
                if let Some(before) = before {
                    *tried = before;
                }
                return Err(reason);
            }
        }
        Ok(())
    }

    fn node_in<'a>(
        &self,
        tried: &'a mut BTreeMap<NodeUid, crate::node::NodeState>,
        uid: NodeUid,
    ) -> Result<&'a mut crate::node::NodeState, Reason> {
        if let std::collections::btree_map::Entry::Vacant(e) = tried.entry(uid) {
            let node = self.state.node(uid).ok_or(Reason::Cordoned)?;
            e.insert(crate::node::NodeState::clone(node));
        }
        tried.get_mut(&uid).ok_or(Reason::Cordoned)
    }

    fn claims_of(&self, placement: &Placement, claims: &mut Vec<Claim>) {
        for member in &placement.members {
            claims.push(Claim {
                uid: ClaimUid(self.state.next_claim().0 + claims.len() as u64),
                job: placement.job,
                member: member.member,
                node: member.node,
                held: member.held.clone(),
                state: ClaimState::Reserved,
            });
        }
    }
}

/// The jobs whose state or claims an event may change, each once, by the books
/// before it.
pub fn concerned(state: &State, event: &Event) -> SmallVec<[JobUid; 4]> {
    let of_claim = |claim: ClaimUid| state.claim(claim).map(|c| c.job);
    let mut jobs: SmallVec<[JobUid; 4]> = match event {
        Event::NodeAdded { .. }
        | Event::NodeChanged { .. }
        | Event::QueueSet { .. }
        | Event::PolicySet { .. }
        | Event::TenantSet { .. }
        | Event::TenantRemoved { .. }
        | Event::PlatformSet { .. }
        | Event::JobsForgotten { .. } => SmallVec::new(),
        Event::NodeRemoved { node } => {
            state.claims().filter(|c| c.node == *node).map(|c| c.job).collect()
        }
        Event::JobSubmitted { job, .. }
        | Event::JobUpdated { job, .. }
        | Event::JobEnded { job, .. } => [*job].into_iter().collect(),
        Event::PlanCommitted { claims } => claims.iter().map(|c| c.job).collect(),
        Event::ClaimMoved { claim, .. } | Event::MemberEnded { claim, .. } => {
            of_claim(*claim).into_iter().collect()
        }
    };
    jobs.sort_unstable();
    jobs.dedup();
    jobs
}
