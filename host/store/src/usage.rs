//! What was held, summed by day, tenant and queue.

use crate::convert::{int, uint};
use crate::error::StoreError;
use crate::reader::Reader;
use crate::store::Store;
use crater_model::{TenantPath, Time};
use rusqlite::params;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Milliseconds of a day.
pub const DAY_MS: u64 = 86_400_000;
/// Up to which entry and moment usage is counted.
const COUNTED: &str = "usage-counted";

/// Whose usage, and when.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct UsageKey {
    /// Days since 1970, UTC.
    pub day: u64,
    /// The tenant, as the jobs name it.
    pub tenant: Arc<str>,
    /// The queue.
    pub queue: Arc<str>,
}

/// Amounts times milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UsageSum {
    /// Milli-cards.
    pub gpu: u64,
    /// MiB of GPU memory.
    pub gpu_memory: u64,
    /// Milli-cores.
    pub cpu: u64,
    /// MiB.
    pub memory: u64,
}

impl UsageSum {
    /// Adds another one.
    pub fn add(&mut self, other: &Self) {
        self.gpu = self.gpu.saturating_add(other.gpu);
        self.gpu_memory = self.gpu_memory.saturating_add(other.gpu_memory);
        self.cpu = self.cpu.saturating_add(other.cpu);
        self.memory = self.memory.saturating_add(other.memory);
    }

    /// These amounts, held for so many milliseconds.
    #[must_use]
    pub fn times(&self, ms: u64) -> Self {
        Self {
            gpu: self.gpu.saturating_mul(ms),
            gpu_memory: self.gpu_memory.saturating_mul(ms),
            cpu: self.cpu.saturating_mul(ms),
            memory: self.memory.saturating_mul(ms),
        }
    }
}

/// Up to where usage is counted: the last entry, and when.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// The last entry.
    pub seq: u64,
    /// The moment.
    pub at: Time,
}

impl Reader {
    /// Up to where usage was counted; none in a store that never counted.
    pub fn usage_counted(&self) -> Result<Option<Counted>, StoreError> {
        let text = self.setting(COUNTED)?;
        Ok(text.and_then(|text| {
            let (seq, at) = text.split_once(' ')?;
            Some(Counted { seq: seq.parse().ok()?, at: Time(at.parse().ok()?) })
        }))
    }

    /// Usage from a day on, of a tenant and those below it, or of all; by day,
    /// tenant and queue. `after` is where the last page ended.
    pub fn usage(
        &self,
        from: u64,
        tenant: Option<&TenantPath>,
        after: Option<&UsageKey>,
        limit: u32,
    ) -> Result<Vec<(UsageKey, UsageSum)>, StoreError> {
        let root = tenant.map(TenantPath::as_str);
        // Paths below one begin with it and a slash; 0 is what follows a slash.
        let (low, high) =
            (root.map(|root| format!("{root}/")), root.map(|root| format!("{root}0")));
        let start = (0, String::new(), String::new());
        let (day, name, queue) = after
            .map_or(start, |key| (int(key.day), key.tenant.to_string(), key.queue.to_string()));
        self.read("read usage", |conn| {
            conn.prepare_cached(
                "SELECT day, tenant, queue, gpu, gpu_memory, cpu, memory FROM usage
                 WHERE day >= ?1 AND (?2 IS NULL OR tenant = ?2 OR (tenant > ?3 AND tenant < ?4))
                   AND (day, tenant, queue) > (?5, ?6, ?7)
                 ORDER BY day, tenant, queue LIMIT ?8",
            )?
            .query_map(
                params![int(from), root, low, high, day, name, queue, limit.clamp(1, 1001)],
                |row| {
                    let text = |column| {
                        Ok::<_, rusqlite::Error>(Arc::from(row.get_ref(column)?.as_str()?))
                    };
                    Ok((
                        UsageKey {
                            day: uint(row, "day")?,
                            tenant: text("tenant")?,
                            queue: text("queue")?,
                        },
                        UsageSum {
                            gpu: uint(row, "gpu")?,
                            gpu_memory: uint(row, "gpu_memory")?,
                            cpu: uint(row, "cpu")?,
                            memory: uint(row, "memory")?,
                        },
                    ))
                },
            )?
            .collect()
        })
    }
}

impl Store {
    /// Adds to the sums, in the transaction of what ended or of the mark.
    pub fn add_usage(&mut self, more: &BTreeMap<UsageKey, UsageSum>) -> Result<(), StoreError> {
        if more.is_empty() {
            return Ok(());
        }
        self.write("count usage", |conn| {
            let mut add = conn.prepare_cached(
                "INSERT INTO usage (day, tenant, queue, gpu, gpu_memory, cpu, memory)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
                 ON CONFLICT (day, tenant, queue) DO UPDATE SET
                   gpu = gpu + excluded.gpu, gpu_memory = gpu_memory + excluded.gpu_memory,
                   cpu = cpu + excluded.cpu, memory = memory + excluded.memory",
            )?;
            for (key, sum) in more {
                add.execute(params![
                    int(key.day),
                    &*key.tenant,
                    &*key.queue,
                    int(sum.gpu),
                    int(sum.gpu_memory),
                    int(sum.cpu),
                    int(sum.memory)
                ])?;
            }
            Ok(())
        })
    }

    /// Says up to where usage is counted, in the same transaction.
    pub fn set_usage_counted(&mut self, counted: Counted) -> Result<(), StoreError> {
        self.set_setting(COUNTED, &format!("{} {}", counted.seq, counted.at.0))
    }
}
