//! Groups and eviction units from plain values.

use super::Owned;
use crate::batch::absent;
use crate::columns::{GROUP_NAME, UNIT_JOB, UNIT_KIND, UNIT_MEMBERS, UNIT_MILLI, UNIT_PRIORITY};
use crate::strings;
use std::collections::BTreeMap;

/// A row of a plain table.
#[derive(Clone, Debug, Default)]
pub struct RowSpec(BTreeMap<u32, i32>);

/// A group with a name, to set values on.
#[must_use]
pub fn group(name: &str) -> RowSpec {
    RowSpec::default().set(GROUP_NAME, strings::id(name))
}

/// A medium training job of one whole card that could be evicted.
#[must_use]
pub fn unit(job: i32) -> RowSpec {
    let spec = RowSpec::default().set(UNIT_JOB, job).set(UNIT_KIND, 2).set(UNIT_PRIORITY, 50);
    spec.set(UNIT_MEMBERS, 1).set(UNIT_MILLI, 1000)
}

impl RowSpec {
    /// Any column, by its id.
    #[must_use]
    pub fn set(mut self, id: u32, value: i32) -> Self {
        self.0.insert(id, value);
        self
    }
}

/// The table of a call.
pub(super) fn table(rows: &[RowSpec]) -> Owned {
    let mut table: Owned = rows.iter().flat_map(|r| r.0.keys()).map(|id| (*id, vec![])).collect();
    for (id, column) in &mut table {
        column.extend(rows.iter().map(|row| row.0.get(id).copied().unwrap_or(absent(*id))));
    }
    table
}
