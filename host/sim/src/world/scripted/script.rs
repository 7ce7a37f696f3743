//! Reads the line that describes a scripted policy.

use crater_engine::{Fault, Interface, Manifest};
use crater_model::columns as c;
use std::collections::BTreeSet;
use std::sync::Arc;
use thiserror::Error;

/// A word of a script that means nothing.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("scripted policy: {word:?} is not understood: expected {expected}")]
pub struct ScriptError {
    /// The word.
    pub word: String,
    /// What it should be.
    pub expected: &'static str,
}

/// How rows are scored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Score {
    /// By a hash of all it sees, below this.
    Hash(u64),
    /// By a column, or against it.
    Column(u32, i32),
}

/// Which cards it asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Masks {
    /// Cards that have room, where it can tell.
    Fitting,
    /// Any bits.
    Wild,
}

/// What groups add.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GroupScore {
    /// A hash of the group, below this.
    Hash(u64),
    /// Its idle cards against the mean of all groups.
    Mean,
}

/// How jobs are ranked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rank {
    /// By a hash, into so many tiers and classes.
    Hash(u64, u64),
    /// By a column, or against it; classes by another one.
    Column(u32, i32, Option<u32>),
}

/// What units of eviction cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Prices {
    /// The same, all of them.
    Equal,
    /// By a hash, so many tiers and so many costs.
    Hash(u64, u64),
    /// The least and the most that a number holds, and what is next to them.
    Extreme,
    /// So many of a hundred are spared, the others cost the same.
    Spare(u8),
}

/// A way to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Trap,
    Deadline,
    Memory,
    Unavailable,
    /// One entry too few.
    Count,
    /// A code or a card that there is not.
    Value,
}

impl Kind {
    fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "trap" => Self::Trap,
            "deadline" => Self::Deadline,
            "memory" => Self::Memory,
            "unavailable" => Self::Unavailable,
            "count" => Self::Count,
            "value" => Self::Value,
            _ => return None,
        })
    }

    /// The fault, for those that leave no answer.
    pub(super) fn raise(self, interface: Interface) -> Result<(), Fault> {
        Err(match self {
            Self::Trap => Fault::Trap { interface, message: "scripted".to_owned() },
            Self::Deadline => Fault::Deadline { interface, limit_ms: 50 },
            Self::Memory => Fault::Memory { interface, limit_bytes: 2 << 20 },
            Self::Unavailable => Fault::Unavailable { interface, detail: "scripted".to_owned() },
            Self::Count | Self::Value => return Ok(()),
        })
    }
}

/// When to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FaultRule {
    pub kind: Kind,
    pub interface: Interface,
    /// For so many jobs (or tables) of a hundred, by their values.
    pub percent: u8,
    /// Or whenever one of so many rows of a hundred is in the table.
    pub rows: u8,
    /// Or at every so manieth call, whoever asks.
    pub every: u64,
}

/// What a scripted policy does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Script {
    pub(super) salt: u64,
    wants: BTreeSet<u32>,
    labels: Vec<String>,
    options: Vec<(u32, i32)>,
    pub(super) filter: Option<u8>,
    pub(super) defer: Option<(u8, u32)>,
    reason: String,
    pub(super) score: Option<Score>,
    pub(super) masks: Option<Masks>,
    pub(super) groups: Option<GroupScore>,
    pub(super) rank: Option<Rank>,
    pub(super) prices: Option<Prices>,
    pub(super) refuses: Option<String>,
    pub(super) faults: Vec<FaultRule>,
    pub(super) whole: bool,
}

/// What `masks=fitting` must see.
const MASK_COLUMNS: [u32; 14] = [
    c::JOB_CARDS,
    c::JOB_CARD_MILLI,
    c::JOB_CARD_MIB,
    c::JOB_WHOLE_CARDS,
    c::JOB_MODELS,
    c::JOB_MIG_PROFILE,
    c::JOB_NVLINK,
    c::JOB_NUMA,
    c::CARD_FREE,
    c::CARD_MEMORY_FREE,
    c::CARD_MEMORY_TOTAL,
    c::CARD_MODEL,
    c::CARD_HEALTHY,
    c::CARD_MIG,
];

const GROUP_COLUMNS: [u32; 7] = [
    c::GROUP_KIND,
    c::GROUP_NAME,
    c::GROUP_NODES,
    c::GROUP_CARDS,
    c::GROUP_CARDS_IDLE,
    c::GROUP_GPU_FREE,
    c::GROUP_CPU_FREE,
];

impl Script {
    /// Reads words `key=value` and the plain words `whole` and `normalise`.
    pub fn parse(text: &str) -> Result<Self, ScriptError> {
        let mut script = Self { reason: "the script says no".to_owned(), ..Self::default() };
        for word in text.split_whitespace() {
            let expected = script.word(word);
            if let Err(expected) = expected {
                return Err(ScriptError { word: word.to_owned(), expected });
            }
        }
        Ok(script)
    }

    fn word(&mut self, word: &str) -> Result<(), &'static str> {
        let (key, value) = word.split_once('=').unwrap_or((word, ""));
        match key {
            "whole" if value.is_empty() => {
                self.whole = true;
                self.options.push((c::OPTION_SCOPE, 1));
            }
            "normalise" if value.is_empty() => self.options.push((c::OPTION_NORMALISE, 1)),
            "salt" => self.salt = number(value)?,
            "step" => self.options.push((c::OPTION_TIME_STEP, number(value)? as i32)),
            "wants" => {
                for name in value.split(',') {
                    let id = column(name).ok_or("wants=COLUMN,COLUMN: names of the contract")?;
                    self.wants.insert(id);
                }
            }
            "labels" => self.labels = value.split(',').map(str::to_owned).collect(),
            "filter" => self.filter = Some(percent(value)?),
            "defer" => {
                let expected = "defer=PERCENT:SECONDS";
                let (part, secs) = value.split_once(':').ok_or(expected)?;
                let secs = secs.parse().ok().filter(|s| *s > 0).ok_or(expected)?;
                self.defer = Some((percent(part)?, secs));
            }
            "reason" => self.reason = value.replace('-', " "),
            "score" => self.score = Some(self.score(value)?),
            "masks" => {
                self.wants.extend(MASK_COLUMNS);
                self.masks = Some(match value {
                    "fitting" => Masks::Fitting,
                    "wild" => Masks::Wild,
                    _ => return Err("masks=fitting or masks=wild"),
                });
            }
            "groups" => self.groups(value)?,
            "rank" => self.rank = Some(self.rank(value)?),
            "preempt" => self.prices = Some(prices(value)?),
            "admit" => {
                let text = value.strip_prefix("refuse:").ok_or("admit=refuse:TEXT")?;
                self.refuses = Some(text.replace('-', " "));
            }
            "fault" => self.faults.push(fault(value).ok_or(
                "fault=KIND@INTERFACE and :PERCENT, /PERCENT or #EVERY; KIND trap, deadline, \
                 memory, unavailable, count or value",
            )?),
            _ => {
                return Err("salt, wants, labels, filter, defer, reason, score, masks, groups, \
                            rank, preempt, admit, fault, step, whole or normalise");
            }
        }
        Ok(())
    }

    fn score(&mut self, value: &str) -> Result<Score, &'static str> {
        let expected = "score=hash:N, score=COLUMN or score=-COLUMN";
        if let Some(n) = value.strip_prefix("hash:") {
            return Ok(Score::Hash(number(n)?.max(1)));
        }
        let (name, sign) = value.strip_prefix('-').map_or((value, 1), |name| (name, -1));
        let id = column(name).filter(|id| (200..300).contains(id)).ok_or(expected)?;
        self.wants.insert(id);
        Ok(Score::Column(id, sign))
    }

    fn rank(&mut self, value: &str) -> Result<Rank, &'static str> {
        let expected = "rank=TIERS:CLASSES, or rank=COLUMN, rank=-COLUMN and /COLUMN for classes";
        if let Some((tiers, classes)) = value.split_once(':') {
            return Ok(Rank::Hash(number(tiers)?.max(1), number(classes)?.max(1)));
        }
        let (weight, class) = match value.split_once('/') {
            Some((weight, class)) => (weight, Some(class)),
            None => (value, None),
        };
        let (name, sign) = weight.strip_prefix('-').map_or((weight, 1), |name| (name, -1));
        let of_job = |name| column(name).filter(|id| (100..200).contains(id)).ok_or(expected);
        let (weight, class) = (of_job(name)?, class.map(of_job).transpose()?);
        self.wants.insert(weight);
        self.wants.extend(class);
        Ok(Rank::Column(weight, sign, class))
    }

    fn groups(&mut self, value: &str) -> Result<(), &'static str> {
        let expected = "groups=BY:hash:N or groups=BY:mean, BY model, domain, zone joined by '+'";
        let (by, what) = value.split_once(':').ok_or(expected)?;
        let mut bits = 0;
        for kind in by.split('+') {
            bits |= match kind {
                "model" => 1,
                "domain" => 2,
                "zone" => 4,
                _ => return Err(expected),
            };
        }
        self.options.push((c::OPTION_GROUP_BY, bits));
        self.wants.extend(GROUP_COLUMNS);
        self.groups = Some(match what.split_once(':') {
            Some(("hash", n)) => GroupScore::Hash(number(n)?.max(1)),
            None if what == "mean" => GroupScore::Mean,
            _ => return Err(expected),
        });
        Ok(())
    }

    /// What the policy says of itself.
    pub(super) fn manifest(&self) -> Manifest {
        let faulty = |interface| self.faults.iter().any(|f| f.interface == interface);
        let made = [
            (Interface::Filter, self.filter.is_some() || self.defer.is_some()),
            (Interface::Score, self.score.is_some() || self.masks.is_some()),
            (Interface::ScoreGroups, self.groups.is_some()),
            (Interface::Preempt, self.prices.is_some()),
            (Interface::Rank, self.rank.is_some()),
            (Interface::Admit, self.refuses.is_some()),
        ];
        let exports = made.into_iter().filter(|(i, made)| *made || faulty(*i)).map(|(i, _)| i);
        Manifest {
            name: "scripted".to_owned(),
            version: "1".to_owned(),
            wants: self.wants.iter().copied().collect(),
            labels: self.labels.clone(),
            options: self.options.clone(),
            reasons: vec![(1, Arc::from(self.reason.as_str()))],
            schema: String::new(),
            exports: exports.collect(),
        }
    }
}

fn prices(text: &str) -> Result<Prices, &'static str> {
    let expected = "preempt=equal, preempt=extreme, preempt=spare:PERCENT or preempt=hash:N:N";
    match text.split_once(':') {
        None if text == "equal" => Ok(Prices::Equal),
        None if text == "extreme" => Ok(Prices::Extreme),
        Some(("spare", part)) => Ok(Prices::Spare(percent(part)?)),
        Some(("hash", below)) => {
            let (tiers, costs) = below.split_once(':').ok_or(expected)?;
            Ok(Prices::Hash(number(tiers)?.max(1), number(costs)?.max(1)))
        }
        _ => Err(expected),
    }
}

fn number(text: &str) -> Result<u64, &'static str> {
    text.parse().map_err(|_| "a whole number")
}

fn percent(text: &str) -> Result<u8, &'static str> {
    text.parse().ok().filter(|n| *n <= 100).ok_or("a number from 0 to 100")
}

fn column(name: &str) -> Option<u32> {
    c::COLUMNS.iter().find(|info| info.name == name).map(|info| info.id)
}

fn fault(text: &str) -> Option<FaultRule> {
    let (kind, rest) = text.split_once('@')?;
    let at = rest.find(['#', ':', '/']).unwrap_or(rest.len());
    let (name, when) = rest.split_at(at);
    let kind = Kind::parse(kind)?;
    let interface = Interface::ALL.into_iter().find(|i| i.name() == name)?;
    let mut rule = FaultRule { kind, interface, percent: 0, rows: 0, every: 0 };
    match when.split_at_checked(1) {
        None => rule.percent = 100,
        Some((":", n)) => rule.percent = percent(n).ok()?,
        Some(("/", n)) => rule.rows = percent(n).ok()?,
        Some((_, n)) => rule.every = n.parse().ok().filter(|n| *n > 0)?,
    }
    Some(rule)
}
