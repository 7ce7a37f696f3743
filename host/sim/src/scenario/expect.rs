//! What a scenario expects.

use super::lex::names;
use super::statement::indices;
use crater_engine::By;
use crater_model::{JobState, MilliCards, parse};
use std::fmt;
use std::sync::Arc;

/// One `expect` line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expectation {
    /// How jobs stand, and what is true of each of them.
    Jobs {
        /// Which.
        names: Vec<Arc<str>>,
        /// How many of them; `None`: all.
        count: Option<usize>,
        /// How they stand.
        standing: Standing,
        /// What else is true of each.
        clauses: Vec<Clause>,
    },
    /// Jobs were refused at submission.
    Refused(Vec<Arc<str>>, Refused),
    /// A queue's new policy was refused.
    PolicyRefused(Arc<str>, String),
    /// Figures of nodes, cards, queues or the cluster.
    Figures(Of, Which, Vec<Figure>),
}

/// How a job was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The field that is to blame; `policy` when the policy refused.
    pub field: String,
    /// What the refusal says besides.
    pub text: Option<String>,
}

/// How a job stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// In a state.
    State(JobState),
    /// Starting or running.
    Placed,
    /// On its way out: something of it is still held.
    Releasing,
    /// Over, and holding nothing.
    Gone,
}

/// What else is true of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Clause {
    /// Its members are on these nodes, and on each of them at least one.
    On(Vec<Arc<str>>),
    /// Its members' cards are these.
    Cards(Vec<usize>),
    /// Its MIG instances are these, `PROFILE@START`.
    Mig(Vec<String>),
    /// It holds so many members.
    Members(usize),
    /// It waits, and the reason contains this.
    Because(String),
    /// Who made the last decision on it.
    By(By),
    /// The last decision's fault contains this.
    Fault(String),
    /// It started so often.
    Starts(u32),
    /// It was evicted to be started again so often.
    Preemptions(u32),
    /// It was last evicted for this, and has not started since.
    Evicted(String),
    /// All members of all the named jobs are on one node.
    Together,
    /// No two members of the named jobs are on one node.
    Apart,
}

/// Whose figures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Of {
    /// Of each of these nodes.
    Nodes(Vec<Arc<str>>),
    /// Of each of these cards of a node.
    Cards(Arc<str>, Vec<usize>),
    /// Of a queue.
    Queue(Arc<str>),
    /// Of each of these tenants.
    Tenants(Vec<Arc<str>>),
    /// Of all nodes together.
    Cluster,
}

/// Which figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// Not promised.
    Free,
    /// Promised.
    Used,
    /// As described; of a tenant its hard limit.
    Total,
    /// Used above a tenant's hard limit.
    Excess,
    /// Of that, what was borrowed.
    Borrowed,
    /// Neither: a count.
    Count,
}

/// A figure and what it must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Figure {
    /// Its name.
    pub key: String,
    /// How it is compared.
    pub compare: Compare,
    /// With what, in the model's own unit.
    pub value: u64,
    /// As it was written.
    pub text: String,
}

/// How a figure is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compare {
    /// Equal.
    Is,
    /// At least.
    AtLeast,
    /// At most.
    AtMost,
}

impl Compare {
    /// Whether `found` compares with `value`.
    pub fn holds(self, found: u64, value: u64) -> bool {
        match self {
            Self::Is => found == value,
            Self::AtLeast => found >= value,
            Self::AtMost => found <= value,
        }
    }
}

impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::State(JobState::Pending) => "waiting",
            Self::State(state) => return f.write_str(&format!("{state:?}").to_lowercase()),
            Self::Placed => "placed",
            Self::Releasing => "releasing",
            Self::Gone => "gone",
        })
    }
}

impl Standing {
    fn parse(word: &str) -> Option<Self> {
        let state = Self::State;
        Some(match word {
            "waiting" => state(JobState::Pending),
            "starting" => state(JobState::Starting),
            "running" => state(JobState::Running),
            "preempting" => state(JobState::Preempting),
            "succeeded" => state(JobState::Succeeded),
            "failed" => state(JobState::Failed),
            "cancelled" => state(JobState::Cancelled),
            "evicted" => state(JobState::Evicted),
            "placed" => Self::Placed,
            "releasing" => Self::Releasing,
            "gone" => Self::Gone,
            _ => return None,
        })
    }
}

impl Expectation {
    /// Reads the words after `expect`; an error says what was expected.
    pub fn parse(words: &[String]) -> Result<Self, String> {
        let text: Vec<&str> = words.iter().map(String::as_str).collect();
        match text.as_slice() {
            ["node" | "nodes", list, which, figures @ ..] => {
                figures_of(Of::Nodes(names(list)?), which, figures)
            }
            ["card" | "cards", place, which, figures @ ..] => {
                let (node, list) = place.split_once(':').ok_or("a card such as n1:0")?;
                figures_of(Of::Cards(node.into(), indices(list)?), which, figures)
            }
            ["tenant" | "tenants", list, which, figures @ ..] => {
                figures_of(Of::Tenants(names(list)?), which, figures)
            }
            ["cluster", which, figures @ ..] => figures_of(Of::Cluster, which, figures),
            ["queue", name, figures @ ..] => {
                let figures = figures.iter().map(|f| figure(f)).collect::<Result<_, _>>()?;
                Ok(Self::Figures(Of::Queue((*name).into()), Which::Count, figures))
            }
            ["policy", queue, "refused", text] => {
                Ok(Self::PolicyRefused((*queue).into(), (*text).to_owned()))
            }
            [count, "of", list, standing, clauses @ ..] => {
                let count = count.parse().map_err(|_| format!("a number in place of {count:?}"))?;
                jobs(list, Some(count), standing, clauses)
            }
            [list, "refused", field, rest @ ..] => {
                let text = match rest {
                    [] => None,
                    [text] => Some((*text).to_owned()),
                    _ => return Err("one quoted text after the field".to_owned()),
                };
                Ok(Self::Refused(names(list)?, Refused { field: (*field).to_owned(), text }))
            }
            [list, standing, clauses @ ..] => jobs(list, None, standing, clauses),
            _ => {
                Err("expect JOBS STATE …, JOBS refused FIELD, node …, card …, queue …, tenant …, \
                      cluster … or policy …"
                    .to_owned())
            }
        }
    }
}

fn jobs(
    list: &str,
    count: Option<usize>,
    standing: &str,
    mut words: &[&str],
) -> Result<Expectation, String> {
    let standing = Standing::parse(standing).ok_or_else(|| {
        format!(
            "waiting, starting, running, placed, preempting, releasing, succeeded, failed, \
             cancelled, evicted, gone or refused in place of {standing:?}"
        )
    })?;
    let mut clauses = vec![];
    while !words.is_empty() {
        let (clause, rest) = clause(words)?;
        clauses.push(clause);
        words = rest;
    }
    Ok(Expectation::Jobs { names: names(list)?, count, standing, clauses })
}

fn clause<'a, 'b>(words: &'a [&'b str]) -> Result<(Clause, &'a [&'b str]), String> {
    let number = |text: &str| text.parse().map_err(|_| format!("a number in place of {text:?}"));
    Ok(match words {
        ["together", rest @ ..] => (Clause::Together, rest),
        ["apart", rest @ ..] => (Clause::Apart, rest),
        ["on", list, rest @ ..] => (Clause::On(names(list)?), rest),
        ["card" | "cards", list, rest @ ..] => (Clause::Cards(indices(list)?), rest),
        ["mig", list, rest @ ..] => {
            (Clause::Mig(list.split(',').map(str::to_owned).collect()), rest)
        }
        ["members", n, rest @ ..] => (Clause::Members(number(n)?), rest),
        ["because", text, rest @ ..] => (Clause::Because((*text).to_owned()), rest),
        ["fault", text, rest @ ..] => (Clause::Fault((*text).to_owned()), rest),
        ["starts", n, rest @ ..] => (Clause::Starts(number(n)? as u32), rest),
        ["preemptions", n, rest @ ..] => (Clause::Preemptions(number(n)? as u32), rest),
        ["for", cause, rest @ ..] => (Clause::Evicted((*cause).to_owned()), rest),
        ["by", who, rest @ ..] => {
            let by = match *who {
                "policy" => By::Policy,
                "fallback" => By::Fallback,
                "builtin" => By::Builtin,
                _ => return Err(format!("policy, fallback or builtin in place of {who:?}")),
            };
            (Clause::By(by), rest)
        }
        _ => {
            return Err(format!(
                "on NODES, cards N,N, mig PROFILE@START, members N, because TEXT, by \
                 policy|fallback|builtin, fault TEXT, starts N, preemptions N, for CAUSE, together or apart in place of {:?}",
                words.first().unwrap_or(&"")
            ));
        }
    })
}

fn figures_of(of: Of, which: &str, figures: &[&str]) -> Result<Expectation, String> {
    let which = match which {
        "free" => Which::Free,
        "used" => Which::Used,
        "total" => Which::Total,
        "excess" if matches!(of, Of::Tenants(_)) => Which::Excess,
        "borrowed" if matches!(of, Of::Tenants(_)) => Which::Borrowed,
        _ => return Err(format!("free, used or total in place of {which:?}")),
    };
    if figures.is_empty() {
        return Err("figures, such as gpu=1.2 or cpu>=4".to_owned());
    }
    let figures = figures.iter().map(|f| figure(f)).collect::<Result<_, _>>()?;
    Ok(Expectation::Figures(of, which, figures))
}

/// `gpu=1.2`, `cpu>=4`, `memory<=1Gi`.
fn figure(text: &str) -> Result<Figure, String> {
    let expected = || format!("a figure such as gpu=1.2 or cpu>=4 in place of {text:?}");
    let at = text.find(['=', '<', '>']).ok_or_else(expected)?;
    let (key, rest) = text.split_at(at);
    let (compare, value) = match rest.as_bytes() {
        [b'>', b'=', ..] => (Compare::AtLeast, &rest[2..]),
        [b'<', b'=', ..] => (Compare::AtMost, &rest[2..]),
        [b'=', ..] => (Compare::Is, &rest[1..]),
        _ => return Err(expected()),
    };
    let parsed = match key {
        "cpu" => parse::cpu(key, value).map(|n| n.0),
        "memory" | "gpu-memory" => parse::memory(key, value).map(|n| n.0),
        key if key == "gpu" || key.starts_with("gpu.") => {
            parse::gpu(key, value, MilliCards(1)).map(|n| n.0)
        }
        "disk" | "disk-mbps" | "iops" | "members" | "cards" | "idle-cards" | "nodes" | "shares"
        | "instances" | "waiting" | "running" | "starts" | "preemptions" | "evictions" => {
            parse::integer(key, value, 0, u64::MAX)
        }
        _ => return Err(expected()),
    };
    let value = parsed.map_err(|e| e.to_string())?;
    Ok(Figure { key: key.to_owned(), compare, value, text: text.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Expectation, String> {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        Expectation::parse(&words)
    }

    #[test]
    fn lines_are_read_whole_or_not_at_all() {
        let jobs = parse("3 of j1..j4 running on n1,n2 cards 0,1 by fallback").unwrap();
        let Expectation::Jobs { names, count, clauses, .. } = jobs else { panic!("{jobs:?}") };
        assert_eq!((names.len(), count, clauses.len()), (4, Some(3), 3));
        assert!(parse("j1 refused gpu").is_ok());
        assert!(parse("card n1:0 free gpu=0.2 memory>=16Gi").is_ok());
        assert!(parse("queue q waiting=3 running<=2").is_ok());
        assert!(parse("tenants ai,ai/nlp excess gpu=1.5 gpu.A100<=2").is_ok());
        for bad in [
            "j1 happy",
            "j1 running on",
            "node n1 free",
            "node n1 free gpu=x",
            "j1",
            "j1 running x",
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
