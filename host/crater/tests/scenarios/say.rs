//! A scenario as what is asked of a server: configurations, requests, and what
//! must come of them; or what of it cannot be asked.

use super::body::{job, node, quota, typed};
use crater_model::{Fallback, FieldError, Kind, Mib, MilliCores, NodeSpec, TenantPath, TenantSpec};
use crater_sim::scenario::Scenario;
use crater_sim::scenario::script::{
    Action, Clause, Expectation, Fields, Sort, Statement, What, describe, spell,
};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// A server lives by the wall clock. Where nothing follows the clock the time
/// between two lines is left out; a scenario that takes longer is about time.
const LONG: Duration = Duration::from_mins(15);

pub type Name = Arc<str>;

/// One thing that is asked, with its line in the file.
#[derive(Debug)]
pub struct Step {
    pub line: usize,
    pub what: Ask,
}

#[derive(Debug)]
pub enum Ask {
    /// The whole configuration, as the file has it from here on.
    Configure(Value),
    /// A request that must be done: method, path and body.
    Change(&'static str, String, Value),
    /// Jobs are submitted, one after the other or all in the same instant.
    Submit { jobs: Vec<(Name, Value)>, at_once: bool },
    /// The same is asked of each of these jobs: method, what follows its path, body.
    Each(Vec<Name>, &'static str, &'static str, Value),
    /// These jobs end and leave nothing behind: by cancelling them, since nobody
    /// ends a simulated job well at a moment of choice.
    End(Vec<Name>),
    /// These jobs have failed, as they were told to when they were submitted.
    Failed(Vec<Name>),
    /// This must come of it.
    Expect(Expectation),
}

/// A scenario as asked of a server; an error is the first thing in it that
/// cannot be asked.
pub fn steps(scenario: &Scenario) -> Result<Vec<Step>, String> {
    let ends = scenario.statements().iter().filter_map(|s| match &s.what {
        What::RunUntil(at) => Some(*at),
        _ => s.at,
    });
    let lasts = ends.max().unwrap_or_default();
    let mut said = Said { all: scenario.statements(), ..Said::default() };
    for statement in scenario.statements() {
        said.statement(statement)?;
    }
    // Last, so that what cannot be asked at all is named first.
    if lasts > LONG {
        return Err(format!("{} of its own time", spell(lasts)));
    }
    Ok(said.steps)
}

#[derive(Default)]
struct Said<'a> {
    all: &'a [Statement],
    steps: Vec<Step>,
    line: usize,
    defaults: [Fields; 2],
    /// In the order in which they came.
    nodes: Vec<NodeSpec>,
    queues: Vec<Value>,
    tenants: BTreeMap<Name, TenantSpec>,
    platform: BTreeMap<&'static str, Value>,
    /// The file must be written before anything else is asked.
    dirty: bool,
    /// Machines that go with that.
    going: BTreeSet<Name>,
}

impl Said<'_> {
    fn statement(&mut self, statement: &Statement) -> Result<(), String> {
        self.line = statement.line;
        match &statement.what {
            What::Do(action) => self.action(action)?,
            What::Expect(expectation) => {
                if at_once(expectation) {
                    return Err("borrowing that closes at once".to_owned());
                }
                self.ask(Ask::Expect(expectation.clone()));
            }
            What::Defaults(sort, fields) => self.defaults[*sort as usize] = fields.clone(),
            What::RunUntil(_) | What::RunFor(_) => {}
        }
        Ok(())
    }

    fn ask(&mut self, what: Ask) {
        if self.dirty {
            self.configure();
        }
        self.steps.push(Step { line: self.line, what });
    }

    fn configure(&mut self) {
        (self.dirty, self.going) = (false, BTreeSet::new());
        let nodes: Vec<Value> = self.nodes.iter().map(|spec| node(spec).unwrap()).collect();
        // Nothing is measured within the time of a test: use is what is promised.
        let mut config = json!({
            "cluster": {"run": "1d", "nodes": nodes},
            "metrics": {"interval": "5m"},
            "borrowing": false,
            "queues": self.queues,
        });
        for (key, value) in &self.platform {
            config[*key] = value.clone();
        }
        self.steps.push(Step { line: self.line, what: Ask::Configure(config) });
    }

    fn action(&mut self, action: &Action) -> Result<(), String> {
        match action {
            Action::Node(names, like, fields) => self.appear(names, like.as_deref(), fields)?,
            Action::Change(names, fields) => self.each(names, |spec| describe(spec, fields))?,
            Action::Health(names, cards, healthy) => self.each(names, |spec| {
                for card in cards {
                    spec.cards[*card].healthy = *healthy;
                }
                Ok(())
            })?,
            Action::Remove(names) => {
                self.nodes.retain(|spec| !names.contains(&spec.name));
                self.going.extend(names.iter().cloned());
                self.dirty = true;
            }
            Action::Cordon(names, cordoned) => {
                for name in names {
                    self.cordon(name, *cordoned);
                }
            }
            Action::Queue(name, fields) => self.queue(name, fields)?,
            Action::Pause(name, paused) => {
                self.queue_of(name)["paused"] = json!(paused);
                self.change("PATCH", &format!("queues/{name}"), json!({"paused": paused}));
            }
            Action::Policy(name, policy, _) => {
                let order = builtin(policy)?;
                self.queue_of(name)["fallback"] = json!(order);
                self.change("PATCH", &format!("queues/{name}"), json!({"fallback": order}));
            }
            Action::Platform(fields) => self.platform(fields)?,
            Action::Tenant(names, line) => {
                for name in names {
                    let before = self.tenants.get(name).cloned();
                    let path = TenantPath::parse("tenant", name).unwrap();
                    let mut spec = before.clone().unwrap_or_else(|| TenantSpec::new(path.clone()));
                    line.describe(&mut spec).map_err(|e| e.to_string())?;
                    if line.remove {
                        spec = TenantSpec::new(path);
                    }
                    self.tenants.insert(name.clone(), spec.clone());
                    let body = quota(before.as_ref(), &spec);
                    self.change("PUT", &format!("tenants/{}", name.replace('/', "~")), body);
                }
            }
            Action::Submit(names, fields) => self.submit(names, fields)?,
            Action::Update(names, fields) => {
                let body: Value =
                    fields.0.iter().map(|(key, value)| (key.clone(), typed(value))).collect();
                self.ask(Ask::Each(names.clone(), "PATCH", "", body));
            }
            Action::Checkpoint(names) => {
                self.ask(Ask::Each(names.clone(), "POST", "/checkpoint", json!({})));
            }
            Action::Requeue(names) => {
                let body = json!({"reason": "the scenario says so", "requeue": true});
                self.ask(Ask::Each(names.clone(), "POST", "/evict", body));
            }
            Action::Cancel(names) => self.ask(Ask::End(names.clone())),
            Action::Finish(names) => {
                if let Some(name) = names.iter().find(|name| self.is_expected(name, "succeeded")) {
                    return Err(format!("{name} ends well at a moment of choice"));
                }
                self.ask(Ask::End(names.clone()));
            }
            Action::Fail(names) => self.ask(Ask::Failed(names.clone())),
            Action::Quotas(_) => return Err("limits that cannot be read".to_owned()),
            Action::Wire(_) | Action::Resync => {
                return Err("a wire between books and machines".to_owned());
            }
        }
        Ok(())
    }

    fn change(&mut self, method: &'static str, path: &str, body: Value) {
        self.ask(Ask::Change(method, format!("/api/v1/{path}"), body));
    }

    fn appear(
        &mut self,
        names: &[Name],
        like: Option<&str>,
        fields: &Fields,
    ) -> Result<(), String> {
        if names.iter().any(|name| self.going.contains(name)) {
            // Another machine of that name: the first must have gone.
            self.configure();
        }
        for name in names {
            let mut spec = match like {
                None => NodeSpec::new(name, MilliCores::ZERO, Mib::ZERO),
                Some(other) => NodeSpec { name: name.clone(), ..self.known(other)? },
            };
            let fields = match like {
                None => fields.over(&self.defaults[Sort::Node as usize]),
                Some(_) => fields.clone(),
            };
            describe(&mut spec, &fields).map_err(|e| e.to_string())?;
            node(&spec)?;
            self.nodes.retain(|known| known.name != *name);
            self.nodes.push(spec.clone());
            self.dirty = true;
            if spec.cordoned {
                self.cordon(name, true);
            }
        }
        Ok(())
    }

    /// A machine as it is or was described.
    fn known(&self, name: &str) -> Result<NodeSpec, String> {
        let now = self.nodes.iter().find(|spec| *spec.name == *name);
        let before = || {
            // Gone: read again from its line, as all machines of these files
            // that are like one that is gone are described in full there.
            let mut earlier = Said { defaults: self.defaults.clone(), ..Said::default() };
            for statement in self.all.iter().take_while(|s| s.line < self.line) {
                if let What::Do(Action::Node(names, like, fields)) = &statement.what
                    && like.is_none()
                    && names.iter().any(|n| **n == *name)
                {
                    earlier.appear(&[name.into()], None, fields).ok()?;
                }
            }
            earlier.nodes.pop()
        };
        now.cloned().or_else(before).ok_or_else(|| format!("{name} as it was"))
    }

    fn each(
        &mut self,
        names: &[Name],
        change: impl Fn(&mut NodeSpec) -> Result<(), FieldError>,
    ) -> Result<(), String> {
        for spec in self.nodes.iter_mut().filter(|spec| names.contains(&spec.name)) {
            change(spec).map_err(|e| e.to_string())?;
            node(spec)?;
        }
        self.dirty = true;
        Ok(())
    }

    fn cordon(&mut self, name: &Name, cordoned: bool) {
        self.change("PATCH", &format!("nodes/{name}"), json!({"cordoned": cordoned}));
    }

    fn queue_of(&mut self, name: &Name) -> &mut Value {
        let found = self.queues.iter_mut().find(|queue| queue["name"] == **name);
        found.expect("a queue that the file names before")
    }

    fn queue(&mut self, name: &Name, fields: &Fields) -> Result<(), String> {
        if !self.queues.iter().any(|queue| queue["name"] == **name) {
            // Time is left out, so what needs an age has none to wait for.
            let usual = json!({"name": &**name, "kind": Kind::default().to_string(),
                "priority": 0, "minimum-run": "0s"});
            self.queues.push(usual);
        }
        let queue = self.queue_of(name);
        for (key, value) in &fields.0 {
            match key.as_str() {
                "policy" => queue["fallback"] = json!(builtin(value)?),
                "config" => return Err("policy=scripted".to_owned()),
                _ => queue[key] = typed(value),
            }
        }
        let several: BTreeSet<u64> =
            self.queues.iter().filter_map(|q| q["priority"].as_u64()).collect();
        if several.len() > 1 {
            // Each has a thread, which waits for the others 50 ms at most.
            return Err("strict order between queues".to_owned());
        }
        self.dirty = true;
        Ok(())
    }

    fn platform(&mut self, fields: &Fields) -> Result<(), String> {
        for (key, value) in &fields.0 {
            let (name, value) = match key.as_str() {
                "borrowing" => ("borrowing", typed(value)),
                "borrow-unpreemptible" => ("borrow-unpreemptible", typed(value)),
                "opens-below" => ("borrow-opens-below", typed(value)),
                "closes-at" => ("borrow-closes-at", typed(value)),
                other => return Err(format!("platform {other}")),
            };
            self.platform.insert(name, value);
        }
        self.dirty = true;
        Ok(())
    }

    fn submit(&mut self, names: &[Name], fields: &Fields) -> Result<(), String> {
        let mut fields = fields.over(&self.defaults[Sort::Submit as usize]);
        if let (None, [only]) = (fields.get("queue"), &self.queues[..]) {
            let only = only["name"].as_str().unwrap_or_default().to_owned();
            fields.0.push(("queue".to_owned(), only));
        }
        let mut jobs = vec![];
        for name in names {
            let fails = self.all.iter().any(|s| {
                s.line > self.line
                    && matches!(&s.what, What::Do(Action::Fail(all)) if all.contains(name))
            });
            jobs.push((name.clone(), job(name, &fields, fails)?));
        }
        let at_once = self.in_any_order(names);
        self.ask(Ask::Submit { jobs, at_once });
        Ok(())
    }

    /// Whether nothing is expected of one of these jobs but only how many of
    /// them do it: then they may race each other.
    fn in_any_order(&self, names: &[Name]) -> bool {
        let mut counted = false;
        for statement in self.all.iter().filter(|s| s.line > self.line) {
            let What::Expect(Expectation::Jobs { names: of, count, .. }) = &statement.what else {
                continue;
            };
            if of.iter().any(|name| names.contains(name)) {
                counted = true;
                if count.is_none() || of != names {
                    return false;
                }
            }
        }
        counted
    }

    fn is_expected(&self, name: &Name, standing: &str) -> bool {
        self.all.iter().filter(|s| s.line > self.line).any(|s| {
            let What::Expect(Expectation::Jobs { names, standing: how, .. }) = &s.what else {
                return false;
            };
            names.contains(name) && how.to_string() == standing
        })
    }
}

/// Whether something is expected that a server does a moment later: it looks at
/// what is in use a few times a second.
fn at_once(expectation: &Expectation) -> bool {
    let Expectation::Jobs { clauses, .. } = expectation else { return false };
    let closed = |clause: &Clause| matches!(clause, Clause::Because(text) if text.contains("borrowing is closed"));
    clauses.iter().any(closed)
}

/// A policy that the books bring along.
fn builtin(name: &str) -> Result<&'static str, String> {
    match Fallback::parse("policy", name) {
        Ok(Fallback::Binpack) => Ok("binpack"),
        Ok(Fallback::Spread) => Ok("spread"),
        _ => Err(format!("policy={name}")),
    }
}
