//! Reader of the "openb" traces (Alibaba cluster-trace-gpu-v2023), which the
//! experiments of Weng, Yang et al., USENIX ATC'23, run on.
//!
//! Nodes: `sn, cpu_milli, memory_mib, gpu, model`. Pods: `name, cpu_milli,
//! memory_mib, num_gpu, gpu_milli` and, but for the `multigpu` files,
//! `gpu_spec, qos, pod_phase, creation_time, deletion_time, scheduled_time`.

use super::table::{Columns, Row, Table};
use super::{Pod, Qos, TraceError};
use crater_model::{CardSpec, Mib, MilliCards, MilliCores, NodeSpec};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

const NODE: Columns = &["sn", "cpu_milli", "memory_mib", "gpu", "model"];
const POD_SHORT: Columns = &["name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli"];
const POD: Columns = &[
    "name",
    "cpu_milli",
    "memory_mib",
    "num_gpu",
    "gpu_milli",
    "gpu_spec",
    "qos",
    "pod_phase",
    "creation_time",
    "deletion_time",
    "scheduled_time",
];

/// Card models of the traces with the memory of their cards in GiB, which the
/// traces do not say.
///
/// The named ones have the sizes that they are sold with. `G2` and `G3` are
/// names that the publishers gave to models they do not tell: G2 is read as a
/// card of 24 GiB for inference, as the A10 is, and G3, of the largest machines,
/// as an A100 of 80 GiB. Nothing in the published experiment depends on it.
pub const MODELS: [(&str, u64); 7] = [
    ("A10", 24),
    ("G2", 24),
    ("G3", 80),
    ("P100", 16),
    ("T4", 16),
    ("V100M16", 16),
    ("V100M32", 32),
];

/// The largest amount that is accepted: what a policy's column can hold.
const MOST: u64 = i32::MAX as u64;
/// The latest second that is accepted, about three thousand years.
const LATEST: u64 = 100_000_000_000;

/// A card of one of the [`MODELS`]; `None` for any other name.
pub fn card(model: &str) -> Option<CardSpec> {
    let (_, gib) = MODELS.iter().find(|(name, _)| *name == model)?;
    Some(CardSpec::new(model, Mib(gib * 1024)))
}

fn known_models() -> String {
    MODELS.map(|(name, _)| name).join(", ")
}

/// Reads a list of nodes from a file.
pub fn nodes(path: &Path) -> Result<Vec<NodeSpec>, TraceError> {
    read_nodes(Table::open(path, &[NODE])?)
}

/// Reads a list of nodes; `file` is the name to show in errors.
pub fn nodes_from(file: &str, input: impl Read) -> Result<Vec<NodeSpec>, TraceError> {
    read_nodes(Table::new(file, input, &[NODE])?)
}

/// Reads a list of pods from a file.
pub fn pods(path: &Path) -> Result<Vec<Pod>, TraceError> {
    read_pods::<File>(Table::open(path, &[POD_SHORT, POD])?)
}

/// Reads a list of pods; `file` is the name to show in errors.
pub fn pods_from(file: &str, input: impl Read) -> Result<Vec<Pod>, TraceError> {
    read_pods(Table::new(file, input, &[POD_SHORT, POD])?)
}

fn read_nodes<R: Read>(table: Table<R>) -> Result<Vec<NodeSpec>, TraceError> {
    let mut seen = BTreeSet::new();
    table.rows(|row| {
        let name = unique(row, "sn", &mut seen)?;
        let cpu = MilliCores(row.integer("cpu_milli", 0, MOST)?);
        let memory = Mib(row.integer("memory_mib", 0, MOST)?);
        let node = NodeSpec::new(&name, cpu, memory);
        let count = row.integer("gpu", 0, 255)?;
        let model = row.text("model");
        if count == 0 {
            return match model {
                "" => Ok(node),
                _ => Err(row.refuse("model", "nothing where gpu is 0")),
            };
        }
        let card =
            card(model).ok_or_else(|| row.refuse("model", format!("one of {}", known_models())))?;
        Ok(node.with_cards(count as usize, &card))
    })
}

fn read_pods<R: Read>(table: Table<R>) -> Result<Vec<Pod>, TraceError> {
    let mut seen = BTreeSet::new();
    let mut names = MODELS.map(|(name, _)| Arc::<str>::from(name));
    names.sort_unstable();
    table.rows(|row| {
        let name = unique(row, "name", &mut seen)?;
        let cpu = MilliCores(row.integer("cpu_milli", 0, MOST)?);
        let memory = Mib(row.integer("memory_mib", 0, MOST)?);
        let cards = row.integer("num_gpu", 0, 8)?;
        let card_milli = MilliCards(row.integer("gpu_milli", 0, 1000)?);
        let (least, most, expected) = match cards {
            0 => (0, 0, "0 where num_gpu is 0"),
            1 => (1, 1000, "1 to 1000 where num_gpu is 1"),
            _ => (1000, 1000, "1000 where num_gpu is above 1"),
        };
        if !(least..=most).contains(&card_milli.0) {
            return Err(row.refuse("gpu_milli", expected));
        }
        let models = models(row, &names)?;
        let qos = qos(row)?;
        phase(row)?;
        let arrive = row.maybe_integer("creation_time", 0, LATEST)?;
        let leave = row.maybe_integer("deletion_time", 0, LATEST)?;
        row.maybe_integer("scheduled_time", 0, LATEST)?;
        if let (Some(from), Some(to)) = (arrive, leave)
            && to < from
        {
            return Err(row.refuse("deletion_time", format!("{from} (creation_time) or later")));
        }
        let spec = row.text("gpu_spec").into();
        Ok(Pod { name, cpu, memory, cards, card_milli, models, spec, arrive, leave, qos })
    })
}

/// A name that no line before has.
fn unique(
    row: &Row<'_>,
    column: &str,
    seen: &mut BTreeSet<Arc<str>>,
) -> Result<Arc<str>, TraceError> {
    let name: Arc<str> = row.name(column)?.into();
    if !seen.insert(Arc::clone(&name)) {
        return Err(row.refuse(column, "a name that no line before it has"));
    }
    Ok(name)
}

/// `A|B` as a sorted list; some lines of the traces name a model twice.
fn models(row: &Row<'_>, names: &[Arc<str>]) -> Result<Vec<Arc<str>>, TraceError> {
    let text = row.text("gpu_spec");
    if text.is_empty() {
        return Ok(vec![]);
    }
    let asked: Vec<&str> = text.split('|').collect();
    if asked.iter().any(|a| !names.iter().any(|n| **n == **a)) {
        let expected = format!("models separated by '|', each one of {}", known_models());
        return Err(row.refuse("gpu_spec", expected));
    }
    Ok(names.iter().filter(|n| asked.contains(&&***n)).cloned().collect())
}

fn qos(row: &Row<'_>) -> Result<Option<Qos>, TraceError> {
    if !row.has("qos") {
        return Ok(None);
    }
    match row.text("qos") {
        "LS" => Ok(Some(Qos::LatencySensitive)),
        "BE" => Ok(Some(Qos::BestEffort)),
        "Burstable" => Ok(Some(Qos::Burstable)),
        "Guaranteed" => Ok(Some(Qos::Guaranteed)),
        _ => Err(row.refuse("qos", "LS, BE, Burstable or Guaranteed")),
    }
}

/// How the pod ended is not used, but a value that no pod can have tells of a
/// file that is something else.
fn phase(row: &Row<'_>) -> Result<(), TraceError> {
    match row.text("pod_phase") {
        "Pending" | "Running" | "Succeeded" | "Failed" | "Unknown" => Ok(()),
        _ if !row.has("pod_phase") => Ok(()),
        _ => Err(row.refuse("pod_phase", "Pending, Running, Succeeded, Failed or Unknown")),
    }
}
