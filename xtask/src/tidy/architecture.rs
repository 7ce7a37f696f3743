//! ARCHITECTURE.md names every crate of the host, and nothing that is gone.

use anyhow::Result;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

const PAGE: &str = "ARCHITECTURE.md";

/// Folders whose paths, where the page names them, must exist.
const FOLDERS: [&str; 10] = [
    "host/",
    "sdk/",
    "policies/",
    "wit/",
    "xtask/",
    "tests/",
    "docs/",
    "deploy/",
    "dashboard/",
    "scripts/",
];

pub fn check(root: &Path, complaints: &mut Vec<String>) -> Result<()> {
    let Ok(page) = fs::read_to_string(root.join(PAGE)) else {
        complaints.push(format!("{PAGE} is missing"));
        return Ok(());
    };
    let named = paths(&page);
    for entry in fs::read_dir(root.join("host"))? {
        let entry = entry?;
        let crate_path = format!("host/{}", entry.file_name().to_string_lossy());
        let is_crate = entry.path().join("Cargo.toml").is_file();
        let is_named =
            named.iter().any(|n| n == &crate_path || n.starts_with(&format!("{crate_path}/")));
        if is_crate && !is_named {
            complaints.push(format!("{PAGE} does not mention {crate_path}"));
        }
    }
    for path in named.iter().filter(|path| !root.join(path).exists()) {
        complaints.push(format!("{PAGE} names {path}, which is not there"));
    }
    Ok(())
}

/// The paths that a page names, patterns left out.
fn paths(page: &str) -> BTreeSet<String> {
    page.split(|c: char| !(c.is_ascii_alphanumeric() || "/_-.*{}|,".contains(c)))
        .filter(|word| FOLDERS.iter().any(|f| word.starts_with(f)))
        .map(|word| word.trim_end_matches(['.', ',', '/', '|']))
        .filter(|word| !word.contains(['*', '{', '|', ',']))
        .map(str::to_string)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::paths;

    #[test]
    fn paths_are_found_and_patterns_are_not() {
        let page = "`host/model/`: words, in host/engine. See policies/* and (docs/contract.md).";
        let found: Vec<_> = paths(page).into_iter().collect();
        assert_eq!(found, ["docs/contract.md", "host/engine", "host/model"]);
    }
}
