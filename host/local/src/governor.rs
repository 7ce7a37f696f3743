//! Who gives way when the disk is busy.
//!
//! While there is room everybody takes what the disk gives. When more than 90 %
//! of it is in use, the members of the lowest rank that use it are held to half
//! of what they just had, and to half of that again while it stays so, down to a
//! floor; those above go on. When less is in use, they get twice as much again,
//! until nobody is held.

use crater_model::ClaimUid;
use std::collections::BTreeMap;

/// Above so many thousandths in use the disk is full.
pub const FULL: u64 = 900;
/// Below so many it is not full any more, and held members get more.
pub const EASY: u64 = 800;
/// No member is held below so many bytes a second.
pub const FLOOR: u64 = 1_000_000;
/// Members that use less than so many bytes a second are not in the way.
const LITTLE: u64 = 250_000;

/// A member that runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct User {
    /// Its claim.
    pub claim: ClaimUid,
    /// Its rank; lower gives way first.
    pub rank: (u16, u8),
    /// Bytes that it read and wrote a second, lately.
    pub bytes: u64,
}

/// Remembers who is held to what.
#[derive(Clone, Debug, Default)]
pub struct Governor {
    held: BTreeMap<ClaimUid, u64>,
    full: bool,
}

impl Governor {
    /// Whether the disk is full: from 90 % until it is below 80 %.
    pub const fn full(&self) -> bool {
        self.full
    }

    /// What a member is held to, in bytes a second.
    pub fn cap(&self, claim: ClaimUid) -> Option<u64> {
        self.held.get(&claim).copied()
    }

    /// Looks at the disk, of which so many thousandths are in use, and at who
    /// uses it. Gives out those whose cap changed.
    pub fn look(&mut self, in_use: u64, users: &[User]) -> Vec<ClaimUid> {
        self.full = in_use > FULL || (self.full && in_use >= EASY);
        let before = self.held.clone();
        self.held.retain(|claim, _| users.iter().any(|user| user.claim == *claim));
        if in_use > FULL {
            self.press(users);
        } else if in_use < EASY {
            self.ease(users);
        }
        let mut changed: Vec<ClaimUid> = before.keys().chain(self.held.keys()).copied().collect();
        changed.sort_unstable();
        changed.dedup();
        changed.retain(|claim| before.get(claim) != self.held.get(claim));
        changed
    }

    /// The lowest rank that still can gives way, if anyone above uses the disk.
    fn press(&mut self, users: &[User]) {
        let busy = || users.iter().filter(|user| user.bytes > LITTLE);
        let Some(top) = busy().map(|user| user.rank).max() else { return };
        let held = &self.held;
        let can = |user: &&User| held.get(&user.claim).is_none_or(|cap| *cap > FLOOR);
        let lowest = busy().filter(can).map(|user| user.rank).filter(|rank| *rank < top).min();
        let Some(lowest) = lowest else { return };
        let way: Vec<User> = busy().filter(|user| user.rank == lowest).copied().collect();
        for user in way {
            let now = self.cap(user.claim).unwrap_or(user.bytes).min(user.bytes);
            self.held.insert(user.claim, (now / 2).max(FLOOR));
        }
    }

    /// The highest rank that is held gets twice as much; whoever does not use
    /// half of that is held no more.
    fn ease(&mut self, users: &[User]) {
        let held = users.iter().filter(|user| self.held.contains_key(&user.claim));
        let Some(highest) = held.map(|user| user.rank).max() else { return };
        for user in users.iter().filter(|user| user.rank == highest) {
            let Some(cap) = self.held.get_mut(&user.claim) else { continue };
            if user.bytes < *cap / 2 {
                self.held.remove(&user.claim);
            } else {
                *cap = cap.saturating_mul(2);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(claim: u64, priority: u16, mb: u64) -> User {
        User { claim: ClaimUid(claim), rank: (priority, 0), bytes: mb * 1_000_000 }
    }

    #[test]
    fn the_lowest_gives_way_first_and_gets_it_back_last() {
        let mut governor = Governor::default();
        let all = [user(1, 10, 40), user(2, 50, 40), user(3, 100, 100)];
        let caps = |g: &Governor| [1, 2, 3].map(|c| g.cap(ClaimUid(c)).map(|cap| cap / 1_000_000));
        assert_eq!(governor.look(850, &all), []);
        assert_eq!(governor.look(950, &all), [ClaimUid(1)]);
        assert_eq!(caps(&governor), [Some(20), None, None]);
        for _ in 0..20 {
            governor.look(950, &all);
        }
        // The first is at the floor, then the second; the top is never held.
        assert_eq!(caps(&governor), [Some(1), Some(1), None]);
        assert!(governor.full());
        governor.look(850, &all);
        assert!(governor.full(), "until it is below 80 %");
        assert_eq!(governor.look(700, &all), [ClaimUid(2)], "the higher one first");
        assert_eq!(caps(&governor), [Some(1), Some(2), None]);
        assert!(!governor.full());
        // Who does not use what it may is held no more.
        let quiet = [user(1, 10, 0), user(2, 50, 0)];
        governor.look(700, &quiet);
        governor.look(700, &quiet);
        assert_eq!(caps(&governor), [None, None, None]);
    }

    #[test]
    fn equals_share_as_they_are_and_who_went_is_forgotten() {
        let mut governor = Governor::default();
        let equals = [user(1, 50, 80), user(2, 50, 80)];
        assert_eq!(governor.look(990, &equals), [], "their weights decide");
        governor.look(990, &[user(1, 10, 80), user(2, 50, 80)]);
        assert_eq!(governor.cap(ClaimUid(1)), Some(40_000_000));
        assert_eq!(governor.look(990, &[user(2, 50, 80)]), [ClaimUid(1)]);
    }
}
