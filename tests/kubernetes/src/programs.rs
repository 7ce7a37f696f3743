//! Where the programs are.

use std::path::{Path, PathBuf};

/// The programs of a control plane.
#[derive(Clone, Debug)]
pub struct Programs {
    folder: PathBuf,
}

impl Programs {
    /// What is needed of them.
    const NEEDED: [&str; 3] = ["etcd", "kube-apiserver", "kwok"];

    /// Those in the cache, or in `CRATER_KUBERNETES`; else why there are none.
    pub fn find() -> Result<Self, String> {
        let folder = match std::env::var_os("CRATER_KUBERNETES") {
            Some(folder) => PathBuf::from(folder),
            None => cache().ok_or("there is no home folder")?.join("bin"),
        };
        let missing: Vec<_> =
            Self::NEEDED.into_iter().filter(|n| !folder.join(n).is_file()).collect();
        if missing.is_empty() {
            return Ok(Self { folder });
        }
        let why = std::fs::read_to_string(folder.with_file_name("why-not"));
        let why = why.unwrap_or_else(|_| "`cargo xtask kubernetes` builds them".into());
        Err(format!("no {} in {}: {}", missing.join(", "), folder.display(), why.trim()))
    }

    /// One of them.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Whether it is there, for those that not every test needs.
    pub fn has(&self, name: &str) -> bool {
        self.path(name).is_file()
    }
}

fn cache() -> Option<PathBuf> {
    let base = match std::env::var_os("XDG_CACHE_HOME") {
        Some(folder) => PathBuf::from(folder),
        None => PathBuf::from(std::env::var_os("HOME")?).join(".cache"),
    };
    Some(base.join("crater").join("kubernetes"))
}

/// The binary of Crater: `CRATER_BIN`, or the one built beside this program.
pub fn crater() -> Result<PathBuf, String> {
    if let Some(path) = std::env::var_os("CRATER_BIN") {
        return Ok(PathBuf::from(path));
    }
    let here = std::env::current_exe().map_err(|e| e.to_string())?;
    let found = here.ancestors().skip(1).take(2).map(|f: &Path| f.join("crater"));
    found.into_iter().find(|p| p.is_file()).ok_or_else(|| "crater is not built".to_owned())
}
