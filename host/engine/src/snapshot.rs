//! The books as plain data: written beside the journal, so that a restart folds
//! only what came after.

use crate::cow::{Changes, Cow};
use crate::node::NodeState;
use crate::quota::Quotas;
use crate::state::{Job, Queue, State, Waiting};
use crate::strings::Strings;
use crater_model::{
    Cause, Claim, ClaimUid, Digest, Hold, JobSpec, JobState, JobUid, NodeSpec, NodeUid,
    PlatformSpec, QueueSpec, TenantSpec, Time,
};
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;
use std::sync::Arc;
use thiserror::Error;

/// All of the books that does not follow from the rest of them. Sums on nodes,
/// the waiting and the running are recounted by `State::restore`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    /// The last entry applied.
    pub seq: u64,
    /// When it was journalled.
    pub at: Time,
    /// The next node's number.
    pub next_node: u64,
    /// The next job's number.
    pub next_job: u64,
    /// The next claim's number.
    pub next_claim: u64,
    /// The last mark that named a node's content.
    pub stamp: u64,
    /// How many changes of nodes there were.
    pub changes: u64,
    /// Texts that policies may look up, in the order of their numbers.
    pub strings: Vec<Arc<str>>,
    /// Tenants and queues, in the order of their numbers.
    pub owners: Vec<Arc<str>>,
    /// What holds for all tenants.
    #[serde(default)]
    pub platform: PlatformSpec,
    /// Tenants by path.
    #[serde(default)]
    pub tenants: Vec<Arc<TenantSpec>>,
    /// Whether tenants may borrow at present.
    #[serde(default)]
    pub lending: bool,
    /// Room that is kept for waiting jobs.
    #[serde(default)]
    pub holds: Vec<Hold>,
    /// Nodes, oldest first.
    pub nodes: Vec<SnapshotNode>,
    /// Queues by name.
    pub queues: Vec<SnapshotQueue>,
    /// Jobs, oldest first.
    pub jobs: Vec<SnapshotJob>,
    /// Claims that are not gone, oldest first.
    pub claims: Vec<Arc<Claim>>,
}

/// A node without the sums of its claims.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotNode {
    /// Identity.
    pub uid: NodeUid,
    /// Description.
    pub spec: Arc<NodeSpec>,
    /// Names its content.
    pub stamp: u64,
}

/// A queue without its jobs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotQueue {
    /// Description.
    pub spec: Arc<QueueSpec>,
    /// What decides.
    pub policy: Option<Digest>,
    /// When jobs of it were evicted lately.
    #[serde(default)]
    pub evictions: Vec<Time>,
}

/// A job without its claims.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotJob {
    /// Identity.
    pub uid: JobUid,
    /// What was submitted.
    pub spec: Arc<JobSpec>,
    /// Where it stands.
    pub state: JobState,
    /// When it was submitted.
    pub submitted: Time,
    /// When it began to wait, run, or be over.
    pub since: Time,
    /// Members that ended well since it last started.
    pub ended: u32,
    /// Starts so far.
    pub attempts: u32,
    /// Times that it was evicted to be started again.
    pub preemptions: u32,
    /// Why it had to go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evicted: Option<Cause>,
    /// When it last saved its progress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpointed: Option<Time>,
    /// Times in a row that its start was refused.
    #[serde(default)]
    pub refusals: u32,
    /// Not tried again before this.
    #[serde(default)]
    pub not_before: Time,
    /// A member ended badly.
    pub failed: bool,
    /// Why it ended, or why its start was refused.
    pub reason: Arc<str>,
}

/// A snapshot that does not add up: damaged, or of another program.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SnapshotError {
    /// A text already has another number in the table that was given.
    #[error("text {text:?} has number {expected} in the snapshot and {found} in this process")]
    Text {
        /// The text.
        text: Arc<str>,
        /// Its number in the snapshot.
        expected: usize,
        /// Its number in the table.
        found: i32,
    },
    /// A number that was not given yet, is given twice, or is out of order.
    #[error("{what} {uid} is out of order or not below the next number")]
    Number {
        /// Sort of thing.
        what: &'static str,
        /// Which.
        uid: String,
    },
    /// Something names something that is not there.
    #[error("{from} names {what} {name}, which is not there")]
    Missing {
        /// What names it.
        from: String,
        /// Sort of thing.
        what: &'static str,
        /// Which.
        name: String,
    },
    /// A claim is on cards that its node does not have.
    #[error("{claim} holds card {card}, which {node} does not have")]
    Card {
        /// The claim.
        claim: ClaimUid,
        /// The card.
        card: u8,
        /// The node.
        node: NodeUid,
    },
    /// A job's state and its claims contradict each other.
    #[error("{job} is {state} and has {claims} claims")]
    State {
        /// The job.
        job: JobUid,
        /// Where it stands.
        state: JobState,
        /// How many claims it has.
        claims: usize,
    },
    /// A sum is more than there is.
    #[error("the sums do not add up: {0}")]
    Audit(
        /// Which.
        String,
    ),
}

impl State {
    /// The books as plain data. Costs a walk over all that is in them; a clone
    /// of the books may be written on another thread.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            seq: self.seq,
            at: self.at,
            next_node: self.next_node().0,
            next_job: self.next_job().0,
            next_claim: self.next_claim().0,
            stamp: self.stamp,
            changes: self.changes.end(),
            strings: self.strings.texts(),
            owners: self.owners.texts(),
            platform: *self.quotas().platform(),
            tenants: self.quotas().tenants().values().cloned().collect(),
            lending: self.quotas().open(),
            holds: self.holds.values().cloned().collect(),
            nodes: self
                .nodes()
                .map(|n| SnapshotNode { uid: n.uid, spec: n.spec.clone(), stamp: n.stamp })
                .collect(),
            queues: self.queues().values().map(SnapshotQueue::of).collect(),
            jobs: self.jobs().map(|j| SnapshotJob::of(j)).collect(),
            claims: self.claims().cloned().collect(),
        }
    }

    /// The books of a snapshot, audited. `strings` must be empty or number the
    /// snapshot's texts alike, so it comes before policies are loaded.
    pub fn restore(snapshot: Snapshot, strings: Arc<Strings>) -> Result<Self, SnapshotError> {
        let owners: Arc<Strings> = Arc::default();
        number(&strings, &snapshot.strings)?;
        number(&owners, &snapshot.owners)?;
        let mut state = Self {
            seq: snapshot.seq,
            at: snapshot.at,
            strings,
            owners,
            nodes: Cow::with_len(snapshot.next_node as usize),
            jobs: Cow::with_len(snapshot.next_job as usize),
            claims: Cow::with_len(snapshot.next_claim as usize),
            queues: Arc::default(),
            quotas: Quotas::default(),
            holds: Arc::new(snapshot.holds.into_iter().map(|h| (h.job, h)).collect()),
            elastic: Arc::default(),
            victims: Arc::default(),
            leaving: Arc::default(),
            changes: Changes::starting_at(snapshot.changes),
            stamp: snapshot.stamp,
        };
        state.quotas.set_platform(snapshot.platform);
        state.quotas.set_open(snapshot.lending);
        for spec in &snapshot.tenants {
            state.quotas.set(Some(state.owners.id(spec.path.as_str())), spec);
        }
        let queues = Arc::make_mut(&mut state.queues);
        for SnapshotQueue { spec, policy, evictions } in snapshot.queues {
            let mut queue = Queue::new(spec.clone(), policy);
            queue.evictions = Arc::new(evictions.into());
            if queues.insert(spec.name.clone(), queue).is_some() {
                return Err(SnapshotError::Number { what: "queue", uid: spec.name.to_string() });
            }
        }
        let mut order = Ascending::new("node", snapshot.next_node);
        for node in snapshot.nodes {
            order.next(node.uid.0, &node.uid)?;
            let stamp = node.stamp;
            let built = NodeState::new(node.uid, node.spec, &state.strings, stamp);
            state.nodes.set(node.uid.0 as usize, Some(Arc::new(built)));
        }
        let mut order = Ascending::new("job", snapshot.next_job);
        for job in snapshot.jobs {
            order.next(job.uid.0, &job.uid)?;
            let job = job.back(&state);
            state.jobs.set(job.uid.0 as usize, Some(Arc::new(job)));
        }
        let mut order = Ascending::new("claim", snapshot.next_claim);
        for claim in snapshot.claims {
            order.next(claim.uid.0, &claim.uid)?;
            state.put_back(claim)?;
        }
        state.line_up()?;
        let jobs: Vec<JobUid> = state.jobs().map(|j| j.uid).collect();
        for job in jobs {
            state.note_job(job);
        }
        state.audit().map_err(SnapshotError::Audit)?;
        Ok(state)
    }

    /// Charges a claim whether or not it still fits: a node may have shrunk
    /// below what it holds. The audit looks at the sums afterwards.
    fn put_back(&mut self, claim: Arc<Claim>) -> Result<(), SnapshotError> {
        let missing =
            |what, name: String| SnapshotError::Missing { from: claim.uid.to_string(), what, name };
        let job = self
            .jobs
            .get_mut(claim.job.0 as usize)
            .ok_or_else(|| missing("job", claim.job.to_string()))?;
        job.claims.push(claim.uid);
        let owner = job.owner;
        let node = self
            .nodes
            .get_mut(claim.node.0 as usize)
            .ok_or_else(|| missing("node", claim.node.to_string()))?;
        let beyond = |c: &&crater_model::CardShare| usize::from(c.card) >= node.cards.len();
        if let Some(share) = claim.held.cards.iter().find(beyond) {
            let (claim, card, node) = (claim.uid, share.card, claim.node);
            return Err(SnapshotError::Card { claim, card, node });
        }
        node.add_unchecked(claim.job, owner, &claim.held);
        self.count(&claim);
        if claim.state == crater_model::ClaimState::Releasing {
            Arc::make_mut(&mut self.leaving).insert(claim.uid);
        }
        self.claims.set(claim.uid.0 as usize, Some(claim));
        Ok(())
    }

    /// Puts each job into its queue's sets.
    fn line_up(&mut self) -> Result<(), SnapshotError> {
        let queues = Arc::make_mut(&mut self.queues);
        for (_, job) in self.jobs.iter() {
            let queue = queues.get_mut(&job.spec.queue).ok_or_else(|| SnapshotError::Missing {
                from: job.uid.to_string(),
                what: "queue",
                name: job.spec.queue.to_string(),
            })?;
            let consistent = match job.state {
                JobState::Pending => job.claims.is_empty(),
                JobState::Starting | JobState::Running | JobState::Preempting => {
                    !job.claims.is_empty()
                }
                _ => true,
            };
            if !consistent {
                let (job, state, claims) = (job.uid, job.state, job.claims.len());
                return Err(SnapshotError::State { job, state, claims });
            }
            if job.state == JobState::Pending {
                Arc::make_mut(&mut queue.waiting).insert(Waiting::new(job));
            }
            if !job.claims.is_empty() {
                Arc::make_mut(&mut queue.running).insert(job.uid);
            }
        }
        Ok(())
    }
}

impl SnapshotQueue {
    fn of(queue: &Queue) -> Self {
        let evictions = queue.evictions.iter().copied().collect();
        Self { spec: queue.spec.clone(), policy: queue.policy, evictions }
    }
}

impl SnapshotJob {
    fn of(job: &Job) -> Self {
        Self {
            uid: job.uid,
            spec: job.spec.clone(),
            state: job.state,
            submitted: job.submitted,
            since: job.since,
            ended: job.ended,
            attempts: job.attempts,
            preemptions: job.preemptions,
            evicted: job.evicted,
            checkpointed: job.checkpointed,
            refusals: job.refusals,
            not_before: job.not_before,
            failed: job.failed,
            reason: job.reason.clone(),
        }
    }

    fn back(self, state: &State) -> Job {
        Job {
            uid: self.uid,
            owner: state.owner(&self.spec),
            spec: self.spec,
            state: self.state,
            submitted: self.submitted,
            since: self.since,
            claims: SmallVec::new(),
            ended: self.ended,
            attempts: self.attempts,
            preemptions: self.preemptions,
            evicted: self.evicted,
            checkpointed: self.checkpointed,
            refusals: self.refusals,
            not_before: self.not_before,
            failed: self.failed,
            reason: self.reason,
        }
    }
}

/// Gives texts their numbers back.
fn number(strings: &Strings, texts: &[Arc<str>]) -> Result<(), SnapshotError> {
    for (i, text) in texts.iter().enumerate() {
        let (expected, found) = (i + 1, strings.id(text));
        if usize::try_from(found) != Ok(expected) {
            return Err(SnapshotError::Text { text: text.clone(), expected, found });
        }
    }
    Ok(())
}

/// Numbers that must ascend and stay below the next one.
struct Ascending {
    what: &'static str,
    least: u64,
    next: u64,
}

impl Ascending {
    fn new(what: &'static str, next: u64) -> Self {
        Self { what, least: 0, next }
    }

    fn next(&mut self, number: u64, uid: &dyn std::fmt::Display) -> Result<(), SnapshotError> {
        if number < self.least || number >= self.next {
            return Err(SnapshotError::Number { what: self.what, uid: uid.to_string() });
        }
        self.least = number + 1;
        Ok(())
    }
}
