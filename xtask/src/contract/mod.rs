//! `cargo xtask contract`: constants in every language and the reference page,
//! from wit/.

mod code;
mod page;
pub mod spec;

use crate::tree::write_if_changed;
use anyhow::{Result, bail};
use spec::Spec;
use std::path::Path;

/// Writes the files, or with `check` fails when one of them is stale.
pub fn run(root: &Path, check: bool) -> Result<()> {
    let spec = Spec::read(&root.join("wit/columns.toml"))?;
    let files = [
        ("host/model/src/columns.rs", code::rust_host(&spec)),
        ("sdk/rust/src/columns.rs", code::rust_guest(&spec)),
        ("sdk/python/crater_columns.py", code::python(&spec)),
        ("sdk/js/columns.mjs", code::javascript(&spec)),
        ("docs/contract.md", page::page(&spec, &root.join("wit/policy.wit"))?),
    ];
    let mut stale = Vec::new();
    for (name, text) in files {
        let path = root.join(name);
        if check {
            if std::fs::read_to_string(&path).ok().as_deref() != Some(text.as_str()) {
                stale.push(name);
            }
        } else if write_if_changed(&path, text.as_bytes())? {
            println!("wrote {name}");
        }
    }
    if !stale.is_empty() {
        bail!("out of step with wit/: {}; run `cargo xtask contract`", stale.join(", "));
    }
    Ok(())
}
