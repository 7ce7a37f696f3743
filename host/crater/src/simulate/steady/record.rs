//! One run as a line of JSON, so that runs of many calls can be put together.

use crate::exit::input;
use anyhow::{Context, anyhow};
use crater_sim::steady::Run;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// What a run is of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cell {
    /// Trace.
    pub trace: String,
    /// The trace whose life times its pods have.
    pub lives: String,
    /// Offered GPU in percent of the cluster's cards.
    pub load: u32,
    /// The policy as the user named it, with its configuration.
    pub policy: String,
    /// Seed.
    pub seed: u64,
    /// Measured arrivals.
    pub arrivals: u64,
}

/// One run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// What it is of.
    #[serde(flatten)]
    pub cell: Cell,
    /// Policy, configuration and prepared data.
    pub digest: String,
    /// How long it took one thread, in seconds.
    pub wall_seconds: f64,
    /// What was measured.
    #[serde(flatten)]
    pub run: Run,
}

/// Reads runs of earlier calls.
pub fn earlier(files: &[PathBuf]) -> anyhow::Result<Vec<Record>> {
    let mut records: Vec<Record> = vec![];
    for path in files {
        let name = path.display();
        let text = std::fs::read_to_string(path).with_context(|| name.to_string());
        for (i, line) in text.map_err(input)?.lines().enumerate() {
            if line.trim().is_empty() {
                continue;
            }
            let record: Record = serde_json::from_str(line)
                .map_err(|e| input(anyhow!("{name}:{}: not a run: {e}", i + 1)))?;
            // The same run in two files is one.
            if records.iter().all(|r| r.cell != record.cell) {
                records.push(record);
            }
        }
    }
    Ok(records)
}
