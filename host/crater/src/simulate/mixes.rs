//! `crater simulate mix` and `mixes`: what a policy makes of a mix that is not
//! the workload's.

use super::yardstick::{Plan, experiment};
use super::{seeds, width};
use crate::cli::{Format, Mix, Mixes as Args};
use crate::exit::input;
use crate::loader::{Loader, config};
use crate::mix::Known;
use anyhow::anyhow;
use crater_engine::Strings;
use crater_sim::report::{Cell, Report, Table, Text};
use crater_sim::trace::{Trace, traces_dir};
use crater_sim::yardstick::mix;
use serde::Serialize;
use std::sync::Arc;

/// A trace that was played: unallocated GPU at 100 % arrived, in percent of the
/// cluster, beside the other policy's, for each mix that was given.
#[derive(Debug, Serialize)]
struct Row {
    trace: String,
    beside: f64,
    /// By the name of the trace whose mix it was.
    given: Vec<(String, f64)>,
}

/// Prints a trace's mix.
pub fn print(args: &Mix) -> anyhow::Result<()> {
    let trace = traces_dir(args.data.clone()).map_err(input)?.openb(&args.trace).map_err(input)?;
    let shapes = mix(&trace.pods).into_iter().map(|s| serde_json::to_string(&s));
    let shapes = shapes.collect::<Result<Vec<_>, _>>()?;
    println!("[\n{}\n]", shapes.join(",\n"));
    Ok(())
}

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<()> {
    config(&args.policy_config)?;
    let seeds: Vec<u64> = seeds(&args.seeds)?.collect();
    let traces = traces_dir(args.data.clone()).map_err(input)?;
    let names = if args.trace.is_empty() {
        traces.openb_names().map_err(input)?
    } else {
        args.trace.clone()
    };
    let all = names.iter().map(|name| traces.openb(name).map_err(input));
    let all: Vec<Trace> = all.collect::<anyhow::Result<_>>()?;
    let loader = Loader::new(Arc::new(Strings::default()))?;
    let unallocated = |trace: &Trace, policy: &str, config: &str, known: Option<Known>| {
        let jobs = usize::from(args.jobs);
        let plan = Plan { policy, config, seeds: seeds.clone(), jobs, no_cache: false, known };
        let outcome = experiment(&loader, trace, &plan)?;
        let point = outcome.points.iter().find(|p| p.arrived_pct == 100);
        point
            .map(|p| p.unallocated_pct)
            .ok_or_else(|| anyhow!("{}: arrivals end below 100 %", trace.name))
    };
    let mut rows = vec![];
    for trace in &all {
        let beside = unallocated(trace, &args.beside, "{}", None)?;
        let mut given = vec![];
        for other in &all {
            let known = Known { shapes: mix(&other.pods), learn: args.learn };
            let value = unallocated(trace, &args.policy, &args.policy_config, Some(known))?;
            given.push((other.name.clone(), value));
        }
        rows.push(Row { trace: trace.name.clone(), beside, given });
    }
    match args.format {
        Format::Json => println!("{}", serde_json::to_string(&rows)?),
        Format::Table => print!("{}", report(args, &rows).text(width())),
    }
    Ok(())
}

fn report(args: &Args, rows: &[Row]) -> Report {
    let names = rows.iter().map(|row| row.trace.as_str());
    let head: Vec<&str> = ["trace", args.beside.as_str()].into_iter().chain(names).collect();
    let mut table = Table::new(
        &format!("Unallocated GPU at 100 % arrived, as a ratio to {}", args.beside),
        &head,
    );
    for row in rows {
        let ratios = row.given.iter().map(|(_, value)| Cell::number(value / row.beside, 2));
        let first = [row.trace.as_str().into(), Cell::number(row.beside, 2)];
        table.push(first.into_iter().chain(ratios).collect());
    }
    let cells = || rows.iter().flat_map(|r| r.given.iter().map(move |(n, v)| (r, n, v / r.beside)));
    let worst = cells().max_by(|a, b| a.2.total_cmp(&b.2));
    let worst = worst.map_or_else(String::new, |(row, name, ratio)| {
        format!("Worst: {} with the mix of {name}, {ratio:.2} times {}.", row.trace, args.beside)
    });
    let command = format!("crater simulate mixes --policy {} --seeds {}", args.policy, args.seeds);
    Report::new(&format!("{} with other traces' mixes", args.policy), &command)
        .with(table)
        .with(Text::new("", &worst))
}
