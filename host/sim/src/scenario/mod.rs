//! The scenario harness: a small text tells what happens in a simulated
//! cluster and what must come of it. The format is described in
//! docs/scenarios.md.

mod act;
mod error;
mod expect;
mod job;
mod lex;
mod machine;
mod notes;
mod run;
mod selectors;
mod statement;
mod tenant;
mod verify;

pub use error::{Place, ScenarioError};
pub use run::{Manner, Outcome};

use crate::world::{Nobody, PolicySource};
use statement::{Header, Statement};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What a scenario says, line by line, for those who play it elsewhere.
pub mod script {
    pub use super::expect::{Clause, Compare, Expectation, Figure, Of, Refused, Standing, Which};
    pub use super::lex::{Fields, duration, spell};
    pub use super::machine::describe;
    pub use super::statement::{Action, Header, Sort, Statement, What};
    pub use super::tenant::TenantLine;
}

/// A scenario that was read.
#[derive(Clone, Debug)]
pub struct Scenario {
    file: Arc<str>,
    title: String,
    header: Header,
    statements: Vec<Statement>,
}

impl Scenario {
    /// Reads a scenario; `file` is what errors call it.
    pub fn parse(file: &str, text: &str) -> Result<Self, ScenarioError> {
        let file: Arc<str> = file.into();
        let wrong = |line, expected| {
            let place = Place { file: file.clone(), line };
            ScenarioError::Syntax { place, expected }
        };
        let mut header = Header::default();
        let mut statements = vec![];
        let lines = lex::lines(text).map_err(|(line, expected)| wrong(line, expected))?;
        for line in &lines {
            if line.words[0] == "set" {
                if !statements.is_empty() {
                    let expected = "set before everything else".to_owned();
                    return Err(wrong(line.number, expected));
                }
                header.set(&line.words[1..]).map_err(|e| wrong(line.number, e))?;
                continue;
            }
            let statement = Statement::parse(line).map_err(|e| wrong(line.number, e))?;
            statements.push(statement);
        }
        let title = text.lines().next().and_then(|first| first.strip_prefix('#'));
        let title = title.unwrap_or_default().trim().to_owned();
        Ok(Self { file, title, header, statements })
    }

    /// What its first line, a comment, says that it is about.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// What it says of itself as a whole.
    pub const fn header(&self) -> &Header {
        &self.header
    }

    /// What happens in it and must come of it, in order.
    pub fn statements(&self) -> &[Statement] {
        &self.statements
    }

    /// Runs it as often as it says, each time with the next seed.
    pub fn run(&self, source: &dyn PolicySource) -> Result<Outcome, ScenarioError> {
        let mut outcome = Outcome::default();
        for nth in 0..self.header.repeat {
            outcome = self.run_once(source, nth, &Manner::default(), &mut Nobody)?;
        }
        outcome.runs = self.header.repeat;
        Ok(outcome)
    }
}

/// Reads and runs a scenario file.
pub fn run_file(path: &Path, source: &dyn PolicySource) -> Result<Outcome, ScenarioError> {
    let text = fs::read_to_string(path)
        .map_err(|source| ScenarioError::Read { path: path.to_owned(), source })?;
    Scenario::parse(&path.display().to_string(), &text)?.run(source)
}

/// A file and what came of it.
pub type Ran = (PathBuf, Result<Outcome, ScenarioError>);

/// Runs every `*.scenario` file in a folder and the folders in it, in the
/// order of their names.
pub fn run_dir(folder: &Path, source: &dyn PolicySource) -> Result<Vec<Ran>, ScenarioError> {
    let mut files = vec![];
    find(folder, &mut files)?;
    files.sort();
    Ok(files
        .into_iter()
        .map(|path| {
            let ran = run_file(&path, source);
            (path, ran)
        })
        .collect())
}

fn find(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), ScenarioError> {
    let failed = |source| ScenarioError::Read { path: folder.to_owned(), source };
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.is_dir() {
            find(&path, files)?;
        } else if path.extension().is_some_and(|e| e == "scenario") {
            files.push(path);
        }
    }
    Ok(())
}
