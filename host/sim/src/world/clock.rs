//! Virtual time: what will happen, in the order in which it happens.

use crater_model::Time;
use std::collections::BTreeMap;

/// Things to happen, by time and, at one time, in the order they were put in.
/// The clock stands at the last thing taken out.
#[derive(Debug)]
pub struct Agenda<T> {
    now: Time,
    put: u64,
    items: BTreeMap<(Time, u64), T>,
}

impl<T> Agenda<T> {
    /// Nothing to happen, and the clock at `now`.
    pub fn new(now: Time) -> Self {
        Self { now, put: 0, items: BTreeMap::new() }
    }

    /// Where the clock stands.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Lets something happen at a time; what is past happens now.
    pub fn put(&mut self, at: Time, item: T) {
        self.put += 1;
        self.items.insert((at.max(self.now), self.put), item);
    }

    /// When the next thing happens.
    pub fn next_time(&self) -> Option<Time> {
        self.items.keys().next().map(|(at, _)| *at)
    }

    /// Takes out the next thing that happens at or before `until`, and moves
    /// the clock there.
    pub fn take(&mut self, until: Time) -> Option<T> {
        let at = self.next_time().filter(|at| *at <= until)?;
        self.now = at;
        self.items.pop_first().map(|(_, item)| item)
    }

    /// Moves the clock on where nothing happens; never back.
    pub fn advance(&mut self, to: Time) {
        self.now = self.now.max(to);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn things_happen_by_time_then_in_the_order_they_were_put() {
        let mut agenda = Agenda::new(Time(5));
        agenda.put(Time(9), "late");
        agenda.put(Time(7), "first");
        agenda.put(Time(7), "second");
        agenda.put(Time(1), "past");
        assert_eq!(agenda.next_time(), Some(Time(5)));
        let all: Vec<_> = std::iter::from_fn(|| agenda.take(Time(8))).collect();
        assert_eq!(all, ["past", "first", "second"]);
        assert_eq!((agenda.now(), agenda.next_time()), (Time(7), Some(Time(9))));
        agenda.advance(Time(8));
        agenda.advance(Time(2));
        assert_eq!(agenda.now(), Time(8));
    }
}
