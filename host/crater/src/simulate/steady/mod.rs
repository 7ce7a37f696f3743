//! `crater simulate steady`.

mod batch;
pub mod markdown;
mod record;
mod report;

use super::{seeds, width, write_page};
use crate::cli::{Format, Steady as Args};
use crate::exit::input;
use crate::loader::Loader;
use anyhow::{Context, anyhow};
use batch::{Unit, run_all};
use crater_engine::facts::facts;
use crater_engine::{Policy, Strings};
use crater_sim::steady::{Ask, Steady, borrow_lives};
use crater_sim::trace::{Trace, Traces, traces_dir};
use record::{Cell, Record, earlier};
use std::path::Path;
use std::sync::Arc;

/// The trace whose life times those without any are given.
const LENDER: &str = "default";

/// A policy with its configuration, under the name that the user wrote.
struct Named<'a> {
    label: &'a str,
    name: &'a str,
    config: &'a str,
}

/// A trace and whose life times its pods have.
struct Stage {
    trace: Trace,
    lives: String,
}

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let seeds: Vec<u64> = seeds(&args.seeds)?.collect();
    let policies = args.policy.iter().map(|p| named(p)).collect::<anyhow::Result<Vec<_>>>()?;
    let mut records = earlier(&args.from)?;
    let stages = stages(args)?;
    let loader = Loader::new(Arc::new(Strings::default()))?;
    let steadies = stages
        .iter()
        .map(|s| Steady::new(&s.trace, loader.strings().clone()).map_err(input))
        .collect::<anyhow::Result<Vec<_>>>()?;
    let mut units = vec![];
    for (steady, stage) in steadies.iter().zip(&stages) {
        let empty = steady.cluster(0)?;
        let facts = facts(&steady.mix(), empty.state());
        let configured = policies
            .iter()
            .map(|p| {
                let policy: Arc<dyn Policy> = loader.policy(p.name, p.config, &facts)?;
                Ok((p.label, policy))
            })
            .collect::<anyhow::Result<Vec<_>>>()?;
        for &load in &args.load {
            for (label, policy) in &configured {
                for &seed in &seeds {
                    let cell = Cell {
                        trace: stage.trace.name.clone(),
                        lives: stage.lives.clone(),
                        load,
                        policy: (*label).to_owned(),
                        seed,
                        arrivals: args.arrivals,
                    };
                    let digest = policy.digest().to_string();
                    let ask = Ask { seed, load, arrivals: args.arrivals };
                    units.push(Unit { steady, policy: policy.clone(), ask, cell, digest });
                }
            }
        }
    }
    let print = |record: &Record| -> anyhow::Result<()> {
        if args.format == Format::Json {
            println!("{}", serde_json::to_string(record)?);
        }
        Ok(())
    };
    forget_outdated(&mut records, &units);
    units.retain(|u| records.iter().all(|r| r.cell != u.cell));
    records.iter().try_for_each(print)?;
    records.extend(run_all(&units, usize::from(args.jobs), print)?);
    warn(&records);
    if let Some(path) = &args.html {
        write_page(path, &report::page(&records, &args.against))?;
    }
    if let Some(path) = &args.markdown {
        write(path, &markdown::page(&report::page(&records, &args.against)))?;
    }
    if args.format == Format::Table {
        print!("{}", report::short(&records, &args.against).text(width()));
    }
    Ok(())
}

/// `NAME` or `NAME={…}`.
fn named(text: &str) -> anyhow::Result<Named<'_>> {
    let (name, config) = text.split_once('=').unwrap_or((text, "{}"));
    match serde_json::from_str(config) {
        Ok(serde_json::Value::Object(_)) => Ok(Named { label: text, name, config }),
        Ok(_) => Err(input(anyhow!(
            "--policy: {text:?}: after '=' a JSON object is expected, such as fgd={{\"cover\":90}}"
        ))),
        Err(error) => Err(input(anyhow!("--policy: {text:?}: not JSON after '=': {error}"))),
    }
}

/// The traces that were asked for; none if earlier runs are only shown.
fn stages(args: &Args) -> anyhow::Result<Vec<Stage>> {
    let names: Vec<&str> = args.trace.iter().map(String::as_str).collect();
    if names.is_empty() && !args.from.is_empty() {
        return Ok(vec![]);
    }
    let traces = traces_dir(args.data.clone()).map_err(input)?;
    let all;
    let names = match names[..] {
        [] => vec![LENDER],
        ["all"] => {
            all = traces.openb_names().map_err(input)?;
            all.iter().map(String::as_str).collect()
        }
        _ => names,
    };
    names.into_iter().map(|name| stage(&traces, name)).collect()
}

fn stage(traces: &Traces, name: &str) -> anyhow::Result<Stage> {
    let mut trace = traces.openb(name).map_err(input)?;
    if trace.pods.iter().any(|p| p.seconds().is_some()) {
        return Ok(Stage { trace, lives: name.to_owned() });
    }
    let lender = traces.openb(LENDER);
    let lender = lender.with_context(|| format!("{name} has no life times")).map_err(input)?;
    borrow_lives(&mut trace, &lender);
    eprintln!("crater: {name} has no life times: its pods are given those of {LENDER}");
    Ok(Stage { trace, lives: LENDER.to_owned() })
}

/// Drops earlier runs under names that mean another policy by now.
fn forget_outdated(records: &mut Vec<Record>, units: &[Unit<'_>]) {
    let before = records.len();
    records.retain(|r| units.iter().all(|u| u.cell != r.cell || u.digest == r.digest));
    if records.len() < before {
        let dropped = before - records.len();
        eprintln!("crater: {dropped} earlier runs were of other versions and are run again");
    }
}

/// Says what no figure should be read without.
fn warn(records: &[Record]) {
    let faults: u64 = records.iter().map(|r| r.run.faults).sum();
    if faults > 0 {
        eprintln!("crater: policies failed in {faults} decisions, which the queue's fallback made");
    }
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    std::fs::write(path, text).with_context(|| format!("{}", path.display())).map_err(input)?;
    eprintln!("crater: wrote {}", path.display());
    Ok(())
}
