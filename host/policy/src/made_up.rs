//! Small tables with plausible values, for checks before there are real ones.

use crater_engine::policy::{Column, Interface, Manifest, Table, Values};
use crater_model::columns::{COLUMNS, ColumnInfo, FIRST_LABEL, Shape, TableKind};

/// Rows of the tables; none at all is a legal question.
pub(crate) const ROWS: [u32; 3] = [0, 1, 5];
/// Cards of each node.
pub(crate) const CARDS: u32 = 2;

/// The wanted columns of one thing.
pub(crate) fn values(manifest: &Manifest, kind: TableKind) -> Values {
    wanted(manifest, &[kind]).map(|info| column(info, 1)).collect()
}

/// The table that an interface is asked about.
pub(crate) fn table(manifest: &Manifest, interface: Interface, rows: u32) -> Table {
    let kinds: &[TableKind] = match interface {
        Interface::Filter | Interface::Score => {
            &[TableKind::Node, TableKind::Card, TableKind::Link]
        }
        Interface::ScoreGroups => &[TableKind::Group],
        Interface::Preempt => &[TableKind::Unit],
        Interface::Rank => &[TableKind::Job],
        Interface::Admit | Interface::Prepare => &[],
    };
    let mut columns: Vec<_> = wanted(manifest, kinds).map(|info| column(info, rows)).collect();
    if kinds.contains(&TableKind::Node) {
        let labels = FIRST_LABEL..FIRST_LABEL + manifest.labels.len() as u32;
        columns.extend(
            labels.map(|id| Column { id, values: (0..rows as i32).map(|r| r % 2).collect() }),
        );
    }
    Table { rows, columns }
}

/// The columns of some tables that a manifest wants. An offsets column comes
/// with any of its family.
fn wanted<'a>(
    manifest: &'a Manifest,
    kinds: &'a [TableKind],
) -> impl Iterator<Item = &'static ColumnInfo> + 'a {
    let needed = |id| {
        let family = |info: &ColumnInfo| info.offsets == Some(id) && manifest.wants(info.id);
        manifest.wants(id) || COLUMNS.iter().any(family)
    };
    COLUMNS.iter().filter(move |info| kinds.contains(&info.table) && needed(info.id))
}

fn column(info: &ColumnInfo, rows: u32) -> Column {
    let per_row = match info.table {
        TableKind::Link => CARDS * CARDS,
        _ => CARDS,
    };
    let values = match info.shape {
        Shape::Value => (0..rows).map(|row| value(info, row)).collect(),
        Shape::List if info.table == TableKind::Context => vec![7, 11],
        Shape::List => Vec::new(),
        Shape::Offsets => (0..=rows).map(|row| (row * per_row) as i32).collect(),
        Shape::Ragged => (0..rows * CARDS).map(|card| value(info, card % CARDS)).collect(),
        Shape::Pair => {
            (0..rows * per_row).map(|pair| if pair % (CARDS + 1) == 0 { 0 } else { 300 }).collect()
        }
    };
    Column { id: info.id, values }
}

/// A value that such a column could have: rows differ, what is free is less
/// than the total, and the job is a small one.
fn value(info: &ColumnInfo, row: u32) -> i32 {
    let row = row as i32;
    let part = |total: i32| {
        let free = info.name.ends_with("-free");
        if free { total / 2 - total / 16 * (row % 8) } else { total }
    };
    match (info.table, info.name) {
        (TableKind::Job, "job-cards" | "job-members" | "job-min-members") => 1,
        (TableKind::Job, "job-card-milli") => 500,
        (TableKind::Job, "job-cpu") => 4_000,
        (TableKind::Job, "job-memory") => 16_384,
        (TableKind::Job, "job-order") | (TableKind::Card, "card-link-group") => row,
        (_, "node-cards") => CARDS as i32,
        _ => match info.unit {
            "milli-cores" => part(64_000),
            "milli-cards" => part(1000 * CARDS as i32),
            "MiB" => part(81_920),
            "MB/s" | "GB/s" => part(2_000),
            "opaque" => row + 1,
            "0–1000" => 50,
            "minutes since 1970-01-01 UTC" => 29_000_000,
            unit if unit.starts_with("seconds") => 600 + 60 * row,
            unit if unit.starts_with("1 ") => 1 + row % 2,
            _ => row % 2,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_as_the_contract_says() {
        let manifest = Manifest {
            wants: COLUMNS.iter().map(|c| c.id).filter(|id| *id != 300).collect(),
            labels: vec!["rack".to_owned()],
            ..Manifest::default()
        };
        for rows in ROWS {
            let table = table(&manifest, Interface::Score, rows);
            let column = |name: &str| {
                let id = COLUMNS.iter().find(|c| c.name == name).unwrap().id;
                table.column(id).unwrap().to_vec()
            };
            let (n, cards) = (rows as usize, CARDS as usize);
            assert_eq!(column("card-offsets").len(), n + 1);
            assert_eq!(column("card-offsets").last(), Some(&((n * cards) as i32)));
            assert_eq!(column("link-bandwidth").len(), n * cards * cards);
            assert_eq!(table.column(FIRST_LABEL).unwrap().len(), n);
            let (free, total) = (column("node-cpu-free"), column("node-cpu-total"));
            assert!(free.iter().zip(&total).all(|(f, t)| 0 < *f && f < t));
        }
    }
}
