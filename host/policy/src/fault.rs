//! Why a call into a guest failed, told apart by types, never by text.

use crater_engine::policy::{Fault, Interface};
use std::time::Duration;
use thiserror::Error;
use wasmtime::{Trap, WasmBacktrace};

/// Longest detail that is kept of a guest's failure, in characters.
const DETAIL_CHARS: usize = 500;

/// A failed call, before it is known which decision it was for.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Failure {
    /// The guest trapped.
    #[error("it trapped: {0}")]
    Trap(String),
    /// It ran past its time, or past its fuel on a metered runtime.
    #[error("it took longer than {} ms", .0.as_millis())]
    Deadline(Duration),
    /// It failed after it was denied memory or table space.
    #[error("it wanted more than {0} bytes of memory")]
    Memory(usize),
    /// What it handed to the host, as its answer or in calling the host, is not
    /// what the contract says.
    #[error("what it handed over is unusable: {0}")]
    Answer(String),
}

impl Failure {
    /// Sorts a runtime error. `denied` says that growth was denied in the same
    /// call; most guests trap then, and the denial is the cause.
    pub(crate) fn of(
        error: &wasmtime::Error,
        limit: Duration,
        denied: bool,
        memory: usize,
    ) -> Self {
        match error.downcast_ref::<Trap>() {
            Some(Trap::Interrupt | Trap::OutOfFuel) => Self::Deadline(limit),
            _ if denied => Self::Memory(memory),
            Some(trap) => Self::Trap(describe(*trap, error)),
            // From a host function, the runtime adds where the guest was.
            None if error.downcast_ref::<WasmBacktrace>().is_some() => {
                Self::Answer(cut(&error.root_cause().to_string()))
            }
            None => Self::Answer(cut(&format!("{error:#}"))),
        }
    }

    /// As the engine knows it.
    pub(crate) fn at(self, interface: Interface) -> Fault {
        match self {
            Self::Trap(message) => Fault::Trap { interface, message },
            Self::Deadline(limit) => {
                let limit_ms = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
                Fault::Deadline { interface, limit_ms }
            }
            Self::Memory(limit) => Fault::Memory { interface, limit_bytes: limit as u64 },
            Self::Answer(detail) => Fault::BadAnswer { interface, detail },
        }
    }
}

/// The trap and the functions that it happened in, innermost first.
fn describe(trap: Trap, error: &wasmtime::Error) -> String {
    let mut text = trap.to_string();
    if let Some(trace) = error.downcast_ref::<WasmBacktrace>() {
        let names = trace.frames().iter().filter_map(|f| f.func_name()).take(5);
        for (i, name) in names.enumerate() {
            text.push_str(if i == 0 { " in " } else { " < " });
            text.push_str(name);
        }
    }
    cut(&text)
}

/// The first [`DETAIL_CHARS`] characters of a text that others wrote, in one
/// line and without what a terminal would obey.
pub(crate) fn cut(text: &str) -> String {
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    text.chars().take(DETAIL_CHARS).map(plain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_others_are_short_and_plain() {
        assert_eq!(cut("a\n\u{1b}[2Jb"), "a  [2Jb");
        assert_eq!(cut(&"ä".repeat(1000)).chars().count(), DETAIL_CHARS);
    }
}
