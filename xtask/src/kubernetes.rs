//! A control plane for tests, from Go modules: etcd, kube-apiserver,
//! kube-scheduler and kwok. Built once, outside the tree, since no source of
//! ours goes into it; where it cannot be, tests say so and are skipped.

use crate::command::{clean, find, run_quietly};
use anyhow::{Context as _, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};

/// The folder of the modules, each pinned by its go.mod and go.sum.
const MODULES: &str = "xtask/kubernetes";

/// (module, program, package, what the linker is told)
const PROGRAMS: [(&str, &str, &str, &str); 4] = [
    ("etcd", "etcd", "go.etcd.io/etcd/server/v3", ""),
    ("kwok", "kwok", "sigs.k8s.io/kwok/cmd/kwok", ""),
    ("control-plane", "kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver", VERSION),
    ("control-plane", "kube-scheduler", "k8s.io/kubernetes/cmd/kube-scheduler", VERSION),
];

/// What a release says that it is; the module's own version is v1.36.3.
const VERSION: &str = " -X k8s.io/component-base/version.gitVersion=v1.36.3 \
     -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=36";

/// Builds what is missing, and notes why it could not: never fails a build of
/// ours.
pub fn run(root: &Path) {
    let Some(cache) = cache() else {
        println!("kubernetes: skipped: there is no home folder for the cache");
        return;
    };
    let why = cache.join("why-not");
    match build(root, &cache) {
        Ok(()) => {
            // There is none any more, if there was.
            let _ = fs::remove_file(&why);
            println!("kubernetes: {}", cache.join("bin").display());
        }
        Err(error) => {
            println!("kubernetes: skipped: {error:#}");
            let _ = fs::create_dir_all(&cache);
            let _ = fs::write(&why, format!("{error:#}"));
        }
    }
}

fn build(root: &Path, cache: &Path) -> Result<()> {
    let bin = cache.join("bin");
    let sums = sums(root)?;
    let stamp = cache.join("built-from");
    let same = fs::read_to_string(&stamp).is_ok_and(|old| old == sums);
    let there = PROGRAMS.iter().all(|(_, program, ..)| bin.join(program).is_file());
    if same && there {
        return Ok(());
    }
    if find("go").is_none() {
        bail!("there is no go to build a control plane with");
    }
    fs::create_dir_all(&bin)?;
    println!("kubernetes: building a control plane into {}; minutes, once", cache.display());
    for (module, program, package, flags) in PROGRAMS {
        println!("kubernetes: {program}");
        let mut go = clean("nice", &root.join(MODULES).join(module));
        go.args(["-n", "5", "go", "build", "-trimpath", "-buildvcs=false"])
            .arg(format!("-ldflags=-s -w{flags}"))
            .arg("-o")
            .arg(bin.join(program))
            .arg(package)
            .env("CGO_ENABLED", "0")
            .env("GOFLAGS", "-mod=readonly");
        run_quietly(&mut go).with_context(|| format!("go build {package}"))?;
    }
    fs::write(&stamp, sums)?;
    Ok(())
}

/// All pinned versions in one text.
fn sums(root: &Path) -> Result<String> {
    let mut all = String::new();
    for module in ["control-plane", "etcd", "kwok"] {
        let file = root.join(MODULES).join(module).join("go.mod");
        all += &fs::read_to_string(&file).with_context(|| file.display().to_string())?;
    }
    Ok(all)
}

fn cache() -> Option<PathBuf> {
    let base = match std::env::var_os("XDG_CACHE_HOME") {
        Some(folder) => PathBuf::from(folder),
        None => PathBuf::from(std::env::var_os("HOME")?).join(".cache"),
    };
    Some(base.join("crater").join("kubernetes"))
}
