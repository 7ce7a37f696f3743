//! Watches pods as the API server's history has them, and judges every moment:
//! a card over its brim, or a pod that changed its node, is remembered.

use crate::cluster::{CARD_MIB, bound_to};
use crate::recount::cards_of;
use anyhow::{Result, bail};
use crater_kube::k8s_openapi::api::core::v1::Pod;
use crater_kube::kube::Client;
use crater_kube::kube::api::{Api, ListParams, WatchEvent, WatchParams};
use futures_util::{StreamExt, pin_mut};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::JoinHandle;

/// Cards of a pod: uuid, thousandths, MiB.
type Cards = Vec<(String, u64, u64)>;

/// What a judge has seen.
#[derive(Debug, Default)]
struct Seen {
    /// Bound pods: node and cards, by uid.
    bound: BTreeMap<String, (String, Cards)>,
    /// Sums by card.
    cards: BTreeMap<String, (u64, u64)>,
    /// Moments judged.
    moments: u64,
    /// What was wrong.
    wrong: Vec<String>,
}

impl Seen {
    /// What there is now, after a time that was not seen.
    fn list(&mut self, pods: &[Pod]) {
        let there: BTreeSet<&str> = pods.iter().filter_map(|p| p.metadata.uid.as_deref()).collect();
        let gone: Vec<String> =
            self.bound.keys().filter(|uid| !there.contains(uid.as_str())).cloned().collect();
        for uid in gone {
            self.release(&uid);
        }
        for pod in pods {
            self.pod(pod, false);
        }
    }

    fn release(&mut self, uid: &str) {
        let Some((_, cards)) = self.bound.remove(uid) else { return };
        for (uuid, milli, mib) in cards {
            let sum = self.cards.entry(uuid).or_default();
            *sum = (sum.0 - milli, sum.1 - mib);
        }
    }

    fn pod(&mut self, pod: &Pod, gone: bool) {
        self.moments += 1;
        let uid = pod.metadata.uid.clone().unwrap_or_default();
        let over = pod.status.as_ref().and_then(|s| s.phase.as_deref());
        let over = gone || matches!(over, Some("Succeeded" | "Failed"));
        let now = bound_to(pod).map(str::to_owned);
        if let Some((node, _)) = self.bound.get(&uid)
            && now.as_ref() != Some(node)
        {
            self.wrong.push(format!("pod {uid} moved from {node} to {now:?}"));
        }
        if over {
            self.release(&uid);
            return;
        }
        let Some(node) = now else { return };
        if self.bound.contains_key(&uid) {
            return;
        }
        let cards = cards_of(pod).unwrap_or_default();
        for (uuid, milli, mib) in &cards {
            let sum = self.cards.entry(uuid.clone()).or_default();
            *sum = (sum.0 + milli, sum.1 + mib);
            if sum.0 > 1000 || sum.1 > CARD_MIB {
                self.wrong.push(format!("{uuid} was promised twice: {sum:?}, by pod {uid}"));
            }
        }
        self.bound.insert(uid, (node, cards));
    }
}

/// A judge at work.
#[derive(Debug)]
pub struct Judge {
    seen: Arc<Mutex<Seen>>,
    work: JoinHandle<()>,
}

impl Judge {
    /// Begins with an empty cluster.
    pub fn start(admin: Client) -> Self {
        let seen = Arc::new(Mutex::new(Seen::default()));
        let work = tokio::spawn(watch(admin, seen.clone()));
        Self { seen, work }
    }

    /// What was wrong until now, and how many moments were judged.
    pub fn verdict(&self) -> Result<u64> {
        let seen = self.seen.lock().expect("nothing panics with it");
        if !seen.wrong.is_empty() {
            bail!("{}", seen.wrong.join("; "));
        }
        Ok(seen.moments)
    }
}

impl Drop for Judge {
    fn drop(&mut self) {
        self.work.abort();
    }
}

async fn watch(admin: Client, seen: Arc<Mutex<Seen>>) {
    let api: Api<Pod> = Api::all(admin);
    let mut version: Option<String> = None;
    loop {
        tokio::time::sleep(Duration::from_millis(20)).await;
        let from = match &version {
            Some(version) => version.clone(),
            None => match api.list(&ListParams::default()).await {
                Ok(list) => {
                    seen.lock().expect("nothing panics with it").list(&list.items);
                    list.metadata.resource_version.unwrap_or_default()
                }
                Err(_) => continue,
            },
        };
        version = Some(from.clone());
        let stream = match api.watch(&WatchParams::default(), &from).await {
            Ok(stream) => stream,
            // The API server was started anew and remembers from then on.
            Err(crater_kube::kube::Error::Api(status)) if status.code == 410 => {
                version = None;
                continue;
            }
            Err(_) => continue,
        };
        pin_mut!(stream);
        while let Some(Ok(event)) = stream.next().await {
            let (pod, gone) = match event {
                WatchEvent::Added(pod) | WatchEvent::Modified(pod) => (pod, false),
                WatchEvent::Deleted(pod) => (pod, true),
                WatchEvent::Error(_) => {
                    version = None;
                    break;
                }
                WatchEvent::Bookmark(_) => continue,
            };
            version.clone_from(&pod.metadata.resource_version);
            seen.lock().expect("nothing panics with it").pod(&pod, gone);
        }
    }
}
