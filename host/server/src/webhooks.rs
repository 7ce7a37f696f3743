//! Tells others over HTTP when jobs start, are preempted and end.
//!
//! The ledger thread writes notifications into the outbox with what they tell
//! of. A thread for each webhook delivers them, at least once, whoever else is
//! slow or gone; each has a number by which a receiver knows it again.

mod sender;

use arc_swap::ArcSwap;
use crater_engine::{Job, State};
use crater_model::event::Entry;
pub use sender::{signature, start};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// What is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Notice {
    /// All members run.
    Start,
    /// It loses its place and will wait again.
    Preempt,
    /// It is over.
    End,
}

impl Notice {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Start, Self::Preempt, Self::End];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Preempt => "preempt",
            Self::End => "end",
        }
    }

    /// What is sent of a job.
    pub fn body(self, state: &State, job: &Job, entry: &Entry) -> String {
        let mut nodes: Vec<&str> = job
            .claims
            .iter()
            .filter_map(|claim| state.claim(*claim))
            .filter_map(|claim| state.node(claim.node).map(|node| &*node.spec.name))
            .collect();
        nodes.sort_unstable();
        nodes.dedup();
        let cause = job.evicted.filter(|_| self == Self::Preempt);
        let mut body = serde_json::json!({
            "event": self.name(),
            "sequence": entry.seq,
            "at": crate::rfc3339(entry.at),
            "job": {
                "id": job.uid.to_string(),
                "name": &*job.spec.name,
                "queue": &*job.spec.queue,
                "tenant": job.spec.tenant.as_str(),
                "kind": job.spec.kind.to_string(),
                "status": job.state.to_string(),
                "reason": &*job.reason,
                "attempts": job.attempts,
                "preemptions": job.preemptions,
                "nodes": nodes,
            },
        });
        if let Some(cause) = cause {
            body["cause"] = crate::chronicle::cause(cause).into();
        }
        body.to_string()
    }
}

/// A webhook as it is configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hook {
    /// Where it is sent.
    pub url: String,
    /// What is told.
    pub events: Vec<Notice>,
    /// Of this tenant and those below it; of all without.
    pub tenant: Option<String>,
    /// Signs what is sent.
    pub secret: Option<String>,
}

impl Hook {
    /// Whether it is told of an event of a tenant.
    pub fn wants(&self, event: Notice, tenant: &str) -> bool {
        let below = |root: &String| {
            tenant
                .strip_prefix(&**root)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        self.events.contains(&event) && self.tenant.as_ref().is_none_or(below)
    }
}

/// The webhooks that are configured, and a bell for their senders.
#[derive(Debug, Default)]
pub struct Hooks {
    all: ArcSwap<Vec<Hook>>,
    rung: Mutex<u64>,
    bell: Condvar,
}

impl Hooks {
    /// Those that are configured.
    pub fn all(&self) -> Arc<Vec<Hook>> {
        self.all.load_full()
    }

    /// Others are configured from here on.
    pub fn set(&self, hooks: Vec<Hook>) {
        self.all.store(Arc::new(hooks));
        self.ring();
    }

    /// There is something new.
    pub fn ring(&self) {
        *self.rung.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.bell.notify_all();
    }

    /// Waits for the bell, no longer than `most`; gives out how often it rang.
    fn wait(&self, heard: u64, most: Duration) -> u64 {
        let rung = self.rung.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.bell.wait_timeout_while(rung, most, |rung| *rung == heard);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hook_hears_of_its_events_and_tenants_only() {
        let hook = Hook {
            url: "http://127.0.0.1:1/".into(),
            events: vec![Notice::End],
            tenant: Some("ai/nlp".into()),
            secret: None,
        };
        assert!(hook.wants(Notice::End, "ai/nlp") && hook.wants(Notice::End, "ai/nlp/lee"));
        assert!(!hook.wants(Notice::End, "ai/nlp2") && !hook.wants(Notice::End, "ai"));
        assert!(!hook.wants(Notice::Start, "ai/nlp"));
    }
}
