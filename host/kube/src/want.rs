//! What a pod of ours asks for, as a job of one member.
//!
//! Labels and annotations of the same key both count; where both are given and
//! differ, the pod is refused by the key's name rather than read one way.

use crate::pod::Takes;
use crater_model::parse;
use crater_model::select::{Condition, Effect, Operator, Selector, Toleration};
use crater_model::{
    FieldError, GpuAsk, JobSpec, Kind, MilliCards, Need, Priority, QueueName, Request, TenantPath,
};
use k8s_openapi::api::core::v1::{NodeSelectorRequirement, PodSpec};
use kube::api::ObjectMeta;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What is taken where a pod does not say.
#[derive(Clone, Debug)]
pub struct Defaults {
    /// The `schedulerName` that is ours.
    pub scheduler_name: Arc<str>,
    /// Queue.
    pub queue: QueueName,
    /// Kinds by queue.
    pub kinds: BTreeMap<QueueName, Kind>,
}

/// A pod's words about itself.
struct Words<'a>(&'a ObjectMeta);

impl<'a> Words<'a> {
    fn get(&self, key: &str) -> Result<Option<&'a str>, FieldError> {
        let of = |map: &'a Option<BTreeMap<String, String>>| {
            map.as_ref().and_then(|m| m.get(key)).map(String::as_str)
        };
        match (of(&self.0.labels), of(&self.0.annotations)) {
            (Some(label), Some(annotation)) if label != annotation => {
                let expected = format!("the same as the label of that key, {label:?}, or one");
                Err(FieldError::new(key, annotation, expected))
            }
            (label, annotation) => Ok(annotation.or(label)),
        }
    }

    fn flag(&self, key: &str) -> Result<bool, FieldError> {
        Ok(self.get(key)?.map(|text| parse::flag(key, text)).transpose()?.unwrap_or(false))
    }

    fn need(&self, key: &str) -> Result<Need, FieldError> {
        match self.get(key)? {
            None | Some("none") => Ok(Need::None),
            Some("preferred") => Ok(Need::Preferred),
            Some("required") => Ok(Need::Required),
            Some(other) => Err(FieldError::new(key, other, "none, preferred or required")),
        }
    }
}

/// The job that a pod is. Its name is the pod's uid: names come back.
pub fn job(
    uid: &str,
    meta: &ObjectMeta,
    spec: &PodSpec,
    takes: &Takes,
    defaults: &Defaults,
) -> Result<JobSpec, FieldError> {
    let words = Words(meta);
    let queue = words.get("crater.io/queue")?.map_or_else(|| defaults.queue.clone(), Into::into);
    let kind = match words.get("crater.io/kind")? {
        Some(text) => Kind::parse("crater.io/kind", text)?,
        None => defaults.kinds.get(&queue).copied().unwrap_or_default(),
    };
    let priority = match words.get("crater.io/priority")? {
        Some(text) => Priority::parse("crater.io/priority", text)?,
        None => Priority::default(),
    };
    let namespace = meta.namespace.as_deref().unwrap_or("default");
    let tenant = match words.get("crater.io/tenant")? {
        Some(text) => TenantPath::parse("crater.io/tenant", text)?,
        None => TenantPath::parse("namespace", namespace)?,
    };
    let models = words.get("crater.io/gpu-model")?.unwrap_or_default();
    let request = Request {
        gpu: gpu(&words, takes)?,
        cpu: takes.cpu,
        memory: takes.memory,
        models: models.split(',').filter(|m| !m.is_empty()).map(Into::into).collect(),
        selectors: selectors(spec)?,
        tolerations: tolerations(spec)?,
        nvlink: words.need("crater.io/nvlink")?,
        numa: words.need("crater.io/numa")?,
        ..Request::default()
    };
    let job = JobSpec {
        kind,
        priority,
        preemptible: words.flag("crater.io/preemptible")?,
        ..JobSpec::new(uid, &queue, tenant, request)
    };
    job.check()?;
    Ok(job)
}

fn gpu(words: &Words<'_>, takes: &Takes) -> Result<Option<GpuAsk>, FieldError> {
    let share = words.get("crater.io/gpu")?;
    let share = share.map(|t| parse::gpu("crater.io/gpu", t, MilliCards(1))).transpose()?;
    let memory = words.get("crater.io/gpu-memory")?;
    let memory = memory.map(|t| parse::memory("crater.io/gpu-memory", t)).transpose()?;
    let profile = words.get("crater.io/mig")?;
    let said = share.is_some() || memory.is_some() || profile.is_some();
    if said && (takes.cards > 0 || !takes.mig.is_empty()) {
        let expected = "none beside crater.io/gpu, crater.io/gpu-memory or crater.io/mig";
        return Err(FieldError::new("nvidia.com/gpu", &takes.cards.to_string(), expected));
    }
    let mut mig = takes.mig.iter().filter(|(_, count)| **count > 0);
    if let Some((name, count)) = mig.next() {
        if mig.next().is_some() || takes.cards > 0 {
            return Err(FieldError::new("nvidia.com/mig", name, "one profile and no whole cards"));
        }
        return Ok(Some(GpuAsk::mig(*count, name)));
    }
    if let Some(profile) = profile {
        if share.is_some() || memory.is_some() {
            return Err(FieldError::new(
                "crater.io/mig",
                profile,
                "no gpu or gpu-memory beside it",
            ));
        }
        return Ok(Some(GpuAsk::mig(1, profile)));
    }
    let whole = (takes.cards > 0).then(|| MilliCards::CARD * takes.cards);
    GpuAsk::new(share.or(whole), memory, words.flag("crater.io/gpu-exclusive")?)
}

/// `nodeSelector` and the required node affinity: any of the terms, each with
/// the selector's labels.
fn selectors(spec: &PodSpec) -> Result<Vec<Selector>, FieldError> {
    let label = |(key, value): (&String, &String)| Condition {
        key: key.as_str().into(),
        operator: Operator::In,
        values: vec![value.as_str().into()],
    };
    let labels: Vec<Condition> = spec.node_selector.iter().flatten().map(label).collect();
    let affinity = spec.affinity.as_ref().and_then(|a| a.node_affinity.as_ref());
    let required = affinity
        .and_then(|a| a.required_during_scheduling_ignored_during_execution.as_ref())
        .map(|r| &r.node_selector_terms);
    let Some(terms) = required else {
        return Ok(if labels.is_empty() { vec![] } else { vec![Selector { all: labels }] });
    };
    let selector = |term: &k8s_openapi::api::core::v1::NodeSelectorTerm| {
        let mut all = vec![];
        for requirement in term.match_expressions.iter().flatten() {
            all.push(condition(requirement)?);
        }
        for field in term.match_fields.iter().flatten() {
            if field.key != "metadata.name" {
                return Err(FieldError::new("matchFields", &field.key, "metadata.name"));
            }
            all.push(Condition { key: NAME_LABEL.into(), ..condition(field)? });
        }
        if !all.is_empty() {
            // A term without conditions means no node, labels or not.
            all.extend(labels.iter().cloned());
        }
        Ok(Selector { all })
    };
    terms.iter().map(selector).collect()
}

/// The label under which a node's own name can be selected.
pub const NAME_LABEL: &str = "metadata.name";

fn condition(requirement: &NodeSelectorRequirement) -> Result<Condition, FieldError> {
    let operator = match &*requirement.operator {
        "In" => Operator::In,
        "NotIn" => Operator::NotIn,
        "Exists" => Operator::Exists,
        "DoesNotExist" => Operator::DoesNotExist,
        "Gt" => Operator::Gt,
        "Lt" => Operator::Lt,
        other => {
            return Err(FieldError::new("affinity operator", other, "one that Kubernetes has"));
        }
    };
    let values = requirement.values.iter().flatten().map(|v| v.as_str().into()).collect();
    Ok(Condition { key: requirement.key.as_str().into(), operator, values })
}

fn tolerations(spec: &PodSpec) -> Result<Vec<Toleration>, FieldError> {
    let mut all = vec![];
    for toleration in spec.tolerations.iter().flatten() {
        let exists = toleration.operator.as_deref() == Some("Exists");
        let value = toleration.value.as_deref().unwrap_or_default();
        all.push(Toleration {
            key: toleration.key.as_deref().unwrap_or_default().into(),
            value: (!exists).then(|| value.into()),
            effect: toleration.effect.as_deref().map(effect).transpose()?,
        });
    }
    Ok(all)
}

/// A taint's effect by its name.
pub fn effect(name: &str) -> Result<Effect, FieldError> {
    match name {
        "NoSchedule" => Ok(Effect::NoSchedule),
        "PreferNoSchedule" => Ok(Effect::PreferNoSchedule),
        "NoExecute" => Ok(Effect::NoExecute),
        other => Err(FieldError::new("effect", other, "NoSchedule, PreferNoSchedule or NoExecute")),
    }
}
