//! What is charged to tenants for as long as something is tried.

use super::levels::{Quotas, of_owner};
use crate::node::Owner;
use crater_model::{Borrow, OverQuota, Resource, Usage};
use rustc_hash::FxHashMap;

/// Amounts by level, over those of the books.
#[derive(Clone, Debug, Default)]
pub struct Tentative {
    levels: FxHashMap<i32, Usage>,
    /// What those who would be evicted give back.
    freed: FxHashMap<i32, Usage>,
    undo: Vec<(Owner, Usage)>,
}

/// One more member of a job that is being placed.
pub struct Ask<'a> {
    /// Whose it is.
    pub owner: Owner,
    /// Whether it may be borrowed.
    pub borrow: Borrow,
    /// What the job's members before it were charged.
    pub before: &'a Usage,
    /// What it would be charged.
    pub member: &'a Usage,
    /// For so many such members there must be room now.
    pub now: u64,
    /// So many of them, this one included, must start together.
    pub together: u64,
}

static NOTHING: std::sync::LazyLock<Usage> = std::sync::LazyLock::new(Usage::default);

impl Tentative {
    /// What is charged to a level.
    pub fn of(&self, level: i32) -> &Usage {
        self.levels.get(&level).unwrap_or(&NOTHING)
    }

    /// Levels that something was charged to, ascending.
    pub fn levels(&self) -> impl Iterator<Item = i32> + use<> {
        let mut all: Vec<i32> = self.levels.keys().copied().collect();
        all.sort_unstable();
        all.into_iter()
    }

    /// What a level uses of a resource with what is charged and freed here.
    pub fn over(&self, level: i32, resource: &Resource, used: u64) -> u64 {
        let of = |sums: &FxHashMap<i32, Usage>| {
            if sums.is_empty() { 0 } else { sums.get(&level).map_or(0, |u| u.get(resource)) }
        };
        used.saturating_add(of(&self.levels)).saturating_sub(of(&self.freed))
    }

    /// Takes off what would be given back, until `forget_freed`.
    pub fn free(&mut self, owner: Owner, amounts: &Usage) {
        for level in of_owner(owner) {
            self.freed.entry(level).or_default().add(amounts);
        }
    }

    /// Puts back one of those amounts.
    pub fn unfree(&mut self, owner: Owner, amounts: &Usage) {
        for level in of_owner(owner) {
            if let Some(freed) = self.freed.get_mut(&level) {
                freed.take(amounts);
            }
        }
    }

    /// Takes off a charge that was settled.
    pub fn discharge(&mut self, owner: Owner, amounts: &Usage) {
        for level in of_owner(owner) {
            if let Some(used) = self.levels.get_mut(&level) {
                used.take(amounts);
            }
        }
    }

    /// Forgets what would be given back.
    pub fn forget_freed(&mut self) {
        self.freed.clear();
    }

    /// Whether every level allows one more member. The figures of a refusal
    /// are those of all members that must start together.
    pub fn check(&self, quotas: &Quotas, ask: &Ask<'_>) -> Result<(), Box<OverQuota>> {
        let more = |r: &Resource| ask.member.get(r).saturating_mul(ask.now);
        quotas.within(ask.owner, ask.borrow, self, &more).map_err(|mut over| {
            let before = ask.before.get(&over.resource);
            over.used = over.used.saturating_sub(before);
            let rest = ask.member.get(&over.resource).saturating_mul(ask.together.max(ask.now));
            over.asked = before.saturating_add(rest);
            over
        })
    }

    /// Charges a member until `roll_back`, or for good after `settle`.
    pub fn charge(&mut self, owner: Owner, amounts: Usage) {
        for level in of_owner(owner) {
            self.levels.entry(level).or_default().add(&amounts);
        }
        self.undo.push((owner, amounts));
    }

    /// Keeps what was charged since the last `settle`.
    pub fn settle(&mut self) {
        self.undo.clear();
    }

    /// Takes back what was charged since the last `settle`.
    pub fn roll_back(&mut self) {
        while let Some((owner, amounts)) = self.undo.pop() {
            for level in of_owner(owner) {
                if let Some(used) = self.levels.get_mut(&level) {
                    used.take(&amounts);
                }
            }
        }
    }
}
