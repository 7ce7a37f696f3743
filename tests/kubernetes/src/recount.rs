//! The books once more, from what the API server says and nothing else. Shares
//! no code with what it checks.

use crate::cluster::bound_to;
use anyhow::{Context, Result, bail};
use crater_kube::k8s_openapi::api::core::v1::{Node, Pod};
use crater_kube::kube::Client;
use crater_kube::kube::api::{Api, ListParams};
use crater_kube::objects::NodeInventory;
use serde_json::Value;
use std::collections::BTreeMap;

/// What is held on a node: pods, and share and memory by card.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// Pods.
    pub pods: u64,
    /// Thousandths and MiB by uuid.
    pub cards: BTreeMap<String, (u64, u64)>,
}

/// What is held, by node.
pub type Recount = BTreeMap<String, Held>;

/// The cards that a bound pod's annotation names: (uuid, milli, MiB).
pub fn cards_of(pod: &Pod) -> Result<Vec<(String, u64, u64)>> {
    let annotations = pod.metadata.annotations.as_ref();
    let Some(text) = annotations.and_then(|a| a.get("crater.io/assigned-cards")) else {
        return Ok(vec![]);
    };
    let list: Vec<Value> = serde_json::from_str(text)?;
    list.iter()
        .map(|card| {
            let uuid = card["uuid"].as_str().context("no uuid")?.to_owned();
            let milli = card["milli"].as_u64().context("no milli")?;
            Ok((uuid, milli, card["memoryMiB"].as_u64().context("no memory")?))
        })
        .collect()
}

/// Cards by `nvidia.com/gpu`.
fn whole(pod: &Pod) -> usize {
    let containers = pod.spec.iter().flat_map(|s| &s.containers);
    let requests = containers.filter_map(|c| c.resources.as_ref()?.requests.as_ref());
    requests.filter_map(|r| r.get("nvidia.com/gpu")?.0.parse::<usize>().ok()).sum()
}

/// Whether a pod got what it asked for.
fn got_what_it_asked(pod: &Pod, cards: &[(String, u64, u64)]) -> bool {
    let annotations = pod.metadata.annotations.as_ref();
    let said = |key: &str| annotations.and_then(|a| a.get(key)).map(String::as_str);
    let milli: u64 = cards.iter().map(|c| c.1).sum();
    let memory: u64 = cards.iter().map(|c| c.2).sum();
    let share = said("crater.io/gpu").and_then(|t| t.parse::<f64>().ok());
    let asked = said("crater.io/gpu-memory").and_then(|t| t.parse::<u64>().ok());
    share.is_none_or(|s| milli == (s * 1000.0).round() as u64)
        && asked.is_none_or(|m| memory == m)
        && (share.is_some()
            || asked.is_some()
            || cards.len() == whole(pod) && milli == 1000 * cards.len() as u64)
}

/// Counts, and refuses what is oversold: a card over 1,000 milli or its MiB.
pub async fn recount(admin: &Client) -> Result<Recount> {
    let everything = ListParams::default();
    let nodes = Api::<Node>::all(admin.clone()).list(&everything).await?;
    let inventories = Api::<NodeInventory>::all(admin.clone()).list(&everything).await?;
    let pods = Api::<Pod>::all(admin.clone()).list(&everything).await?;
    let mut memory: BTreeMap<String, u64> = BTreeMap::new();
    for card in inventories.items.iter().flat_map(|i| &i.spec.cards) {
        memory.insert(card.uuid.clone(), card.memory_mib);
    }
    let mut recount = Recount::new();
    for node in &nodes.items {
        recount.insert(node.metadata.name.clone().unwrap_or_default(), Held::default());
    }
    for pod in &pods.items {
        let Some(node) = bound_to(pod) else { continue };
        let name = pod.metadata.name.as_deref().unwrap_or_default();
        let cards = cards_of(pod).with_context(|| format!("pod {name}"))?;
        let ours = pod.spec.as_ref().and_then(|s| s.scheduler_name.as_deref()) == Some("crater");
        if ours && !got_what_it_asked(pod, &cards) {
            bail!("pod {name} asked for {:?} and got {cards:?}", pod.metadata.annotations);
        }
        let held = recount.entry(node.to_owned()).or_default();
        held.pods += 1;
        for (uuid, milli, mib) in cards {
            let sum = held.cards.entry(uuid).or_default();
            *sum = (sum.0 + milli, sum.1 + mib);
        }
    }
    for (node, held) in &recount {
        for (uuid, (milli, mib)) in &held.cards {
            let size = memory.get(uuid).with_context(|| format!("{uuid} is no card"))?;
            if *milli > 1000 || mib > size {
                bail!("{node} {uuid} is oversold: {milli} milli, {mib} of {size} MiB");
            }
        }
    }
    Ok(recount)
}

/// Compares a scheduler's own books with a recount.
pub fn compare(books: &Value, recount: &Recount) -> Result<()> {
    let nodes = books.as_array().context("books are a list")?;
    if nodes.len() != recount.len() {
        bail!("{} nodes in the books, {} in the cluster", nodes.len(), recount.len());
    }
    for node in nodes {
        let name = node["node"].as_str().context("a node has no name")?;
        let held = recount.get(name).with_context(|| format!("{name} is not in the cluster"))?;
        let cards = node["cards"].as_array().context("a node has no cards")?;
        for (i, card) in cards.iter().enumerate() {
            let counted = held.cards.get(&format!("GPU-{name}-{i}")).copied().unwrap_or_default();
            let booked = (card[0].as_u64(), card[1].as_u64());
            if booked != (Some(counted.0), Some(counted.1)) {
                bail!("{name} card {i}: books {booked:?}, recount {counted:?}");
            }
        }
        let (cpu, memory) = (node["cpu"].as_u64(), node["memory"].as_u64());
        let counted = (Some(held.pods), Some(1000 * held.pods), Some(1024 * held.pods));
        if (node["pods"].as_u64(), cpu, memory) != counted {
            bail!("{name}: books {node}, recount {held:?}");
        }
    }
    Ok(())
}
