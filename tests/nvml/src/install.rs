//! Putting the library where something can load it.

use crate::Machine;
use std::fs;
use std::path::{Path, PathBuf};

/// Copies the library into `folder` under the name by which it is looked for,
/// with its description beside it, and returns its path. Called again, it
/// changes the description that those who loaded it see.
///
/// # Panics
///
/// If the library was not built, or the folder cannot be written.
pub fn install(folder: &Path, machine: &Machine) -> PathBuf {
    let library = folder.join("libnvidia-ml.so.1");
    if !library.exists() {
        // A copy, since a file that is loaded already is not loaded anew under
        // another name, and then would see another's description.
        let from = built();
        fs::copy(&from, &library).unwrap_or_else(|e| panic!("copying {}: {e}", from.display()));
    }
    let text = serde_json::to_vec_pretty(machine).expect("a description is plain data");
    let new = tempfile::NamedTempFile::new_in(folder).expect("the folder is writable");
    fs::write(new.path(), text).expect("the folder is writable");
    new.persist(folder.join("machine.json")).expect("the folder is writable");
    library
}

/// Where cargo puts the library of a dependency: beside the test that has it.
fn built() -> PathBuf {
    let test = std::env::current_exe().expect("the path of the test");
    test.with_file_name("libcrater_nvml_stand_in.so")
}
