//! Instances of one configured policy, each in the hands of one call at most.

use crate::instance::Instance;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

#[derive(Default)]
pub(crate) struct Pool {
    inner: Mutex<Inner>,
    returned: Condvar,
}

#[derive(Default)]
#[expect(clippy::vec_box, reason = "a box goes to a call and back; an instance is 400 bytes")]
struct Inner {
    idle: Vec<Box<Instance>>,
    alive: usize,
}

/// The right to one instance. Dropped without [`Ticket::give_back`], as after
/// a fault or a panic, it takes its instance with it.
pub(crate) struct Ticket<'a> {
    pool: &'a Pool,
}

/// What a pool has for a caller.
pub(crate) enum Taken<'a> {
    /// An instance that has been used before.
    Used(Ticket<'a>, Box<Instance>),
    /// The right to make one.
    Room(Ticket<'a>),
    /// Nothing, after waiting.
    Full,
}

impl Pool {
    /// Takes an idle instance, or the right to make one while fewer than
    /// `most` are alive; else waits for one to come back.
    pub(crate) fn take(&self, most: usize, patience: Duration) -> Taken<'_> {
        let mut inner = self.lock();
        if inner.idle.is_empty() && inner.alive >= most.max(1) {
            let until = Instant::now() + patience;
            while inner.idle.is_empty() && inner.alive >= most.max(1) {
                let left = until.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    return Taken::Full;
                }
                let waited = self.returned.wait_timeout(inner, left);
                inner = waited.unwrap_or_else(PoisonError::into_inner).0;
            }
        }
        if let Some(instance) = inner.idle.pop() {
            return Taken::Used(Ticket { pool: self }, instance);
        }
        inner.alive += 1;
        Taken::Room(Ticket { pool: self })
    }

    /// Drops the idle instances; says how many.
    pub(crate) fn clear(&self) -> usize {
        let mut inner = self.lock();
        let idle = std::mem::take(&mut inner.idle);
        inner.alive -= idle.len();
        drop(inner);
        self.returned.notify_all();
        idle.len()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // The lists are whole whenever the lock is free.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ticket<'_> {
    /// Returns an instance that is fit for another call.
    pub(crate) fn give_back(self, instance: Box<Instance>) {
        let pool = self.pool;
        pool.lock().idle.push(instance);
        pool.returned.notify_one();
        std::mem::forget(self);
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        self.pool.lock().alive -= 1;
        self.pool.returned.notify_one();
    }
}
