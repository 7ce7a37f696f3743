//! `cargo xtask policies`: every policy of this tree as a component in
//! target/policies.

mod component;
mod script;

use crate::command::run;
use crate::guest_toolchain::{GuestToolchain, TARGET};
use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Builds all of them; what is up to date is left alone.
pub fn build(root: &Path) -> Result<()> {
    let out = root.join("target/policies");
    fs::create_dir_all(&out)?;
    let crates = crates(root)?;
    let scripts = script::find(root)?;

    let mut files = BTreeSet::new();
    for name in crates.iter().map(|c| &c.folder).chain(scripts.iter().map(|s| &s.output)) {
        ensure!(files.insert(format!("{name}.wasm")), "two policies are called {name}");
    }
    remove_others(&out, &files)?;

    build_crates(root, &crates, &out)?;
    script::build(root, &scripts, &out)
}

/// A guest crate.
struct GuestCrate {
    /// Its folder's name, and so the component's.
    folder: String,
    package: String,
    /// The compiled module's name, without `.wasm`.
    module: String,
}

#[derive(Deserialize)]
struct Manifest {
    package: Package,
    lib: Option<Lib>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Lib {
    name: Option<String>,
    #[serde(default)]
    crate_type: Vec<String>,
}

/// The crates under policies/ that compile to a module.
fn crates(root: &Path) -> Result<Vec<GuestCrate>> {
    let mut found = Vec::new();
    for parent in ["policies", "policies/examples"] {
        for folder in entries(&root.join(parent))? {
            let Ok(text) = fs::read_to_string(folder.join("Cargo.toml")) else {
                continue;
            };
            let manifest: Manifest = toml::from_str(&text)
                .with_context(|| format!("in {}", folder.join("Cargo.toml").display()))?;
            let lib = manifest.lib.unwrap_or(Lib { name: None, crate_type: Vec::new() });
            if lib.crate_type.iter().any(|t| t == "cdylib") {
                let name = lib.name.unwrap_or_else(|| manifest.package.name.clone());
                found.push(GuestCrate {
                    folder: folder.file_name().unwrap_or_default().to_string_lossy().into_owned(),
                    package: manifest.package.name,
                    module: name.replace('-', "_"),
                });
            }
        }
    }
    Ok(found)
}

/// What lies in a folder, by name; nothing if it is not there.
fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let Ok(files) = fs::read_dir(folder) else {
        return Ok(Vec::new());
    };
    let mut paths = files.map(|f| Ok(f?.path())).collect::<Result<Vec<_>>>()?;
    paths.sort();
    Ok(paths)
}

/// Components whose source is gone would still be found by name.
fn remove_others(out: &Path, files: &BTreeSet<String>) -> Result<()> {
    for path in entries(out)? {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let component = path.extension().is_some_and(|e| e == "wasm");
        if component && !files.contains(&name) {
            fs::remove_file(&path)?;
            println!("removed target/policies/{name}");
        }
    }
    Ok(())
}

fn build_crates(root: &Path, crates: &[GuestCrate], out: &Path) -> Result<()> {
    if crates.is_empty() {
        return Ok(());
    }
    let toolchain = GuestToolchain::find(root)?;
    // A folder of its own: its compiler and flags differ from the host's.
    let target = root.join("target/guest");
    let mut command = toolchain.cargo_build(root);
    command
        .args(["--profile", "guest", "--quiet"])
        .env("CARGO_TARGET_DIR", &target)
        .env("CARGO_ENCODED_RUSTFLAGS", without_paths(root));
    for guest in crates {
        command.args(["--package", &guest.package]);
    }
    run(&mut command).with_context(|| format!("building guests with {}", toolchain.name()))?;

    let modules = target.join(TARGET).join("guest");
    for guest in crates {
        let module = modules.join(format!("{}.wasm", guest.module));
        let module = fs::read(&module).with_context(|| format!("reading {}", module.display()))?;
        let bytes = component::wrap(&module)
            .and_then(|bytes| component::check(&bytes).map(|()| bytes))
            .with_context(|| format!("making {} a component", guest.package))?;
        component::save(&out.join(format!("{}.wasm", guest.folder)), &bytes)?;
    }
    Ok(())
}

/// Flags that keep the paths of this machine out of what is built, so that the
/// same source gives the same bytes elsewhere.
fn without_paths(root: &Path) -> String {
    let mut flags = vec![format!("--remap-path-prefix={}=/crater", root.display())];
    let home = std::env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cargo")));
    if let Some(home) = home {
        flags.push(format!("--remap-path-prefix={}=/cargo", home.display()));
    }
    flags.join("\x1f")
}
