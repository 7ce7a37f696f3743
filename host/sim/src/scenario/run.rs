//! Carrying out a scenario.

use super::error::{Place, ScenarioError};
use super::expect::{Expectation, Refused as ExpectedRefusal};
use super::job::JobDefaults;
use super::lex::Fields;
use super::notes::{Notes, Refused};
use super::statement::{Header, Statement, What};
use super::{Scenario, verify};
use crate::world::{Behaviour, Both, Checks, Observer, PolicySource, Settings, World};
use crater_engine::mix;
use crater_model::event::Entry;
use crater_model::{NodeSpec, PlatformSpec, QueueSpec, TenantSpec, Time};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// What came of a scenario that passed.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// How often it ran.
    pub runs: u64,
    /// Expectations that held, in one run.
    pub expectations: u64,
    /// Entries journalled, in the last run.
    pub entries: u64,
    /// Jobs placed, in the last run.
    pub placements: u64,
    /// What happened in the last run, one line each.
    pub timeline: String,
    /// The journal of the last run.
    pub journal: Vec<Entry>,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { expectations, entries, placements, timeline, .. } = self;
        write!(
            f,
            "{timeline}{expectations} expectations, {entries} entries, {placements} placements"
        )
    }
}

/// How strictly a scenario is taken.
#[derive(Clone, Copy, Debug, Default)]
pub struct Manner {
    /// What cannot be carried out (a node that is not there) is passed over,
    /// as a shrunk random world needs.
    pub lenient: bool,
    /// Keep no timeline.
    pub quiet: bool,
}

impl Scenario {
    /// Runs it once with the nth seed. `extra` looks on besides.
    pub fn run_once(
        &self,
        source: &dyn PolicySource,
        nth: u64,
        manner: &Manner,
        extra: &mut dyn Observer,
    ) -> Result<Outcome, ScenarioError> {
        let mut runner = Runner::new(self, source, nth, *manner);
        for statement in &self.statements {
            runner.line = statement.line;
            runner.statement(statement, extra)?;
        }
        runner.flush(extra)?;
        runner.unexpected(|_| true)?;
        Ok(Outcome {
            runs: 1,
            expectations: runner.expectations,
            entries: runner.notes.entries,
            placements: runner.notes.placements,
            timeline: runner.notes.timeline(),
            journal: runner.world.ledger().journal().entries.clone(),
        })
    }
}

/// A queue as the file last described it.
#[derive(Clone, Debug)]
pub(super) struct QueueLine {
    pub spec: QueueSpec,
    /// Name and configuration.
    pub policy: (String, String),
}

/// A scenario on its way.
pub(super) struct Runner<'a> {
    pub(super) file: Arc<str>,
    pub(super) line: usize,
    pub(super) source: &'a dyn PolicySource,
    manner: Manner,
    pub(super) world: World,
    pub(super) notes: Notes,
    checks: Checks,
    pub(super) start: Time,
    /// The moment of the file.
    pub(super) at: Duration,
    pub(super) jobs: JobDefaults,
    pub(super) defaults: [Fields; 2],
    pub(super) nodes: BTreeMap<Arc<str>, NodeSpec>,
    pub(super) queues: BTreeMap<Arc<str>, QueueLine>,
    pub(super) tenants: BTreeMap<Arc<str>, TenantSpec>,
    pub(super) platform: PlatformSpec,
    /// Lines of commands that may yet be refused, by how they print.
    pub(super) lines: BTreeMap<String, usize>,
    /// Refusals that were looked at, by their number in the notes.
    expected: BTreeSet<usize>,
    expectations: u64,
}

impl<'a> Runner<'a> {
    fn new(scenario: &Scenario, source: &'a dyn PolicySource, nth: u64, manner: Manner) -> Self {
        let Header {
            seed, start_delay, shutdown, clock, gpu_step, deciders, limit, resync, ..
        } = scenario.header;
        let mut settings = Settings { resync, deciders, limit, ..Settings::default() };
        settings.seed = mix(seed.wrapping_add(nth));
        settings.start = settings.start + clock;
        settings.strings = source.strings();
        let behaviour = Behaviour { start: start_delay, shutdown, ..Behaviour::default() };
        let start = settings.start;
        Self {
            file: scenario.file.clone(),
            line: 0,
            source,
            manner,
            world: World::new(settings),
            notes: Notes::new(start),
            checks: Checks::default(),
            start,
            at: Duration::ZERO,
            jobs: JobDefaults { gpu_step, behaviour },
            defaults: [Fields::default(), Fields::default()],
            nodes: BTreeMap::new(),
            queues: BTreeMap::new(),
            tenants: BTreeMap::new(),
            platform: PlatformSpec::default(),
            lines: BTreeMap::new(),
            expected: BTreeSet::new(),
            expectations: 0,
        }
    }

    pub(super) fn place(&self) -> Place {
        Place { file: self.file.clone(), line: self.line }
    }

    pub(super) fn wrong(&self, expected: impl Into<String>) -> ScenarioError {
        ScenarioError::Syntax { place: self.place(), expected: expected.into() }
    }

    fn statement(
        &mut self,
        statement: &Statement,
        extra: &mut dyn Observer,
    ) -> Result<(), ScenarioError> {
        if let Some(at) = statement.at {
            if at < self.at {
                let now = super::lex::spell(self.at);
                return Err(self.wrong(format!("a time not before {now}, when the line above is")));
            }
            self.at = at;
        }
        match &statement.what {
            What::Do(action) => {
                if let Err(refused) = self.action(action)
                    && !self.manner.lenient
                {
                    return Err(refused);
                }
                Ok(())
            }
            What::RunUntil(at) if *at < self.at => Err(self.wrong("a time that is not past")),
            What::RunUntil(at) => {
                self.at = *at;
                self.flush(extra)
            }
            What::RunFor(span) => {
                self.at += *span;
                self.flush(extra)
            }
            What::Expect(expectation) => {
                self.flush(extra)?;
                self.expect(expectation)
            }
            What::Defaults(sort, fields) => {
                self.defaults[*sort as usize] = fields.clone();
                Ok(())
            }
        }
    }

    /// Lets the world run up to the moment of the file.
    fn flush(&mut self, extra: &mut dyn Observer) -> Result<(), ScenarioError> {
        let until = self.start + self.at;
        let mut quiet = crate::world::Nobody;
        let mut checked = Both(&mut self.checks, extra);
        let notes: &mut dyn Observer = if self.manner.quiet { &mut quiet } else { &mut self.notes };
        self.world.run_until(until, &mut Both(notes, &mut checked));
        if let Some(what) = self.checks.violation() {
            return Err(ScenarioError::Broken {
                place: self.place(),
                what: what.to_owned(),
                timeline: self.notes.timeline(),
            });
        }
        // A job may be expected to be refused; anything else may not.
        self.unexpected(|refused| refused.job.is_none() && !refused.field.starts_with("policy "))
    }

    fn expect(&mut self, expectation: &Expectation) -> Result<(), ScenarioError> {
        let found = match expectation {
            Expectation::Refused(names, how) => {
                names.iter().try_for_each(|name| self.was_refused(name, how))
            }
            Expectation::PolicyRefused(queue, text) => self.policy_was_refused(queue, text),
            other => verify::verify(&self.world, &self.notes, other),
        };
        self.expectations += 1;
        found.map_err(|(expected, found)| ScenarioError::Expectation {
            place: self.place(),
            expected,
            found,
            timeline: self.notes.timeline(),
        })
    }

    fn was_refused(
        &mut self,
        name: &Arc<str>,
        how: &ExpectedRefusal,
    ) -> Result<(), verify::Failure> {
        let expected = || match &how.text {
            Some(text) => format!("{name} refused for {} with {text:?}", how.field),
            None => format!("{name} refused for {}", how.field),
        };
        let last = self.notes.refused.iter().enumerate().rev();
        let Some((i, refused)) = last.clone().find(|(_, r)| r.job.as_ref() == Some(name)) else {
            return Err((expected(), "it was not refused".to_owned()));
        };
        self.expected.insert(i);
        let says = how.text.as_ref().is_none_or(|text| refused.why.contains(text));
        if refused.field != how.field || !says {
            return Err((expected(), refused.why.clone()));
        }
        Ok(())
    }

    fn policy_was_refused(&mut self, queue: &str, text: &str) -> Result<(), verify::Failure> {
        let field = format!("policy {queue}");
        let expected = format!("the policy of queue {queue} refused with {text:?}");
        let mut last = self.notes.refused.iter().enumerate().rev();
        match last.find(|(_, r)| r.field == field) {
            Some((i, refused)) if refused.why.contains(text) => {
                self.expected.insert(i);
                Ok(())
            }
            Some((_, refused)) => Err((expected, refused.why.clone())),
            None => Err((expected, "it was not refused".to_owned())),
        }
    }

    /// Fails for a refusal that nothing expected.
    fn unexpected(&self, counts: impl Fn(&Refused) -> bool) -> Result<(), ScenarioError> {
        let mut refused = self.notes.refused.iter().enumerate();
        match refused.find(|(i, refused)| counts(refused) && !self.expected.contains(i)) {
            Some((_, refused)) if !self.manner.lenient => {
                let line = self.lines.get(&refused.command).copied().unwrap_or(self.line);
                let place = Place { file: self.file.clone(), line };
                let (what, why) = (refused.command.clone(), refused.why.clone());
                Err(ScenarioError::Refused { place, what, why })
            }
            _ => Ok(()),
        }
    }
}
