//! The clock that ends calls: a thread of the operating system's own, so that
//! no executor and no looping guest can starve it.
//!
//! It sleeps for good while no call runs, and is woken by the next one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};
use wasmtime::Engine;

/// The grain of deadlines.
pub(crate) const TICK: Duration = Duration::from_millis(1);

/// Ticks in which no call ran or began, after which the thread parks.
const IDLE_TICKS: u32 = 100;

#[derive(Debug, Default)]
struct Shared {
    /// Calls that began.
    calls: AtomicU64,
    /// Calls that run.
    running: AtomicU64,
    parked: AtomicBool,
    stop: AtomicBool,
}

/// Advances an engine's epoch by one each [`TICK`] of wall time.
#[derive(Debug)]
pub(crate) struct Ticker {
    shared: Arc<Shared>,
    thread: Thread,
}

impl Ticker {
    /// Starts the thread; it ends when the ticker is dropped.
    pub(crate) fn start(engine: &Engine) -> std::io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let (seen, engine) = (shared.clone(), engine.weak());
        let handle = thread::Builder::new().name("crater-ticker".to_owned()).spawn(move || {
            let (mut last, mut idle) = (Instant::now(), 0);
            let mut calls = seen.calls.load(Ordering::SeqCst);
            while !seen.stop.load(Ordering::SeqCst) {
                if idle >= IDLE_TICKS {
                    // The caller counts first and looks at `parked` second;
                    // here it is the other way round, so one of both sees the
                    // other, and a token given early is not lost.
                    seen.parked.store(true, Ordering::SeqCst);
                    if seen.calls.load(Ordering::SeqCst) == calls
                        && !seen.stop.load(Ordering::SeqCst)
                    {
                        thread::park();
                    }
                    seen.parked.store(false, Ordering::SeqCst);
                    (last, idle) = (Instant::now(), 0);
                }
                thread::sleep(TICK);
                let Some(engine) = engine.upgrade() else {
                    return;
                };
                // A late wake-up owes several ticks: deadlines are wall time.
                while last.elapsed() >= TICK {
                    engine.increment_epoch();
                    last += TICK;
                }
                let now = seen.calls.load(Ordering::SeqCst);
                let quiet = now == calls && seen.running.load(Ordering::SeqCst) == 0;
                idle = if quiet { idle + 1 } else { 0 };
                calls = now;
            }
        })?;
        Ok(Self { shared, thread: handle.thread().clone() })
    }

    /// Says that a call begins, and by the guard's end that it has ended.
    /// Costs three atomic additions, and a wake-up after a pause.
    pub(crate) fn run(&self) -> Running<'_> {
        self.shared.running.fetch_add(1, Ordering::SeqCst);
        self.shared.calls.fetch_add(1, Ordering::SeqCst);
        if self.shared.parked.load(Ordering::SeqCst) {
            self.thread.unpark();
        }
        Running(&self.shared)
    }
}

/// A call that runs.
pub(crate) struct Running<'a>(&'a Shared);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        self.thread.unpark();
    }
}

/// Ticks after which a call that begins now has had at least `limit`, at most
/// one more.
pub(crate) fn ticks(limit: Duration) -> u64 {
    let ticks = limit.as_nanos().div_ceil(TICK.as_nanos());
    u64::try_from(ticks).unwrap_or(u64::MAX / 2).saturating_add(1)
}
