//! Puts the policies that were built before (`cargo xtask policies`) into the
//! binary, so that it is a single file.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

fn main() {
    let here = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let folder = std::env::var_os("CRATER_POLICIES")
        .map_or_else(|| here.join("../../target/policies"), PathBuf::from);
    println!("cargo:rerun-if-env-changed=CRATER_POLICIES");
    println!("cargo:rerun-if-changed={}", folder.display());
    let mut list = String::from("&[\n");
    for path in components(&folder) {
        println!("cargo:rerun-if-changed={}", path.display());
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let _ = writeln!(list, "    ({name:?}, include_bytes!({:?}) as &[u8]),", path.display());
    }
    list.push_str("]\n");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").unwrap_or_default());
    if let Err(error) = std::fs::write(out.join("policies.rs"), list) {
        println!("cargo:warning=the list of policies cannot be written: {error}");
    }
}

/// The components of a folder by name; none where it is missing.
fn components(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return vec![] };
    let mut paths: Vec<PathBuf> = entries
        .filter_map(|e| e.ok()?.path().canonicalize().ok())
        .filter(|p| p.extension().is_some_and(|e| e == "wasm"))
        // Guests of other languages are megabytes of interpreter.
        .filter(|p| p.metadata().is_ok_and(|m| m.len() < 1 << 20))
        .collect();
    paths.sort();
    paths
}
