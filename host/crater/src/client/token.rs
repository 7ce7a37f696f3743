//! `crater token`.

use super::args::{Output, TokenCommand};
use super::http::{Api, path};
use super::table::Table;
use super::{print, spell};
use crate::exit::input;
use anyhow::anyhow;
use crater_api::auth::Role;
use crater_api::tokens::{TokenAsk, TokenMade, TokenView};

/// Runs the command.
pub fn run(api: &Api, output: Output, command: &TokenCommand) -> anyhow::Result<()> {
    match command {
        TokenCommand::Create(create) => {
            let role = Role::parse(&create.role);
            let role = role.ok_or_else(|| {
                input(anyhow!("--role: expected viewer, member, manager or admin"))
            })?;
            let ask = TokenAsk {
                name: create.name.clone(),
                role,
                tenant: create.tenant.clone(),
                expires: create.expires.clone(),
            };
            let made: TokenMade = api.post(&path(&["tokens"]), &ask)?;
            print::answer(output, &made, |_| {
                // Alone on standard output, for scripts.
                print::note(&format!(
                    "token {} is shown this once; keep it: crater config set --token TOKEN",
                    made.id
                ));
                made.token.clone()
            })
        }
        TokenCommand::List => {
            let tokens: Vec<TokenView> = api.get(&path(&["tokens"]))?;
            print::answer(output, &tokens, |_| list(&tokens))
        }
        TokenCommand::Revoke { id } => {
            api.delete(&path(&["tokens", &id.to_string()]))?;
            print::text(&format!("token {id} is revoked"))
        }
    }
}

fn list(tokens: &[TokenView]) -> String {
    let mut table =
        Table::new(&["ID", "NAME", "ROLE", "TENANT", "STATUS", "CREATED", "EXPIRES", "LAST-USED"]);
    for token in tokens {
        let over =
            |at: &String| at.parse().is_ok_and(|at: jiff::Timestamp| at <= jiff::Timestamp::now());
        let status = match () {
            () if token.revoked.is_some() => "revoked",
            () if token.expires.as_ref().is_some_and(over) => "expired",
            () => "live",
        };
        table.row([
            token.id.to_string(),
            token.name.clone(),
            token.role.clone(),
            token.tenant.clone().unwrap_or_default(),
            status.into(),
            spell::moment(&token.created),
            token.expires.as_deref().map(spell::moment).unwrap_or_default(),
            token.last_used.as_deref().map(spell::moment).unwrap_or_default(),
        ]);
    }
    table.text(print::colours())
}
