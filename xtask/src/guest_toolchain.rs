//! A compiler for Rust guests: the pinned toolchain where it has the wasm32
//! standard library, else Debian's, which builds that library from source.

use crate::command::{clean, find, output};
use anyhow::{Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

/// What guests are compiled for.
pub const TARGET: &str = "wasm32-unknown-unknown";

/// What Debian calls the parts.
pub const DEBIAN_PACKAGES: [&str; 4] = ["rustc-web", "cargo-web", "rust-web-src", "lld"];

/// The oldest compiler that will do, as in `rust-version` of Cargo.toml.
const OLDEST: (u32, u32) = (1, 95);

/// A compiler that can build guests.
pub enum GuestToolchain {
    /// The toolchain that builds the host too.
    Rustup,
    /// Debian's packages.
    Debian {
        /// The linker, `wasm-ld` or `wasm-ld-14`.
        linker: PathBuf,
    },
}

impl GuestToolchain {
    /// The one on this machine.
    pub fn find(root: &Path) -> Result<Self> {
        if rustup_has_target(root) {
            return Ok(Self::Rustup);
        }
        if let Some(linker) = debian(root) {
            return Ok(Self::Debian { linker });
        }
        bail!("no compiler for {TARGET}: run `make setup`, or `rustup target add {TARGET}`")
    }

    /// In words.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Rustup => "the pinned toolchain",
            Self::Debian { .. } => "Debian's rustc with its standard library from source",
        }
    }

    /// A `cargo build` for the target.
    pub fn cargo_build(&self, root: &Path) -> Command {
        match self {
            Self::Rustup => {
                let mut command = clean("cargo", root);
                command.args(["build", "--target", TARGET]);
                command
            }
            Self::Debian { linker } => {
                let mut command = clean("/usr/bin/cargo", root);
                command
                    .args(["build", "--target", TARGET, "-Zbuild-std=std,panic_abort"])
                    .env_remove("RUSTUP_TOOLCHAIN")
                    .env("RUSTC", "/usr/bin/rustc")
                    .env("RUSTC_BOOTSTRAP", "1")
                    .env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", linker);
                command
            }
        }
    }
}

/// Whether the toolchain of this folder has the target's standard library.
pub fn rustup_has_target(root: &Path) -> bool {
    let libraries =
        output(clean("rustc", root).args(["--print", "target-libdir", "--target", TARGET]));
    libraries.is_some_and(|folder| {
        std::fs::read_dir(folder).is_ok_and(|mut files| {
            files.any(|f| f.is_ok_and(|f| f.file_name().to_string_lossy().starts_with("libstd-")))
        })
    })
}

/// The folder of the toolchain in use.
pub fn sysroot(root: &Path) -> Option<String> {
    output(clean("rustc", root).args(["--print", "sysroot"]))
}

/// The linker, if all of Debian's parts are there.
fn debian(root: &Path) -> Option<PathBuf> {
    let rustc = Path::new("/usr/bin/rustc");
    let version = output(clean(rustc, root).arg("--version"))?;
    let sysroot = PathBuf::from(output(clean(rustc, root).args(["--print", "sysroot"]))?);
    let complete = version_of(&version)? >= OLDEST
        && Path::new("/usr/bin/cargo").is_file()
        && sysroot.join("lib/rustlib/src/rust/library/std").is_dir();
    if !complete {
        return None;
    }
    find("wasm-ld-14").or_else(|| find("wasm-ld"))
}

/// Major and minor of `rustc 1.96.0 (…)`.
fn version_of(line: &str) -> Option<(u32, u32)> {
    let mut parts = line.split_whitespace().nth(1)?.split('.');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::version_of;

    #[test]
    fn reads_versions() {
        assert_eq!(version_of("rustc 1.96.0 (ac68faa20 2026-05-25)"), Some((1, 96)));
        assert_eq!(version_of("rustc"), None);
    }
}
