//! Reader of Microsoft's Philly trace as one table of jobs (msr-fiddle,
//! CC BY 4.0; Jeon et al., USENIX ATC'19): `timestamp, duration, num_gpus,
//! gpu_time, cluster`.

use super::TraceError;
use super::table::{Columns, Row, Table};
use crater_model::{FieldError, Time, parse};
use jiff::civil::DateTime;
use jiff::tz::Offset;
use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const COLUMNS: Columns = &["timestamp", "duration", "num_gpus", "gpu_time", "cluster"];

/// Cards of each machine.
pub const NODE_GPUS: u64 = 8;

/// Virtual clusters that the trace's authors tell the size of, in machines of
/// [`NODE_GPUS`] cards. The file has 18 jobs of four others.
pub const CLUSTERS: [(&str, u64); 11] = [
    ("6214e9", 64),
    ("b436b2", 64),
    ("ee9e8c", 64),
    ("7f04ca", 32),
    ("6c71a0", 32),
    ("0e4a51", 32),
    ("11cb48", 16),
    ("e13805", 16),
    ("2869ce", 16),
    ("ed69ec", 8),
    ("103959", 8),
];

/// Machines of a virtual cluster, where its size is known.
pub fn cluster_nodes(cluster: &str) -> Option<u64> {
    CLUSTERS.iter().find(|(name, _)| *name == cluster).map(|(_, nodes)| *nodes)
}

/// One job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// When it was submitted. The trace tells local time without a zone, read
    /// here as UTC: differences are right but for the hour of one clock change.
    pub submitted: Time,
    /// How long it ran.
    pub duration: Duration,
    /// Cards, all held from its start to its end.
    pub gpus: u64,
    /// Its virtual cluster.
    pub cluster: Arc<str>,
}

/// Reads the jobs of a file in the order of their submission.
pub fn jobs(path: &Path) -> Result<Vec<Job>, TraceError> {
    read(Table::open(path, &[COLUMNS])?)
}

/// Reads jobs in the order of their submission; `file` is the name to show in
/// errors.
pub fn jobs_from(file: &str, input: impl Read) -> Result<Vec<Job>, TraceError> {
    read(Table::new(file, input, &[COLUMNS])?)
}

fn read<R: Read>(table: Table<R>) -> Result<Vec<Job>, TraceError> {
    let mut clusters: BTreeMap<String, Arc<str>> = BTreeMap::new();
    let mut jobs = table.rows(|row| {
        let submitted = moment(row)?;
        let millis = thousandths(row, "duration")?;
        let gpus = row.integer("num_gpus", 1, 100_000)?;
        if thousandths(row, "gpu_time")? != millis.saturating_mul(gpus) {
            return Err(row.refuse("gpu_time", "duration times num_gpus"));
        }
        let name = row.name("cluster")?;
        let cluster = clusters.entry(name.to_owned()).or_insert_with(|| name.into());
        let duration = Duration::from_millis(millis);
        Ok(Job { submitted, duration, gpus, cluster: Arc::clone(cluster) })
    })?;
    jobs.sort_by_key(|job| job.submitted);
    Ok(jobs)
}

fn moment(row: &Row<'_>) -> Result<Time, TraceError> {
    DateTime::strptime("%Y-%m-%d %H:%M:%S", row.text("timestamp"))
        .and_then(|t| Offset::UTC.to_timestamp(t))
        .ok()
        .and_then(|t| u64::try_from(t.as_second()).ok())
        .map(Time::from_secs)
        .ok_or_else(|| row.refuse("timestamp", "a moment since 1970, such as 2017-10-09 07:01:55"))
}

/// Seconds with up to three decimals, in thousandths.
fn thousandths(row: &Row<'_>, column: &str) -> Result<u64, TraceError> {
    let text = row.text(column);
    let digits = text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    // Cores are read exactly and in thousandths too.
    match parse::cpu(column, text) {
        Ok(amount) if digits => Ok(amount.0),
        _ => Err(row.at(FieldError::new(column, text, "seconds, such as 66.0"))),
    }
}
