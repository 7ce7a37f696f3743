//! What no other tool checks: the crate graph against the architecture, the
//! architecture's page against the tree, and the size of files.

mod architecture;
mod graph;

use anyhow::{Result, bail};
use std::fs;
use std::path::Path;

/// A file with more lines than this holds more than one idea.
const MOST_LINES: usize = 800;

/// Folders that hold no source of ours.
const NOT_OURS: [&str; 5] = ["target", "node_modules", "__pycache__", ".git", ".tools"];

/// Everything, with all complaints at once.
pub fn check(root: &Path) -> Result<()> {
    let mut complaints = Vec::new();
    architecture::check(root, &mut complaints)?;
    graph::check(root, &mut complaints)?;
    long_files(root, root, &mut complaints)?;
    if !complaints.is_empty() {
        bail!("{}", complaints.join("\n"));
    }
    Ok(())
}

fn long_files(root: &Path, folder: &Path, complaints: &mut Vec<String>) -> Result<()> {
    let mut entries = fs::read_dir(folder)?.collect::<Result<Vec<_>, _>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if entry.file_type()?.is_dir() {
            if !NOT_OURS.contains(&name.as_ref()) {
                long_files(root, &path, complaints)?;
            }
        } else if path.extension().is_some_and(|e| e == "rs" || e == "py" || e == "mjs") {
            let lines = fs::read_to_string(&path).map_or(0, |text| text.lines().count());
            if lines > MOST_LINES {
                let name = path.strip_prefix(root).unwrap_or(&path).display();
                complaints.push(format!("{name} has {lines} lines; split it below {MOST_LINES}"));
            }
        }
    }
    Ok(())
}
