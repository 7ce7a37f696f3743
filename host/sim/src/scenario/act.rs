//! Carrying out a scenario's actions: lines into commands.

use super::error::ScenarioError;
use super::job::job;
use super::lex::{Fields, duration};
use super::machine::describe;
use super::notes::Refused;
use super::run::{QueueLine, Runner};
use super::statement::{Action, Sort};
use super::tenant::{TenantLine, changes};
use crate::world::scripted::Scripted;
use crate::world::{Command, Decides};
use crater_engine::{Policy, builtin};
use crater_model::{
    Fallback, FieldError, Kind, Mib, MilliCores, NodeSpec, PlatformSpec, Priority, QueueSpec,
    TenantPath, TenantSpec, parse,
};
use std::sync::Arc;

impl Runner<'_> {
    fn schedule(&mut self, command: Command) {
        self.lines.insert(command.to_string(), self.line);
        self.world.schedule(self.start + self.at, command);
    }

    fn refused(&self, what: &str, error: &FieldError) -> ScenarioError {
        let (what, why) = (what.to_owned(), error.to_string());
        ScenarioError::Refused { place: self.place(), what, why }
    }

    /// Schedules what an action means for this moment.
    pub(super) fn action(&mut self, action: &Action) -> Result<(), ScenarioError> {
        match action {
            Action::Node(names, like, fields) => {
                for name in names {
                    let spec = self.new_node(name, like.as_ref(), fields)?;
                    self.nodes.insert(name.clone(), spec.clone());
                    self.schedule(Command::AddNode(spec));
                }
            }
            Action::Change(names, fields) => self.change(names, |spec| describe(spec, fields))?,
            Action::Cordon(names, cordoned) => self.change(names, |spec| {
                spec.cordoned = *cordoned;
                Ok(())
            })?,
            Action::Health(names, cards, healthy) => self.change(names, |spec| {
                for card in cards {
                    let unknown =
                        || FieldError::new("card", &card.to_string(), "a card of the node");
                    spec.cards.get_mut(*card).ok_or_else(unknown)?.healthy = *healthy;
                }
                Ok(())
            })?,
            Action::Remove(names) => {
                names.iter().cloned().map(Command::RemoveNode).for_each(|c| self.schedule(c));
            }
            Action::Queue(name, fields) => self.queue(name, fields)?,
            Action::Pause(name, paused) => {
                if let Some(line) = self.queues.get_mut(name) {
                    line.spec.paused = *paused;
                }
                self.schedule(Command::PauseQueue { queue: name.clone(), paused: *paused });
            }
            Action::Policy(queue, name, config) => self.policy(queue, name, config),
            Action::Tenant(names, line) => self.tenants(names, line)?,
            Action::Quotas(known) => {
                self.platform.quotas_known = *known;
                self.schedule(Command::SetPlatform(self.platform));
            }
            Action::Platform(fields) => {
                platform(&mut self.platform, fields).map_err(|e| self.refused("platform", &e))?;
                self.schedule(Command::SetPlatform(self.platform));
            }
            Action::Checkpoint(names) => {
                names.iter().cloned().map(Command::Checkpoint).for_each(|c| self.schedule(c));
            }
            Action::Requeue(names) => {
                names.iter().cloned().map(Command::Requeue).for_each(|c| self.schedule(c));
            }
            Action::Update(names, fields) => {
                let changes = changes(fields).map_err(|e| self.refused("update", &e))?;
                for job in names.iter().cloned() {
                    self.schedule(Command::Update { job, changes });
                }
            }
            Action::Submit(names, fields) => {
                for name in names {
                    self.submit(name, fields);
                }
            }
            Action::Cancel(names) => {
                names.iter().cloned().map(Command::Cancel).for_each(|c| self.schedule(c));
            }
            Action::Finish(names) => {
                names.iter().cloned().map(Command::Finish).for_each(|c| self.schedule(c));
            }
            Action::Fail(names) => {
                names.iter().cloned().map(Command::Fail).for_each(|c| self.schedule(c));
            }
            Action::Wire(settings) => self.schedule(Command::SetWire(*settings)),
            Action::Resync => self.schedule(Command::Resync),
        }
        Ok(())
    }

    fn new_node(
        &self,
        name: &Arc<str>,
        like: Option<&Arc<str>>,
        fields: &Fields,
    ) -> Result<NodeSpec, ScenarioError> {
        let mut spec = match like {
            None => NodeSpec::new(name, MilliCores::ZERO, Mib::ZERO),
            Some(other) => {
                let spec = self.nodes.get(other).cloned();
                let mut spec =
                    spec.ok_or_else(|| self.wrong(format!("an earlier node in place of {other}")))?;
                spec.name = name.clone();
                spec
            }
        };
        let fields = match like {
            None => fields.over(&self.defaults[Sort::Node as usize]),
            Some(_) => fields.clone(),
        };
        describe(&mut spec, &fields)
            .and_then(|()| spec.check())
            .map_err(|e| self.refused(&format!("node {name}"), &e))?;
        Ok(spec)
    }

    fn change(
        &mut self,
        names: &[Arc<str>],
        f: impl Fn(&mut NodeSpec) -> Result<(), FieldError>,
    ) -> Result<(), ScenarioError> {
        for name in names {
            let spec = self.nodes.get(name).cloned();
            let mut spec =
                spec.ok_or_else(|| self.wrong(format!("an earlier node in place of {name}")))?;
            f(&mut spec)
                .and_then(|()| spec.check())
                .map_err(|e| self.refused(&format!("change of node {name}"), &e))?;
            self.nodes.insert(name.clone(), spec.clone());
            self.schedule(Command::ChangeNode(spec));
        }
        Ok(())
    }

    fn tenants(&mut self, names: &[Arc<str>], line: &TenantLine) -> Result<(), ScenarioError> {
        for name in names {
            let refused = |e| self.refused(&format!("tenant {name}"), &e);
            let path = TenantPath::parse("tenant", name).map_err(refused)?;
            if line.remove {
                self.tenants.remove(name);
                self.schedule(Command::RemoveTenant(path));
                continue;
            }
            let known = self.tenants.get(name).cloned();
            let mut spec = known.unwrap_or_else(|| TenantSpec::new(path));
            line.describe(&mut spec).map_err(refused)?;
            self.tenants.insert(name.clone(), spec.clone());
            self.schedule(Command::SetTenant(spec));
        }
        Ok(())
    }

    fn queue(&mut self, name: &Arc<str>, fields: &Fields) -> Result<(), ScenarioError> {
        let mut line = self.queues.get(name).cloned().unwrap_or_else(|| QueueLine {
            spec: QueueSpec::new(name, Kind::default()),
            policy: (Fallback::default().to_string(), String::new()),
        });
        let before = line.policy.clone();
        queue_fields(&mut line, fields).map_err(|e| self.refused(&format!("queue {name}"), &e))?;
        let (policy, config) = line.policy.clone();
        let builtin = Fallback::parse("policy", &policy).ok().filter(|f| *f != Fallback::Hold);
        if let (Some(order), None) = (builtin, fields.get("fallback")) {
            line.spec.fallback = order;
        }
        let new = self.queues.insert(name.clone(), line.clone()).is_none();
        self.schedule(Command::SetQueue(line.spec));
        if before != (policy.clone(), config.clone()) || (new && builtin.is_none()) {
            self.policy(name, &policy, &config);
        }
        Ok(())
    }

    fn policy(&mut self, queue: &Arc<str>, name: &str, config: &str) {
        let decides = match Fallback::parse("policy", name) {
            Ok(order) if order != Fallback::Hold => Ok(Decides::Builtin(order)),
            _ if name == "scripted" => Scripted::new(config)
                .map(|p| Decides::Policy(Arc::new(p) as Arc<dyn Policy>))
                .map_err(|e| e.to_string()),
            _ => self.source.load(name, config).map(Decides::Policy),
        };
        let queue = queue.clone();
        match decides {
            Ok(policy) => {
                let digest = match &policy {
                    Decides::Policy(policy) => policy.digest(),
                    Decides::Builtin(order) => builtin::digest(*order),
                };
                self.notes.policies.insert(digest, name.to_owned());
                if let Some(line) = self.queues.get_mut(&queue) {
                    line.policy = (name.to_owned(), config.to_owned());
                    if let Decides::Builtin(order) = policy {
                        line.spec.fallback = order;
                    }
                }
                self.schedule(Command::SetPolicy { queue, policy });
            }
            Err(why) => {
                let command = format!("policy {name} for queue {queue}");
                self.lines.insert(command.clone(), self.line);
                let refused = Refused { command, job: None, field: format!("policy {queue}"), why };
                self.notes.refuse(self.start + self.at, refused);
            }
        }
    }

    fn submit(&mut self, name: &Arc<str>, fields: &Fields) {
        let mut fields = fields.over(&self.defaults[Sort::Submit as usize]);
        if let (None, [only]) = (fields.get("queue"), &*self.queues.keys().collect::<Vec<_>>()) {
            fields.0.push(("queue".to_owned(), only.to_string()));
        }
        let kind = |queue: &str| self.queues.get(queue).map_or(Kind::default(), |q| q.spec.kind);
        match job(name, &fields, &self.jobs, &kind) {
            Ok((spec, behaviour)) => self.schedule(Command::Submit { spec, behaviour }),
            Err(error) => {
                let command = format!("submit job {name}");
                self.lines.insert(command.clone(), self.line);
                let refused = Refused {
                    command,
                    job: Some(name.clone()),
                    field: error.field.clone(),
                    why: error.to_string(),
                };
                self.notes.refuse(self.start + self.at, refused);
            }
        }
    }
}

fn seconds(key: &str, value: &str) -> Result<u32, FieldError> {
    Ok(duration(key, value)?.as_secs().min(u64::from(u32::MAX)) as u32)
}

fn count(key: &str, value: &str) -> Result<u32, FieldError> {
    Ok(parse::integer(key, value, 0, u64::from(u32::MAX))? as u32)
}

fn platform(spec: &mut PlatformSpec, fields: &Fields) -> Result<(), FieldError> {
    for (key, value) in &fields.0 {
        let percent = |most| parse::integer(key, value.trim_end_matches('%'), 0, most);
        match key.as_str() {
            "borrowing" => spec.borrowing = parse::flag("borrowing", value)?,
            "borrow-unpreemptible" => spec.borrow_unpreemptible = parse::flag(key, value)?,
            "opens-below" => spec.borrow_opens_below_percent = percent(100)? as u8,
            "closes-at" => spec.borrow_closes_at_percent = percent(100)? as u8,
            "soft" => spec.soft_quota_ratio_percent = percent(100_000)? as u32,
            _ => {
                let expected = "borrowing, borrow-unpreemptible, opens-below, closes-at or soft";
                return Err(FieldError::new(key, value, expected));
            }
        }
    }
    spec.check()
}

fn queue_fields(line: &mut QueueLine, fields: &Fields) -> Result<(), FieldError> {
    for (key, value) in &fields.0 {
        match key.as_str() {
            "kind" => line.spec.kind = Kind::parse("kind", value)?,
            "priority" => line.spec.priority = Priority::parse("priority", value)?.0,
            "fallback" => line.spec.fallback = Fallback::parse("fallback", value)?,
            "paused" => line.spec.paused = parse::flag("paused", value)?,
            "policy" => line.policy = (value.clone(), String::new()),
            "config" => {}
            "minimum-run" => line.spec.room.minimum_run = seconds(key, value)?,
            "reserve-after" => line.spec.room.reserve_after = seconds(key, value)?,
            "preemptions-per-hour" => line.spec.room.preemptions_per_hour = count(key, value)?,
            "preemptions-per-job" => line.spec.room.preemptions_per_job = count(key, value)?,
            _ => {
                let expected = "kind, priority, fallback, paused, policy, config, minimum-run, \
                                reserve-after, preemptions-per-hour or preemptions-per-job";
                return Err(FieldError::new(key, value, expected));
            }
        }
    }
    if let Some(config) = fields.get("config") {
        config.clone_into(&mut line.policy.1);
    }
    Ok(())
}
