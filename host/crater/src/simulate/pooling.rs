//! `crater simulate pooling`: what one pool brings and what it costs.

use super::steady::markdown;
use super::{seeds, width};
use crate::cli::{Format, Pooling as Args};
use crate::exit::input;
use anyhow::Context;
use crater_model::Kind;
use crater_sim::pooling::{Manner, Outcome, Settings, run as day};
use crater_sim::report::{Cell, Report, Table, Text};
use serde::Serialize;

/// One day of one manner.
#[derive(Debug, Serialize)]
struct Row {
    manner: &'static str,
    seed: u64,
    allocated_pct: f64,
    inference_p99_seconds: f64,
    inference_mean_seconds: f64,
    inference_card_hours: f64,
    training_mean_seconds: f64,
    training_card_hours: f64,
    training_ended: u64,
    preemptions: u64,
}

impl Row {
    fn of(manner: Manner, seed: u64, outcome: &Outcome) -> Self {
        let kind = |kind| outcome.kinds.get(&kind).cloned().unwrap_or_default();
        let (inference, training) = (kind(Kind::Inference), kind(Kind::Training));
        Self {
            manner: manner.name(),
            seed,
            allocated_pct: outcome.allocated_pct,
            inference_p99_seconds: inference.percentile(99),
            inference_mean_seconds: inference.mean(),
            inference_card_hours: inference.card_hours,
            training_mean_seconds: training.mean(),
            training_card_hours: training.card_hours,
            training_ended: training.ended,
            preemptions: training.preemptions,
        }
    }
}

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let settings = Settings {
        nodes: args.nodes - args.nodes % 2,
        inference_peak: args.inference_peak,
        inference_night: args.inference_night.min(args.inference_peak),
        training: args.training,
        checkpoint: args.checkpoint,
        grace: args.grace,
    };
    let mut rows = vec![];
    for seed in seeds(&args.seeds)? {
        for manner in Manner::ALL {
            rows.push(Row::of(manner, seed, &day(&settings, manner, seed)));
        }
    }
    let report = report(args, &rows);
    if let Some(path) = &args.markdown {
        let page = markdown::page(&report);
        std::fs::write(path, page).with_context(|| path.display().to_string()).map_err(input)?;
    }
    match args.format {
        Format::Json => println!("{}", serde_json::to_string(&rows)?),
        Format::Table => print!("{}", report.text(width())),
    }
    Ok(())
}

fn report(args: &Args, rows: &[Row]) -> Report {
    let head = [
        "machines",
        "allocated (%)",
        "inference p99 wait (s)",
        "inference mean wait (s)",
        "inference card-hours",
        "training mean wait (s)",
        "training card-hours",
        "training ended",
        "preemptions",
    ];
    let mut table = Table::new("", &head);
    for manner in Manner::ALL {
        let days: Vec<&Row> = rows.iter().filter(|r| r.manner == manner.name()).collect();
        let mean = |f: &dyn Fn(&Row) -> f64| {
            days.iter().map(|r| f(r)).sum::<f64>() / days.len().max(1) as f64
        };
        table.push(vec![
            manner.name().into(),
            Cell::number(mean(&|r| r.allocated_pct), 1),
            Cell::number(mean(&|r| r.inference_p99_seconds), 0),
            Cell::number(mean(&|r| r.inference_mean_seconds), 0),
            Cell::number(mean(&|r| r.inference_card_hours), 0),
            Cell::number(mean(&|r| r.training_mean_seconds), 0),
            Cell::number(mean(&|r| r.training_card_hours), 0),
            Cell::number(mean(&|r| r.training_ended as f64), 0),
            Cell::number(mean(&|r| r.preemptions as f64), 0),
        ]);
    }
    let text = format!(
        "The same generated day on {} machines of 8 cards. Inference asks for {} % of half of the \
         cards at midnight and {} % at noon, in jobs of half a card to two cards that last two hours \
         on average; training asks for {} % of half of them at any hour, in jobs of one to eight \
         cards that last four. Training saves its progress every {} s and has {} s to stop; what it \
         did since is done again and counts in its card-hours. Means over the seeds.",
        args.nodes - args.nodes % 2,
        args.inference_night.min(args.inference_peak),
        args.inference_peak,
        args.training,
        args.checkpoint,
        args.grace,
    );
    let command = format!("crater simulate pooling --seeds {} --nodes {}", args.seeds, args.nodes);
    Report::new("What one pool brings", &command).with(Text::new("", &text)).with(table)
}
