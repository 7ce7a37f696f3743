//! The last checks before a policy goes live: small made-up tables through
//! every interface it exports. Its answers must follow the contract, and must
//! be the same when asked again and when asked of a fresh instance.

use crate::configured::Configured;
use crate::made_up::{self, CARDS};
use crater_engine::policy::{Column, Fault, Interface, Manifest, Policy, Scores, Values};
use crater_model::columns::{self, TableKind};
use thiserror::Error;

/// How a policy failed its last checks.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum GoldenError {
    /// A call gave no answer.
    #[error("asked about {rows} made-up rows: {fault}")]
    Fault {
        /// Rows of the table.
        rows: u32,
        /// What happened.
        fault: Fault,
    },
    /// An answer breaks the contract.
    #[error("asked {interface} about {rows} made-up rows, it answered {detail}")]
    Answer {
        /// The interface.
        interface: Interface,
        /// Rows of the table.
        rows: u32,
        /// What is wrong.
        detail: String,
    },
    /// It answers differently without a reason.
    #[error(
        "asked {interface} the same {when}, about {rows} made-up rows, it answered differently; \
         answers may depend on the given columns alone (take chance from the seed)"
    )]
    Differs {
        /// The interface.
        interface: Interface,
        /// Rows of the table.
        rows: u32,
        /// `again` or `of a fresh instance`.
        when: &'static str,
    },
}

/// Runs all checks. Costs three rounds of a few small calls, and a second
/// instance.
pub(crate) fn check(policy: &Configured) -> Result<(), GoldenError> {
    let interfaces = policy.manifest().exports.iter().copied();
    for interface in interfaces.filter(|i| *i != Interface::Prepare) {
        let first = ask(policy, interface)?;
        for (rows, answer) in made_up::ROWS.into_iter().zip(&first) {
            judge(policy.manifest(), answer).map_err(|detail| GoldenError::Answer {
                interface,
                rows,
                detail,
            })?;
        }
        let same = |when| {
            let other = ask(policy, interface)?;
            match made_up::ROWS.into_iter().zip(first.iter().zip(&other)).find(|(_, (a, b))| a != b)
            {
                Some((rows, _)) => Err(GoldenError::Differs { interface, rows, when }),
                None => Ok(()),
            }
        };
        same("again")?;
        policy.drop_idle();
        same("of a fresh instance")?;
    }
    Ok(())
}

#[derive(PartialEq)]
enum Answer {
    Codes(Vec<i32>),
    Scores(Scores),
    Additions(Vec<i32>),
    Prices(Vec<(i32, i32)>),
    Ranks(Vec<(i32, i32, i32)>),
    Admitted(Result<Values, String>),
    Nothing,
}

fn ask(policy: &Configured, interface: Interface) -> Result<Vec<Answer>, GoldenError> {
    let context = made_up::values(policy.manifest(), TableKind::Context);
    let job = made_up::values(policy.manifest(), TableKind::Job);
    let ask = |rows| {
        let table = made_up::table(policy.manifest(), interface, rows);
        Ok(match interface {
            Interface::Filter => Answer::Codes(policy.filter(&context, &job, &table)?),
            Interface::Score => Answer::Scores(policy.score(&context, &job, &table)?),
            Interface::ScoreGroups => {
                Answer::Additions(policy.score_groups(&context, &job, &table)?)
            }
            Interface::Preempt => Answer::Prices(policy.price(&context, &job, &table)?),
            Interface::Rank => Answer::Ranks(policy.rank(&context, &table)?),
            Interface::Admit => Answer::Admitted(policy.admit(&context, &job)?),
            Interface::Prepare => Answer::Nothing,
        })
    };
    let fault = |rows, fault| GoldenError::Fault { rows, fault };
    made_up::ROWS.into_iter().map(|rows| ask(rows).map_err(|f| fault(rows, f))).collect()
}

/// What the length of an answer does not show.
fn judge(manifest: &Manifest, answer: &Answer) -> Result<(), String> {
    match answer {
        Answer::Codes(codes) => {
            let known = |code: &i32| manifest.reasons.iter().any(|(known, _)| known == code);
            match codes.iter().find(|code| **code > 0 && !known(code)) {
                Some(code) => Err(format!("code {code}, which is not among its reasons")),
                None => Ok(()),
            }
        }
        Answer::Scores(scores) => {
            let fits = |mask: &i32| *mask == 0 || mask.count_ones() == 1 && *mask >> CARDS == 0;
            match scores.cards.iter().find(|mask| !fits(mask)) {
                Some(mask) => Err(format!(
                    "card mask {mask:#b} for a job that uses one card, on a node with {CARDS}"
                )),
                None => Ok(()),
            }
        }
        Answer::Admitted(Ok(values)) => {
            let settable = |id| columns::info(id).is_some_and(|info| info.settable);
            match values.iter().find(|c| !settable(c.id) || c.values.len() != 1) {
                Some(Column { id, values }) => Err(format!(
                    "{} values of column {id}; it may set one value of each settable column",
                    values.len()
                )),
                None => Ok(()),
            }
        }
        _ => Ok(()),
    }
}
