//! What pods are told: the `PodScheduled` condition and events. All of it may
//! be lost, and comes again: it never holds up a binding.

use crate::api::{Throttle, within};
use crate::pod::PodSeen;
use crate::stats::Stats;
use crater_model::{Reason, Reasons};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::jiff::Timestamp;
use kube::Client;
use kube::api::{Api, Patch, PatchParams};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::mpsc::Receiver;

/// Something to tell.
#[derive(Clone, Debug)]
pub enum Word {
    /// The pod was bound.
    Scheduled(Arc<PodSeen>, Arc<str>),
    /// It waits, and why.
    Waits(Arc<PodSeen>, Arc<str>),
    /// What it says of its cards was not taken as it is, and why.
    Doubted(Arc<PodSeen>, Arc<str>),
}

/// Notes of events are cut here, as kube-scheduler's are.
const NOTE: usize = 1024;

/// Why a pod waits, in the form that people and programs know from
/// kube-scheduler: counts and reasons sorted as text. Figures follow after.
pub fn message(reasons: &Reasons) -> String {
    let mut text = String::new();
    if let Some(job) = &reasons.job {
        text = format!("{job}. ");
    }
    let refused: u64 = reasons.counts.values().sum();
    let (free, nodes) = (reasons.nodes.saturating_sub(refused), reasons.nodes);
    text += &[free.to_string(), "/".into(), nodes.to_string()].concat();
    text += " nodes are available: ";
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for (reason, count) in &reasons.counts {
        *counts.entry(words(reason)).or_default() += count;
    }
    let mut parts: Vec<String> = counts.iter().map(|(r, n)| format!("{n} {r}")).collect();
    parts.sort();
    text += &parts.join(", ");
    text.push('.');
    let best = &reasons.best;
    let mut most = vec![];
    for reason in reasons.counts.keys() {
        match reason {
            Reason::Cpu => most.push(format!("{} cores", best.cpu)),
            Reason::Memory => most.push(format!("{} memory", best.memory)),
            Reason::Cards => most.push(format!(
                "{} of a card with {}, {} idle cards on a node",
                best.card, best.card_memory, best.idle_cards
            )),
            Reason::TooFewCards => most.push(format!("{} cards on a node", best.cards)),
            _ => {}
        }
    }
    if !most.is_empty() {
        text += &[" Most there is: ", &most.join(", "), "."].concat();
    }
    if reasons.nodes > 0 && reasons.impossible() {
        text += " No node can ever hold it.";
    }
    text
}

fn words(reason: &Reason) -> String {
    match reason {
        Reason::Cpu => "Insufficient cpu".into(),
        Reason::Memory => "Insufficient memory".into(),
        Reason::Cards | Reason::TooFewCards => "Insufficient crater.io/gpu".into(),
        Reason::Mig => "Insufficient crater.io/mig".into(),
        Reason::Members => "Too many pods".into(),
        Reason::Cordoned => "node(s) were unschedulable".into(),
        Reason::Selector => "node(s) didn't match Pod's node affinity/selector".into(),
        Reason::Taint(key) => format!("node(s) had untolerated taint {{{key}: }}"),
        Reason::Model => "node(s) had no card of the asked model".into(),
        Reason::SickCards => "node(s) had unhealthy cards".into(),
        Reason::CardTooSmall => "node(s) had cards that are too small".into(),
        other => format!("node(s): {other}"),
    }
}

/// Tells words as they come.
pub async fn tell(
    client: Client,
    throttle: Arc<Throttle>,
    scheduler: Arc<str>,
    timeout: Duration,
    stats: Arc<Stats>,
    mut words: Receiver<Word>,
) {
    let sequence = Arc::new(AtomicU64::new(0));
    // A few at once: the throttle is shared with bindings, which come first.
    let several = Arc::new(tokio::sync::Semaphore::new(8));
    while let Some(word) = words.recv().await {
        let Ok(permit) = several.clone().acquire_owned().await else { return };
        let (client, throttle, stats) = (client.clone(), throttle.clone(), stats.clone());
        let (scheduler, sequence) = (scheduler.clone(), sequence.clone());
        tokio::spawn(async move {
            let _permit = permit;
            if let Word::Waits(pod, why) = &word {
                let _turn = throttle.turn().await;
                // A pod that is gone or bound meanwhile needs no word.
                if within(timeout, condition(&client, pod, why)).await.is_ok() {
                    stats.conditions.fetch_add(1, Ordering::Relaxed);
                }
            }
            let _turn = throttle.turn().await;
            let number = sequence.fetch_add(1, Ordering::Relaxed);
            let _ = within(timeout, event(&client, &scheduler, &word, number)).await;
        });
    }
}

async fn condition(client: &Client, pod: &PodSeen, why: &str) -> Result<Pod, kube::Error> {
    let api: Api<Pod> = Api::namespaced(client.clone(), &pod.namespace);
    let condition = json!({
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": why,
        "lastTransitionTime": Timestamp::now().to_string(),
    });
    // The uid: not to another pod of the name.
    let patch = json!({
        "metadata": {"uid": pod.uid},
        "status": {"conditions": [condition]},
    });
    api.patch_status(&pod.name, &PatchParams::default(), &Patch::Strategic(patch)).await
}

async fn event(
    client: &Client,
    scheduler: &str,
    word: &Word,
    number: u64,
) -> Result<(), kube::Error> {
    let (pod, kind, reason, action, note) = match word {
        Word::Scheduled(pod, node) => {
            let note = format!("Successfully assigned {} to {node}", pod.path());
            (pod, "Normal", "Scheduled", "Binding", note)
        }
        Word::Waits(pod, why) => (pod, "Warning", "FailedScheduling", "Scheduling", cut(why)),
        Word::Doubted(pod, why) => (pod, "Warning", "AssignmentDoubted", "Scheduling", cut(why)),
    };
    let now = Timestamp::now();
    // Unique without a look: the pod's uid and this process's own count.
    let name = format!("{}.{:x}{number:04x}", pod.name, now.as_nanosecond());
    let body = json!({
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": pod.namespace},
        "eventTime": format!("{now:.6}"),
        "reportingController": scheduler,
        "reportingInstance": scheduler,
        "type": kind,
        "reason": reason,
        "action": action,
        "note": note,
        "regarding": {
            "apiVersion": "v1", "kind": "Pod",
            "namespace": pod.namespace, "name": pod.name, "uid": pod.uid,
        },
    });
    let body = serde_json::to_vec(&body).map_err(kube::Error::SerdeError)?;
    let path = format!("/apis/events.k8s.io/v1/namespaces/{}/events", pod.namespace);
    let request = http::Request::post(path)
        .header(http::header::CONTENT_TYPE, "application/json")
        .body(body)
        .map_err(kube::Error::HttpError)?;
    client.request_text(request).await.map(|_| ())
}

fn cut(text: &str) -> String {
    if text.len() <= NOTE {
        return text.to_owned();
    }
    let mut end = NOTE - 4;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{} ...", &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crater_model::reason::Best;
    use crater_model::{Mib, MilliCards};

    #[test]
    fn messages_read_as_kube_schedulers_do() {
        let counts = BTreeMap::from([
            (Reason::Taint("gpu".into()), 1),
            (Reason::Cards, 3),
            (Reason::TooFewCards, 7),
            (Reason::Cpu, 2),
        ]);
        let card = (MilliCards(400), Mib(20_480));
        let best = Best { card: card.0, card_memory: card.1, cards: 8, ..Best::default() };
        let reasons = Reasons { nodes: 13, counts, best, ..Reasons::default() };
        let text = "0/13 nodes are available: 1 node(s) had untolerated taint {gpu: }, \
                    10 Insufficient crater.io/gpu, 2 Insufficient cpu. Most there is: 0 cores, \
                    8 cards on a node, 0.4 of a card with 20Gi, 0 idle cards on a node.";
        assert_eq!(message(&reasons), text);
        assert_eq!(message(&Reasons::default()), "0/0 nodes are available: .");
    }

    #[test]
    fn notes_are_cut_between_characters() {
        assert_eq!(cut("short"), "short");
        let long = cut(&"é".repeat(1000));
        assert!(long.len() <= NOTE && long.ends_with(" ..."));
    }
}
