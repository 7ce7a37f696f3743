//! The compiling process: the program itself, started again with a hidden
//! argument, under limits that it sets on itself before it reads a byte.
//!
//! A component comes in on standard input and its artefact goes out on
//! standard output. Nothing else of the parent is at stake: a compiler that
//! runs away, eats memory or crashes takes this process with it and no other.

use crate::wasm_config::{self, Metering};
use rustix::process::{Resource, Rlimit, Signal};
use std::io::{Read, Write};

/// The argument that asks for it.
pub(crate) const MARK: &str = "__crater-compile-policy";
/// What an artefact begins with on standard output.
pub(crate) const HEADER: &[u8] = b"crater artefact 1\n";
/// The component is at fault; standard error says how.
pub(crate) const REFUSED: u8 = 2;
/// The process could not do its work.
const FAILED: u8 = 70;

/// Turns this process into the compiler if that is what it was started for,
/// and then never returns. A program that hosts policies calls it first in
/// `main`, before it starts threads or reads its arguments.
pub fn run_if_asked() {
    let mut args = std::env::args().skip(1);
    if args.next().as_deref() == Some(MARK) {
        let code = match run(&args.collect::<Vec<_>>()) {
            Ok(()) => 0,
            Err((code, message)) => {
                eprintln!("{message}");
                code
            }
        };
        std::process::exit(code.into());
    }
}

type Failed = (u8, String);

fn run(args: &[String]) -> Result<(), Failed> {
    let usage = || (FAILED, "expected: metering, bytes of memory, seconds".to_owned());
    let [metering, memory, seconds] = args else {
        return Err(usage());
    };
    let metering = Metering::parse(metering).ok_or_else(usage)?;
    let memory: u64 = memory.parse().map_err(|_| usage())?;
    let seconds: u64 = seconds.parse().map_err(|_| usage())?;
    confine(memory, seconds).map_err(|e| (FAILED, format!("limits could not be set: {e}")))?;
    let mut wasm = Vec::new();
    std::io::stdin()
        .read_to_end(&mut wasm)
        .map_err(|e| (FAILED, format!("the component could not be read: {e}")))?;
    let engine = wasm_config::engine(metering)
        .map_err(|e| (FAILED, format!("no compiler for this machine: {e:#}")))?;
    let artefact = engine.precompile_component(&wasm).map_err(|e| (REFUSED, format!("{e:#}")))?;
    let mut out = std::io::stdout().lock();
    out.write_all(HEADER)
        .and_then(|()| out.write_all(&artefact))
        .and_then(|()| out.flush())
        .map_err(|e| (FAILED, format!("the artefact could not be written: {e}")))
}

/// Limits on this process. It dies with its parent, opens no more files, and
/// leaves no core.
fn confine(memory: u64, seconds: u64) -> rustix::io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    // At the soft limit of time comes a signal that says so, at the hard one
    // the same that everything kills with.
    let limits = [
        (Resource::As, memory, memory),
        (Resource::Cpu, seconds, seconds + 1),
        (Resource::Core, 0, 0),
        (Resource::Fsize, 0, 0),
        (Resource::Nofile, 64, 64),
    ];
    for (resource, soft, hard) in limits {
        let now = rustix::process::getrlimit(resource).maximum;
        let limit = |wanted| Some(now.map_or(wanted, |now| now.min(wanted)));
        let (current, maximum) = (limit(soft), limit(hard));
        rustix::process::setrlimit(resource, Rlimit { current, maximum })?;
    }
    Ok(())
}
