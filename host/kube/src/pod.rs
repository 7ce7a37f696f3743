//! A Pod as the scheduler sees it: few fields, converted once, the rest of the
//! object forgotten.

use crate::cards::Assigned;
use crate::quantity::{self, Rounding};
use crate::want;
use crater_model::{FieldError, JobSpec, Mib, MilliCores};
use k8s_openapi::api::core::v1::{Container, Pod, PodSpec};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Annotation: the epoch of the leader that bound the pod.
pub const EPOCH: &str = "crater.io/epoch";
/// Annotation: the cards that the pod holds, as JSON.
pub const ASSIGNED_CARDS: &str = "crater.io/assigned-cards";
/// Annotation: uid of the Node that it was bound to.
pub const ASSIGNED_NODE: &str = "crater.io/assigned-node-uid";

/// Where a pod stands in its own life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Not yet started.
    Pending,
    /// Its containers run, or nobody knows.
    Running,
    /// It is over, well or badly, and holds nothing.
    Over(bool),
}

/// What a pod takes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Takes {
    /// CPU.
    pub cpu: MilliCores,
    /// Memory.
    pub memory: Mib,
    /// Whole cards, by `nvidia.com/gpu`.
    pub cards: u64,
    /// MIG instances by `nvidia.com/mig-<profile>`.
    pub mig: BTreeMap<Arc<str>, u64>,
}

/// A Pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodSeen {
    /// Its identity.
    pub uid: Arc<str>,
    /// Namespace.
    pub namespace: Arc<str>,
    /// Name, which may come back on another pod.
    pub name: Arc<str>,
    /// The node that it is bound to.
    pub node: Option<Arc<str>>,
    /// It asks for this scheduler.
    pub ours: bool,
    /// Its deletion was asked for; it holds what it holds until it is gone.
    pub terminating: bool,
    /// It waits for its scheduling gates.
    pub gated: bool,
    /// Where it stands.
    pub phase: Phase,
    /// What it takes.
    pub takes: Takes,
    /// What a pod of ours asks for.
    pub wants: Option<Result<Arc<JobSpec>, FieldError>>,
    /// The cards that its annotation names, once it is bound; none if that
    /// cannot be read.
    pub assigned: Option<Vec<Assigned>>,
    /// The message of its `PodScheduled` condition while that is False.
    pub told: Option<Arc<str>>,
}

impl PodSeen {
    /// Reads what counts.
    pub fn new(pod: &Pod, defaults: &want::Defaults) -> Self {
        let meta = &pod.metadata;
        let text = |t: &Option<String>| Arc::<str>::from(t.as_deref().unwrap_or_default());
        let spec = pod.spec.as_ref();
        let status = pod.status.as_ref();
        let ours = spec.and_then(|s| s.scheduler_name.as_deref()) == Some(&defaults.scheduler_name);
        let takes = spec.map_or_else(|| Ok(Takes::default()), takes);
        let phase = match status.and_then(|s| s.phase.as_deref()) {
            Some("Succeeded") => Phase::Over(true),
            Some("Failed") => Phase::Over(false),
            Some("Running" | "Unknown") => Phase::Running,
            _ => Phase::Pending,
        };
        let node = spec.and_then(|s| s.node_name.as_deref()).filter(|n| !n.is_empty());
        let uid = text(&meta.uid);
        let wants = ours.then(|| {
            let takes = takes.as_ref().map_err(Clone::clone)?;
            let spec = spec.ok_or_else(|| FieldError::new("spec", "", "a pod with a spec"))?;
            want::job(&uid, meta, spec, takes, defaults).map(Arc::new)
        });
        let annotation = |key| meta.annotations.as_ref().and_then(|a| a.get(key));
        let assigned = annotation(ASSIGNED_CARDS).filter(|_| node.is_some());
        let condition = status
            .and_then(|s| s.conditions.as_ref())
            .and_then(|all| all.iter().find(|c| c.type_ == "PodScheduled" && c.status == "False"));
        Self {
            uid,
            namespace: text(&meta.namespace),
            name: text(&meta.name),
            node: node.map(Into::into),
            ours,
            terminating: meta.deletion_timestamp.is_some(),
            gated: spec.and_then(|s| s.scheduling_gates.as_ref()).is_some_and(|g| !g.is_empty()),
            phase,
            // What cannot be read cannot be charged; the API server has
            // refused such quantities before.
            takes: takes.unwrap_or_default(),
            wants,
            assigned: assigned.map(|json| serde_json::from_str(json).unwrap_or_default()),
            told: condition.and_then(|c| c.message.as_deref()).map(Into::into),
        }
    }

    /// Cards and MIG instances that it asks for; where its words cannot be
    /// read, those that it is said to hold.
    pub fn cards(&self) -> u64 {
        match (&self.wants, &self.assigned) {
            (Some(Ok(spec)), _) => spec.request.cards(),
            (Some(Err(_)), Some(assigned)) => assigned.len() as u64,
            _ => self.takes.mig.values().fold(self.takes.cards, |sum, n| sum.saturating_add(*n)),
        }
    }

    /// `namespace/name`.
    pub fn path(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }
}

/// What the kubelet sets aside for a pod: its containers and side-cars
/// together, or the largest init container with the side-cars that were started
/// before it if that is more, and the overhead.
fn takes(spec: &PodSpec) -> Result<Takes, FieldError> {
    let mut sum = Takes::default();
    for container in &spec.containers {
        sum.add(&of_container(container)?);
    }
    // In the order in which they start: a side-car stays.
    let (mut most, mut beside) = (Takes::default(), Takes::default());
    for container in spec.init_containers.iter().flatten() {
        let own = of_container(container)?;
        if container.restart_policy.as_deref() == Some("Always") {
            sum.add(&own);
            beside.add(&own);
        } else {
            let mut step = own;
            step.add(&beside);
            most.at_least(&step);
        }
    }
    sum.at_least(&most);
    for (name, amount) in spec.overhead.iter().flatten() {
        sum.add(&of_resource(name, &amount.0)?);
    }
    Ok(sum)
}

fn of_container(container: &Container) -> Result<Takes, FieldError> {
    let mut takes = Takes::default();
    let Some(resources) = &container.resources else { return Ok(takes) };
    // The API server fills a missing request in from the limit.
    for (name, amount) in resources.requests.iter().flatten() {
        takes.add(&of_resource(name, &amount.0)?);
    }
    Ok(takes)
}

fn of_resource(name: &str, amount: &str) -> Result<Takes, FieldError> {
    let mut takes = Takes::default();
    match name {
        "cpu" => takes.cpu = quantity::cpu(name, amount, Rounding::Up)?,
        "memory" => takes.memory = quantity::memory(name, amount, Rounding::Up)?,
        "nvidia.com/gpu" => takes.cards = quantity::count(name, amount, Rounding::Up)?,
        _ => {
            if let Some(profile) = name.strip_prefix("nvidia.com/mig-") {
                let count = quantity::count(name, amount, Rounding::Up)?;
                takes.mig.insert(profile.into(), count);
            }
        }
    }
    Ok(takes)
}

impl Takes {
    fn add(&mut self, other: &Self) {
        self.cpu += other.cpu;
        self.memory += other.memory;
        self.cards = self.cards.saturating_add(other.cards);
        for (profile, count) in &other.mig {
            let sum = self.mig.entry(profile.clone()).or_default();
            *sum = sum.saturating_add(*count);
        }
    }

    fn at_least(&mut self, other: &Self) {
        self.cpu = self.cpu.max(other.cpu);
        self.memory = self.memory.max(other.memory);
        self.cards = self.cards.max(other.cards);
        for (profile, count) in &other.mig {
            let most = self.mig.entry(profile.clone()).or_default();
            *most = (*most).max(*count);
        }
    }
}

#[cfg(test)]
#[path = "pod_tests.rs"]
mod tests;
