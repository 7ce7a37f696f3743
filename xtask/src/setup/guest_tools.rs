//! What makes components of Python and JavaScript, and schemathesis, in
//! `.tools`. Policies in Rust and most tests need none of it, so a machine
//! without it is told, not refused.

use super::versions;
use crate::command::{clean, find, run_quietly};
use crate::tree::write_if_changed;
use anyhow::{Context as _, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};

const REQUIREMENTS: &str = include_str!("../../guests/requirements.txt");
/// Its dependencies are pinned, too: another hypothesis throws other requests.
const SCHEMATHESIS: &str = include_str!("../../guests/schemathesis.txt");
const PACKAGE: &str = include_str!("../../guests/package.json");
const PACKAGE_LOCK: &str = include_str!("../../guests/package-lock.json");

/// componentize-py, if installed.
pub fn python(root: &Path) -> Option<PathBuf> {
    let tool = root.join(".tools/py/bin/componentize-py");
    tool.is_file().then_some(tool)
}

/// componentize-qjs, if installed: a module that node runs. Its command has no
/// ending, and the node of Debian 12 takes only `.mjs` for a module.
pub fn javascript(root: &Path) -> Option<PathBuf> {
    let tool = root.join(".tools/js/node_modules/componentize-qjs/cli.mjs");
    (tool.is_file() && find("node").is_some()).then_some(tool)
}

/// Installs all, and says what could not be.
pub fn install(root: &Path) {
    report("componentize-py", versions::COMPONENTIZE_PY, install_python(root));
    report("componentize-qjs", versions::COMPONENTIZE_QJS, install_javascript(root));
    report("schemathesis", versions::SCHEMATHESIS, install_schemathesis(root));
}

fn report(tool: &str, version: &str, outcome: Result<()>) {
    match outcome {
        Ok(()) => println!("{tool} {version}"),
        Err(error) => {
            println!("{tool} {version}: not installed, what needs it is skipped: {error:#}");
        }
    }
}

fn install_python(root: &Path) -> Result<()> {
    venv(root, "py", "componentize-py", "requirements.txt", REQUIREMENTS)
}

fn install_schemathesis(root: &Path) -> Result<()> {
    venv(root, "schemathesis", "schemathesis", "schemathesis.txt", SCHEMATHESIS)
}

/// A folder in `.tools` with a Python environment of these packages.
fn venv(root: &Path, name: &str, program: &str, file: &str, packages: &str) -> Result<()> {
    let folder = root.join(".tools").join(name);
    let done = folder.join("installed");
    let there = folder.join("bin").join(program).is_file();
    if there && fs::read_to_string(&done).is_ok_and(|old| old == packages) {
        return Ok(());
    }
    if find("python3").is_none() {
        bail!("python3 is missing");
    }
    run_quietly(clean("python3", root).args(["-m", "venv", "--clear"]).arg(&folder))
        .context("python3 -m venv (Debian: apt-get install python3-venv)")?;
    let mut pip = clean(folder.join("bin/python"), root);
    pip.args(["-m", "pip", "install", "--quiet", "--requirement"]);
    run_quietly(pip.arg(root.join("xtask/guests").join(file)))?;
    fs::write(done, packages)?;
    Ok(())
}

fn install_javascript(root: &Path) -> Result<()> {
    let folder = root.join(".tools/js");
    let done = folder.join("installed");
    if javascript(root).is_some() && fs::read_to_string(&done).is_ok_and(|old| old == PACKAGE_LOCK)
    {
        return Ok(());
    }
    if find("node").is_none() || find("npm").is_none() {
        bail!("node and npm are missing (Debian: apt-get install nodejs npm)");
    }
    write_if_changed(&folder.join("package.json"), PACKAGE.as_bytes())?;
    write_if_changed(&folder.join("package-lock.json"), PACKAGE_LOCK.as_bytes())?;
    let mut npm = clean("npm", &folder);
    run_quietly(npm.args(["ci", "--no-audit", "--no-fund", "--ignore-scripts"]))?;
    fs::write(done, PACKAGE_LOCK)?;
    Ok(())
}
