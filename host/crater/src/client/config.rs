//! `crater config`.

use super::args::{Common, ConfigCommand};
use super::settings::{Setting, Settings, set};
use super::{print, table};
use serde_json::json;

/// Runs the command.
pub fn run(command: &ConfigCommand) -> anyhow::Result<()> {
    match command {
        ConfigCommand::Set(given) => print::text(&format!("kept in {}", set(given)?.display())),
        ConfigCommand::View { common } => view(common),
    }
}

/// Enough of a token to tell it from others.
fn veiled(token: &str) -> String {
    match token.get(..10).filter(|_| token.len() >= 32) {
        Some(start) => format!("{start}…"),
        None => "(set)".into(),
    }
}

fn view(common: &Common) -> anyhow::Result<()> {
    let settings = Settings::of(common)?;
    let token = settings.token.map(|t| Setting { value: veiled(&t.value), from: t.from });
    let value = json!({
        "file": settings.file,
        "server": settings.server,
        "token": token,
        "ca": settings.ca,
    });
    print::answer(common.output, &value, |_| {
        let said = |setting: &Setting<String>| format!("{}  ({})", setting.value, setting.from);
        let none = || {
            settings
                .unused
                .clone()
                .unwrap_or_else(|| "none: `crater config set --token TOKEN`".into())
        };
        let mut lines = vec![
            ("file", settings.file.display().to_string()),
            ("server", said(&settings.server)),
            ("token", token.as_ref().map_or_else(none, said)),
        ];
        if let Some(ca) = &settings.ca {
            lines.push(("ca", format!("{}  ({})", ca.value.display(), ca.from)));
        }
        table::pairs(lines)
    })
}
