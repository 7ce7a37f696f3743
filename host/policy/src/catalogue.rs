//! The ids of wit/columns.toml, as data: which there are, and how their values
//! lie.

use serde::Deserialize;
use std::sync::OnceLock;

const TEXT: &str = include_str!("../../../wit/columns.toml");

/// The first column id of node labels; the i-th label is this plus i.
pub(crate) const LABELS: u32 = 10_000;

/// How a column's values lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Shape {
    /// One a row.
    Value,
    /// Many, one thing's.
    List,
    /// rows + 1 positions.
    Offsets,
    /// Values end to end over the family's offsets.
    Ragged,
    /// n × n values for the n values of a ragged family.
    Pair,
}

/// One column.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Column {
    pub(crate) id: u32,
    pub(crate) name: String,
    pub(crate) unit: String,
    pub(crate) shape: Shape,
}

/// One table.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Table {
    pub(crate) name: String,
    pub(crate) columns: Vec<Column>,
}

#[derive(Debug, Deserialize)]
struct File {
    table: Vec<Table>,
}

/// All tables.
pub(crate) fn tables() -> &'static [Table] {
    static TABLES: OnceLock<Vec<Table>> = OnceLock::new();
    TABLES.get_or_init(|| {
        toml::from_str::<File>(TEXT)
            .expect("columns.toml is part of the program")
            .table
    })
}

/// Whether this host knows a column or fact.
pub(crate) fn knows(id: u32) -> bool {
    tables().iter().flat_map(|t| &t.columns).any(|c| c.id == id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_id_is_there_once() {
        let ids: Vec<_> = tables()
            .iter()
            .flat_map(|t| &t.columns)
            .map(|c| c.id)
            .collect();
        assert!(ids.len() > 80);
        assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len());
        assert!(knows(1) && !knows(9999) && ids.iter().all(|id| *id < LABELS));
    }
}
