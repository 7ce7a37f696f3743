//! What crosses the wire. Names are those of the command line's flags.

use crate::amount::Amount;
use crate::problem::Problem;
use crater_engine::{Job, Outcome, Record, State};
use crater_model::parse::{bandwidth, cpu, gpu, integer, memory};
use crater_model::select::{Condition, Operator, Selector};
use crater_model::{
    DiskAsk, FieldError, GpuAsk, Iops, JobSpec, Kind, MilliCards, Need, Priority, Request, Task,
    TenantPath, Together,
};
use crater_store::JobRow;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;
use utoipa::ToSchema;

/// A job as it is submitted. Amounts are of one member.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Submit {
    /// Name, for people: lower-case letters, digits, dashes and dots.
    #[schema(max_length = 63, example = "llm-inference-7b")]
    pub name: String,
    /// The queue.
    #[schema(example = "inference")]
    pub queue: String,
    /// Whose it is; the caller's own tenant without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// inference, training or offline; the queue's without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// low, medium, high or 0 to 1000. Without it medium, or the tenant's
    /// ceiling where that is lower; one above the ceiling is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<Amount>,
    /// Cards: 0.5 is half of one, 4 are four distinct ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu: Option<Amount>,
    /// GPU memory in MiB (or 40Gi), the total over the member's cards.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu_memory: Option<Amount>,
    /// Whole cards, shared with nobody.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub gpu_exclusive: bool,
    /// A MIG profile, such as 1g.10gb, one instance on each of `gpu` cards.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mig_profile: Option<String>,
    /// Card models that it may use; any without.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub card_model: Vec<String>,
    /// none, preferred or required: `NVLink` between its cards.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nvlink: Option<String>,
    /// none, preferred or required: all on one NUMA node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub numa: Option<String>,
    /// Cores, such as 8, 0.5 or 500m.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<Amount>,
    /// Memory, such as 32Gi.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<Amount>,
    /// Disk IO weight, 1 to 10000.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk_io: Option<Amount>,
    /// Reserved disk bandwidth in MB/s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk_bandwidth: Option<Amount>,
    /// Reserved disk operations a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk_iops: Option<Amount>,
    /// Most disk bandwidth of a member in MB/s, of reading and of writing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk_bandwidth_limit: Option<Amount>,
    /// Most disk operations of a member a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk_iops_limit: Option<Amount>,
    /// Equal members, started all or nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub members: Option<u32>,
    /// Members that suffice to start; all without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min: Option<u32>,
    /// Node labels that it needs.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub node_selector: BTreeMap<String, String>,
    /// How near its members must be to each other: domain, zone, or a node
    /// label's key, followed by `:preferred` where farther will do.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "domain:preferred")]
    pub together: Option<String>,
    /// It may be preempted; not for inference.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub preemptible: bool,
    /// Longest run in seconds; waiting does not count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_limit: Option<u32>,
    /// Container image.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub image: String,
    /// Command line.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub command: String,
    /// Environment.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Working directory.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub workdir: String,
    /// `source:/target` or `source:/target:ro`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub volumes: Vec<String>,
    /// Ports that it listens on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<u16>,
    /// Seconds between the signal to end and the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grace: Option<u32>,
}

fn need(field: &str, text: Option<&str>) -> Result<Need, FieldError> {
    match text {
        None | Some("none") => Ok(Need::None),
        Some("preferred") => Ok(Need::Preferred),
        Some("required") => Ok(Need::Required),
        Some(other) => Err(FieldError::new(field, other, "none, preferred or required")),
    }
}

/// Reads `domain`, `zone` or a label, with `:preferred` or `:required`.
fn together(text: &str) -> Result<Together, FieldError> {
    let (level, need) = match text.rsplit_once(':') {
        None => (text, Need::Required),
        Some((level, "required")) => (level, Need::Required),
        Some((level, "preferred")) => (level, Need::Preferred),
        Some(_) => {
            let expected = "domain, zone or a node label, and :preferred where farther will do";
            return Err(FieldError::new("together", text, expected));
        }
    };
    Ok(Together { level: level.into(), need })
}

/// Steps in which people ask for cards.
const STEP: MilliCards = MilliCards(100);

/// Most of anything, in its smallest unit, over all members of a job: sums stay
/// far from what a number holds. A job beyond it would make every list fail.
const MOST: u64 = 1 << 50;

impl Submit {
    /// The job in the engine's words. `own` is the caller's tenant.
    pub fn spec(&self, state: &State, own: &TenantPath) -> Result<JobSpec, Problem> {
        let tenant = match &self.tenant {
            None => own.clone(),
            Some(text) => TenantPath::parse("tenant", text)?,
        };
        let Some(queue) = state.queues().get(self.queue.as_str()) else {
            let known: Vec<&str> = state.queues().keys().map(|name| &**name).collect();
            let expected = format!("one of {}", known.join(", "));
            return Err(FieldError::new("queue", &self.queue, expected).into());
        };
        let mut job = JobSpec::new(&self.name, &self.queue, tenant, self.request(state)?);
        job.kind = match &self.kind {
            None => queue.spec.kind,
            Some(kind) => Kind::parse("kind", kind)?,
        };
        if let Some(priority) = &self.priority {
            job.priority = Priority::parse("priority", &priority.0)?;
        }
        job.members = self.members.unwrap_or(1);
        job.min_members = self.min.unwrap_or(job.members);
        job.together = self.together.as_deref().map(together).transpose()?;
        job.preemptible = self.preemptible;
        job.run_limit = self.run_limit.unwrap_or(0);
        job.task = Arc::new(Task {
            image: self.image.clone(),
            command: self.command.clone(),
            env: self.env.clone(),
            workdir: self.workdir.clone(),
            volumes: self.volumes.clone(),
            ports: self.ports.clone(),
            grace: self.grace,
            disk_bandwidth_limit: text(self.disk_bandwidth_limit.as_ref())
                .map(|t| bandwidth("disk-bandwidth-limit", &t))
                .transpose()?,
            disk_iops_limit: text(self.disk_iops_limit.as_ref())
                .map(|t| integer("disk-iops-limit", &t, 1, u64::from(u32::MAX)).map(Iops))
                .transpose()?,
        });
        job.check()?;
        let (request, members) = (&job.request, u64::from(job.members));
        let (milli, mib) = request.gpu.as_ref().map_or((0, 0), asked_of);
        let (cpu, memory) = (request.cpu.0, request.memory.0);
        for (field, n) in [("gpu", milli), ("gpu-memory", mib), ("cpu", cpu), ("memory", memory)] {
            if n.saturating_mul(members) > MOST {
                return Err(FieldError::new(field, &n.to_string(), "less over all members").into());
            }
        }
        Ok(job)
    }

    fn request(&self, state: &State) -> Result<Request, Problem> {
        let cards = text(self.gpu.as_ref()).map(|t| gpu("gpu", &t, STEP)).transpose()?;
        let mib = text(self.gpu_memory.as_ref()).map(|t| memory("gpu-memory", &t)).transpose()?;
        let mut request = Request {
            gpu: GpuAsk::new(cards, mib, self.gpu_exclusive)?,
            nvlink: need("nvlink", self.nvlink.as_deref())?,
            numa: need("numa", self.numa.as_deref())?,
            models: self.card_model.iter().map(|model| model.as_str().into()).collect(),
            ..Request::default()
        };
        if let Some(profile) = &self.mig_profile {
            let whole = cards.map_or(1, |cards| cards.0 / 1000).max(1);
            request.gpu = Some(GpuAsk::mig(whole, profile));
        }
        if let Some(t) = text(self.cpu.as_ref()) {
            request.cpu = cpu("cpu", &t)?;
        }
        if let Some(t) = text(self.memory.as_ref()) {
            request.memory = memory("memory", &t)?;
        }
        let mut disk = DiskAsk::default();
        if let Some(t) = text(self.disk_io.as_ref()) {
            disk.weight = integer("disk-io", &t, 1, 10_000)? as u16;
        }
        if let Some(t) = text(self.disk_bandwidth.as_ref()) {
            disk.bandwidth = bandwidth("disk-bandwidth", &t)?;
        }
        if let Some(t) = text(self.disk_iops.as_ref()) {
            disk.iops = Iops(integer("disk-iops", &t, 0, u64::from(u32::MAX))?);
        }
        request.disk = disk;
        if !self.node_selector.is_empty() {
            let all = self.node_selector.iter().map(|(key, value)| Condition {
                key: key.as_str().into(),
                operator: Operator::In,
                values: vec![value.as_str().into()],
            });
            request.selectors = vec![Selector { all: all.collect() }];
        }
        if request.gpu.is_some() && (request.cpu.is_zero() || request.memory.is_zero()) {
            let field = if request.cpu.is_zero() { "cpu" } else { "memory" };
            let advice = ratio(state, request.cards());
            return Err(Problem::field(
                field,
                format!("{field}: a GPU must come with CPU and memory{advice}"),
            ));
        }
        Ok(request)
    }
}

fn text(amount: Option<&Amount>) -> Option<String> {
    amount.map(|amount| amount.0.clone())
}

/// What the nodes have for each card, as advice.
fn ratio(state: &State, cards: u64) -> String {
    let with_cards = || state.nodes().filter(|node| !node.spec.cards.is_empty());
    let all: u64 = with_cards().map(|node| node.spec.cards.len() as u64).sum();
    if all == 0 {
        return String::new();
    }
    let cpu: u64 = with_cards().map(|node| node.spec.cpu.0).sum::<u64>() * cards / all / 1000;
    let memory: u64 = with_cards().map(|node| node.spec.memory.0).sum::<u64>() * cards / all / 1024;
    format!(
        "; the nodes have {cpu} cores and {memory}Gi for {cards} card(s), so --cpu {cpu} --memory {memory}Gi fits"
    )
}

/// A job and where it stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct JobView {
    /// Identity, such as job-001.
    pub id: String,
    /// Name.
    pub name: String,
    /// Pending, Starting, Running, Preempting, Succeeded, Failed, Cancelled or
    /// Evicted.
    pub status: String,
    /// Queue.
    pub queue: String,
    /// Tenant.
    pub tenant: String,
    /// Kind.
    pub kind: String,
    /// Priority.
    pub priority: u16,
    /// Cards that all members ask for, in thousandths.
    pub gpu_milli: u64,
    /// GPU memory of all members in MiB; what is held once it runs.
    pub gpu_memory_mib: u64,
    /// Cores of all members, in thousandths.
    pub cpu_milli: u64,
    /// Memory of all members in MiB.
    pub memory_mib: u64,
    /// Members, and how many suffice to start.
    pub members: u32,
    /// Members that must start together.
    pub min: u32,
    /// Nodes that it is on.
    pub nodes: Vec<String>,
    /// It may be preempted.
    pub preemptible: bool,
    /// When it was submitted, RFC 3339.
    pub submitted: String,
    /// Since when it is in this status, RFC 3339.
    pub since: String,
    /// Starts so far.
    pub attempts: u32,
    /// Times that it was preempted.
    pub preemptions: u32,
    /// Why it had to go, until it starts again: preempt, reclaim, deadlock,
    /// defragment, idle, lost-node or manual.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// Why it waits or how it ended.
    pub reason: String,
    /// What a submitter should know, such as a priority that was lowered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Everything, where one job is asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<JobDetail>,
}

/// More of one job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct JobDetail {
    /// What was asked for, as the engine keeps it.
    pub spec: serde_json::Value,
    /// Its members' claims.
    pub claims: Vec<ClaimView>,
    /// Nodes by why they cannot take it, with figures.
    pub constraints: Vec<String>,
    /// What it has to do with the one pool.
    #[serde(default)]
    pub room: crate::room::RoomView,
    /// The last decision on it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision: Option<DecisionView>,
    /// What happened to it, oldest first.
    pub events: Vec<EventView>,
}

/// What one member holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ClaimView {
    /// Which member, from 0.
    pub member: u32,
    /// reserved, starting, held or releasing.
    pub state: String,
    /// The node.
    pub node: String,
    /// Cards by index with what is held of each.
    pub cards: Vec<CardView>,
    /// shared or whole: how hard the line to other jobs is.
    pub isolation: String,
}

/// What is held of a card.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct CardView {
    /// Index on its node.
    pub card: u8,
    /// Share in thousandths.
    pub milli: u64,
    /// Memory in MiB.
    pub memory_mib: u64,
    /// MIG instance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mig: Option<String>,
}

/// A decision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct DecisionView {
    /// When, RFC 3339.
    pub at: String,
    /// policy, fallback or builtin.
    pub by: String,
    /// Digest of the policy, its configuration and what it prepared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// Why the policy's answer was not used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
    /// Nodes that could take it.
    pub candidates: u32,
    /// Score of the chosen one.
    pub score: i64,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct EventView {
    /// When, RFC 3339.
    pub at: String,
    /// What.
    pub event: serde_json::Value,
}

pub use crater_server::rfc3339;

impl JobView {
    /// Of a job in the books.
    pub fn of(state: &State, job: &Job, reason: String) -> Self {
        let claims: Vec<_> = job.claims.iter().filter_map(|uid| state.claim(*uid)).collect();
        let members = u64::from(job.spec.members);
        let request = &job.spec.request;
        let asked = request.gpu.as_ref();
        let (milli, mib) = asked.map_or((0, 0), asked_of);
        let held: u64 = claims.iter().map(|c| c.held.gpu_memory().0).sum();
        let mut nodes: Vec<String> = claims
            .iter()
            .filter_map(|c| state.node(c.node).map(|n| n.spec.name.to_string()))
            .collect();
        nodes.sort_unstable();
        nodes.dedup();
        let cause = job.evicted.filter(|_| !job.state.ended());
        Self {
            id: job.uid.to_string(),
            name: job.spec.name.to_string(),
            status: job.state.to_string(),
            queue: job.spec.queue.to_string(),
            tenant: job.spec.tenant.as_str().to_owned(),
            kind: job.spec.kind.to_string(),
            priority: job.spec.priority.0,
            gpu_milli: milli.saturating_mul(members),
            // The memory of a share follows from the card that it is on.
            gpu_memory_mib: if held > 0 { held } else { mib.saturating_mul(members) },
            cpu_milli: request.cpu.0.saturating_mul(members),
            memory_mib: request.memory.0.saturating_mul(members),
            members: job.spec.members,
            min: job.spec.min_members,
            nodes,
            preemptible: job.spec.preemptible,
            submitted: rfc3339(job.submitted),
            since: rfc3339(job.since),
            attempts: job.attempts,
            preemptions: job.preemptions,
            cause: cause.map(|cause| crater_server::chronicle::cause(cause).to_owned()),
            reason,
            notes: vec![],
            detail: None,
        }
    }
}

/// Share and memory that one member asks for; the memory of a share follows
/// from the card and is not known yet.
fn asked_of(gpu: &GpuAsk) -> (u64, u64) {
    use crater_model::Share;
    match &gpu.share {
        Share::Whole | Share::Mig { .. } => (1000 * gpu.cards, 0),
        Share::Part { milli, memory } => {
            (milli.0 * gpu.cards, memory.map_or(0, |m| m.0 * gpu.cards))
        }
        Share::Memory { memory } => (1000 * gpu.cards, memory.0 * gpu.cards),
    }
}

/// The job of a row of the history.
pub fn of_row(row: &JobRow) -> JobView {
    let (spec, members) = (&row.spec, u64::from(row.spec.members));
    JobView {
        id: row.uid.to_string(),
        name: spec.name.to_string(),
        status: row.state.to_string(),
        queue: spec.queue.to_string(),
        tenant: spec.tenant.as_str().to_owned(),
        kind: spec.kind.to_string(),
        priority: spec.priority.0,
        gpu_milli: spec
            .request
            .gpu
            .as_ref()
            .map_or(0, |gpu| asked_of(gpu).0)
            .saturating_mul(members),
        gpu_memory_mib: spec
            .request
            .gpu
            .as_ref()
            .map_or(0, |gpu| asked_of(gpu).1)
            .saturating_mul(members),
        cpu_milli: spec.request.cpu.0.saturating_mul(members),
        memory_mib: spec.request.memory.0.saturating_mul(members),
        members: spec.members,
        min: spec.min_members,
        nodes: row.nodes.iter().map(ToString::to_string).collect(),
        preemptible: spec.preemptible,
        submitted: rfc3339(row.submitted),
        since: rfc3339(row.ended.or(row.started).or(row.placed).unwrap_or(row.submitted)),
        attempts: row.attempts,
        preemptions: row.preemptions,
        cause: None,
        reason: row.reason.to_string(),
        notes: vec![],
        detail: None,
    }
}

/// A decision's view.
pub fn decision(record: &Record, at: crater_model::Time) -> DecisionView {
    DecisionView {
        at: rfc3339(at),
        by: format!("{:?}", record.by).to_lowercase(),
        policy: record.policy.map(|digest| digest.to_string()),
        fault: record.fault.as_ref().map(ToString::to_string),
        candidates: record.candidates,
        score: record.score,
    }
}

/// Why a job waits, node by node cause.
pub fn constraints(record: &Record) -> Vec<String> {
    let Outcome::Waits(reasons) = &record.outcome else { return vec![] };
    let mut lines: Vec<String> = reasons.job.iter().map(ToString::to_string).collect();
    lines.extend(
        reasons
            .counts
            .iter()
            .map(|(reason, n)| format!("{n} of {} nodes: {reason}", reasons.nodes)),
    );
    if reasons.impossible() {
        lines.push("no node can ever hold it".into());
    }
    lines
}
