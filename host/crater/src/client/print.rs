//! What goes to the terminal or the next program.

use super::args::Output;
use serde::Serialize;
use std::io::{ErrorKind, IsTerminal as _, Write as _};

/// Whether standard output shows colours: a terminal that was not told
/// otherwise (<https://no-color.org>).
pub fn colours() -> bool {
    let told = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    std::io::stdout().is_terminal() && !told("NO_COLOR") && !dumb
}

/// A text on one line in which nothing moves the cursor: names and reasons may
/// be other people's.
pub fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// Prints a text; ends its last line where it does not.
pub fn text(text: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    if !text.is_empty() && !text.ends_with('\n') {
        out.write_all(b"\n")?;
    }
    Ok(out.flush()?)
}

/// Says something that is no answer, for people.
pub fn note(text: &str) {
    eprintln!("crater: {}", clean(text));
}

/// Prints an answer: as it came for programs, as a table for people, who may
/// want all columns.
pub fn answer<T: Serialize>(
    output: Output,
    value: &T,
    table: impl FnOnce(bool) -> String,
) -> anyhow::Result<()> {
    match output {
        Output::Table | Output::Wide => text(&table(output == Output::Wide)),
        Output::Json => text(&serde_json::to_string_pretty(value)?),
        Output::Yaml => text(&serde_saphyr::to_string(value)?),
    }
}

/// The next program has read enough: nothing is wrong.
pub fn unless_closed(done: anyhow::Result<()>) -> anyhow::Result<()> {
    match done {
        Err(error)
            if error
                .downcast_ref()
                .is_some_and(|e: &std::io::Error| e.kind() == ErrorKind::BrokenPipe) =>
        {
            Ok(())
        }
        done => done,
    }
}

/// Lines that fit on the terminal.
pub fn lines() -> usize {
    rustix::termios::tcgetwinsize(std::io::stdout())
        .map_or(24, |size| usize::from(size.ws_row).max(4))
}
