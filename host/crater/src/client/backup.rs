//! `crater backup` and `crater restore`.

use super::args::{Backup, Restore};
use super::http::{Api, path};
use super::print;
use crate::exit::input;
use anyhow::{Context as _, anyhow};
use crater_api::backup::{HASH, Staged};
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;

/// Copies bytes and says how many and with which hash.
fn copy(from: &mut impl Read, to: &mut impl Write) -> std::io::Result<(u64, String)> {
    let mut hash = blake3::Hasher::new();
    let mut buffer = vec![0; 256 << 10];
    let mut all = 0;
    loop {
        let read = match from.read(&mut buffer) {
            Ok(0) => return Ok((all, hash.finalize().to_string())),
            Ok(read) => read,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        hash.update(&buffer[..read]);
        to.write_all(&buffer[..read])?;
        all += read as u64;
    }
}

/// Fetches a backup. The file appears once all of it has arrived.
pub fn backup(args: &Backup) -> anyhow::Result<()> {
    let to = &args.file;
    let named = |error: std::io::Error| input(anyhow!("{}: {error}", to.display()));
    if to.symlink_metadata().is_ok() {
        return Err(input(anyhow!("{} exists already; name a file that does not", to.display())));
    }
    let folder = to.parent().filter(|folder| *folder != Path::new(""));
    // Only its owner may read a file that is made so: tokens' hashes are in it.
    let mut part = tempfile::Builder::new()
        .prefix(".crater-")
        .suffix(".part")
        .tempfile_in(folder.unwrap_or(Path::new(".")))
        .map_err(named)?;
    let api = Api::new(&args.common)?;
    let (head, mut body) = api.open_slowly(&path(&["backup"]))?;
    let told = head.get(HASH.as_str()).and_then(|hash| hash.to_str().ok()).map(str::to_owned);
    let (bytes, hash) = copy(&mut body, &mut part).with_context(|| {
        format!("the backup did not arrive whole; {} was not made", to.display())
    })?;
    if told.as_deref() != Some(hash.as_str()) {
        return Err(anyhow!(
            "the backup did not arrive as it was sent; {} was not made, try again",
            to.display()
        ));
    }
    part.as_file().sync_all().map_err(named)?;
    part.persist_noclobber(to).map_err(|error| named(error.error))?;
    if let Ok(folder) = File::open(folder.unwrap_or(Path::new("."))) {
        folder.sync_all().map_err(named)?;
    }
    print::text(&format!("{}: {} bytes, blake3 {hash}", to.display(), bytes))
}

/// Restores into a folder, or at a server's next start.
pub fn restore(args: &Restore) -> anyhow::Result<()> {
    let Some(file) = &args.file else {
        Api::new(&args.common)?.delete(&path(&["restore"]))?;
        return print::text("no backup takes the store's place at the server's next start");
    };
    if let Some(data) = &args.data {
        crater_store::restore(file, data).map_err(input)?;
        return print::text(&format!(
            "{} holds the backup: crater serve --data {}",
            data.display(),
            data.display()
        ));
    }
    let named = |error: std::io::Error| input(anyhow!("{}: {error}", file.display()));
    let mut open = File::open(file).map_err(named)?;
    let (_, hash) = copy(&mut open, &mut std::io::sink()).map_err(named)?;
    std::io::Seek::rewind(&mut open).map_err(named)?;
    let api = Api::new(&args.common)?;
    let staged: Staged =
        api.put_file(&path(&["restore"]), open, &[(HASH.as_str(), hash.as_str())])?;
    print::answer(args.common.output, &staged, |_| {
        format!("the backup is whole ({} journal entries); {}", staged.entries, staged.next)
    })
}
