//! `crater webhook`.

use super::args::{Output, WebhookCommand};
use super::http::{Api, path};
use super::table::Table;
use super::{print, spell};
use crater_api::webhooks::WebhookView;

/// Runs the command.
pub fn run(api: &Api, output: Output, command: &WebhookCommand) -> anyhow::Result<()> {
    let WebhookCommand::List = command;
    let all: Vec<WebhookView> = api.get(&path(&["webhooks"]))?;
    print::answer(output, &all, |_| table(&all))
}

fn table(all: &[WebhookView]) -> String {
    let mut table = Table::new(&[
        "URL",
        "EVENTS",
        "TENANT",
        "SIGNED",
        "DELIVERED",
        "WAITING",
        "GIVEN-UP",
        "LAST",
        "LAST-ERROR",
    ]);
    for hook in all {
        let error = hook.last_error.iter().zip(&hook.last_error_at);
        let error = error.map(|(error, at)| format!("{} {error}", spell::moment(at))).next();
        table.row([
            hook.url.clone(),
            hook.events.join(","),
            hook.tenant.clone().unwrap_or_default(),
            if hook.signed { "yes" } else { "no" }.into(),
            hook.delivered.to_string(),
            hook.waiting.to_string(),
            hook.given_up.to_string(),
            hook.last_delivered.as_deref().map(spell::moment).unwrap_or_default(),
            error.unwrap_or_default(),
        ]);
    }
    table.text(print::colours())
}
