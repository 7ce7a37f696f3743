//! Where the files are.

use super::{Trace, TraceError, openb, philly};
use std::path::{Path, PathBuf};

/// The environment variable that names the folder of traces.
pub const TRACES_VARIABLE: &str = "CRATER_TRACES";

const PODS: (&str, &str) = ("openb_pod_list_", ".csv");
const NODES: &str = "openb_node_list_gpu_node.csv";
const PHILLY: &str = "philly.csv";

/// A folder of traces: the files themselves, or folders `openb` and `philly`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Traces {
    path: PathBuf,
}

/// The folder named by the flag, else by [`TRACES_VARIABLE`]. It must hold at
/// least one of the traces.
pub fn traces_dir(flag: Option<PathBuf>) -> Result<Traces, TraceError> {
    let variable = || std::env::var_os(TRACES_VARIABLE).filter(|v| !v.is_empty());
    let path = flag.or_else(|| variable().map(PathBuf::from)).ok_or(TraceError::NoFolder)?;
    Traces::at(&path)
}

impl Traces {
    /// A folder that holds at least one of the traces.
    pub fn at(path: &Path) -> Result<Self, TraceError> {
        // Tells a folder that is not there from one that holds nothing.
        list(path)?;
        let traces = Self { path: path.to_owned() };
        let nothing = traces.openb_names()?.is_empty() && traces.philly_file().is_none();
        if nothing { Err(traces.empty("openb_pod_list_*.csv", "openb")) } else { Ok(traces) }
    }

    fn empty(&self, wanted: &'static str, below: &'static str) -> TraceError {
        TraceError::Empty { path: self.path.clone(), wanted, below }
    }

    /// Names of the openb traces here, sorted; empty if there are none.
    pub fn openb_names(&self) -> Result<Vec<String>, TraceError> {
        Ok(self.openb_pods()?.into_iter().map(|(name, _)| name).collect())
    }

    fn openb_pods(&self) -> Result<Vec<(String, PathBuf)>, TraceError> {
        for folder in [self.path.clone(), self.path.join("openb")] {
            if !folder.is_dir() {
                continue;
            }
            let mut found: Vec<_> = list(&folder)?
                .into_iter()
                .filter_map(|file| {
                    let name = file.strip_prefix(PODS.0)?.strip_suffix(PODS.1)?;
                    Some((name.to_owned(), folder.join(&file)))
                })
                .collect();
            if !found.is_empty() {
                found.sort_unstable();
                return Ok(found);
            }
        }
        Ok(vec![])
    }

    /// Reads an openb trace: its pods, and the nodes with cards.
    pub fn openb(&self, name: &str) -> Result<Trace, TraceError> {
        let found = self.openb_pods()?;
        if found.is_empty() {
            return Err(self.empty("openb_pod_list_*.csv", "openb"));
        }
        let Some((_, file)) = found.iter().find(|(n, _)| n == name) else {
            let names: Vec<_> = found.into_iter().map(|(n, _)| n).collect();
            return Err(TraceError::UnknownTrace {
                name: name.chars().take(64).collect(),
                known: names.join(", "),
            });
        };
        let nodes = openb::nodes(&file.with_file_name(NODES))?;
        Ok(Trace { name: name.to_owned(), nodes, pods: openb::pods(file)? })
    }

    fn philly_file(&self) -> Option<PathBuf> {
        [self.path.join(PHILLY), self.path.join("philly").join(PHILLY)]
            .into_iter()
            .find(|f| f.is_file())
    }

    /// Reads the Philly trace in the order of submission.
    pub fn philly(&self) -> Result<Vec<philly::Job>, TraceError> {
        philly::jobs(&self.philly_file().ok_or_else(|| self.empty(PHILLY, "philly"))?)
    }
}

/// Names of the files of a folder; those that are not UTF-8 are none of ours.
fn list(folder: &Path) -> Result<Vec<String>, TraceError> {
    let failed = |source| TraceError::Read { path: folder.to_owned(), source };
    let mut names = vec![];
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        if let Ok(name) = entry.map_err(failed)?.file_name().into_string() {
            names.push(name);
        }
    }
    Ok(names)
}
