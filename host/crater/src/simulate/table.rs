//! `crater simulate table`: the published table beside ours.

use super::yardstick::{Plan, experiment};
use super::{seeds, width};
use crate::cli::Table as Args;
use crate::exit::input;
use crate::loader::Loader;
use anyhow::{Context, anyhow};
use crater_engine::Strings;
use crater_sim::report::{Cell, Report, Table, Text};
use crater_sim::trace::traces_dir;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

/// Points allowed between a published mean and ours, for the best policy and
/// the others.
const CLOSE: (f64, f64) = (0.3, 0.5);

/// Published mean unallocated % at 100 % arrived, by trace and policy.
type Published = BTreeMap<(String, String), f64>;

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let seeds: Vec<u64> = seeds(&args.seeds)?.collect();
    let traces = traces_dir(args.data.clone()).map_err(input)?;
    let published = published(&args.published)?;
    let names = if args.trace.is_empty() { traces.openb_names().map_err(input)? } else { args.trace.clone() };
    let loader = Loader::new(Arc::new(Strings::default()))?;
    let mut table = Table::new(
        "Unallocated GPU at 100 % arrived, % of the cluster",
        &["trace", "policy", "published", "ours", "difference", "fragmented", "decisions/s"],
    );
    let mut far = vec![];
    for name in &names {
        let trace = traces.openb(name).map_err(input)?;
        for policy in &args.policy {
            let plan = Plan {
                policy,
                config: "{}",
                seeds: seeds.clone(),
                jobs: usize::from(args.jobs),
                no_cache: false,
            };
            let outcome = experiment(&loader, &trace, &plan)?;
            let point = outcome.points.iter().find(|p| p.arrived_pct == 100);
            let point = point.ok_or_else(|| anyhow!("{name}: arrivals end below 100 %"))?;
            let theirs = published.get(&(name.clone(), policy.clone())).copied();
            let difference = theirs.map(|t| point.unallocated_pct - t);
            let close = if policy == "fgd" { CLOSE.0 } else { CLOSE.1 };
            if difference.is_some_and(|d| d.abs() > close) {
                far.push(format!("{name}/{policy} by {:+.2}", difference.unwrap_or_default()));
            }
            let cell = |v: Option<f64>| v.map_or(Cell::Empty, |v| Cell::number(v, 2));
            table.push(vec![
                name.as_str().into(),
                policy.as_str().into(),
                cell(theirs),
                Cell::number(point.unallocated_pct, 2),
                cell(difference),
                Cell::number(point.fragmented_pct, 2),
                Cell::Integer(outcome.decisions_per_second as i64),
            ]);
        }
    }
    if let Some(path) = &args.markdown {
        std::fs::write(path, markdown(&table)).with_context(|| format!("{}", path.display())).map_err(input)?;
    }
    let verdict = if far.is_empty() {
        format!("All within {} points (fgd) and {} points (the others).", CLOSE.0, CLOSE.1)
    } else {
        format!("Further off than {} points (fgd) or {} points (the others): {}.", CLOSE.0, CLOSE.1, far.join(", "))
    };
    let report = Report::new("The published table beside ours", "crater simulate table")
        .with(table)
        .with(Text::new("", &verdict));
    print!("{}", report.text(width()));
    if far.is_empty() { Ok(()) } else { Err(anyhow!("{verdict}")) }
}

/// Reads the published figures.
fn published(path: &Path) -> anyhow::Result<Published> {
    let text = std::fs::read_to_string(path).with_context(|| format!("{}", path.display())).map_err(input)?;
    let mut lines = text.lines();
    let header: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
    let column = |name: &str| {
        let missing = || input(anyhow!("{}:1: column {name} is missing", path.display()));
        header.iter().position(|h| *h == name).ok_or_else(missing)
    };
    let columns = [column("trace")?, column("policy")?, column("arrived_pct")?, column("unalloc_mean")?];
    let mut published = Published::new();
    for (i, line) in lines.enumerate() {
        let cells: Vec<&str> = line.split(',').collect();
        let [trace, policy, arrived, mean] = columns.map(|c| cells.get(c).copied().unwrap_or_default());
        if arrived != "100" {
            continue;
        }
        let mean = mean.parse().map_err(|_| {
            let expected = "a number";
            input(anyhow!("{}:{}: unalloc_mean: {mean:?} is refused: expected {expected}", path.display(), i + 2))
        })?;
        published.insert((trace.to_owned(), policy.to_lowercase()), mean);
    }
    Ok(published)
}

fn markdown(table: &Table) -> String {
    let mut out = String::new();
    let names: Vec<&str> = table.columns.iter().map(|c| c.name.as_str()).collect();
    let _ = writeln!(out, "| {} |\n|{}", names.join(" | "), "---|".repeat(names.len()));
    for row in &table.rows {
        let cells: Vec<String> = row.iter().map(Cell::show).collect();
        let _ = writeln!(out, "| {} |", cells.join(" | "));
    }
    out
}
