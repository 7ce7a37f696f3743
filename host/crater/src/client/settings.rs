//! Which server, and with which token: flags before the environment before
//! the file before defaults.

use super::args::{Common, ConfigSet};
use crate::exit::input;
use crate::serve::{TOKEN_FILE, default_data};
use anyhow::{Context, anyhow};
use serde::{Deserialize, Serialize};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// The server where none is named.
const SERVER: &str = "http://127.0.0.1:8470";

/// The file that `config set` writes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Kept {
    #[serde(skip_serializing_if = "Option::is_none")]
    server: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ca: Option<PathBuf>,
}

/// A setting and where it comes from.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Setting<T> {
    /// What it is.
    pub value: T,
    /// Where it comes from, for people.
    pub from: String,
}

/// What a command uses.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The server's address, without a slash at its end.
    pub server: Setting<String>,
    /// The token, if there is one.
    pub token: Option<Setting<String>>,
    /// Certificates to trust.
    pub ca: Option<Setting<PathBuf>>,
    /// The file.
    pub file: PathBuf,
    /// A token that was not used and why, for people.
    pub unused: Option<String>,
}

fn file() -> anyhow::Result<PathBuf> {
    let folder = match std::env::var_os("XDG_CONFIG_HOME").filter(|folder| !folder.is_empty()) {
        Some(folder) => PathBuf::from(folder),
        None => std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".config")).ok_or_else(
            || input(anyhow!("there is no HOME for the configuration: set XDG_CONFIG_HOME, or give --server and --token")),
        )?,
    };
    Ok(folder.join("crater/config.yaml"))
}

fn read(file: &Path) -> anyhow::Result<Kept> {
    let text = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Kept::default()),
        Err(error) => return Err(input(anyhow!("{}: {error}", file.display()))),
    };
    if text.trim().is_empty() {
        return Ok(Kept::default());
    }
    serde_saphyr::from_str(&text).map_err(|error| input(anyhow!("{}: {error}", file.display())))
}

/// An address without a slash at its end, or why it is none.
fn server(text: &str) -> anyhow::Result<String> {
    let refuse = || {
        input(anyhow!(
            "server: {text:?} is refused: expected an address such as {SERVER} or https://crater.your-domain.com"
        ))
    };
    let trimmed = text.trim_end_matches('/');
    let rest = trimmed.strip_prefix("http://").or_else(|| trimmed.strip_prefix("https://"));
    let rest = rest.filter(|rest| !rest.is_empty() && !rest.starts_with('/')).ok_or_else(refuse)?;
    // A name and password in it would be sent nowhere: they are not what is meant.
    let plain = !rest.contains(['@', '?', '#']) && trimmed.parse::<ureq::http::Uri>().is_ok();
    plain.then(|| trimmed.to_owned()).ok_or_else(refuse)
}

/// A token that fits in a header, or why it does not.
fn token(text: &str) -> anyhow::Result<String> {
    let plain = !text.is_empty() && text.bytes().all(|b| b.is_ascii_graphic());
    let plain = plain.then(|| text.to_owned());
    plain.ok_or_else(|| input(anyhow!("token: expected printable characters without spaces")))
}

/// Whether an address is of this machine.
pub fn loopback(server: &str) -> bool {
    let Ok(uri) = server.parse::<ureq::http::Uri>() else { return false };
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse().is_ok_and(|ip: std::net::IpAddr| ip.is_loopback())
}

fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|text| !text.is_empty())
}

/// What is given, from the first that says it.
fn first<T>(flag: Option<T>, name: &str, of: impl Fn(String) -> T) -> Option<Setting<T>> {
    let flag = flag.map(|value| Setting { value, from: "flag".into() });
    flag.or_else(|| environment(name).map(|text| Setting { value: of(text), from: name.into() }))
}

impl Settings {
    /// Of a command.
    pub fn of(common: &Common) -> anyhow::Result<Self> {
        let file = file()?;
        let kept = read(&file)?;
        let from_file = file.display().to_string();
        let kept_server = kept.server.as_deref().map(server).transpose()?;
        let named = first(common.server.clone(), "CRATER_SERVER", |text| text);
        let server = match named {
            Some(named) => Setting { value: server(&named.value)?, from: named.from },
            None => match &kept_server {
                Some(kept) => Setting { value: kept.clone(), from: from_file.clone() },
                None => Setting { value: SERVER.into(), from: "default".into() },
            },
        };
        let mut unused = None;
        let named = first(common.token.clone(), "CRATER_TOKEN", |text| text);
        let token = match (named, kept.token) {
            (Some(named), _) => Some(Setting { value: token(&named.value)?, from: named.from }),
            // A token is for the server that it was kept with and shown to no other.
            (None, Some(_)) if kept_server.as_ref().is_some_and(|kept| *kept != server.value) => {
                unused = kept_server.map(|kept| format!("the token in {from_file} is for {kept}"));
                None
            }
            (None, Some(kept)) => Some(Setting { value: token(&kept)?, from: from_file.clone() }),
            (None, None) => local_token(&server.value),
        };
        let ca = first(common.ca.clone(), "CRATER_CA", PathBuf::from);
        let ca = ca.or_else(|| kept.ca.map(|value| Setting { value, from: from_file }));
        Ok(Self { server, token, ca, file, unused })
    }
}

/// The first administrator's token, where `crater serve` of this machine and
/// account keeps it.
fn local_token(server: &str) -> Option<Setting<String>> {
    if !loopback(server) {
        return None;
    }
    let file = default_data().ok()?.join(TOKEN_FILE);
    let value = token(std::fs::read_to_string(&file).ok()?.trim()).ok()?;
    Some(Setting { value, from: file.display().to_string() })
}

/// Keeps what is given; gives out the file.
pub fn set(given: &ConfigSet) -> anyhow::Result<PathBuf> {
    let file = file()?;
    let mut kept = read(&file)?;
    if let Some(text) = &given.server {
        kept.server = Some(server(text)?);
    }
    if let Some(text) = &given.token {
        kept.token = Some(token(text)?);
    }
    if let Some(ca) = &given.ca {
        let whole = std::path::absolute(ca).map_err(|e| input(anyhow!("{}: {e}", ca.display())))?;
        std::fs::metadata(&whole).map_err(|e| input(anyhow!("{}: {e}", ca.display())))?;
        kept.ca = Some(whole);
    }
    let folder = file.parent().unwrap_or(Path::new("."));
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .with_context(|| folder.display().to_string())?;
    // Written beside and renamed: the old token or the new one, never half of it.
    let beside = folder.join(format!(".config.yaml.{}", std::process::id()));
    let text = serde_saphyr::to_string(&kept)?;
    let written = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&beside)
        .and_then(|mut open| open.write_all(text.as_bytes()))
        .and_then(|()| std::fs::rename(&beside, &file));
    if written.is_err() {
        let _ = std::fs::remove_file(&beside);
    }
    written.with_context(|| file.display().to_string())?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_one_of_http() {
        assert_eq!(
            server("https://crater.your-domain.com/").unwrap(),
            "https://crater.your-domain.com"
        );
        assert_eq!(server("http://[::1]:8470").unwrap(), "http://[::1]:8470");
        for bad in
            ["", "crater", "ftp://x", "http://", "http:///x", "http://a b", "http://u:p@host"]
        {
            assert!(server(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_local_token_goes_to_this_machine_only() {
        for here in ["http://127.0.0.1:8470", "http://localhost", "http://[::1]:1"] {
            assert!(loopback(here), "{here}");
        }
        for there in
            ["http://10.0.0.1", "http://localhost.example.com", "https://127.0.0.1.example.com"]
        {
            assert!(!loopback(there), "{there}");
        }
    }
}
