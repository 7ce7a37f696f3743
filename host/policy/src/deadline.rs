//! How long a call has really run.
//!
//! A limit means processor time as far as the machine lets it: a call whose
//! thread was off the processor when its time came gets the missing part, up
//! to [`PATIENCE`] times its limit of wall time. So a loaded machine makes no
//! faults, and a guest that loops is stopped on time.

use rustix::time::{ClockId, clock_gettime};
use std::cell::Cell;
use std::time::{Duration, Instant};

/// Most wall time of a call, in limits.
pub(crate) const PATIENCE: u32 = 4;

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
        let patience = self.limit.saturating_mul(PATIENCE).saturating_sub(wall);
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
        assert_eq!(call.left(ms(190), ms(20)), Some(ms(10)));
        assert_eq!(call.left(ms(200), ms(20)), None);
    }
}
