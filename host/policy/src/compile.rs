//! From a component's bytes to an artefact, in a process of its own.

use crate::child::{HEADER, MARK, REFUSED};
use crate::fault::cut;
use crate::limits::Limits;
use crate::wasm_config::{self, Metering};
use rustix::process::Signal;
use std::io::{self, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};
use thiserror::Error;

/// Threads of one compilation.
const THREADS: usize = 4;
/// Bytes of an artefact: many times the largest component.
const ARTEFACT_BYTES: u64 = 512 << 20;
/// Bytes of what the compiler says.
const MESSAGE_BYTES: u64 = 16 << 10;
/// Most wall time of a compilation, in limits on its processor time.
const PATIENCE: u32 = 4;
/// Most wall time of a compilation, whatever the limits say.
const LONGEST: Duration = Duration::from_hours(1);
/// How often the end of a process is looked for once its output is there.
const POLL: Duration = Duration::from_millis(2);

/// Who compiles.
#[derive(Clone, Debug)]
pub(crate) enum Compiler {
    /// This program in a process of its own.
    Process(PathBuf),
    /// This process, without limits. For tests and trusted components.
    Here,
}

/// Why there is no artefact.
#[derive(Debug, Error)]
pub enum CompileError {
    /// The component is not valid WebAssembly, or uses a feature that policies
    /// do not get.
    #[error("the component cannot be compiled: {detail}")]
    Invalid {
        /// The compiler's words.
        detail: String,
    },
    /// It took too long.
    #[error(
        "the component did not compile within {} s of processor time; it is too large or built \
         to be slow",
        .limit.as_secs_f64()
    )]
    TooSlow {
        /// The limit on its processor time.
        limit: Duration,
    },
    /// The compiler died, as it does when it may have no more memory.
    #[error(
        "the compiler ended by signal {signal} under its limits of {} MiB and {} s: {said}",
        .memory_bytes >> 20,
        .limit.as_secs_f64()
    )]
    Died {
        /// The signal; 6 and 11 usually mean memory.
        signal: i32,
        /// The limit on address space.
        memory_bytes: u64,
        /// The limit on its processor time.
        limit: Duration,
        /// The last that it said.
        said: String,
    },
    /// The compiler failed for a reason that is not the component's.
    #[error("the compiler failed ({status}): {said}")]
    Failed {
        /// How it ended.
        status: String,
        /// The last that it said.
        said: String,
    },
    /// The program that was started does not compile.
    #[error(
        "{} ran but made no artefact: call crater_policy::child::run_if_asked() first in its \
         main, or name another compiler",
        .program.display()
    )]
    NotACompiler {
        /// The program.
        program: PathBuf,
    },
    /// The process could not be started.
    #[error("{} could not be started to compile the policy", .program.display())]
    Start {
        /// The program.
        program: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Talking to the process failed.
    #[error("the compiler's output could not be read")]
    Pipe(#[source] io::Error),
}

/// Compiles. Costs a process and, for guests with a language runtime inside,
/// seconds.
pub(crate) fn compile(
    compiler: &Compiler,
    metering: Metering,
    wasm: &[u8],
    limits: &Limits,
) -> Result<Vec<u8>, CompileError> {
    match compiler {
        Compiler::Process(program) => in_process(program, metering, wasm, limits),
        Compiler::Here => wasm_config::engine(metering)
            .and_then(|engine| engine.precompile_component(wasm))
            .map_err(|e| CompileError::Invalid { detail: cut(&format!("{e:#}")) }),
    }
}

fn in_process(
    program: &Path,
    metering: Metering,
    wasm: &[u8],
    limits: &Limits,
) -> Result<Vec<u8>, CompileError> {
    let patience = limits.compile_time.saturating_mul(PATIENCE).min(LONGEST);
    let deadline = Instant::now() + patience;
    let mut child = spawn(program, metering, limits)
        .map_err(|source| CompileError::Start { program: program.to_owned(), source })?;
    let stdin = child.stdin.take();
    let stdout = child.stdout.take();
    let stderr = child.stderr.take();
    let (done, finished) = mpsc::channel();
    let (status, output, said) = thread::scope(|scope| {
        scope.spawn(move || {
            // A compiler that has died does not read on; its status tells.
            if let Some(mut pipe) = stdin {
                let _ = pipe.write_all(wasm);
            }
        });
        let said = scope.spawn(move || read(stderr, MESSAGE_BYTES));
        let output = scope.spawn(move || {
            let output = read(stdout, ARTEFACT_BYTES);
            let _ = done.send(());
            output
        });
        let left = deadline.saturating_duration_since(Instant::now());
        let in_time = finished.recv_timeout(left).is_ok();
        let status = end(&mut child, if in_time { deadline } else { Instant::now() });
        (status, output.join(), said.join())
    });
    let said = said.ok().and_then(Result::ok).unwrap_or_default();
    let said = cut(String::from_utf8_lossy(&said).trim());
    let limit = limits.compile_time;
    let Some(status) = status.map_err(CompileError::Pipe)? else {
        return Err(CompileError::TooSlow { limit });
    };
    if let Some(signal) = status.signal() {
        if signal == Signal::XCPU.as_raw() {
            return Err(CompileError::TooSlow { limit });
        }
        let memory_bytes = limits.compile_memory_bytes;
        return Err(CompileError::Died { signal, memory_bytes, limit, said });
    }
    if status.code() == Some(REFUSED.into()) {
        return Err(CompileError::Invalid { detail: said });
    }
    if !status.success() {
        return Err(CompileError::Failed { status: status.to_string(), said });
    }
    let mut output = output
        .unwrap_or_else(|_| Err(io::Error::other("the reader panicked")))
        .map_err(CompileError::Pipe)?;
    if !output.starts_with(HEADER) {
        return Err(CompileError::NotACompiler { program: program.to_owned() });
    }
    output.drain(..HEADER.len());
    Ok(output)
}

fn spawn(program: &Path, metering: Metering, limits: &Limits) -> io::Result<Child> {
    let cores = thread::available_parallelism().map_or(1, usize::from).min(THREADS);
    let seconds = limits.compile_time.as_secs().max(1);
    let mut command = Command::new(program);
    command
        .arg(MARK)
        .arg(metering.name())
        .arg(limits.compile_memory_bytes.to_string())
        .arg(seconds.to_string())
        .env_clear()
        .env("RAYON_NUM_THREADS", cores.to_string())
        // Arenas of the allocator would count as address space.
        .env("MALLOC_ARENA_MAX", "2")
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    if let Some(path) = std::env::var_os("LD_LIBRARY_PATH") {
        command.env("LD_LIBRARY_PATH", path);
    }
    command.spawn()
}

/// Reads up to `limit` bytes and swallows the rest, so that a process that
/// says more is not held up.
fn read(pipe: Option<impl Read>, limit: u64) -> io::Result<Vec<u8>> {
    let mut out = Vec::new();
    if let Some(mut pipe) = pipe {
        pipe.by_ref().take(limit).read_to_end(&mut out)?;
        io::copy(&mut pipe, &mut io::sink())?;
    }
    Ok(out)
}

/// Waits for the end until the deadline, then kills. `None` if it was killed.
fn end(child: &mut Child, deadline: Instant) -> io::Result<Option<ExitStatus>> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() >= deadline {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        thread::sleep(POLL);
    }
}
