//! Groups of nodes and eviction units: plain tables, a view a row.

use crate::batch::{Family, Table};
use crate::columns::UNIT_SHRINK;

macro_rules! table {
    ($(#[$many_doc:meta])* $many:ident, $(#[$one_doc:meta])* $one:ident, $first:literal) => {
        $(#[$many_doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $many<'a> {
            columns: Family<'a, $first, 32>,
            rows: usize,
        }

        impl<'a> $many<'a> {
            /// The rows of a call.
            pub fn new(table: &Table<'a>) -> Self {
                Self { columns: Family::new(table.columns), rows: table.rows as usize }
            }

            /// Number of rows.
            pub fn len(&self) -> usize {
                self.rows
            }

            /// Whether there is none.
            pub fn is_empty(&self) -> bool {
                self.rows == 0
            }

            /// One of them.
            #[inline]
            pub fn row(&'a self, row: usize) -> $one<'a> {
                $one { table: self, row }
            }

            /// A column as it is, empty if absent.
            pub fn column(&self, id: u32) -> &'a [i32] {
                self.columns.column(id)
            }
        }

        $(#[$one_doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $one<'a> {
            table: &'a $many<'a>,
            row: usize,
        }

        impl $one<'_> {
            /// A value by its id.
            #[inline]
            pub fn get(&self, id: u32) -> i32 {
                self.table.columns.get(id, self.row)
            }
        }
    };
}

table!(
    /// Groups of nodes of a call.
    Groups,
    /// A card model, domain or zone: what its nodes have free together.
    Group,
    500
);
table!(
    /// Eviction units of a call.
    Units,
    /// What could be evicted: a whole job, or an elastic job's members above
    /// its minimum.
    Unit,
    600
);

impl Unit<'_> {
    /// Whether the job would shrink to its minimum instead of going. Needs
    /// `UNIT_SHRINK`.
    pub fn is_shrink(&self) -> bool {
        self.get(UNIT_SHRINK) != 0
    }
}
