//! Binding a pod where it was promised room. What came of it is known or it is
//! read; until then the promise stands.

use crate::api::{Throttle, Verdict, within};
use crate::lease::Tenure;
use crate::mirror::Promised;
use crate::pod::{ASSIGNED_CARDS, ASSIGNED_NODE, EPOCH};
use crate::stats::Stats;
use crate::watch::Backoff;
use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use kube::api::Api;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// What came of a binding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bound {
    /// The pod is bound where it was promised room.
    Here,
    /// The pod is bound elsewhere; the watch says where.
    Elsewhere,
    /// The pod is gone, or another has its name.
    Gone,
    /// The API server says no, for good: it will not come to be.
    Refused(String),
    /// The tenure is over; a new leader finds the promise in the claims.
    Over,
}

/// Sends bindings.
#[derive(Clone)]
pub struct Binder {
    /// The client.
    pub client: Client,
    /// Its bounds.
    pub throttle: Arc<Throttle>,
    /// How long an answer may take.
    pub timeout: Duration,
    /// Counts.
    pub stats: Arc<Stats>,
}

impl Binder {
    /// Binds, and tries again what is unknown until it is known.
    pub async fn bind(&self, tenure: &Tenure, promised: &Promised) -> Bound {
        let mut pause = Backoff::default();
        loop {
            let turn = self.throttle.turn().await;
            if !tenure.lasts() {
                return Bound::Over;
            }
            let sent = within(self.timeout, self.post(tenure, promised)).await;
            drop(turn);
            let refusal = match sent {
                Ok(()) => return Bound::Here,
                // Not found may be the namespace, while an API server starts.
                Err(Verdict::No(404 | 409, why)) => why,
                Err(Verdict::No(_, why)) => return Bound::Refused(why),
                Err(Verdict::Unknown(_)) => {
                    self.stats.unknown.fetch_add(1, Ordering::Relaxed);
                    String::new()
                }
            };
            match self.read(promised).await {
                Some(known) => return known,
                // The pod is as it was: not bound, not ending, the same. A
                // conflict was with some other change of it.
                None if !refusal.is_empty() => {
                    self.stats.conflicts.fetch_add(1, Ordering::Relaxed);
                }
                // What was sent may yet arrive: only the same may be sent again.
                None => {}
            }
            tokio::time::sleep(pause.grow()).await;
        }
    }

    async fn post(&self, tenure: &Tenure, promised: &Promised) -> Result<(), kube::Error> {
        let pod = &promised.pod;
        // Also where there is none: what its author wrote there is gone then.
        let cards = serde_json::to_string(&promised.cards).map_err(kube::Error::SerdeError)?;
        let annotations = json!({
            EPOCH: tenure.epoch.to_string(),
            ASSIGNED_NODE: promised.node_uid,
            ASSIGNED_CARDS: cards,
        });
        let body = json!({
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": pod.name, "uid": pod.uid, "annotations": annotations},
            "target": {"kind": "Node", "name": promised.node},
        });
        let path = format!("/api/v1/namespaces/{}/pods/{}/binding", pod.namespace, pod.name);
        post(&self.client, &path, &body).await
    }

    /// What the API server says of the pod now; `None` if it is not bound and
    /// could still be, or if nothing is known.
    async fn read(&self, promised: &Promised) -> Option<Bound> {
        let api: Api<Pod> = Api::namespaced(self.client.clone(), &promised.pod.namespace);
        let found = within(self.timeout, api.get_opt(&promised.pod.name)).await.ok()?;
        let Some(pod) = found.filter(|p| p.metadata.uid.as_deref() == Some(&promised.pod.uid))
        else {
            return Some(Bound::Gone);
        };
        let node = pod.spec.as_ref().and_then(|s| s.node_name.as_deref()).unwrap_or_default();
        let over = pod.status.and_then(|s| s.phase).is_some_and(|p| p == "Failed");
        match node {
            "" if over => Some(Bound::Gone),
            "" => None,
            node if *node == *promised.node => Some(Bound::Here),
            _ => Some(Bound::Elsewhere),
        }
    }
}

async fn post(client: &Client, path: &str, body: &serde_json::Value) -> Result<(), kube::Error> {
    let body = serde_json::to_vec(body).map_err(kube::Error::SerdeError)?;
    let request = http::Request::post(path)
        .header(http::header::CONTENT_TYPE, "application/json")
        .body(body)
        .map_err(kube::Error::HttpError)?;
    client.request_text(request).await.map(|_| ())
}

/// Asks whether a Binding of `epoch` would be let through, without binding.
pub async fn dry_run(
    client: &Client,
    namespace: &str,
    epoch: u64,
    timeout: Duration,
) -> Result<(), Verdict> {
    let body = json!({
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "crater-probe", "annotations": {EPOCH: epoch.to_string()}},
        "target": {"kind": "Node", "name": "crater-probe"},
    });
    let path = format!("/api/v1/namespaces/{namespace}/pods/crater-probe/binding?dryRun=All");
    within(timeout, post(client, &path, &body)).await
}
