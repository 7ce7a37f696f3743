//! The call's context and the job that is decided on.

use crate::batch::{Column, Family};
use crate::columns::{JOB_CARD_MILLI, JOB_CARDS, JOB_MODELS, MINUTE_OF_DAY, NOW, SEED, WEEKDAY};

/// Time and chance of a call. Each must be wanted to be seen.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a>(Family<'a, 0, 8>);

impl<'a> Context<'a> {
    /// The context of a call.
    pub fn new(columns: &[Column<'a>]) -> Self {
        Self(Family::new(columns))
    }

    /// A value by its id.
    #[inline]
    pub fn get(&self, id: u32) -> i32 {
        self.0.get(id, 0)
    }

    /// Minutes since 1970-01-01 UTC, rounded down to the time step.
    pub fn now(&self) -> i32 {
        self.get(NOW)
    }

    /// Minutes since midnight UTC, 0–1439, rounded down to the time step.
    pub fn minute_of_day(&self) -> i32 {
        self.get(MINUTE_OF_DAY)
    }

    /// 0 Monday to 6 Sunday, UTC.
    pub fn weekday(&self) -> i32 {
        self.get(WEEKDAY)
    }

    /// The decision's random seed.
    #[inline]
    pub fn seed(&self) -> u64 {
        let half = |i| u64::from(self.0.get(SEED, i).cast_unsigned());
        half(0) | half(1) << 32
    }
}

/// Jobs of a call: the one that is decided on, or the rows of `rank`.
#[derive(Clone, Copy, Debug)]
pub struct Jobs<'a> {
    columns: Family<'a, FIRST, COLUMNS>,
    /// The values of the first row, which in most calls is the only one.
    first: [i32; COLUMNS],
    rows: usize,
    /// The columns are one job's, so lists belong to it.
    single: bool,
}

const FIRST: u32 = 100;
const COLUMNS: usize = 48;

impl<'a> Jobs<'a> {
    fn new(rows: usize, columns: &[Column<'a>], single: bool) -> Self {
        let columns = Family::new(columns);
        let first = std::array::from_fn(|i| columns.get(FIRST + i as u32, 0));
        Self { columns, first, rows, single }
    }

    /// The one job of a call.
    pub fn one(columns: &[Column<'a>]) -> Self {
        Self::new(1, columns, true)
    }

    /// The rows of `rank`.
    pub fn many(rows: u32, columns: &[Column<'a>]) -> Self {
        Self::new(rows as usize, columns, false)
    }

    /// Number of jobs.
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// One of them.
    #[inline]
    pub fn row(&'a self, row: usize) -> Job<'a> {
        Job { jobs: self, row }
    }

    /// A column as it is, empty if absent.
    #[inline]
    pub fn column(&self, id: u32) -> &'a [i32] {
        self.columns.column(id)
    }
}

/// A job. Its amounts are of one member.
#[derive(Clone, Copy, Debug)]
pub struct Job<'a> {
    jobs: &'a Jobs<'a>,
    row: usize,
}

impl<'a> Job<'a> {
    /// A value by its id, such as `job.get(JOB_CPU)`.
    #[inline]
    pub fn get(&self, id: u32) -> i32 {
        match self.jobs.first.get(id.wrapping_sub(FIRST) as usize) {
            Some(value) if self.row == 0 => *value,
            _ => self.jobs.columns.get(id, self.row),
        }
    }

    /// Whether a column was handed over.
    #[inline]
    pub fn has(&self, id: u32) -> bool {
        !self.jobs.column(id).is_empty()
    }

    /// String ids of the card models that it may use; empty means any. Needs
    /// `JOB_MODELS`; always empty in `rank`, where lists have no rows.
    #[inline]
    pub fn models(&self) -> &'a [i32] {
        if self.jobs.single { self.jobs.column(JOB_MODELS) } else { &[] }
    }

    /// Whether it may use a card of this model.
    pub fn takes(&self, model: i32) -> bool {
        self.models().is_empty() || self.models().contains(&model)
    }

    /// GPU share that a member asks for over all its cards, in milli-cards; 0
    /// where memory decides. Needs `JOB_CARDS` and `JOB_CARD_MILLI`.
    #[inline]
    pub fn milli(&self) -> i32 {
        self.get(JOB_CARDS).saturating_mul(self.get(JOB_CARD_MILLI))
    }
}
