//! How the binary ends: 0 well, 1 something did not hold or work, 2 what was
//! given cannot be used, 3 the server cannot be reached.

use crate::client::Unreachable;
use std::fmt;
use std::process::ExitCode;

/// Bad input: a file, a flag, a policy. Exit code 2.
#[derive(Debug)]
pub struct Input(pub anyhow::Error);

impl fmt::Display for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // One line: causes follow their effects.
        write!(f, "{:#}", self.0)
    }
}

impl std::error::Error for Input {}

/// Marks an error as bad input.
pub fn input(error: impl Into<anyhow::Error>) -> anyhow::Error {
    anyhow::Error::new(Input(error.into()))
}

/// Prints an error in one line and chooses the code.
pub fn code(done: anyhow::Result<()>) -> ExitCode {
    let Err(error) = done else { return ExitCode::SUCCESS };
    let line = format!("{error:#}").replace('\n', " ");
    eprintln!("crater: {line}");
    match () {
        () if error.is::<Input>() => ExitCode::from(2),
        () if error.is::<Unreachable>() => ExitCode::from(3),
        () => ExitCode::FAILURE,
    }
}
