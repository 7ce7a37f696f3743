//! How long a call has really run.
//!
//! A limit is processor time. On a machine with a core to spare that is wall
//! time; a call whose thread was off the processor when its time came gets the
//! missing part. A guest cannot wait for anything, so what it did not use it
//! was not given: on a loaded machine a quick call has been seen to take half
//! a second of wall time, and its policy is not to blame.

use rustix::time::{ClockId, clock_gettime};
use std::cell::Cell;
use std::time::{Duration, Instant};

/// Wall time beyond its limit after which a call ends in any case, as when its
/// memory has gone to a slow disk.
const PATIENCE: Duration = Duration::from_secs(10);

/// How stale a thread's reading may be. Reading the thread's clock at every
/// call would cost more than many a call; what a thread did between the
/// reading and the call counts against the call, so this is also the error.
const STALE: Duration = Duration::from_millis(5);

thread_local! {
    static READING: Cell<Option<Reading>> = const { Cell::new(None) };
}

/// Wall and processor time of a thread at one moment.
#[derive(Clone, Copy, Debug)]
struct Reading {
    wall: Instant,
    cpu: Duration,
}

fn thread_cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let secs = u64::try_from(time.tv_sec).unwrap_or_default();
    Duration::new(secs, u32::try_from(time.tv_nsec).unwrap_or_default())
}

/// A call that is being timed, on the thread that made it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline {
    start: Instant,
    limit: Duration,
    reading: Reading,
}

impl Deadline {
    /// A call that begins now on this thread.
    pub(crate) fn begin(limit: Duration) -> Self {
        let start = Instant::now();
        let reading = READING.get().filter(|r| start.saturating_duration_since(r.wall) < STALE);
        let reading = reading.unwrap_or_else(|| {
            let reading = Reading { wall: start, cpu: thread_cpu() };
            READING.set(Some(reading));
            reading
        });
        Self { start, limit, reading }
    }

    /// How much longer the call may run, when its time has come; `None` if it
    /// has had its share. Asked on the thread that made the call.
    pub(crate) fn missing(&self) -> Option<Duration> {
        let before = self.start.saturating_duration_since(self.reading.wall);
        let used = thread_cpu().saturating_sub(self.reading.cpu).saturating_sub(before);
        self.left(self.start.elapsed(), used)
    }

    fn left(&self, wall: Duration, used: Duration) -> Option<Duration> {
        let patience = self.limit.saturating_add(PATIENCE).saturating_sub(wall);
        let left = self.limit.saturating_sub(used).min(patience);
        (!left.is_zero()).then_some(left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_off_the_processor_is_given_back_up_to_a_point() {
        let ms = Duration::from_millis;
        let call = Deadline::begin(ms(50));
        assert_eq!(call.left(ms(50), ms(50)), None);
        assert_eq!(call.left(ms(51), ms(20)), Some(ms(30)));
        assert_eq!(call.left(ms(500), ms(20)), Some(ms(30)));
        assert_eq!(call.left(ms(10_040), ms(20)), Some(ms(10)));
        assert_eq!(call.left(ms(10_050), ms(20)), None);
    }
}
