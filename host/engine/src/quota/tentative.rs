//! What is charged to tenants for as long as something is tried.

use super::levels::{Quotas, of_owner};
use crate::node::Owner;
use crater_model::{OverQuota, Resource, Usage};
use rustc_hash::FxHashMap;

/// Amounts by level, over those of the books.
#[derive(Clone, Debug, Default)]
pub struct Tentative {
    levels: FxHashMap<i32, Usage>,
    undo: Vec<(Owner, Usage)>,
}

/// One more member of a job that is being placed.
pub struct Ask<'a> {
    /// Whose it is.
    pub owner: Owner,
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

    pub(super) fn get(&self, level: i32, resource: &Resource) -> u64 {
        if self.levels.is_empty() {
            return 0;
        }
        self.levels.get(&level).map_or(0, |u| u.get(resource))
    }

    /// Whether every level allows one more member. The figures of a refusal
    /// are those of all members that must start together.
    pub fn check(&self, quotas: &Quotas, ask: &Ask<'_>) -> Result<(), Box<OverQuota>> {
        let more = |r: &Resource| ask.member.get(r).saturating_mul(ask.now);
        quotas.within(ask.owner, self, &more).map_err(|mut over| {
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
