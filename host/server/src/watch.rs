//! Notices when the configuration or a policy's file changes.

use crate::system::System;
use crater_model::QueueName;
use notify::{RecursiveMode, Watcher};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::time::Duration;

/// A file is read once it was left alone for so long: writers write in steps.
const QUIET: Duration = Duration::from_millis(150);
/// Files are looked at this often even if nobody says that they changed: some
/// file systems do not tell.
const LOOK: Duration = Duration::from_secs(2);

/// What a file held when it was last looked at; none if it cannot be read.
fn mark(path: &Path) -> Option<blake3::Hash> {
    std::fs::read(path).ok().map(|bytes| blake3::hash(&bytes))
}

/// Starts the watching thread.
pub fn start(system: &Arc<System>) -> std::io::Result<()> {
    let (tell, told) = mpsc::channel();
    let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        // Whoever listened may be gone.
        let _ = event.map(|_| tell.send(()));
    });
    let mut watcher = watcher
        .inspect_err(|error| tracing::warn!(%error, "files are only looked at every two seconds"))
        .ok();
    let system = Arc::downgrade(system);
    std::thread::Builder::new().name("watch".into()).spawn(move || {
        let mut folders: BTreeSet<PathBuf> = BTreeSet::new();
        let mut marks: BTreeMap<PathBuf, Option<blake3::Hash>> = BTreeMap::new();
        loop {
            let Some(system) = system.upgrade() else { return };
            look(&system, &mut marks);
            let files = system.policies.files().into_iter().map(|(_, path)| path);
            for file in files.chain(system.file().map(Path::to_path_buf)) {
                let folder = file.parent().unwrap_or(Path::new(".")).to_path_buf();
                let folder = if folder.as_os_str().is_empty() { ".".into() } else { folder };
                // The folder, not the file: editors replace files.
                if let Some(watcher) = watcher.as_mut().filter(|_| folders.insert(folder.clone()))
                    && let Err(error) = watcher.watch(&folder, RecursiveMode::NonRecursive)
                {
                    tracing::warn!(%error, folder = %folder.display(), "looked at every two seconds");
                }
            }
            drop(system);
            match told.recv_timeout(LOOK) {
                Ok(()) => while told.recv_timeout(QUIET).is_ok() {},
                Err(mpsc::RecvTimeoutError::Timeout) => {}
                Err(mpsc::RecvTimeoutError::Disconnected) => std::thread::sleep(LOOK),
            }
        }
    })?;
    Ok(())
}

/// Compares each file with what it held before and acts on changes.
fn look(system: &System, marks: &mut BTreeMap<PathBuf, Option<blake3::Hash>>) {
    if let Some(file) = system.file()
        && changed(marks, file)
        && let Err(error) = system.reload()
    {
        tracing::warn!("{error}; the configuration stays as it was");
    }
    let files: Vec<(QueueName, PathBuf)> = system.policies.files();
    let news: BTreeSet<&PathBuf> =
        files.iter().map(|(_, path)| path).filter(|path| changed(marks, path)).collect();
    for (queue, _) in files.iter().filter(|(_, path)| news.contains(path)) {
        system.refresh_policy(queue);
    }
}

/// Whether a file holds something else than when it was last looked at; not so
/// at the first look.
fn changed(marks: &mut BTreeMap<PathBuf, Option<blake3::Hash>>, path: &Path) -> bool {
    let now = mark(path);
    match marks.insert(path.to_path_buf(), now) {
        Some(before) => before != now,
        None => false,
    }
}
