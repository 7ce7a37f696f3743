//! A cluster in a test that plays the machines itself, so that nothing happens
//! but what the test does. What it waits for and does not come is a panic.

use crate::cluster::{self, Ask, bound_to};
use crate::proxy::Proxy;
use crate::recount::cards_of;
use crater_kube::k8s_openapi::api::core::v1::{Node, Pod};
use crater_kube::kube::Client;
use crater_kube::kube::api::{Api, Patch, PatchParams, PostParams};
use crater_kube::objects::NodeInventory;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// How long anything may take that is waited for.
const LIMIT: Duration = Duration::from_secs(20);

/// A cluster, and the proxy that the scheduler goes through.
pub struct World {
    /// Does what people do.
    pub admin: Client,
    /// Between the scheduler and the API server.
    pub proxy: Proxy,
}

/// Waits for something that comes.
pub async fn until<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let end = Instant::now() + LIMIT;
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(Instant::now() < end, "{what}");
        tokio::time::sleep(Duration::from_millis(30)).await;
    }
}

impl World {
    /// Makes a machine with so many cards.
    pub async fn node(&self, name: &str, cards: u8) {
        let node = cluster::node(name, cards);
        let api: Api<Node> = Api::all(self.admin.clone());
        let made = api.create(&PostParams::default(), &serde_json::from_value(node).unwrap()).await;
        made.unwrap();
        let api: Api<NodeInventory> = Api::all(self.admin.clone());
        let object = serde_json::from_value(cluster::inventory(name, cards)).unwrap();
        // It may be there from a machine of this name before.
        let _ = api.create(&PostParams::default(), &object).await;
    }

    /// A pod of ours for a node by its name, with so many whole cards.
    pub fn described(name: &str, node: &str, cards: u64) -> Value {
        let ask = Ask { gpu: (cards > 0).then(|| cards.to_string()), ..Ask::default() };
        let mut pod = cluster::pod(name, "crater", &ask);
        pod["spec"]["nodeSelector"] = json!({"kubernetes.io/hostname": node});
        pod["spec"]["terminationGracePeriodSeconds"] = 60.into();
        pod
    }

    /// Makes one.
    pub async fn pod(&self, name: &str, node: &str, cards: u64) {
        self.make(Self::described(name, node, cards)).await;
    }

    /// Makes a pod that was described.
    pub async fn make(&self, pod: Value) {
        cluster::make_pods(&self.admin, [pod]).await.unwrap();
    }

    /// A pod that is there.
    pub async fn get(&self, name: &str) -> Pod {
        cluster::find(&self.admin, name).await.unwrap().expect("it is there")
    }

    /// Where a pod is bound.
    pub async fn bound(&self, name: &str) -> Option<String> {
        let pod = cluster::find(&self.admin, name).await.unwrap()?;
        bound_to(&pod).map(str::to_owned)
    }

    /// Waits until a pod is bound, and says where.
    pub async fn runs(&self, name: &str) -> String {
        until(&format!("{name} is bound"), async || self.bound(name).await).await
    }

    /// The cards that a bound pod was given: uuid, thousandths, MiB.
    pub async fn cards(&self, name: &str) -> Vec<(String, u64, u64)> {
        self.runs(name).await;
        cards_of(&self.get(name).await).unwrap()
    }

    /// What a pod was told why it waits.
    pub async fn told(&self, name: &str) -> Option<String> {
        let pod = self.get(name).await;
        assert_eq!(bound_to(&pod), None, "{name} is bound");
        let conditions = pod.status.and_then(|s| s.conditions).unwrap_or_default();
        let c = conditions.iter().find(|c| c.type_ == "PodScheduled")?;
        assert_eq!((&*c.status, c.reason.as_deref()), ("False", Some("Unschedulable")));
        c.message.clone()
    }

    /// Waits until a pod was told that it waits.
    pub async fn waits(&self, name: &str) -> String {
        until(&format!("{name} is told that it waits"), async || self.told(name).await).await
    }

    /// Waits until a pod was told a reason that has this in it.
    pub async fn waits_for(&self, name: &str, why: &str) {
        let what = format!("{name} is told {why:?}");
        until(&what, async || self.told(name).await.filter(|t| t.contains(why))).await;
    }

    /// Waits until pods such as these are kept out for a reason: what it comes from
    /// may reach the scheduler after a pod does, by a watch of its own.
    pub async fn until_kept_out(&self, name: &str, why: &str, pod: impl Fn(&str) -> Value) {
        for turn in 0_u32.. {
            let name = format!("{name}-{turn}");
            self.make(pod(&name)).await;
            let what = format!("{name} is bound or told {why:?}");
            let out = until(&what, async || {
                let pod = self.get(&name).await;
                let conditions = pod.status.clone().and_then(|s| s.conditions);
                let mut told = conditions.into_iter().flatten().filter_map(|c| c.message);
                let out = told.any(|text| text.contains(why));
                (out || bound_to(&pod).is_some()).then_some(out)
            });
            let out = out.await;
            self.gone(&name).await;
            if out {
                return;
            }
        }
    }

    /// Takes a pod away at once.
    pub async fn gone(&self, name: &str) {
        cluster::delete_pod(&self.admin, name).await.unwrap();
    }

    /// Says how a machine is.
    pub async fn patch_node(&self, name: &str, patch: Value) {
        let api: Api<Node> = Api::all(self.admin.clone());
        let (params, patch) = (PatchParams::default(), Patch::Strategic(patch));
        api.patch_status(name, &params, &patch).await.unwrap();
    }

    /// Says in which phase a pod is, as its machine would.
    pub async fn phase(&self, name: &str, phase: &str) {
        let api: Api<Pod> = Api::namespaced(self.admin.clone(), "default");
        let patch = Patch::Strategic(json!({"status": {"phase": phase}}));
        api.patch_status(name, &PatchParams::default(), &patch).await.unwrap();
    }
}
