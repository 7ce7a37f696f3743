//! The crate graph is the architecture: dependencies point downward, and two
//! of them stop at one crate each.

use crate::command::{clean, output};
use anyhow::{Context as _, Result};
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// The host's crates from the bottom up; those of one layer do not know each
/// other.
const LAYERS: [&[&str]; 6] = [
    &["model"],
    &["engine"],
    &["policy", "store", "sim", "local", "kube", "node"],
    &["server"],
    &["api"],
    &["crater"],
];

/// A dependency whose name begins so, and the one crate that may have it.
const KEPT_TO_ONE: [(&str, &str); 6] = [
    ("wasmtime", "host/policy"),
    ("cranelift", "host/policy"),
    ("rusqlite", "host/store"),
    ("axum", "host/api"),
    ("kube", "host/kube"),
    ("k8s-openapi", "host/kube"),
];

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    manifest_path: PathBuf,
    dependencies: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
    /// Where it lies, for crates of this tree.
    path: Option<PathBuf>,
    /// `dev`, `build`, or nothing.
    kind: Option<String>,
}

pub fn check(root: &Path, complaints: &mut Vec<String>) -> Result<()> {
    let text = output(clean("cargo", root).args([
        "metadata",
        "--no-deps",
        "--offline",
        "--format-version",
        "1",
    ]))
    .context("cargo metadata failed")?;
    let metadata: Metadata = serde_json::from_str(&text)?;
    for package in &metadata.packages {
        let folder = package.manifest_path.parent().unwrap_or(root);
        let from = name(root, folder);
        for dependency in &package.dependencies {
            let to = dependency.path.as_deref().map(|path| name(root, path));
            let dev = dependency.kind.as_deref() == Some("dev");
            complaints.extend(complaint(&from, &dependency.name, to.as_deref(), dev));
        }
        if let Some(crate_name) = from.strip_prefix("host/")
            && layer(crate_name).is_none()
        {
            complaints.push(format!("{from} has no layer: give it one in xtask/src/tidy/graph.rs"));
        }
    }
    Ok(())
}

fn name(root: &Path, folder: &Path) -> String {
    folder.strip_prefix(root).unwrap_or(folder).to_string_lossy().into_owned()
}

fn layer(crate_name: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.contains(&crate_name))
}

/// What is wrong with one dependency. `to` is its folder, for crates of this
/// tree. Tests of a crate may use its layer, not what is above.
fn complaint(from: &str, dependency: &str, to: Option<&str>, dev: bool) -> Option<String> {
    let Some(to) = to else {
        let of = |stem: &str| {
            dependency
                .strip_prefix(stem)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
        };
        let (_, only) = KEPT_TO_ONE.iter().find(|(stem, _)| of(stem))?;
        return (from != *only)
            .then(|| format!("{from} depends on {dependency}, which only {only} may"));
    };
    let lower = to.strip_prefix("host/").and_then(layer)?;
    match from.strip_prefix("host/").map(layer) {
        Some(Some(upper)) => (lower > upper || lower == upper && !dev)
            .then(|| format!("{from} depends on {to}: dependencies point downward only")),
        // What guests are built from knows the contract and not the host.
        None if (from.starts_with("sdk/") || from.starts_with("policies/")) && !dev => {
            Some(format!("{from} depends on {to}: guests know the contract only"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::complaint;

    #[test]
    fn downward_only() {
        let path = |from, to| complaint(from, "crater", Some(to), false);
        assert_eq!(path("host/engine", "host/model"), None);
        assert_eq!(path("host/crater", "host/sim"), None);
        assert_eq!(path("tests/bench", "host/crater"), None);
        assert!(path("host/model", "host/engine").is_some());
        assert!(path("host/sim", "host/policy").is_some());
        assert!(path("sdk/rust", "host/model").is_some());
        assert_eq!(complaint("host/sim", "crater-policy", Some("host/policy"), true), None);
        assert!(complaint("host/engine", "crater-policy", Some("host/policy"), true).is_some());
    }

    #[test]
    fn wasmtime_and_kube_stay_where_they_are() {
        let crates_io = |from, name| complaint(from, name, None, false);
        assert_eq!(crates_io("host/policy", "wasmtime"), None);
        assert_eq!(crates_io("host/kube", "kube-runtime"), None);
        assert_eq!(crates_io("host/api", "kubelogin"), None);
        assert_eq!(
            crates_io("tests/bench", "wasmtime-environ").unwrap(),
            "tests/bench depends on wasmtime-environ, which only host/policy may"
        );
    }
}
