//! `crater simulate table`: the published table beside ours.

use super::yardstick::{Outcome, Plan, experiment};
use super::{seeds, width};
use crate::cli::Table as Args;
use crate::exit::input;
use crate::loader::Loader;
use anyhow::{Context, anyhow};
use crater_engine::Strings;
use crater_sim::report::{Cell, Report, Table, Text};
use crater_sim::trace::traces_dir;
use crater_sim::yardstick::published;
use std::fmt::Write as _;
use std::sync::Arc;

/// Points allowed between a published mean and ours: for fgd, for the others.
const CLOSE: (f64, f64) = (0.3, 0.5);

/// One cell of the table.
struct Entry {
    trace: String,
    policy: String,
    published: Option<f64>,
    unallocated: f64,
    fragmented: f64,
    rate: f64,
}

impl Entry {
    fn difference(&self) -> Option<f64> {
        self.published.map(|p| self.unallocated - p)
    }

    fn far(&self) -> bool {
        let close = if self.policy == "fgd" { CLOSE.0 } else { CLOSE.1 };
        self.difference().is_some_and(|d| d.abs() > close)
    }
}

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let seeds: Vec<u64> = seeds(&args.seeds)?.collect();
    let traces = traces_dir(args.data.clone()).map_err(input)?;
    let names = if args.trace.is_empty() {
        traces.openb_names().map_err(input)?
    } else {
        args.trace.clone()
    };
    let loader = Loader::new(Arc::new(Strings::default()))?;
    let mut entries = vec![];
    for name in &names {
        let trace = traces.openb(name).map_err(input)?;
        for policy in &args.policy {
            let plan = Plan {
                policy,
                config: "{}",
                seeds: seeds.clone(),
                jobs: usize::from(args.jobs),
                no_cache: false,
                known: None,
            };
            entries.push(entry(&experiment(&loader, &trace, &plan)?)?);
        }
    }
    let far: Vec<String> = entries
        .iter()
        .filter(|e| e.far())
        .map(|e| format!("{}/{} by {:+.2}", e.trace, e.policy, e.difference().unwrap_or_default()))
        .collect();
    let (fgd, others) = CLOSE;
    let verdict = if far.is_empty() {
        format!(
            "All within {fgd} points (fgd) and {others} points (the others) of the published means."
        )
    } else {
        format!(
            "Further off than {fgd} points (fgd) or {others} points (the others): {}.",
            far.join(", ")
        )
    };
    if let Some(path) = &args.markdown {
        let page = page(args, &entries, &verdict);
        std::fs::write(path, page).with_context(|| format!("{}", path.display())).map_err(input)?;
    }
    let report = Report::new("The published table beside ours", "crater simulate table")
        .with(table(&entries))
        .with(Text::new("", &verdict));
    print!("{}", report.text(width()));
    if far.is_empty() { Ok(()) } else { Err(anyhow!("{verdict}")) }
}

fn entry(outcome: &Outcome) -> anyhow::Result<Entry> {
    let Outcome { trace, policy, decisions_per_second, points, .. } = outcome;
    let point = points.iter().find(|p| p.arrived_pct == 100);
    let point = point.ok_or_else(|| anyhow!("{trace}: arrivals end below 100 %"))?;
    Ok(Entry {
        trace: trace.clone(),
        policy: policy.clone(),
        published: published(trace, policy),
        unallocated: point.unallocated_pct,
        fragmented: point.fragmented_pct,
        rate: *decisions_per_second,
    })
}

fn table(entries: &[Entry]) -> Table {
    let mut table = Table::new(
        "Unallocated GPU at 100 % arrived, % of the cluster",
        &["trace", "policy", "published", "ours", "difference", "fragmented", "decisions (1/s)"],
    );
    let cell = |v: Option<f64>| v.map_or(Cell::Empty, |v| Cell::number(v, 2));
    for e in entries {
        table.push(vec![
            e.trace.as_str().into(),
            e.policy.as_str().into(),
            cell(e.published),
            Cell::number(e.unallocated, 2),
            cell(e.difference()),
            Cell::number(e.fragmented, 2),
            Cell::number(e.rate, 0),
        ]);
    }
    table
}

/// The page docs/yardstick.md.
fn page(args: &Args, entries: &[Entry], verdict: &str) -> String {
    let mut out = String::from(
        "# The published experiment, repeated\n\n\
         Weng, Yang et al., *Beware of Fragmentation: Scheduling GPU-Sharing Workloads with\n\
         Fragmentation Gradient Descent*, USENIX ATC'23, on the authors' traces (Alibaba's\n\
         cluster-trace-gpu-v2023). Pods arrive until 1.3 times the cluster's GPU was asked for;\n\
         none leaves, and what does not fit is dropped. Each cell is the unallocated GPU when\n\
         100 % of the cluster's GPU has arrived, in percent of the cluster: **ours** / published.\n\
         Ours is the mean over the seeds, the published one over the authors' ten runs with\n\
         random numbers of their own. Every decision of ours is made by a WebAssembly component\n\
         of `policies/`.\n\n",
    );
    let _ = writeln!(
        out,
        "Written by `make yardstick` (`crater simulate table --seeds {} --markdown docs/yardstick.md`).\n\n{verdict}\n",
        args.seeds
    );
    let policies = &args.policy;
    let _ = writeln!(out, "| trace | {} |", policies.join(" | "));
    let _ = writeln!(out, "|---|{}", "---|".repeat(policies.len()));
    for row in entries.chunks(policies.len().max(1)) {
        let cells = row.iter().map(|e| {
            let theirs = e.published.map_or_else(|| "–".to_owned(), |p| format!("{p:.2}"));
            format!("**{:.2}** / {theirs}", e.unallocated)
        });
        let _ = writeln!(out, "| {} | {} |", row[0].trace, cells.collect::<Vec<_>>().join(" | "));
    }
    let _ =
        writeln!(out, "\nDecisions a second on one thread, the simulator's own work included:\n");
    let _ = writeln!(out, "| trace | {} |", policies.join(" | "));
    let _ = writeln!(out, "|---|{}", "---|".repeat(policies.len()));
    for row in entries.chunks(policies.len().max(1)) {
        let cells = row.iter().map(|e| format!("{:.0}", e.rate));
        let _ = writeln!(out, "| {} | {} |", row[0].trace, cells.collect::<Vec<_>>().join(" | "));
    }
    out
}
