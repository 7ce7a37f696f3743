//! Pods in the books: where each stands, from what is seen of it.

use crate::mirror::{Entry, FOREIGN, Mirror, Standing};
use crate::pod::{Phase, PodSeen};
use crater_model::{ClaimState, ClaimUid, JobSpec, JobState, JobUid, Request, TenantPath, Time};
use std::sync::Arc;

impl Mirror {
    /// A pod appeared or changed.
    pub fn pod_seen(&mut self, now: Time, seen: &Arc<PodSeen>) {
        let uid = &seen.uid;
        let known = self.pods.get(uid);
        if known.is_none() && seen.node.is_none() && !seen.ours {
            return;
        }
        let before = known.map(|e| e.seen.clone());
        if let Some(entry) = self.pods.get_mut(uid) {
            entry.seen = seen.clone();
        } else {
            let standing = Standing::Nowhere;
            let entry = Entry { seen: seen.clone(), standing, node: None };
            self.pods.insert(uid.clone(), entry);
        }
        if before.as_ref().is_some_and(|b| b.wants != seen.wants || b.takes != seen.takes) {
            // What a waiting pod asks for may be edited; what is held may not.
            if matches!(self.pods[uid].standing, Standing::Waiting(_) | Standing::Refused(_)) {
                self.leave_books(now, uid, false);
            }
        }
        self.settle(now, uid);
    }

    /// A pod is gone: what it held is free.
    pub fn pod_gone(&mut self, now: Time, uid: &str) {
        let Some(entry) = self.pods.get(uid) else { return };
        let uid = entry.seen.uid.clone();
        self.leave_books(now, &uid, true);
        self.doubts.remove(&uid);
        if let Some(node) = self.pods.remove(&uid).and_then(|e| e.seen.node.clone()) {
            self.off(&node, &uid);
            self.freed(now, &node);
        }
    }

    pub(crate) fn off(&mut self, node: &str, uid: &str) {
        if let Some(pods) = self.bound.get_mut(node) {
            pods.remove(uid);
            if pods.is_empty() {
                self.bound.remove(node);
            }
        }
    }

    pub(crate) fn stand(&mut self, uid: &str, standing: Standing) {
        if let Some(entry) = self.pods.get_mut(uid) {
            entry.standing = standing;
        }
    }

    /// Takes a pod out of the books: its claim is gone, its job over.
    pub(crate) fn leave_books(&mut self, now: Time, uid: &str, success: bool) {
        let Some(entry) = self.pods.get_mut(uid) else { return };
        let standing = std::mem::replace(&mut entry.standing, Standing::Nowhere);
        let node = entry.node.take();
        let job = match standing {
            Standing::Waiting(job) => {
                let done = self.ledger.end_job(now, job, JobState::Cancelled, "the pod is gone");
                self.defect(done);
                job
            }
            Standing::Promised(job, claim) | Standing::Bound(job, claim) => {
                let done = self.ledger.member_ended(now, claim, success);
                self.defect(done);
                job
            }
            Standing::Nowhere | Standing::Refused(_) | Standing::Afar => return,
        };
        self.jobs.remove(&job);
        if let Some(node) = node {
            self.unpromise(&node, uid);
        }
        self.forget_ended(now);
    }

    /// Brings the books to where a pod is.
    pub(crate) fn settle(&mut self, now: Time, uid: &Arc<str>) {
        let Some(entry) = self.pods.get(uid) else { return };
        let (seen, standing) = (entry.seen.clone(), entry.standing.clone());
        if let Phase::Over(success) = seen.phase {
            self.leave_books(now, uid, success);
            if let Some(node) = &seen.node {
                self.off(node, uid);
                self.freed(now, node);
            }
            return;
        }
        let Some(node) = &seen.node else {
            let waits = !seen.gated && !seen.terminating;
            match standing {
                Standing::Nowhere if waits && seen.ours => self.submit(now, &seen),
                Standing::Waiting(_) | Standing::Refused(_) if !waits => {
                    self.leave_books(now, uid, false);
                    self.stand(uid, Standing::Nowhere);
                }
                _ => {}
            }
            return;
        };
        self.bound.entry(node.clone()).or_default().insert(uid.clone());
        let here = entry.node.as_ref() == Some(node) && self.as_promised(&seen);
        match standing {
            Standing::Promised(job, claim) if here => self.hold(now, &seen, job, claim),
            Standing::Bound(job, claim) if entry.node.as_ref() == Some(node) => {
                self.hold(now, &seen, job, claim);
            }
            _ => {
                // Bound by somebody else, or elsewhere than was promised.
                self.leave_books(now, uid, false);
                self.adopt_bound(now, &seen, node);
            }
        }
    }

    /// A claim's pod is bound: it holds its room.
    pub(crate) fn hold(&mut self, now: Time, seen: &PodSeen, job: JobUid, claim: ClaimUid) {
        self.stand(&seen.uid, Standing::Bound(job, claim));
        if let Some(node) = self.pods.get(&seen.uid).and_then(|e| e.node.clone()) {
            self.unpromise(&node, &seen.uid);
        }
        let state = match (seen.terminating, seen.phase) {
            (true, _) => ClaimState::Releasing,
            (_, Phase::Running) => ClaimState::Held,
            _ => ClaimState::Starting,
        };
        let done = self.ledger.move_claim(now, claim, state);
        self.defect(done);
    }

    fn submit(&mut self, now: Time, seen: &Arc<PodSeen>) {
        let spec = match &seen.wants {
            Some(Ok(spec)) => JobSpec::clone(spec),
            Some(Err(error)) => {
                return self.stand(&seen.uid, Standing::Refused(error.to_string().into()));
            }
            None => return,
        };
        let standing = match self.ledger.submit(now, spec) {
            Ok(job) => {
                self.jobs.insert(job, seen.uid.clone());
                Standing::Waiting(job)
            }
            Err(error) => Standing::Refused(error.to_string().into()),
        };
        self.stand(&seen.uid, standing);
    }

    /// A job for a pod that is bound already.
    pub(crate) fn submit_bound(&mut self, now: Time, seen: &PodSeen) -> Option<JobUid> {
        if let Some(Ok(spec)) = &seen.wants
            && let Ok(job) = self.ledger.submit(now, JobSpec::clone(spec))
        {
            return Some(job);
        }
        let takes = &seen.takes;
        let request = Request { cpu: takes.cpu, memory: takes.memory, ..Request::default() };
        let tenant = TenantPath::parse("namespace", &seen.namespace).unwrap_or_default();
        let spec = JobSpec::new(&seen.uid, FOREIGN, tenant, request);
        let done = self.ledger.submit(now, spec);
        self.defect(done)
    }

    /// Takes a waiting pod aside: it is not decided until `resubmit`.
    pub fn set_aside(&mut self, now: Time, uid: &str, why: &str) {
        if matches!(self.pods.get(uid).map(|e| &e.standing), Some(Standing::Waiting(_))) {
            self.leave_books(now, uid, false);
            self.stand(uid, Standing::Refused(why.into()));
        }
    }

    /// Lets a pod that was set aside wait again.
    pub fn resubmit(&mut self, now: Time, uid: &str) {
        let Some(entry) = self.pods.get_mut(uid) else { return };
        if matches!(entry.standing, Standing::Refused(_)) {
            entry.standing = Standing::Nowhere;
            let uid = entry.seen.uid.clone();
            self.settle(now, &uid);
        }
    }
}
