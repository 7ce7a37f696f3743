//! Columns of one call, looked up by id without a search.

use crate::columns::{
    CARD_HEALTHY, CARD_NUMA, JOB_MEMBERS, JOB_MIN_MEMBERS, NODE_CARDS, UNIT_SINCE_CHECKPOINT,
};

/// A column of a call: its id in the contract and its values.
pub type Column<'a> = (u32, &'a [i32]);

/// Many things of one sort, as the host hands them over.
#[derive(Clone, Copy, Debug)]
pub struct Table<'a> {
    /// Number of rows, also when no column was wanted.
    pub rows: u32,
    /// The wanted columns that the host knows.
    pub columns: &'a [Column<'a>],
}

/// What a column reads as where the host did not hand it over: 0, save a
/// healthy card, one member, an unknown NUMA node (-1) and a job that never
/// made a checkpoint (-1).
#[inline]
pub const fn absent(id: u32) -> i32 {
    match id {
        CARD_HEALTHY | JOB_MEMBERS | JOB_MIN_MEMBERS => 1,
        CARD_NUMA | UNIT_SINCE_CHECKPOINT => -1,
        _ => 0,
    }
}

/// The columns with ids `FIRST` to `FIRST + N - 1`, each at its own place, so
/// that reading one by a constant id is a load and a bounds check.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Family<'a, const FIRST: u32, const N: usize>([&'a [i32]; N]);

impl<'a, const FIRST: u32, const N: usize> Family<'a, FIRST, N> {
    pub(crate) const EMPTY: Self = Self([&[]; N]);

    pub(crate) fn new(columns: &[Column<'a>]) -> Self {
        let mut all = Self::EMPTY;
        for &(id, values) in columns {
            all.put(id, values);
        }
        all
    }

    /// Whether the id is one of the family's; if so the column is kept.
    pub(crate) fn put(&mut self, id: u32, values: &'a [i32]) -> bool {
        match self.0.get_mut(id.wrapping_sub(FIRST) as usize) {
            Some(place) => {
                *place = values;
                true
            }
            None => false,
        }
    }

    /// The column, empty if it is absent.
    #[inline]
    pub(crate) fn column(&self, id: u32) -> &'a [i32] {
        match self.0.get(id.wrapping_sub(FIRST) as usize) {
            Some(values) => values,
            None => &[],
        }
    }

    /// A row's value.
    #[inline]
    pub(crate) fn get(&self, id: u32, row: usize) -> i32 {
        match self.column(id).get(row) {
            Some(value) => *value,
            None => absent(id),
        }
    }
}

// Ids of one family never move to another.
const _: () = assert!(NODE_CARDS >= 200 && NODE_CARDS < 232);
