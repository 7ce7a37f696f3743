//! The ledger: the one writer of the books. A command is validated, journalled,
//! then applied; what was not journalled never happened.

use crate::deadlock::deadlock;
use crate::plan::{Placement, Plan, Room};
use crate::quota::{Ask, Tentative, amounts};
use crate::state::{ApplyError, Job, State};
use crate::strings::Strings;
use crater_model::event::Entry;
use crater_model::{
    Cause, Claim, ClaimState, ClaimUid, Digest, Event, Eviction, FieldError, JobChanges, JobSpec,
    JobState, JobUid, Kind, NodeSpec, NodeUid, PlatformSpec, QueueSpec, Reason, TenantPath,
    TenantSpec, Time, Usage,
};
use smallvec::SmallVec;
use std::collections::{BTreeMap, BTreeSet};
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
    /// Jobs that give up what they hold.
    pub evicted: Vec<JobUid>,
    /// Jobs that room is kept for from here on.
    pub held: Vec<JobUid>,
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
        self.end_member(at, claim, success, None)
    }

    /// The same, with how it ended in words: the reason of a job that fails.
    pub fn member_ended_so(
        &mut self,
        at: Time,
        claim: ClaimUid,
        success: bool,
        how: &str,
    ) -> Result<bool, Refusal> {
        self.end_member(at, claim, success, Some(said(how)))
    }

    fn end_member(
        &mut self,
        at: Time,
        claim: ClaimUid,
        success: bool,
        how: Option<Arc<str>>,
    ) -> Result<bool, Refusal> {
        if self.state.claim(claim).is_none() {
            return Ok(false);
        }
        self.record(at, Event::MemberEnded { claim, success, how })?;
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
        let (mut quota, mut lent) = (Tentative::default(), Tentative::default());
        let mut claims = vec![];
        for placement in &plan.placements {
            let valid = self
                .within_quota(placement, &mut quota)
                .and_then(|()| self.validate(placement, plan.placements.len() == 1, &mut tried));
            match valid {
                Ok(()) => {
                    quota.settle();
                    self.claims_of(placement, &mut claims, &mut lent);
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
        for (job, reason) in &plan.given_up {
            if self.state.holds().contains_key(job) {
                self.record(at, Event::RoomGivenUp { job: *job, reason: reason.clone() })?;
            }
        }
        for room in &plan.rooms {
            match self.valid_room(room) {
                Ok(()) => {
                    outcome.evicted.extend(room.evictions.iter().map(|e| e.job));
                    outcome.held.push(room.hold.job);
                    let (evictions, hold) = (room.evictions.clone(), Some(room.hold.clone()));
                    self.record(at, Event::RoomMade { evictions, hold })?;
                }
                Err(reason) => outcome.stale.push((room.hold.job, reason)),
            }
        }
        Ok(outcome)
    }

    /// Whether a job would still start in the room that is to be made for it:
    /// nobody is evicted for nothing.
    fn valid_room(&self, room: &Room) -> Result<(), Reason> {
        let holder = self.state.job(room.hold.job).filter(|j| j.state == JobState::Pending);
        let owner = holder.ok_or(Reason::Deferred)?.owner;
        let mut going: BTreeSet<ClaimUid> = BTreeSet::new();
        for eviction in &room.evictions {
            let victim = self.state.job(eviction.job).ok_or(Reason::Deferred)?;
            let up = matches!(victim.state, JobState::Starting | JobState::Running);
            let may = victim.spec.preemptible && victim.spec.kind != Kind::Inference;
            let holds = |c: &ClaimUid| victim.claims.contains(c);
            if !up || !may || !eviction.claims.iter().all(holds) {
                return Err(Reason::Deferred);
            }
            let left = victim.claims.len() - eviction.claims.len() + victim.ended as usize;
            if !eviction.whole && left < victim.spec.min_members as usize {
                return Err(Reason::Deferred);
            }
            going.extend(if eviction.whole { &victim.claims[..] } else { &eviction.claims[..] });
        }
        if room.hold.starts.is_some() || room.evictions.is_empty() {
            // It waits for others that end by themselves: decided on, not due.
            return Ok(());
        }
        let mut nodes: BTreeMap<NodeUid, crate::node::NodeState> = BTreeMap::new();
        for member in &room.hold.members {
            if let std::collections::btree_map::Entry::Vacant(entry) = nodes.entry(member.node) {
                let node = self.state.node(member.node).ok_or(Reason::Cordoned)?;
                let mut node = crate::node::NodeState::clone(node);
                let leaves = self.state.leaving.union(&going);
                let leaves = leaves.filter_map(|uid| self.state.claim(*uid));
                for claim in leaves.filter(|c| c.node == member.node) {
                    node.release(claim.job, &claim.held);
                }
                entry.insert(node);
            }
            let node = nodes.get_mut(&member.node).ok_or(Reason::Cordoned)?;
            node.charge(room.hold.job, owner, &member.held)?;
        }
        Ok(())
    }

    /// Sends a whole job back to its queue, at a person's word or by a rule that
    /// concerns no other job. `reason` is the person's, if it is one.
    pub fn evict(
        &mut self,
        at: Time,
        job: JobUid,
        cause: Cause,
        reason: Option<&str>,
    ) -> Result<bool, Refusal> {
        let unknown = || Refusal::Unknown { what: "job", name: job.to_string() };
        let known = self.state.job(job).ok_or_else(unknown)?;
        if known.state.ended() {
            return Err(Refusal::Over { job, state: known.state });
        }
        if !matches!(known.state, JobState::Starting | JobState::Running) {
            return Ok(false);
        }
        let claims = known.claims.to_vec();
        let reason = reason.map(said);
        let evictions = vec![Eviction { job, claims, whole: true, cause, reason }];
        self.record(at, Event::RoomMade { evictions, hold: None })?;
        Ok(true)
    }

    /// Looks for gangs that wait for what the others hold, and sends one of them
    /// back to its queue if that lets another go on; says which.
    pub fn break_deadlock(&mut self, at: Time) -> Result<Option<JobUid>, Refusal> {
        let Some((job, _)) = deadlock(&self.state, at) else { return Ok(None) };
        let claims = self.state.job(job).map(|j| j.claims.to_vec()).unwrap_or_default();
        let (whole, cause, reason) = (true, Cause::Deadlock, None);
        let evictions = vec![Eviction { job, claims, whole, cause, reason }];
        self.record(at, Event::RoomMade { evictions, hold: None })?;
        Ok(Some(job))
    }

    /// An executor refused to start a member. An old message is ignored.
    pub fn refuse_start(
        &mut self,
        at: Time,
        claim: ClaimUid,
        reason: &str,
    ) -> Result<bool, Refusal> {
        if self.state.claim(claim).is_none() {
            return Ok(false);
        }
        self.record(at, Event::StartRefused { claim, reason: said(reason) })?;
        Ok(true)
    }

    /// A running job saved its progress.
    pub fn checkpointed(&mut self, at: Time, job: JobUid) -> Result<(), Refusal> {
        let unknown = || Refusal::Unknown { what: "job", name: job.to_string() };
        let known = self.state.job(job).ok_or_else(unknown)?;
        if known.state.ended() || known.claims.is_empty() {
            return Err(Refusal::Over { job, state: known.state });
        }
        self.record(at, Event::Checkpointed { job })
    }

    /// Opens or closes borrowing by how much of the cluster's GPU is used, in
    /// percent; `None`, not known, closes it. Says whether that changed anything.
    pub fn note_use(&mut self, at: Time, used: Option<u64>) -> Result<bool, Refusal> {
        let (platform, open) = (self.state.quotas().platform(), self.state.quotas().open());
        let least = u64::from(platform.borrow_opens_below_percent);
        let most = u64::from(platform.borrow_closes_at_percent);
        let next = match used {
            None => false,
            Some(used) if open => used < most,
            Some(used) => used < least,
        };
        let next = next && platform.borrowing;
        if next == open {
            return Ok(false);
        }
        self.record(at, Event::LendingSet { open: next })?;
        Ok(true)
    }

    /// Charges what runs already, whatever the quotas say and even while they
    /// are not known: a limit ends nothing that runs, and what it uses counts
    /// against who asks next. Room is checked as in `commit`.
    pub fn adopt(&mut self, at: Time, placement: &Placement) -> Result<Committed, Refusal> {
        let mut outcome = Committed::default();
        if let Err(reason) = self.validate(placement, true, &mut BTreeMap::new()) {
            outcome.stale.push((placement.job, reason));
            return Ok(outcome);
        }
        let mut claims = vec![];
        self.claims_of(placement, &mut claims, &mut Tentative::default());
        // It was not admitted here, so nothing was lent for it.
        for claim in &mut claims {
            claim.loans.clear();
        }
        outcome.claims = claims.iter().map(|c| c.uid).collect();
        self.record(at, Event::PlanCommitted { claims })?;
        Ok(outcome)
    }

    /// Charges a placement to its tenants in `quota`, as far as there is one.
    fn within_quota(&self, placement: &Placement, quota: &mut Tentative) -> Result<(), Reason> {
        let quotas = self.state.quotas();
        if quotas.hold() {
            return Err(Reason::QuotasUnknown);
        }
        let job = self.state.job(placement.job).ok_or(Reason::Deferred)?;
        let (owner, borrow) = (job.owner, quotas.may_borrow(&job.spec));
        if !quotas.binds(owner) {
            return Ok(());
        }
        let mut before = Usage::default();
        for (i, member) in placement.members.iter().enumerate() {
            let node = self.state.node(member.node).ok_or(Reason::Cordoned)?;
            let amounts = amounts(&member.held, &node.spec);
            let together = (placement.members.len() - i) as u64;
            let (before_ref, member) = (&before, &amounts);
            let ask = Ask { owner, borrow, before: before_ref, member, now: 1, together };
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
        let job = self.state.job(placement.job).filter(|j| self.may_start(j, placement));
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

    /// Whether the members are those that the job lacks: all that must start
    /// together, or more of an elastic one that runs.
    fn may_start(&self, job: &Job, placement: &Placement) -> bool {
        let fresh = |n: u32| {
            let taken = job.claims.iter().filter_map(|c| self.state.claim(*c));
            n < job.spec.members && !taken.into_iter().any(|c| c.member == n)
        };
        let open = match job.state {
            JobState::Pending => true,
            JobState::Starting | JobState::Running => {
                let all = job.claims.len() + placement.members.len() + job.ended as usize;
                all <= job.spec.members as usize
            }
            _ => false,
        };
        open && placement.members.iter().all(|m| fresh(m.member))
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

    /// The claims of a placement, with what of each is borrowed on top of what
    /// is charged in `lent`.
    fn claims_of(&self, placement: &Placement, claims: &mut Vec<Claim>, lent: &mut Tentative) {
        let quotas = self.state.quotas();
        let owner = self.state.job(placement.job).map(|j| j.owner);
        let owner = owner.filter(|o| quotas.platform().borrowing && quotas.binds(*o));
        for member in &placement.members {
            let node = self.state.node(member.node);
            let loans = match (owner, node) {
                (Some(owner), Some(node)) => {
                    let usage = amounts(&member.held, &node.spec);
                    let loans = quotas.loans(owner, lent, &usage);
                    lent.charge(owner, usage);
                    loans
                }
                _ => vec![],
            };
            claims.push(Claim {
                loans,
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
        | Event::LendingSet { .. }
        | Event::JobsForgotten { .. } => SmallVec::new(),
        Event::NodeRemoved { node } => {
            state.claims().filter(|c| c.node == *node).map(|c| c.job).collect()
        }
        Event::JobSubmitted { job, .. }
        | Event::JobUpdated { job, .. }
        | Event::RoomGivenUp { job, .. }
        | Event::Checkpointed { job }
        | Event::JobEnded { job, .. } => [*job].into_iter().collect(),
        Event::RoomMade { evictions, hold } => {
            evictions.iter().map(|e| e.job).chain(hold.iter().map(|h| h.job)).collect()
        }
        Event::PlanCommitted { claims } => claims.iter().map(|c| c.job).collect(),
        Event::ClaimMoved { claim, .. }
        | Event::MemberEnded { claim, .. }
        | Event::StartRefused { claim, .. } => of_claim(*claim).into_iter().collect(),
    };
    jobs.sort_unstable();
    jobs.dedup();
    jobs
}

/// Words from outside, as they are kept: of one line and a bounded length.
fn said(words: &str) -> Arc<str> {
    words.chars().filter(|c| !c.is_control()).take(500).collect::<String>().into()
}
