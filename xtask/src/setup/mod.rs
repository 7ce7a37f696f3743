//! `cargo xtask setup`: what building and testing need beyond cargo. Run again
//! it finds everything in place and takes no time.

pub mod guest_tools;
pub mod versions;

use crate::command::{clean, find, find_in, output, run, run_within};
use crate::guest_toolchain::{DEBIAN_PACKAGES, GuestToolchain, TARGET, rustup_has_target, sysroot};
use anyhow::{Context as _, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Without its server in reach, rustup waits for much longer than this.
const RUSTUP_LIMIT: Duration = Duration::from_mins(1);

/// Installs what building needs, where it is missing.
pub fn for_build(root: &Path) -> Result<()> {
    if GuestToolchain::find(root).is_ok() {
        return Ok(());
    }
    guest_toolchain(root, &tools(root)?)
}

/// Installs what building and testing need, where it is missing.
pub fn run_all(root: &Path) -> Result<()> {
    let tools = tools(root)?;
    guest_toolchain(root, &tools)?;
    // Without what updates itself, half a network stack is not built.
    let features = ["--no-default-features", "--features", "default-no-update"];
    cargo_tool(root, &tools, "cargo-nextest", versions::NEXTEST, &features)?;
    cargo_tool(root, &tools, "cargo-deny", versions::DENY, &[])?;
    guest_tools::install(root);
    Ok(())
}

fn tools(root: &Path) -> Result<PathBuf> {
    let tools = root.join(".tools");
    fs::create_dir_all(&tools)?;
    Ok(tools)
}

/// The folder of programs that set-up installed.
pub fn bin(root: &Path) -> PathBuf {
    root.join(".tools/bin")
}

fn guest_toolchain(root: &Path, tools: &Path) -> Result<()> {
    let mut found = GuestToolchain::find(root);
    if found.is_err() {
        if add_target(root, tools)? {
            found = GuestToolchain::find(root);
        } else {
            install_debian(root).with_context(|| {
                format!(
                    "rustup has no {TARGET} here, and Debian's {} could not be installed",
                    DEBIAN_PACKAGES.join(" ")
                )
            })?;
            found = GuestToolchain::find(root);
        }
    }
    println!("Rust guests: {}", found?.name());
    Ok(())
}

/// `rustup target add`, once for each toolchain: where it failed, it is not
/// tried again until `.tools` is removed.
fn add_target(root: &Path, tools: &Path) -> Result<bool> {
    let marker = tools.join("rustup-has-no-wasm32");
    let toolchain = sysroot(root).unwrap_or_default();
    if find("rustup").is_none() || fs::read_to_string(&marker).is_ok_and(|old| old == toolchain) {
        return Ok(false);
    }
    println!("rustup target add {TARGET}, for at most {} s", RUSTUP_LIMIT.as_secs());
    let mut rustup = clean("rustup", root);
    rustup.args(["target", "add", TARGET]).env("RUSTUP_MAX_RETRIES", "0");
    let added = run_within(&mut rustup, RUSTUP_LIMIT)?.is_some_and(|status| status.success())
        && rustup_has_target(root);
    if !added {
        fs::write(&marker, toolchain)?;
        println!("rustup cannot fetch {TARGET} here; trying Debian's packages");
    }
    Ok(added)
}

fn install_debian(root: &Path) -> Result<()> {
    if find("apt-get").is_none() {
        bail!("there is no apt-get");
    }
    // A fresh container has no package lists, and lists of yesterday may name a
    // compiler that is too old. Where they cannot be had, the present ones do.
    let _ = run(apt_get(root).args(["update", "--quiet"]));
    let mut install = apt_get(root);
    install.args(["install", "-y", "--no-install-recommends"]).args(DEBIAN_PACKAGES);
    run(&mut install)
}

fn apt_get(root: &Path) -> Command {
    let user = output(clean("id", root).arg("-u"));
    let mut command = if user.as_deref() == Some("0") {
        clean("apt-get", root)
    } else {
        let mut sudo = clean("sudo", root);
        sudo.args(["--non-interactive", "DEBIAN_FRONTEND=noninteractive", "apt-get"]);
        sudo
    };
    command.env("DEBIAN_FRONTEND", "noninteractive");
    command
}

/// A cargo subcommand, in `.tools/bin` unless the machine has one.
fn cargo_tool(
    root: &Path,
    tools: &Path,
    name: &str,
    version: &str,
    features: &[&str],
) -> Result<()> {
    if let Some(program) = find_in(&bin(root), name)
        && let Some(says) = output(clean(&program, root).arg("--version"))
    {
        println!("{}", says.lines().next().unwrap_or(name));
        return Ok(());
    }
    println!("installing {name} {version} into .tools; this takes minutes, once");
    let build = tools.join("build");
    let mut command = clean("cargo", root);
    command
        .args(["install", "--locked", "--quiet", "--root"])
        .arg(tools)
        .args([name, "--version", version])
        .args(features)
        .env("CARGO_TARGET_DIR", &build)
        // They wait for others most of the time: built soon beats running fast.
        .env("CARGO_PROFILE_RELEASE_LTO", "off")
        .env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "256")
        .env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "0")
        .env("CARGO_PROFILE_RELEASE_DEBUG", "0");
    run(&mut command).with_context(|| format!("installing {name}"))?;
    // The build is larger than what it leaves.
    fs::remove_dir_all(&build).context("removing .tools/build")
}
