//! The process that keeps one member, and outlives the server.

use crate::enter::OWN;
use crate::folder::Folder;
use crate::groups::{Found, Group};
use crate::image;
use crate::order::{End, Order, Running};
use crate::output::Output;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus};
use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

/// What a keeper waits for.
enum Happened {
    /// Somebody wrote into the control pipe.
    Poked,
    /// The member's first process ended.
    Ended(WaitStatus),
    /// A stream is read to its end.
    Read,
}

/// From killing all that is left until it is looked at again.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a lock that may only be looked at is waited for.
const LOOKED_AT: Duration = Duration::from_secs(1);
/// How long output is waited for once nobody is left who could print.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// How often a group is looked at while it ends by itself.
const REST: Duration = Duration::from_millis(20);
/// Most bytes of a line that are kept together.
const LINE: u64 = 64 << 10;

/// Keeps the member that the claim's folder orders, to its end. Does nothing if
/// another does, or if it ended.
pub fn run(path: &Path) -> io::Result<()> {
    let folder = Folder::at(path);
    // The server looks whether there is a keeper by the same lock, and whatever it
    // starts at that moment has it, too, until it is another program.
    let until = Instant::now() + LOOKED_AT;
    let lock = loop {
        if let Some(lock) = folder.lock()? {
            break lock;
        }
        if Instant::now() > until {
            return Ok(());
        }
        thread::sleep(Duration::from_millis(5));
    };
    if folder.end()?.is_some() {
        return Ok(());
    }
    let order = folder.order()?.ok_or_else(|| io::Error::other("there is no order"))?;
    // It fails only for who leads a session already.
    let _ = rustix::process::setsid();
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    // The last that the kernel should end for want of memory.
    let _ = fs::write("/proc/self/oom_score_adj", "-900");
    let found = Found::look();
    let end = if folder.running()?.is_some() {
        put_away(&Group::at(&found, &order.group), &order);
        End::Lost { why: "its keeper was ended, so it was ended, too".into() }
    } else {
        keep(&folder, &order, &found).unwrap_or_else(|why| {
            let own = why.strip_prefix(OWN).map(str::to_owned);
            End::NotStarted { own: own.is_some(), why: own.unwrap_or(why) }
        })
    };
    folder.ended(&end)?;
    drop(lock);
    Ok(())
}

fn keep(folder: &Folder, order: &Order, found: &Found) -> Result<End, String> {
    let text = |error: io::Error| error.to_string();
    let (tell, happened) = channel();
    listen(folder, &tell).map_err(text)?;
    if folder.stop().map_err(text)?.is_some() {
        return Ok(End::Stopped { forced: false });
    }
    let group = Group::make(found, &order.group, &order.limits).map_err(|e| {
        let _ = Group::at(found, &order.group).remove(Duration::ZERO);
        e.to_string()
    })?;
    let started = start(folder).and_then(|(child, streams)| {
        read(order, streams, &tell)?;
        // What runs is known to run, or does not.
        folder.runs(Running { pid: child.id() })?;
        Ok(child)
    });
    let child = started.map_err(|error| {
        put_away(&group, order);
        error.to_string()
    })?;
    reap(child.id(), tell);
    let mut open = 2;
    let (status, told, forced) = watch(folder, &group, child.id(), &happened, &mut open);
    let end = how(&group, order, status, told, forced);
    put_away(&group, order);
    // Both streams end when the last who could write to them has.
    let until = Instant::now() + LAST_WORDS;
    while open > 0 {
        match happened.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(Happened::Read) => open -= 1,
            Ok(_) => {}
            Err(_) => break,
        }
    }
    Ok(end)
}

type Streams = [(&'static str, Box<dyn Read + Send>); 2];

/// Starts the member; comes back once its own command runs.
fn start(folder: &Folder) -> io::Result<(Child, Streams)> {
    let (mut refused, refusal) = io::pipe()?;
    // The file that runs, also if its name was given to another version.
    let mut command = Command::new("/proc/self/exe");
    command
        .args(["local", "enter"])
        .arg(folder.path())
        // It is root for a while: what the job says of libraries and the like
        // comes to it only when it is the job's user.
        .env_clear()
        .current_dir("/")
        .stdin(refusal)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn()?;
    // It holds this process' end of the pipe, which would never end.
    drop(command);
    let mut why = String::new();
    refused.read_to_string(&mut why)?;
    if !why.is_empty() {
        child.wait()?;
        return Err(io::Error::other(why));
    }
    let lost = || io::Error::other("its output cannot be read");
    let out: Box<dyn Read + Send> = Box::new(child.stdout.take().ok_or_else(lost)?);
    let err: Box<dyn Read + Send> = Box::new(child.stderr.take().ok_or_else(lost)?);
    Ok((child, [("stdout", out), ("stderr", err)]))
}

/// Hears who writes into the control pipe.
fn listen(folder: &Folder, tell: &Sender<Happened>) -> io::Result<()> {
    // Open for writing, too: so it never ends.
    let mut control = File::options().read(true).write(true).open(folder.control())?;
    let tell = tell.clone();
    thread::Builder::new().name("control".into()).spawn(move || {
        let mut bytes = [0; 64];
        while control.read(&mut bytes).is_ok_and(|n| n > 0) && tell.send(Happened::Poked).is_ok() {}
    })?;
    Ok(())
}

/// Keeps what the member prints. Of several, each line says whose it is.
fn read(order: &Order, streams: Streams, tell: &Sender<Happened>) -> io::Result<()> {
    for (name, mut stream) in streams {
        let output = Output::new(&order.output.join(name), order.output_bytes);
        let mark = (order.members > 1).then(|| format!("[{}] ", order.member));
        let tell = tell.clone();
        thread::Builder::new().name(name.into()).spawn(move || {
            let done = match mark {
                None => copy(&mut *stream, &output),
                Some(mark) => lines(&mut *stream, &output, &mark),
            };
            if let Err(error) = done {
                eprintln!("crater: {name} is not kept any more: {error}");
                // Or the member would wait for ever for someone who reads.
                let _ = io::copy(&mut stream, &mut io::sink());
            }
            let _ = tell.send(Happened::Read);
        })?;
    }
    Ok(())
}

fn copy(stream: &mut dyn Read, output: &Output) -> io::Result<()> {
    let mut bytes = vec![0; 64 << 10];
    loop {
        match stream.read(&mut bytes) {
            Ok(0) => return Ok(()),
            Ok(n) => output.append(&bytes[..n])?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn lines(stream: &mut dyn Read, output: &Output, mark: &str) -> io::Result<()> {
    let mut stream = BufReader::new(stream);
    let mut line = vec![];
    loop {
        line.clear();
        line.extend(mark.as_bytes());
        if (&mut stream).take(LINE).read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        if line.last() != Some(&b'\n') {
            line.push(b'\n');
        }
        output.append(&line)?;
    }
}

/// Waits for every child, those that were left to this process, too.
fn reap(first: u32, tell: Sender<Happened>) {
    let wait = move || {
        loop {
            match rustix::process::wait(WaitOptions::empty()) {
                Ok(Some((pid, status))) if pid.as_raw_nonzero().get() as u32 == first => {
                    let _ = tell.send(Happened::Ended(status));
                }
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(_) => return,
            }
        }
    };
    thread::spawn(wait);
}

/// Until the first process has ended: how, whether it was told to, and whether
/// by force.
fn watch(
    folder: &Folder,
    group: &Group,
    pid: u32,
    happened: &Receiver<Happened>,
    open: &mut u32,
) -> (Option<WaitStatus>, bool, bool) {
    let (mut told, mut forced) = (false, false);
    let mut until: Option<Instant> = None;
    // Told while it started: nobody pokes again.
    let mut look = true;
    loop {
        if std::mem::take(&mut look)
            && !told
            && let Ok(Some(stop)) = folder.stop()
        {
            told = true;
            until = Instant::now().checked_add(stop.grace);
            if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
                // All of its session's first group, as a terminal would do it.
                let _ = rustix::process::kill_process_group(pid, Signal::TERM);
                let _ = rustix::process::kill_process_group(pid, Signal::CONT);
            }
        }
        let next = match until {
            Some(at) => happened.recv_timeout(at.saturating_duration_since(Instant::now())),
            None => happened.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match next {
            Ok(Happened::Ended(status)) => {
                // A shell goes at once when what it started still saves its work.
                if told && !forced {
                    forced = rest(group, until);
                }
                return (Some(status), told, forced);
            }
            Ok(Happened::Poked) => look = true,
            // It closed a stream, and runs on.
            Ok(Happened::Read) => *open = open.saturating_sub(1),
            Err(RecvTimeoutError::Timeout) => {
                forced = true;
                clear(group);
                until = None;
            }
            Err(RecvTimeoutError::Disconnected) => return (None, told, forced),
        }
    }
}

/// Gives what is left of a group until a moment to end by itself; true if it did
/// not.
fn rest(group: &Group, until: Option<Instant>) -> bool {
    while !group.processes().is_empty() {
        if until.is_none_or(|until| Instant::now() >= until) {
            return true;
        }
        thread::sleep(REST);
    }
    false
}

fn how(group: &Group, order: &Order, status: Option<WaitStatus>, told: bool, forced: bool) -> End {
    let Some(status) = status else {
        return End::Lost { why: "its keeper lost sight of it".into() };
    };
    let well = status.exit_status() == Some(0);
    // 128 and the number of SIGKILL, as shells and container runtimes say it.
    let inside = order.runtime.is_some() && status.exit_status() == Some(137);
    let killed = inside && group.met_its_memory();
    if !well && !told && (killed || group.out_of_memory()) {
        return End::OutOfMemory { limit: order.limits.memory };
    }
    if told {
        return End::Stopped { forced };
    }
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => End::Exit { code },
        (None, Some(signal)) => End::Signal { signal },
        (None, None) => End::Lost { why: "its keeper lost sight of it".into() },
    }
}

/// Ends all that is left in a group, however long that takes: what it holds is
/// not free before.
fn clear(group: &Group) {
    while let Err(error) = group.kill(PATIENCE) {
        eprintln!("crater: {error}; trying on");
    }
}

/// The same, and takes away the group and what the runtime knows of it.
fn put_away(group: &Group, order: &Order) {
    clear(group);
    if let Err(error) = group.remove(PATIENCE) {
        eprintln!("crater: {error}");
    }
    if let Some(runtime) = &order.runtime {
        image::forget(runtime, &order.group);
    }
}
