//! `crater tenant`.

use super::args::{Output, TenantCommand};
use super::http::{Api, path};
use super::print;
use super::quota::tenant_path;
use super::table::Table;
use crater_api::quotas::{QuotaChange, QuotaChanged, QuotaView};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use ureq::http::Method;

/// Runs the command.
pub fn run(api: &Api, output: Output, command: &TenantCommand) -> anyhow::Result<()> {
    match command {
        TenantCommand::List => {
            let all: Vec<QuotaView> = api.get(&path(&["tenants"]))?;
            print::answer(output, &all, |_| list(&all))
        }
        TenantCommand::Tree => {
            let all: Vec<QuotaView> = api.get(&path(&["tenants"]))?;
            print::answer(output, &all, |_| tree(&all))
        }
        TenantCommand::Usage(args) => super::usage::run(api, output, args),
        TenantCommand::Create { path } => {
            let made: QuotaChanged =
                api.change(&Method::PUT, &tenant_path(path), &QuotaChange::default())?;
            print::answer(output, &made, |_| {
                let limits = made.quota.resources.values().any(|resource| resource.hard.is_some());
                let limits =
                    if limits { "its limits stay as they were" } else { "no limits of its own" };
                format!(
                    "{}: {limits}; `crater quota set --tenant {} --gpu-hard 8` sets some",
                    made.quota.tenant, made.quota.tenant
                )
            })
        }
    }
}

/// Cards: used and what may be.
fn cards(quota: &QuotaView) -> [String; 3] {
    let gpu = quota.resources.get("gpu");
    let limit = |limit: Option<&String>| limit.cloned().unwrap_or_else(|| "none".into());
    [
        gpu.map_or_else(|| "0".into(), |gpu| gpu.used.clone()),
        limit(gpu.and_then(|gpu| gpu.hard.as_ref())),
        limit(gpu.and_then(|gpu| gpu.soft.as_ref())),
    ]
}

fn list(all: &[QuotaView]) -> String {
    let mut table = Table::new(&["TENANT", "GPU-USED", "GPU-HARD", "GPU-SOFT", "CEILING"]);
    for quota in all {
        let ceiling = quota.ceiling.map(|ceiling| ceiling.to_string()).unwrap_or_default();
        table.row(std::iter::once(quota.tenant.clone()).chain(cards(quota)).chain([ceiling]));
    }
    table.text(print::colours())
}

fn tree(all: &[QuotaView]) -> String {
    // Levels between that have nothing of their own are shown, too.
    let mut levels: BTreeMap<Vec<&str>, Option<&QuotaView>> = BTreeMap::new();
    for quota in all {
        let parts: Vec<&str> = quota.tenant.split('/').collect();
        for depth in 1..parts.len() {
            levels.entry(parts[..depth].to_vec()).or_default();
        }
        levels.insert(parts, Some(quota));
    }
    let shown: Vec<_> = levels
        .iter()
        .map(|(parts, quota)| {
            let name = parts.last().copied().unwrap_or_default();
            (format!("{}{}", "  ".repeat(parts.len() - 1), print::clean(name)), *quota)
        })
        .collect();
    let width = shown.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    shown.iter().fold(String::new(), |mut text, (name, quota)| {
        let figures = quota.map_or_else(String::new, |quota| {
            let [used, hard, _] = cards(quota);
            format!("  gpu {used} of {hard}")
        });
        let _ = writeln!(text, "{}", format!("{name:width$}{figures}").trim_end());
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_shows_levels_between() {
        let quota = |tenant: &str| QuotaView {
            tenant: tenant.into(),
            ceiling: None,
            resources: BTreeMap::new(),
            notes: vec![],
        };
        let text = tree(&[quota("ai/nlp/lee"), quota("ai/cv"), quota("bio")]);
        let names: Vec<_> =
            text.lines().map(|line| line.split("  gpu").next().unwrap().trim_end()).collect();
        assert_eq!(names, ["ai", "  cv", "  nlp", "    lee", "bio"]);
    }
}
