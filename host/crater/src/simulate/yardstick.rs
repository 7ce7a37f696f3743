//! `crater simulate yardstick`.

use super::{seeds, width, write_page};
use crate::cli::{Format, Yardstick as Args};
use crate::exit::input;
use crate::loader::{Loader, config};
use crate::mix::{Known, Teacher, known};
use crate::progress;
use crater_engine::{Decider, Strings};
use crater_sim::report::{Axis, Cell, Chart, Report, Series, Table, Text};
use crater_sim::trace::{Trace, traces_dir};
use crater_sim::yardstick::{Point, Run, Yardstick, mean};
use serde::Serialize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The result of one trace under one policy.
#[derive(Debug, Serialize)]
pub struct Outcome {
    /// Trace.
    pub trace: String,
    /// Policy.
    pub policy: String,
    /// Policy, configuration and prepared data.
    pub digest: String,
    /// Seeds.
    pub seeds: Vec<u64>,
    /// Decisions a second of one thread, the simulator's own work included.
    pub decisions_per_second: f64,
    /// Means over the seeds.
    pub points: Vec<Point>,
}

/// How the experiment is run.
pub struct Plan<'a> {
    /// Policy's name or file.
    pub policy: &'a str,
    /// Its configuration.
    pub config: &'a str,
    /// Seeds.
    pub seeds: Vec<u64>,
    /// Threads.
    pub jobs: usize,
    /// Ask about every node each time.
    pub no_cache: bool,
    /// What the policy knows of the workload; the trace's own mix without it.
    pub known: Option<Known>,
}

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<()> {
    config(&args.policy_config)?;
    let seeds = seeds(&args.seeds)?.collect();
    let traces = traces_dir(args.data.clone()).map_err(input)?;
    let trace = traces.openb(&args.trace).map_err(input)?;
    let loader = Loader::new(Arc::new(Strings::default()))?;
    let known = known(&args.mix, args.learn, &traces, &trace)?;
    let plan = Plan {
        policy: &args.policy,
        config: &args.policy_config,
        seeds,
        jobs: usize::from(args.jobs),
        no_cache: args.no_cache,
        known: Some(known),
    };
    let result = experiment(&loader, &trace, &plan)?;
    if let Some(path) = &args.html {
        write_page(path, &report(&result))?;
    }
    match args.format {
        Format::Json => println!("{}", serde_json::to_string(&result)?),
        Format::Table => print!("{}", report(&result).text(width())),
    }
    Ok(())
}

/// Runs all seeds of one policy on one trace.
pub fn experiment(loader: &Loader, trace: &Trace, plan: &Plan<'_>) -> anyhow::Result<Outcome> {
    let yardstick = Yardstick::new(trace, loader.strings().clone())?;
    let empty = yardstick.cluster(plan.seeds[0])?;
    let own = || Known { shapes: yardstick.mix(), learn: None };
    let known = plan.known.clone().unwrap_or_else(own);
    let loaded = loader.load(plan.policy)?;
    let teacher = || Teacher::new(loader, &loaded, plan.config, &known);
    let first = teacher().first(&known, empty.state())?;
    let digest = first.digest();
    let arrivals = 13 * trace.pods.len() as u64 / 10;
    let bar = progress::bar(
        plan.seeds.len() as u64 * arrivals,
        &format!("{} {}", trace.name, plan.policy),
    );
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<anyhow::Result<(usize, Run, Duration)>>> = Mutex::default();
    std::thread::scope(|scope| {
        for _ in 0..plan.jobs.min(plan.seeds.len()) {
            scope.spawn(|| {
                loop {
                    let i = next.fetch_add(1, Ordering::Relaxed);
                    let Some(seed) = plan.seeds.get(i) else { return };
                    let decider =
                        if plan.no_cache { Decider::forgetful() } else { Decider::default() };
                    let start = Instant::now();
                    let mut steps = 0;
                    let mut teacher = teacher();
                    let mut failed = None;
                    let run = yardstick.conduct(*seed, decider, &mut |moment| {
                        steps += 1;
                        if steps % 256 == 0 {
                            bar.inc(256);
                        }
                        if steps == 1 {
                            return Some(first.clone());
                        }
                        teacher.next(&moment).unwrap_or_else(|error| {
                            failed.get_or_insert(error);
                            None
                        })
                    });
                    let done = match failed {
                        Some(error) => Err(error),
                        None => run.map(|run| (i, run, start.elapsed())).map_err(Into::into),
                    };
                    if let Ok(mut results) = results.lock() {
                        results.push(done);
                    }
                }
            });
        }
    });
    bar.finish_and_clear();
    let results = results.into_inner().map_err(|_| anyhow::anyhow!("a seed's thread failed"))?;
    let mut runs = results.into_iter().collect::<anyhow::Result<Vec<_>>>()?;
    runs.sort_by_key(|(i, _, _)| *i);
    let faults: u64 = runs.iter().map(|r| r.1.faults).sum();
    if faults > 0 {
        eprintln!(
            "crater: the policy failed in {faults} decisions, which its queue's fallback made"
        );
    }
    let decisions: u64 = runs.iter().map(|r| r.1.decisions).sum();
    let time: Duration = runs.iter().map(|r| r.2).sum();
    let runs: Vec<Run> = runs.into_iter().map(|r| r.1).collect();
    Ok(Outcome {
        trace: trace.name.clone(),
        policy: plan.policy.to_owned(),
        digest: digest.to_string(),
        seeds: plan.seeds.clone(),
        decisions_per_second: (decisions as f64 / time.as_secs_f64()).round(),
        points: mean(&runs),
    })
}

fn report(result: &Outcome) -> Report {
    let mut table = Table::new(
        "Means over the seeds",
        &["arrived GPU (%)", "unallocated (%)", "fragmented (%)"],
    );
    for p in result.points.iter().filter(|p| p.arrived_pct % 10 == 0 && p.arrived_pct > 0) {
        table.push(vec![
            Cell::Integer(i64::from(p.arrived_pct)),
            Cell::number(p.unallocated_pct, 2),
            Cell::number(p.fragmented_pct, 2),
        ]);
    }
    let series = |name: &str, y: fn(&Point) -> f64| {
        Series::new(name, result.points.iter().map(|p| (f64::from(p.arrived_pct), y(p))).collect())
    };
    let chart = Chart {
        title: "GPU over arrivals".into(),
        summary: "GPU that is not allocated, and GPU that is a fragment for the typical pods, while pods arrive and none leaves.".into(),
        x: Axis::new("arrived GPU", "% of the cluster"),
        y: Axis::new("GPU", "% of the cluster"),
        series: vec![
            series("unallocated", |p| p.unallocated_pct),
            series("fragmented", |p| p.fragmented_pct),
        ],
        ..Chart::default()
    };
    let (first, last) = (result.seeds[0], result.seeds[result.seeds.len() - 1]);
    let Outcome { trace, policy, .. } = result;
    let command = format!(
        "crater simulate yardstick --trace {trace} --policy {policy} --seeds {first}-{last}"
    );
    let about = format!(
        "Seeds {first} to {last}; {} decisions a second on one thread; policy digest {}.",
        result.decisions_per_second,
        &result.digest[..12]
    );
    Report::new(&format!("{policy} on {trace}"), &command)
        .with(Text::new("", &about))
        .with(table)
        .with(chart)
}
