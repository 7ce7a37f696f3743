//! Lines into statements. Values that depend on what came before (a node like
//! another one, a job's refusal) are read when the statement is carried out.

use super::expect::Expectation;
use super::lex::{Fields, Line, duration, names};
use super::tenant::TenantLine;
use crate::world::WireSettings;
use crater_model::{MilliCards, parse};
use std::sync::Arc;
use std::time::Duration;

/// One statement and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// Its line.
    pub line: usize,
    /// The time that it gives.
    pub at: Option<Duration>,
    /// What it says.
    pub what: What,
}

/// What a statement says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// Something is done.
    Do(Action),
    /// Time passes, to this moment from the beginning.
    RunUntil(Duration),
    /// Time passes, for so long.
    RunFor(Duration),
    /// Something must hold.
    Expect(Expectation),
    /// Fields that later lines of a sort have unless they say otherwise.
    Defaults(Sort, Fields),
}

/// Sorts of line that have defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    /// `node`.
    Node,
    /// `submit`.
    Submit,
}

type Names = Vec<Arc<str>>;

/// What is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Machines appear, perhaps like another one.
    Node(Names, Option<Arc<str>>, Fields),
    /// Machines are described anew.
    Change(Names, Fields),
    /// Machines are gone for good.
    Remove(Names),
    /// Machines take nothing new, or do again.
    Cordon(Names, bool),
    /// Cards of machines fall sick or get well.
    Health(Names, Vec<usize>, bool),
    /// A queue is made or changed.
    Queue(Arc<str>, Fields),
    /// A queue starts nothing, or does again.
    Pause(Arc<str>, bool),
    /// A queue decides by another policy: name and configuration.
    Policy(Arc<str>, String, String),
    /// Tenants are made or changed.
    Tenant(Names, TenantLine),
    /// Whether the tenants' limits are known.
    Quotas(bool),
    /// What holds for all tenants.
    Platform(Fields),
    /// Jobs save their progress.
    Checkpoint(Names),
    /// A person sends jobs back to their queues.
    Requeue(Names),
    /// Jobs are submitted.
    Submit(Names, Fields),
    /// Jobs are changed by their owners.
    Update(Names, Fields),
    /// Jobs are ended by their owners.
    Cancel(Names),
    /// All members of jobs end well.
    Finish(Names),
    /// One member of each job ends badly.
    Fail(Names),
    /// The wire gets better or worse.
    Wire(WireSettings),
    /// Books and machines compare notes.
    Resync,
}

/// What a file says of itself as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// Seed of the first run.
    pub seed: u64,
    /// Runs, each with the next seed.
    pub repeat: u64,
    /// From an order to start until a member runs.
    pub start_delay: Duration,
    /// From an order to stop until a member is gone.
    pub shutdown: Duration,
    /// Time of the day at 0s.
    pub clock: Duration,
    /// Steps in which `gpu` may be given.
    pub gpu_step: MilliCards,
    /// Deciders that take turns.
    pub deciders: usize,
    /// Most jobs that one round places.
    pub limit: usize,
    /// How often books and machines compare notes.
    pub resync: Option<Duration>,
}

impl Default for Header {
    fn default() -> Self {
        Self {
            seed: 0,
            repeat: 1,
            start_delay: Duration::ZERO,
            shutdown: Duration::ZERO,
            clock: Duration::ZERO,
            gpu_step: MilliCards(100),
            deciders: 1,
            limit: usize::MAX,
            resync: None,
        }
    }
}

impl Header {
    /// Takes the fields of a `set` line; an error says what was expected.
    pub fn set(&mut self, words: &[String]) -> Result<(), String> {
        for (key, value) in Fields::parse(words)?.0 {
            self.field(&key, &value)?;
        }
        Ok(())
    }

    fn field(&mut self, key: &str, value: &str) -> Result<(), String> {
        let say = |e: crater_model::FieldError| e.to_string();
        let span = || duration(key, value).map_err(say);
        let count = |min| parse::integer(key, value, min, u64::from(u32::MAX)).map_err(say);
        match key {
            "seed" => self.seed = parse::integer(key, value, 0, u64::MAX).map_err(say)?,
            "repeat" => self.repeat = count(1)?,
            "start-delay" => self.start_delay = span()?,
            "shutdown" => self.shutdown = span()?,
            "clock" => self.clock = clock(value)?,
            "gpu-step" => self.gpu_step = parse::gpu(key, value, MilliCards(1)).map_err(say)?,
            "deciders" => self.deciders = count(1)? as usize,
            "limit" => self.limit = count(1)? as usize,
            "resync" => self.resync = Some(span()?).filter(|s| !s.is_zero()),
            _ => {
                return Err(
                    "seed, repeat, start-delay, shutdown, clock, gpu-step, deciders, limit \
                            or resync"
                        .to_owned(),
                );
            }
        }
        Ok(())
    }
}

/// `22:30`.
fn clock(text: &str) -> Result<Duration, String> {
    let expected = || "a time of the day, such as 22:30".to_owned();
    let (hours, minutes) = text.split_once(':').ok_or_else(expected)?;
    let part = |s: &str, below: u64| s.parse().ok().filter(|n: &u64| *n < below);
    match (part(hours, 24), part(minutes, 60)) {
        (Some(h), Some(m)) => Ok(Duration::from_secs(h * 3600 + m * 60)),
        _ => Err(expected()),
    }
}

impl Statement {
    /// Reads a line; an error says what was expected.
    pub fn parse(line: &Line) -> Result<Self, String> {
        let mut words = line.words.as_slice();
        let mut at = None;
        if let [first, time, rest @ ..] = words
            && first == "at"
        {
            at = Some(duration("at", time).map_err(|e| e.to_string())?);
            words = rest;
        }
        let (verb, rest) = words.split_first().ok_or("something to do after the time")?;
        let what = match verb.as_str() {
            "expect" => What::Expect(Expectation::parse(rest)?),
            "run" => run(rest)?,
            "defaults" => defaults(rest)?,
            verb => What::Do(action(verb, rest)?),
        };
        Ok(Self { line: line.number, at, what })
    }
}

fn run(words: &[String]) -> Result<What, String> {
    let span = |text: &String| duration("run", text).map_err(|e| e.to_string());
    match words {
        [until, time] if until == "until" => Ok(What::RunUntil(span(time)?)),
        [time] => Ok(What::RunFor(span(time)?)),
        _ => Err("run until TIME, or run SPAN".to_owned()),
    }
}

fn defaults(words: &[String]) -> Result<What, String> {
    match words.split_first() {
        Some((sort, rest)) if sort == "node" => {
            Ok(What::Defaults(Sort::Node, Fields::parse(rest)?))
        }
        Some((sort, rest)) if sort == "submit" => {
            Ok(What::Defaults(Sort::Submit, Fields::parse(rest)?))
        }
        _ => Err("defaults node … or defaults submit …".to_owned()),
    }
}

fn action(verb: &str, words: &[String]) -> Result<Action, String> {
    let Some((first, rest)) = words.split_first() else {
        return if verb == "resync" { Ok(Action::Resync) } else { unknown(verb) };
    };
    let many = || names(first);
    let one = || Arc::<str>::from(first.as_str());
    let nothing_more = || match rest {
        [] => Ok(()),
        [word, ..] => Err(format!("nothing after the names, in place of {word:?}")),
    };
    Ok(match verb {
        "node" => match rest {
            [like, other, rest @ ..] if like == "like" => {
                Action::Node(many()?, Some(other.as_str().into()), Fields::parse(rest)?)
            }
            rest => Action::Node(many()?, None, Fields::parse(rest)?),
        },
        "change" => Action::Change(many()?, Fields::parse(rest)?),
        "queue" => Action::Queue(one(), Fields::parse(rest)?),
        "tenant" | "tenants" => Action::Tenant(many()?, TenantLine::parse(rest)?),
        "quotas" => nothing_more().and(quotas(first)).map(Action::Quotas)?,
        "update" => Action::Update(many()?, Fields::parse(rest)?),
        "submit" => Action::Submit(many()?, Fields::parse(rest)?),
        "policy" => policy(one(), rest)?,
        "platform" => Action::Platform(Fields::parse(words)?),
        "checkpoint" => nothing_more().and(many()).map(Action::Checkpoint)?,
        "requeue" => nothing_more().and(many()).map(Action::Requeue)?,
        "sick" | "well" => Action::Health(many()?, cards(rest)?, verb == "well"),
        "wire" => Action::Wire(wire(words)?),
        "pause" | "resume" => nothing_more().map(|()| Action::Pause(one(), verb == "pause"))?,
        "remove" => nothing_more().and(many()).map(Action::Remove)?,
        "cordon" | "uncordon" => {
            nothing_more().and(many()).map(|n| Action::Cordon(n, verb == "cordon"))?
        }
        "cancel" => nothing_more().and(many()).map(Action::Cancel)?,
        "finish" => nothing_more().and(many()).map(Action::Finish)?,
        "fail" => nothing_more().and(many()).map(Action::Fail)?,
        _ => return unknown(verb),
    })
}

fn unknown(verb: &str) -> Result<Action, String> {
    Err(format!(
        "node, change, remove, cordon, uncordon, sick, well, queue, policy, pause, resume, tenant, \
         quotas, platform, submit, update, cancel, requeue, checkpoint, finish, fail, wire, resync, run, expect, defaults or set, with what it is about, \
         in place of {verb:?}"
    ))
}

fn quotas(word: &str) -> Result<bool, String> {
    match word {
        "known" => Ok(true),
        "unknown" => Ok(false),
        _ => Err(format!("known or unknown in place of {word:?}")),
    }
}

fn policy(queue: Arc<str>, words: &[String]) -> Result<Action, String> {
    let expected = "policy QUEUE NAME, and config=… if it has any";
    let (name, rest) = words.split_first().ok_or(expected)?;
    let fields = Fields::parse(rest)?;
    match fields.0.as_slice() {
        [] => Ok(Action::Policy(queue, name.clone(), String::new())),
        [(key, config)] if key == "config" => {
            Ok(Action::Policy(queue, name.clone(), config.clone()))
        }
        _ => Err(expected.to_owned()),
    }
}

/// `card 0,2` or `cards 0,2`.
fn cards(words: &[String]) -> Result<Vec<usize>, String> {
    match words {
        [word, list] if word == "card" || word == "cards" => indices(list),
        _ => Err("card N or cards N,N after the node".to_owned()),
    }
}

/// `0,2`.
pub fn indices(list: &str) -> Result<Vec<usize>, String> {
    let index = |part: &str| part.parse().map_err(|_| format!("card numbers in place of {part:?}"));
    list.split(',').map(index).collect()
}

fn wire(words: &[String]) -> Result<WireSettings, String> {
    let mut wire = WireSettings::default();
    if words.len() == 1 && words[0] == "good" {
        return Ok(wire);
    }
    for (key, value) in Fields::parse(words)?.0 {
        let say = |e: crater_model::FieldError| e.to_string();
        let part = || parse::integer(&key, value.trim_end_matches('%'), 0, 100).map_err(say);
        match key.as_str() {
            "late" => wire.late = part()? as u8,
            "lost" => wire.lost = part()? as u8,
            "doubled" => wire.doubled = part()? as u8,
            "by" => wire.by = duration("by", &value).map_err(say)?,
            _ => return Err("wire good, or late=N% by=SPAN lost=N% doubled=N%".to_owned()),
        }
    }
    Ok(wire)
}
