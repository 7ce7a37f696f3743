//! Reading small files of the kernel below a root.

use super::FindError;
use std::io::ErrorKind;
use std::path::Path;
use std::str::FromStr;

/// The text of a file, without white space around it.
pub fn text(path: &Path) -> Result<String, FindError> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(text.trim().to_owned()),
        Err(source) => Err(FindError::Read { path: path.to_owned(), source }),
    }
}

/// The text of a file that need not be there.
pub fn text_if_there(path: &Path) -> Result<Option<String>, FindError> {
    match text(path) {
        Ok(text) => Ok(Some(text)),
        Err(FindError::Read { source, .. }) if source.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// What a file says that counts only if it can be had: drivers answer some
/// attributes with errors of their own.
pub fn value<T: FromStr>(path: &Path) -> Option<T> {
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// The names in a folder, in order; none if it is not there.
pub fn names(folder: &Path) -> Result<Vec<String>, FindError> {
    let failed = |source| FindError::Read { path: folder.to_owned(), source };
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(source) if source.kind() == ErrorKind::NotFound => return Ok(vec![]),
        Err(source) => return Err(failed(source)),
    };
    let mut names = vec![];
    for entry in entries {
        names.push(entry.map_err(failed)?.file_name().to_string_lossy().into_owned());
    }
    names.sort_unstable();
    Ok(names)
}

/// The KiB behind `key` in the format of `meminfo`, in MiB.
pub fn meminfo(path: &Path, key: &str) -> Result<u64, FindError> {
    let text = text(path)?;
    let line = text.lines().find_map(|line| {
        // A node's file begins each line with `Node 0 `.
        let (name, amount) = line.split_once(':')?;
        (name.split_whitespace().last()? == key).then_some(amount)
    });
    let kib = line.and_then(|amount| amount.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    kib.map(|kib| kib / 1024).ok_or_else(|| FindError::Says {
        path: path.to_owned(),
        what: "how much memory there is",
        text: text.lines().next().unwrap_or_default().to_owned(),
    })
}
