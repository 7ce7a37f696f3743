//! Carrying out what was decided: promises are written, then bound, and what
//! came of it is learnt.

use crate::bind::Bound;
use crate::claims::{ClaimsSeen, Written};
use crate::leader::{Done, Leader, now};
use crate::mirror::Promised;
use crate::objects::ClaimsSpec;
use crate::say::Word;
use crate::settings::Fence;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// A pod that the API server refused to bind.
#[derive(Debug)]
pub(crate) struct Aside {
    pub(crate) until: Instant,
    pause: Duration,
}

impl Leader {
    /// Takes another leader's promises on a node for our own.
    pub(crate) fn honour(&mut self, object: &ClaimsSeen) {
        if self.mirror.node_uid(&object.node).is_none_or(|uid| **uid != *object.spec.node_uid) {
            // Of a machine that is gone.
            return;
        }
        for promise in &object.spec.claims {
            if self.mirror.honour(now(), &object.node, promise) {
                self.stats.honoured.fetch_add(1, Ordering::Relaxed);
                let seen = self.mirror.pod(&promise.pod_uid).map(|e| e.seen.clone());
                let promised = seen.and_then(|s| self.mirror.promise(&s));
                self.unwritten.entry(object.node.clone()).or_default().extend(promised);
            }
        }
    }

    pub(crate) fn written(&mut self, node: &Arc<str>, pods: Vec<Promised>, written: Written) {
        let ended = self.writing.finish(node);
        match written {
            Written::Done(object) => {
                self.stats.claim_writes.fetch_add(1, Ordering::Relaxed);
                self.objects.insert(node.clone(), object);
                for promised in pods {
                    self.bind(promised);
                }
            }
            Written::Other(object, on_node) => {
                self.stats.claims_of_others.fetch_add(1, Ordering::Relaxed);
                // What we wanted there was decided without knowing of this.
                let ours = self.unwritten.remove(node).unwrap_or_default();
                for promised in pods.iter().chain(&ours) {
                    self.mirror.refused_binding(now(), &promised.pod.uid);
                }
                for pod in on_node.into_iter().filter(|p| !ended.contains(&p.uid)) {
                    self.mirror.pod_seen(now(), &pod);
                }
                self.honour(&object);
                self.objects.insert(node.clone(), object);
            }
            Written::Over => {}
        }
        self.send();
    }

    pub(crate) fn bound(&mut self, promised: Promised, bound: Bound) {
        let uid = promised.pod.uid.clone();
        match bound {
            Bound::Here => {
                self.stats.bound.fetch_add(1, Ordering::Relaxed);
                self.mirror.binding_done(now(), &uid);
                self.told.remove(&uid);
                self.aside.remove(&uid);
                // Full: the word is lost.
                let _ = self.hands.words.try_send(Word::Scheduled(promised.pod, promised.node));
            }
            // The pod is bound by another; its room here is kept until the
            // watch says where, which frees it.
            Bound::Elsewhere | Bound::Over => {}
            Bound::Gone => self.mirror.pod_gone(now(), &uid),
            Bound::Refused(why) => {
                self.stats.refused.fetch_add(1, Ordering::Relaxed);
                self.mirror.refused_binding(now(), &uid);
                self.mirror.set_aside(now(), &uid, &format!("the binding was refused: {why}"));
                let pause = self.aside.get(&uid).map_or(1, |a| a.pause.as_secs() * 2).min(60);
                let pause = Duration::from_secs(pause);
                self.aside.insert(uid, Aside { until: Instant::now() + pause, pause });
            }
        }
    }

    fn bind(&self, promised: Promised) {
        let (hands, tenure) = (self.hands.clone(), self.tenure.clone());
        self.hands.runtime.spawn(async move {
            let bound = hands.binder.bind(&tenure, &promised).await;
            (hands.done)(tenure.epoch, Done::Bound(promised, bound));
        });
    }

    /// Sends what is promised on its way: a write for each node that has none
    /// under way, with all that gathered meanwhile.
    pub(crate) fn send(&mut self) {
        if self.settings.fence == Fence::Admission {
            for promised in std::mem::take(&mut self.unwritten).into_values().flatten() {
                self.bind(promised);
            }
            return;
        }
        let ready: Vec<Arc<str>> =
            self.unwritten.keys().filter(|n| !self.writing.contains(n)).cloned().collect();
        for node in ready {
            let pods = self.unwritten.remove(&node).unwrap_or_default();
            self.write(node, pods);
        }
    }

    pub(crate) fn write(&mut self, node: Arc<str>, pods: Vec<Promised>) {
        let Some(node_uid) = self.mirror.node_uid(&node) else { return };
        let spec = ClaimsSpec {
            epoch: self.tenure.epoch,
            node_uid: node_uid.to_string(),
            claims: self.mirror.promises(&node),
        };
        let none = || ClaimsSeen { node: node.clone(), ..ClaimsSeen::default() };
        let last = self.objects.get(&node).cloned().unwrap_or_else(none);
        self.writing.begin(node.clone());
        let (hands, tenure) = (self.hands.clone(), self.tenure.clone());
        self.hands.runtime.spawn(async move {
            let written = hands.claims.write(&tenure, last, spec).await;
            (hands.done)(tenure.epoch, Done::Written(node, pods, written));
        });
    }
}
