//! `crater quota`.

use super::args::{Output, QuotaCommand, QuotaGet, QuotaSet};
use super::http::{Api, path, with_query};
use super::print;
use super::table::{Table, pairs};
use crate::exit::input;
use anyhow::anyhow;
use crater_api::Amount;
use crater_api::auth::Role;
use crater_api::quotas::{QuotaChange, QuotaChanged, QuotaView, ResourceView};
use crater_api::status::ServerView;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use ureq::http::Method;

/// Resources that every quota has, in the order in which they are checked.
const COMMON: [&str; 5] = ["gpu", "gpu-memory", "cpu", "memory", "disk-mbps"];

/// Runs the command.
pub fn run(api: &Api, output: Output, command: &QuotaCommand) -> anyhow::Result<()> {
    match command {
        QuotaCommand::Get(which) => get(api, output, which),
        QuotaCommand::Set(set) => change(api, output, set),
    }
}

/// A tenant's path in the API, where `~` stands for a slash.
pub fn tenant_path(tenant: &str) -> String {
    path(&["tenants", &tenant.replace('/', "~")])
}

fn get(api: &Api, output: Output, which: &QuotaGet) -> anyhow::Result<()> {
    let tenant = if let Some(tenant) = &which.tenant {
        tenant
    } else {
        let server: ServerView = api.get(&path(&["server"]))?;
        if server.role == Role::Admin {
            return all(api, output);
        }
        // One's own.
        "-"
    };
    let quota: QuotaView = api.get(&tenant_path(tenant))?;
    print::answer(output, &quota, |_| lines(&quota))
}

fn all(api: &Api, output: Output) -> anyhow::Result<()> {
    let all: Vec<QuotaView> = api.get(&path(&["tenants"]))?;
    if all.is_empty() {
        print::note(
            "no tenant has a quota or uses anything: `crater quota set --tenant NAME --gpu-hard 8` makes one",
        );
    }
    print::answer(output, &all, |wide| table(&all, wide))
}

/// Resources in their order: those that every quota has, then card models.
fn resources(quota: &QuotaView) -> impl Iterator<Item = (&str, &ResourceView)> {
    let common = COMMON.iter().filter_map(|name| quota.resources.get_key_value(*name));
    let models = quota.resources.iter().filter(|(name, _)| !COMMON.contains(&name.as_str()));
    common.chain(models).map(|(name, resource)| (name.as_str(), resource))
}

fn limit(limit: Option<&String>) -> String {
    limit.map_or_else(|| "none".into(), |limit| bare(limit))
}

/// One word: where there is a unit apart, the resource's name says it.
fn bare(amount: &str) -> String {
    amount.trim_end_matches(" MB/s").to_owned()
}

fn lines(quota: &QuotaView) -> String {
    let mut all = vec![("tenant".to_owned(), quota.tenant.clone())];
    for (name, resource) in resources(quota) {
        all.push((format!("{name}-used"), bare(&resource.used)));
        all.push((format!("{name}-hard"), limit(resource.hard.as_ref())));
        all.push((format!("{name}-soft"), limit(resource.soft.as_ref())));
        all.extend(resource.borrowed.as_ref().map(|n| (format!("{name}-borrowed"), bare(n))));
    }
    let ceiling = quota.ceiling.map(|ceiling| ceiling.to_string());
    all.push(("ceiling".to_owned(), limit(ceiling.as_ref())));
    let mut text = pairs(all.iter().map(|(name, value)| (name.as_str(), value.clone())));
    for note in &quota.notes {
        let _ = write!(text, "\nNote: {}\n", print::clean(note));
    }
    text
}

fn table(all: &[QuotaView], wide: bool) -> String {
    let mut head = vec!["TENANT".to_owned()];
    // The narrow one has cards in full and the rest as used/hard/soft.
    for name in COMMON {
        if wide || name == "gpu" {
            head.extend(["used", "hard", "soft"].map(|part| format!("{name}-{part}")));
        } else {
            head.push(name.to_owned());
        }
    }
    head.extend(["CEILING".into(), "BORROWED".into()]);
    let mut table = Table::new(&head.iter().map(String::as_str).collect::<Vec<_>>());
    for quota in all {
        let (mut row, mut borrowed) = (vec![quota.tenant.clone()], vec![]);
        for name in COMMON {
            let resource = quota.resources.get(name);
            let used = resource.map_or_else(|| "0".into(), |r| bare(&r.used));
            let hard = limit(resource.and_then(|r| r.hard.as_ref()));
            let soft = limit(resource.and_then(|r| r.soft.as_ref()));
            if wide || name == "gpu" {
                row.extend([used, hard, soft]);
            } else {
                row.push(format!("{used}/{hard}/{soft}"));
            }
            let loan = resource.and_then(|r| r.borrowed.as_ref());
            borrowed.extend(loan.map(|n| format!("{name} {}", bare(n))));
        }
        row.push(quota.ceiling.map(|c| c.to_string()).unwrap_or_default());
        row.push(borrowed.join(", "));
        table.row(row);
    }
    let mut text = table.text(print::colours());
    if !wide && !all.is_empty() {
        text.push_str("\ngpu-memory, cpu, memory and disk-mbps are used/hard/soft; -o wide has a column for each\n");
    }
    for (quota, note) in
        all.iter().flat_map(|quota| quota.notes.iter().map(move |note| (quota, note)))
    {
        // What holds for all is no news of each.
        if !note.starts_with("borrowing is off") && !note.starts_with("what is borrowed") {
            let _ = writeln!(text, "{}: {}", print::clean(&quota.tenant), print::clean(note));
        }
    }
    text
}

fn asked(set: &QuotaSet) -> anyhow::Result<QuotaChange> {
    let of = |amounts: [&Option<String>; 5], models: &[(String, String)]| {
        let common = COMMON.into_iter().zip(amounts);
        let common =
            common.filter_map(|(name, amount)| Some((name.to_owned(), amount.as_deref()?.into())));
        let models = models.iter().map(|(model, n)| (format!("gpu.{model}"), n.as_str().into()));
        common.chain(models).collect::<BTreeMap<String, Amount>>()
    };
    let hard =
        [&set.gpu_hard, &set.gpu_memory_hard, &set.cpu_hard, &set.memory_hard, &set.disk_mbps_hard];
    let soft =
        [&set.gpu_soft, &set.gpu_memory_soft, &set.cpu_soft, &set.memory_soft, &set.disk_mbps_soft];
    let change = QuotaChange {
        hard: of(hard, &set.model_hard),
        soft: of(soft, &set.model_soft),
        ceiling: set.ceiling.as_deref().map(Amount::from),
    };
    if change == QuotaChange::default() {
        return Err(input(anyhow!(
            "nothing to set: give limits such as --gpu-hard 8, or --ceiling; `crater tenant create` makes a tenant without limits"
        )));
    }
    Ok(change)
}

fn change(api: &Api, output: Output, set: &QuotaSet) -> anyhow::Result<()> {
    let dry = set.dry_run.then(|| ("dry-run", "true".to_owned()));
    let path = with_query(&tenant_path(&set.tenant), dry.as_slice());
    let changed: QuotaChanged = api.change(&Method::PUT, &path, &asked(set)?)?;
    print::answer(output, &changed, |_| {
        let mut text = lines(&changed.quota);
        match (set.dry_run, changed.effects.is_empty()) {
            (true, true) => text.push_str(
                "\nNothing was changed. It would have no effect on what runs or waits.\n",
            ),
            (true, false) => text.push_str("\nNothing was changed. It would have these effects:\n"),
            (false, true) => {}
            (false, false) => text.push_str("\nEffects:\n"),
        }
        for effect in &changed.effects {
            let _ = writeln!(text, "  {}", print::clean(effect));
        }
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quota_is_lines_of_names_and_values() {
        let resource = ResourceView {
            used: "3".into(),
            hard: Some("8".into()),
            soft: None,
            borrowed: None,
            figures: (3000, Some(8000), None),
        };
        let quota = QuotaView {
            tenant: "team-nlp".into(),
            ceiling: None,
            resources: BTreeMap::from([
                ("cpu".to_owned(), resource.clone()),
                ("gpu".to_owned(), resource),
            ]),
            notes: vec![],
        };
        let expected = "tenant    team-nlp\ngpu-used  3\ngpu-hard  8\ngpu-soft  none\n\
                        cpu-used  3\ncpu-hard  8\ncpu-soft  none\nceiling   none\n";
        assert_eq!(lines(&quota), expected);
    }
}
