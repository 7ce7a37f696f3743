//! Promises on a node, written by compare-and-swap before they are bound.
//!
//! **Architecture Invariant**: no card is promised twice, whoever was paused
//! for how long.
//! * A leader binds a pod to a node only after the node's object holds the
//!   promise, written over the version that the leader knew, with its epoch.
//! * A leader that finds another version reads it, takes the promises in it
//!   for its own (charges them and binds them where they say), and decides
//!   anew about what it wanted there. So of two leaders that both want a card,
//!   one sees the other's promise before it binds.
//! * A promise is taken out only when its pod is bound or gone. Until then an
//!   older leader's Binding may still come, and its room is kept for it.
//! * An object with a greater epoch ends the tenure of who reads it.

use crate::api::{Throttle, Verdict, within};
use crate::lease::Tenure;
use crate::objects::{ClaimsSpec, NodeClaims};
use crate::pod::PodSeen;
use crate::want;
use crate::watch::Backoff;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::Client;
use kube::api::{Api, ListParams, PostParams};
use std::sync::Arc;
use std::time::Duration;

/// A node's object as it was last seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClaimsSeen {
    /// The node's name.
    pub node: Arc<str>,
    /// The object's version; empty: there is none.
    pub version: String,
    /// What it says.
    pub spec: ClaimsSpec,
}

impl ClaimsSeen {
    /// Reads an object.
    pub fn new(object: &NodeClaims) -> Self {
        Self {
            node: object.metadata.name.as_deref().unwrap_or_default().into(),
            version: object.metadata.resource_version.clone().unwrap_or_default(),
            spec: object.spec.clone(),
        }
    }
}

/// What came of a write.
#[derive(Debug)]
pub enum Written {
    /// It holds, as this version.
    Done(ClaimsSeen),
    /// Somebody else had written: what there is now, and the pods on the node
    /// as of then.
    Other(ClaimsSeen, Vec<Arc<PodSeen>>),
    /// The tenure is over.
    Over,
}

/// Writes node's objects.
#[derive(Clone)]
pub struct Claims {
    /// The client.
    pub client: Client,
    /// Its bounds.
    pub throttle: Arc<Throttle>,
    /// How long an answer may take.
    pub timeout: Duration,
    /// How pods are read.
    pub defaults: Arc<want::Defaults>,
}

impl Claims {
    /// Puts `spec` in the place of what was last seen.
    pub async fn write(&self, tenure: &Tenure, last: ClaimsSeen, spec: ClaimsSpec) -> Written {
        let api: Api<NodeClaims> = Api::all(self.client.clone());
        let mut pause = Backoff::default();
        loop {
            let turn = self.throttle.turn().await;
            if !tenure.lasts() {
                return Written::Over;
            }
            let put = within(self.timeout, put(&api, &last, &spec)).await;
            drop(turn);
            match put {
                Ok(object) => return Written::Done(ClaimsSeen::new(&object)),
                // Not found: it was deleted since; conflict and invalid (the
                // epoch would go back): another wrote.
                Err(Verdict::No(..) | Verdict::Unknown(_)) => {}
            }
            // What came of it is read, not guessed.
            let read = within(self.timeout, api.get_opt(&last.node)).await;
            match read {
                Ok(Some(object)) if object.spec == spec => {
                    return Written::Done(ClaimsSeen::new(&object));
                }
                Ok(found) => {
                    let found = found.as_ref().map_or_else(
                        || ClaimsSeen { node: last.node.clone(), ..ClaimsSeen::default() },
                        ClaimsSeen::new,
                    );
                    if found.spec.epoch > tenure.epoch {
                        tenure.end();
                        return Written::Over;
                    }
                    if found.version != last.version
                        && let Ok(pods) = self.pods_on(&last.node).await
                    {
                        return Written::Other(found, pods);
                    }
                }
                Err(_) => {}
            }
            tokio::time::sleep(pause.grow()).await;
        }
    }

    async fn pods_on(&self, node: &str) -> Result<Vec<Arc<PodSeen>>, Verdict> {
        let api: Api<Pod> = Api::all(self.client.clone());
        let on = ListParams::default().fields(&format!("spec.nodeName={node}"));
        let pods = within(self.timeout, api.list(&on)).await?;
        Ok(pods.items.iter().map(|p| Arc::new(PodSeen::new(p, &self.defaults))).collect())
    }
}

async fn put(
    api: &Api<NodeClaims>,
    last: &ClaimsSeen,
    spec: &ClaimsSpec,
) -> Result<NodeClaims, kube::Error> {
    let mut object = NodeClaims::new(&last.node, spec.clone());
    // Gone with the node, where a garbage collector runs.
    object.metadata.owner_references = Some(vec![OwnerReference {
        api_version: "v1".into(),
        kind: "Node".into(),
        name: last.node.to_string(),
        uid: spec.node_uid.clone(),
        ..OwnerReference::default()
    }]);
    let params = PostParams::default();
    if last.version.is_empty() {
        return api.create(&params, &object).await;
    }
    object.metadata.resource_version = Some(last.version.clone());
    api.replace(&last.node, &params, &object).await
}
