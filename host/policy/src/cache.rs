//! Artefacts on disk, so that a restart does not compile again.
//!
//! The folder belongs to this user alone. An entry is named by the component's
//! hash and the engine's, and carries a keyed hash of its name and content;
//! the key lies in the folder and is readable by this user alone. Whatever is
//! wrong with an entry, the component is compiled again.

use crate::precompiled::Artefact;
use crater_model::Digest;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::hash::{Hash, Hasher};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;
use thiserror::Error;
use wasmtime::Engine;

const KEY: &str = "key";
const ENDING: &str = "artefact";
const MAGIC: &[u8; 16] = b"crater artefact\n";
const HEAD: usize = MAGIC.len() + 32;
/// Bytes of all entries; the oldest go first.
const TOTAL_BYTES: u64 = 2 << 30;
/// Bytes of one entry.
const ENTRY_BYTES: u64 = 513 << 20;

/// Why a folder is no cache.
#[derive(Debug, Error)]
pub enum CacheError {
    /// It could not be made or looked at.
    #[error("the policy cache {} cannot be used", .path.display())]
    Io {
        /// The folder or its key.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Others could put code there.
    #[error(
        "the policy cache {} must be a {what} that belongs to the user running Crater and is open \
         to nobody else (mode {mode:o}, owner {owner})",
        .path.display()
    )]
    NotPrivate {
        /// The folder or its key.
        path: PathBuf,
        /// What it has to be.
        what: &'static str,
        /// Its permission bits.
        mode: u32,
        /// Its owner's number.
        owner: u32,
    },
    /// The key is not 32 bytes.
    #[error("the key of the policy cache {} is damaged; remove it", .path.display())]
    Key {
        /// The key's file.
        path: PathBuf,
    },
}

/// A private folder of artefacts.
#[derive(Debug)]
pub(crate) struct Cache {
    folder: PathBuf,
    key: [u8; 32],
    engine: String,
    serial: AtomicU64,
}

impl Cache {
    /// Opens the folder, making it and its key where they are not there.
    pub(crate) fn open(folder: &Path, engine: &Engine) -> Result<Self, CacheError> {
        let io = |source| CacheError::Io { path: folder.to_owned(), source };
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(io)?;
        check_private(folder, "folder", fs::Metadata::is_dir)?;
        let key = key(&folder.join(KEY))?;
        let mut hasher = Blake(blake3::Hasher::new());
        engine.precompile_compatibility_hash().hash(&mut hasher);
        let engine = hasher.0.finalize().to_hex()[..16].to_owned();
        Ok(Self { folder: folder.to_owned(), key, engine, serial: AtomicU64::new(0) })
    }

    /// The artefact of a component, if there is one that is ours.
    pub(crate) fn get(&self, wasm: Digest) -> Option<Artefact> {
        let name = self.name(wasm);
        let file = File::open(self.folder.join(&name)).ok()?;
        let mut bytes = Vec::new();
        file.take(ENTRY_BYTES + 1).read_to_end(&mut bytes).ok()?;
        if bytes.len() < HEAD || bytes.len() as u64 > ENTRY_BYTES || bytes[..16] != *MAGIC {
            return None;
        }
        let given = blake3::Hash::from_bytes(bytes[16..HEAD].try_into().ok()?);
        // The comparison takes the same time wherever the first difference is.
        if self.code(&name, &bytes[HEAD..]) != given {
            return None;
        }
        bytes.drain(..HEAD);
        Some(Artefact::vouched(bytes))
    }

    /// Keeps an artefact. A failure costs a compilation later and nothing now.
    pub(crate) fn put(&self, wasm: Digest, artefact: &Artefact) -> io::Result<()> {
        let name = self.name(wasm);
        let serial = self.serial.fetch_add(1, Ordering::Relaxed);
        let part = self.folder.join(format!("{}-{serial}.part", std::process::id()));
        let written = (|| {
            let mut file =
                OpenOptions::new().write(true).create_new(true).mode(0o600).open(&part)?;
            file.write_all(MAGIC)?;
            file.write_all(self.code(&name, artefact.bytes()).as_bytes())?;
            file.write_all(artefact.bytes())?;
            fs::rename(&part, self.folder.join(&name))
        })();
        if written.is_err() {
            let _ = fs::remove_file(&part);
        }
        written.and_then(|()| self.prune())
    }

    /// Forgets an entry that the engine would not load.
    pub(crate) fn forget(&self, wasm: Digest) {
        let _ = fs::remove_file(self.folder.join(self.name(wasm)));
    }

    fn name(&self, wasm: Digest) -> String {
        format!("{wasm}-{}.{ENDING}", self.engine)
    }

    fn code(&self, name: &str, artefact: &[u8]) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        hasher.update(&(name.len() as u64).to_le_bytes());
        hasher.update(name.as_bytes());
        hasher.update(artefact);
        hasher.finalize()
    }

    /// Removes the oldest entries beyond [`TOTAL_BYTES`], and what crashed
    /// writers left.
    fn prune(&self) -> io::Result<()> {
        let mut entries = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            let Ok(meta) = entry.metadata() else { continue };
            let path = entry.path();
            let age = SystemTime::now()
                .duration_since(meta.modified().unwrap_or(SystemTime::UNIX_EPOCH))
                .unwrap_or_default();
            match path.extension().and_then(|e| e.to_str()) {
                Some(ENDING) => entries.push((age, meta.len(), path)),
                Some("part") if age.as_secs() > 3600 => fs::remove_file(path)?,
                _ => {}
            }
        }
        entries.sort();
        let mut total = 0_u64;
        for (_, bytes, path) in entries {
            total = total.saturating_add(bytes);
            if total > TOTAL_BYTES {
                let _ = fs::remove_file(path);
            }
        }
        Ok(())
    }
}

fn check_private(
    path: &Path,
    what: &'static str,
    right: impl Fn(&fs::Metadata) -> bool,
) -> Result<(), CacheError> {
    // A link could lead to a folder that others fill.
    let meta = fs::symlink_metadata(path)
        .map_err(|source| CacheError::Io { path: path.to_owned(), source })?;
    let (mode, owner) = (meta.mode() & 0o7777, meta.uid());
    let private = [0o040, 0o020, 0o010, 0o004, 0o002, 0o001].iter().all(|bit| mode & bit == 0);
    if right(&meta) && private && owner == rustix::process::geteuid().as_raw() {
        return Ok(());
    }
    Err(CacheError::NotPrivate { path: path.to_owned(), what, mode, owner })
}

/// Reads the key, or makes it. Two processes that start at once get the same:
/// the file appears whole, and the first one stays.
fn key(path: &Path) -> Result<[u8; 32], CacheError> {
    let io = |source| CacheError::Io { path: path.to_owned(), source };
    if !path.try_exists().map_err(io)? {
        let mut fresh = [0; 32];
        let got = rustix::rand::getrandom(&mut fresh[..], rustix::rand::GetRandomFlags::empty())
            .map_err(|e| io(e.into()))?;
        if got != fresh.len() {
            return Err(io(io::Error::other("too little randomness")));
        }
        let part = path.with_extension(format!("{}.part", std::process::id()));
        let _ = fs::remove_file(&part);
        let mut file =
            OpenOptions::new().write(true).create_new(true).mode(0o600).open(&part).map_err(io)?;
        file.write_all(&fresh).and_then(|()| file.sync_all()).map_err(io)?;
        let linked = fs::hard_link(&part, path);
        fs::remove_file(&part).map_err(io)?;
        match linked {
            Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(io(e)),
            _ => {}
        }
    }
    check_private(path, "file", fs::Metadata::is_file)?;
    let bytes = fs::read(path).map_err(io)?;
    bytes.try_into().map_err(|_| CacheError::Key { path: path.to_owned() })
}

/// BLAKE3 for `Hash`: the same in every process, unlike the standard hasher.
struct Blake(blake3::Hasher);

impl Hasher for Blake {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn finish(&self) -> u64 {
        let hash = self.0.finalize();
        u64::from_le_bytes(hash.as_bytes()[..8].try_into().unwrap_or_default())
    }
}
