//! Carrying out commands.

use super::command::{Command, CommandError, Decides};
use super::driver::World;
use super::executor::{Behaviour, Effects};
use super::observer::Observer;
use crater_engine::admit::{Admission, admit};
use crater_engine::{builtin, mix};
use crater_model::{Cause, JobSpec, JobState, JobUid, NodeSpec, NodeUid, QueueSpec};
use std::collections::BTreeSet;
use std::sync::Arc;

impl World {
    /// Carries out a command now.
    pub(super) fn command(
        &mut self,
        command: &Command,
        observer: &mut dyn Observer,
    ) -> Result<(), CommandError> {
        let now = self.now();
        match command {
            Command::AddNode(spec) => {
                let node = self.ledger.add_node(now, spec.clone())?;
                self.nodes.insert(spec.name.clone(), node);
                self.applied(observer);
            }
            Command::ChangeNode(spec) => {
                let (node, _) = self.present_node(&spec.name)?;
                self.describe(node, spec.clone(), observer)?;
            }
            Command::RemoveNode(name) => {
                let (node, _) = self.present_node(name)?;
                self.remove_node(node, observer)?;
            }
            Command::CardHealth { node, card, healthy } => {
                let (uid, mut spec) = self.present_node(node)?;
                let unknown =
                    || CommandError::Unknown { what: "card", name: format!("{node}:{card}") };
                spec.cards.get_mut(*card).ok_or_else(unknown)?.healthy = *healthy;
                self.describe(uid, spec, observer)?;
            }
            Command::Cordon { node, cordoned } => {
                let (uid, mut spec) = self.present_node(node)?;
                spec.cordoned = *cordoned;
                self.describe(uid, spec, observer)?;
            }
            Command::SetQueue(spec) => {
                self.ledger.set_queue(now, spec.clone())?;
                self.applied(observer);
            }
            Command::PauseQueue { queue, paused } => {
                let mut spec = self.known_queue(queue)?;
                spec.paused = *paused;
                self.ledger.set_queue(now, spec)?;
                self.applied(observer);
            }
            Command::SetPolicy { queue, policy } => self.set_policy(queue, policy, observer)?,
            Command::Submit { spec, behaviour } => self.submit(spec, *behaviour, observer)?,
            Command::SetTenant(spec) => {
                self.ledger.set_tenant(now, spec.clone())?;
                self.applied(observer);
            }
            Command::RemoveTenant(path) => {
                self.ledger.remove_tenant(now, path)?;
                self.applied(observer);
            }
            Command::SetPlatform(spec) => {
                self.ledger.set_platform(now, *spec)?;
                self.applied(observer);
            }
            Command::Update { job, changes } => {
                let job = self.known_job(job)?;
                if self.ledger.update_job(now, job, *changes)? {
                    self.applied(observer);
                }
            }
            Command::Cancel(name) => {
                let job = self.known_job(name)?;
                self.ledger.end_job(now, job, JobState::Cancelled, "cancelled by its owner")?;
                self.applied(observer);
                self.follow([job]);
            }
            Command::Finish(name) => self.end_members(name, true, usize::MAX)?,
            Command::Fail(name) => self.end_members(name, false, 1)?,
            Command::Checkpoint(name) => {
                let job = self.known_job(name)?;
                self.ledger.checkpointed(now, job)?;
                let since = self.state().job(job).map_or(now, |j| j.since);
                *self.saved.entry(job).or_default() += now - since;
                self.applied(observer);
            }
            Command::Requeue(name) => {
                let job = self.known_job(name)?;
                if self.ledger.evict(now, job, Cause::Manual, None)? {
                    self.applied(observer);
                    self.follow([job]);
                }
            }
            Command::SetWire(settings) => self.wire.set(*settings),
            Command::Resync => self.resync(),
        }
        Ok(())
    }

    fn present_node(&self, name: &Arc<str>) -> Result<(NodeUid, NodeSpec), CommandError> {
        self.node(name)
            .and_then(|uid| self.state().node(uid))
            .map(|node| (node.uid, NodeSpec::clone(&node.spec)))
            .ok_or_else(|| CommandError::Unknown { what: "node", name: name.to_string() })
    }

    fn known_job(&self, name: &Arc<str>) -> Result<JobUid, CommandError> {
        let unknown = || CommandError::Unknown { what: "job", name: name.to_string() };
        self.job(name).ok_or_else(unknown)
    }

    fn known_queue(&self, name: &Arc<str>) -> Result<QueueSpec, CommandError> {
        let unknown = || CommandError::Unknown { what: "queue", name: name.to_string() };
        self.state().queues().get(name).map(|q| QueueSpec::clone(&q.spec)).ok_or_else(unknown)
    }

    fn describe(
        &mut self,
        node: NodeUid,
        spec: NodeSpec,
        observer: &mut dyn Observer,
    ) -> Result<(), CommandError> {
        self.ledger.change_node(self.now(), node, spec)?;
        self.applied(observer);
        Ok(())
    }

    fn remove_node(
        &mut self,
        node: NodeUid,
        observer: &mut dyn Observer,
    ) -> Result<(), CommandError> {
        let now = self.now();
        let on_it = self.state().claims().filter(|c| c.node == node);
        let jobs: BTreeSet<JobUid> = on_it.map(|c| c.job).collect();
        self.executor.lose_node(now, node);
        self.ledger.remove_node(now, node)?;
        self.applied(observer);
        self.follow(jobs);
        Ok(())
    }

    fn set_policy(
        &mut self,
        queue: &Arc<str>,
        policy: &Decides,
        observer: &mut dyn Observer,
    ) -> Result<(), CommandError> {
        let now = self.now();
        let mut spec = self.known_queue(queue)?;
        match policy {
            Decides::Policy(policy) => {
                self.ledger.set_policy(now, queue, policy.digest())?;
                self.use_policy(queue.clone(), Some(policy.clone()));
            }
            Decides::Builtin(order) => {
                self.ledger.set_policy(now, queue, builtin::digest(*order))?;
                self.use_policy(queue.clone(), None);
                if spec.fallback != *order {
                    self.applied(observer);
                    spec.fallback = *order;
                    self.ledger.set_queue(now, spec)?;
                }
            }
        }
        self.applied(observer);
        Ok(())
    }

    fn submit(
        &mut self,
        spec: &JobSpec,
        behaviour: Behaviour,
        observer: &mut dyn Observer,
    ) -> Result<(), CommandError> {
        let now = self.now();
        let name = spec.name.clone();
        let mut spec = spec.clone();
        if let Some(policy) = self.policies().get(&spec.queue) {
            let seed = mix(self.state().seq);
            // A policy that fails here stops no one: the job goes in as it is.
            match admit(self.state(), &**policy, spec.clone(), now, seed) {
                Ok(Admission::Accepted(filled)) => spec = filled,
                Ok(Admission::Refused(text)) => return Err(CommandError::Policy(text)),
                Err(_) => {}
            }
        }
        let job = self.ledger.submit(now, spec)?;
        self.behaviours.insert(job, behaviour);
        self.jobs.insert(name, job);
        self.applied(observer);
        Ok(())
    }

    /// Lets up to `most` members of a job end by themselves.
    fn end_members(
        &mut self,
        name: &Arc<str>,
        success: bool,
        most: usize,
    ) -> Result<(), CommandError> {
        let now = self.now();
        let job = self.known_job(name)?;
        let claims = self.state().job(job).map(|j| j.claims.clone()).unwrap_or_default();
        let mut ended = 0;
        for claim in claims {
            if ended == most {
                break;
            }
            let effects = self.executor.end(now, claim, success);
            ended += usize::from(effects != Effects::default());
            self.carry(effects);
        }
        if ended == 0 { Err(CommandError::NothingRuns(name.clone())) } else { Ok(()) }
    }
}
