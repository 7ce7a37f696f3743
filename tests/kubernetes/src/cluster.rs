//! Machines that are played and pods that are made up.

use anyhow::{Result, bail};
use crater_kube::k8s_openapi::api::core::v1::{Node, Pod};
use crater_kube::kube::Client;
use crater_kube::kube::api::{Api, DeleteParams, ListParams, PostParams};
use crater_kube::objects::NodeInventory;
use futures_util::{StreamExt, TryStreamExt, stream};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Requests at once while a cluster is made.
const AT_ONCE: usize = 32;

/// Memory of the cards, MiB.
pub const CARD_MIB: u64 = 81_920;

/// A node that kwok plays.
pub fn node(name: &str, cards: u8) -> Value {
    let mut resources = json!({"cpu": "128", "memory": "1024Gi", "pods": "250"});
    if cards > 0 {
        resources["nvidia.com/gpu"] = cards.to_string().into();
    }
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "annotations": {"kwok.x-k8s.io/node": "fake"},
            "labels": {"type": "kwok", "kubernetes.io/hostname": name},
        },
        "status": {
            "allocatable": resources,
            "capacity": resources,
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
            "phase": "Running",
        },
    })
}

/// Its cards, in pairs that are linked.
pub fn inventory(name: &str, cards: u8) -> Value {
    let card = |index: u8| {
        json!({
            "index": index,
            "uuid": format!("GPU-{name}-{index}"),
            "model": "NVIDIA A100-SXM4-80GB",
            "memoryMiB": CARD_MIB,
            "numa": index / 4,
            "linkGroup": index / 2,
        })
    };
    json!({
        "apiVersion": "crater.io/v1alpha1",
        "kind": "NodeInventory",
        "metadata": {"name": name},
        "spec": {"cards": (0..cards).map(card).collect::<Vec<_>>()},
    })
}

/// What a pod asks for beside a core and a GiB.
#[derive(Clone, Debug, Default)]
pub struct Ask {
    /// `crater.io/gpu`.
    pub gpu: Option<String>,
    /// `crater.io/gpu-memory`.
    pub memory: Option<u64>,
    /// `nvidia.com/gpu`.
    pub cards: u64,
}

impl Ask {
    /// Fractional and whole cards in turns.
    pub fn mixed(i: usize) -> Self {
        let gpu = |text: &str| Some(text.to_owned());
        match i % 8 {
            0 | 4 => Self { gpu: gpu("0.5"), ..Self::default() },
            1 => Self { gpu: gpu("0.3"), memory: Some(20_000), ..Self::default() },
            2 | 6 => Self { gpu: gpu("1"), ..Self::default() },
            3 => Self { memory: Some(16_384), ..Self::default() },
            5 => Self { gpu: gpu("0.2"), ..Self::default() },
            _ => Self { gpu: gpu("2"), ..Self::default() },
        }
    }

    /// Thousandths of cards that it is charged.
    pub fn milli(&self) -> u64 {
        match (&self.gpu, self.memory) {
            (Some(text), _) => (text.parse::<f64>().unwrap_or(0.0) * 1000.0).round() as u64,
            (None, Some(memory)) => (1000 * memory).div_ceil(CARD_MIB),
            (None, None) => 1000 * self.cards,
        }
    }
}

/// A pod.
pub fn pod(name: &str, scheduler: &str, ask: &Ask) -> Value {
    let mut requests = json!({"cpu": "1", "memory": "1Gi"});
    let mut resources = json!({});
    if ask.cards > 0 {
        requests["nvidia.com/gpu"] = ask.cards.to_string().into();
        resources["limits"] = json!({"nvidia.com/gpu": ask.cards.to_string()});
    }
    resources["requests"] = requests;
    let mut annotations = json!({});
    if let Some(gpu) = &ask.gpu {
        annotations["crater.io/gpu"] = gpu.as_str().into();
    }
    if let Some(memory) = ask.memory {
        annotations["crater.io/gpu-memory"] = memory.to_string().into();
    }
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "annotations": annotations},
        "spec": {
            "schedulerName": scheduler,
            "terminationGracePeriodSeconds": 1,
            "containers": [{"name": "c", "image": "none", "resources": resources}],
        },
    })
}

/// Makes nodes `n0`, `n1`, … with so many cards each.
pub async fn make_nodes(admin: &Client, count: usize, cards: u8) -> Result<()> {
    let nodes: Api<Node> = Api::all(admin.clone());
    let inventories: Api<NodeInventory> = Api::all(admin.clone());
    let one = |i: usize| {
        let (nodes, inventories) = (nodes.clone(), inventories.clone());
        async move {
            let name = format!("n{i}");
            let params = PostParams::default();
            nodes.create(&params, &serde_json::from_value(node(&name, cards))?).await?;
            let object = serde_json::from_value(inventory(&name, cards))?;
            inventories.create(&params, &object).await?;
            anyhow::Ok(())
        }
    };
    stream::iter((0..count).map(one)).buffer_unordered(AT_ONCE).try_collect::<Vec<_>>().await?;
    Ok(())
}

/// Makes pods.
pub async fn make_pods(admin: &Client, pods: impl IntoIterator<Item = Value>) -> Result<()> {
    let api: Api<Pod> = Api::namespaced(admin.clone(), "default");
    let one = |pod: Value| {
        let api = api.clone();
        async move {
            api.create(&PostParams::default(), &serde_json::from_value(pod)?).await?;
            anyhow::Ok(())
        }
    };
    stream::iter(pods.into_iter().map(one))
        .buffer_unordered(AT_ONCE)
        .try_collect::<Vec<_>>()
        .await?;
    Ok(())
}

/// Takes a pod away at once; one that is gone is no error.
pub async fn delete_pod(admin: &Client, name: &str) -> Result<()> {
    let api: Api<Pod> = Api::namespaced(admin.clone(), "default");
    let at_once = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() };
    match api.delete(name, &at_once).await {
        Ok(_) => Ok(()),
        Err(crater_kube::kube::Error::Api(status)) if status.code == 404 => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// All pods.
pub async fn pods(admin: &Client) -> Result<Vec<Pod>> {
    let api: Api<Pod> = Api::namespaced(admin.clone(), "default");
    Ok(api.list(&ListParams::default()).await?.items)
}

/// A pod, if it is there.
pub async fn find(admin: &Client, name: &str) -> Result<Option<Pod>> {
    let api: Api<Pod> = Api::namespaced(admin.clone(), "default");
    Ok(api.get_opt(name).await?)
}

/// The node that a pod is bound to.
pub fn bound_to(pod: &Pod) -> Option<&str> {
    pod.spec.as_ref()?.node_name.as_deref().filter(|n| !n.is_empty())
}

/// Whether a pod is bound.
pub fn is_bound(pod: &Pod) -> bool {
    bound_to(pod).is_some()
}

/// Waits until no pod waits for room, with what is seen meanwhile: pods bound
/// at each look.
pub async fn all_bound(admin: &Client, within: Duration) -> Result<Vec<(Instant, usize)>> {
    let until = Instant::now() + within;
    let mut looks = vec![];
    loop {
        let all = pods(admin).await;
        if let Ok(all) = &all {
            let bound = all.iter().filter(|p| is_bound(p)).count();
            looks.push((Instant::now(), bound));
            if bound == all.len() {
                return Ok(looks);
            }
        }
        if Instant::now() > until {
            let all = all?;
            let waiting: Vec<_> = all.iter().filter(|p| !is_bound(p)).collect();
            let why = waiting.first().and_then(|p| {
                let conditions = p.status.as_ref()?.conditions.as_ref()?;
                Some(format!("{:?}", conditions.iter().find(|c| c.type_ == "PodScheduled")))
            });
            bail!("{} of {} pods still wait; the first: {why:?}", waiting.len(), all.len());
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}
