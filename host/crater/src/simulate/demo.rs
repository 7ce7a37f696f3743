//! `crater simulate demo`: the main job on real-sized input.

use super::{width, write_page};
use crate::cli::{Demo as Args, Format};
use crate::exit::input;
use crate::loader::Loader;
use crate::progress;
use anyhow::anyhow;
use crater_engine::facts::facts;
use crater_engine::policy::Values;
use crater_engine::{Decider, Policy, Strings};
use crater_policy::{Candidate, Setting, Slot};
use crater_sim::generate::Generate;
use crater_sim::live::{self, Live};
use crater_sim::report::{Axis, Cell, Chart, Figures, Marker, Report, Series, Table, Text};
use crater_sim::trace::{Class, Trace, traces_dir};
use crater_sim::yardstick::{Decided, Run, Yardstick};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A policy change: when, and to what.
struct Swap {
    percent: f64,
    policy: String,
}

/// A finished run with its name and what one decision cost.
struct Done {
    name: String,
    run: Run,
    time: Duration,
}

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let swaps = args.swap.iter().map(|s| swap(s)).collect::<anyhow::Result<Vec<_>>>()?;
    let (trace, coming) = traces(args)?;
    let loader = Loader::new(Arc::new(Strings::default()))?;
    let yardstick = Yardstick::new(&trace, loader.strings().clone()).map_err(input)?;
    let facts = facts(&yardstick.mix(), yardstick.cluster(args.seed)?.state());
    eprintln!(
        "crater: {} nodes with {} cards; pods arrive until {} times the cluster's GPU was asked for",
        trace.nodes.len(),
        trace.gpus(),
        1.3
    );
    let (swapped, pauses) = conducted(args, &swaps, &loader, &yardstick, &facts, &trace)?;
    let mut all = vec![swapped];
    let mut lives = vec![];
    for name in &args.beside {
        eprintln!("crater: {name} for the whole run, then in a live queue");
        let policy = loader.policy(name, "{}", &facts)?;
        let bar = progress::bar(13 * trace.pods.len() as u64 / 10, &format!("{name} alone"));
        let start = Instant::now();
        let run =
            yardstick
                .run(args.seed, Some(policy.clone()), Decider::default(), &mut || bar.inc(1))?;
        all.push(Done { name: format!("{name} alone"), run, time: start.elapsed() });
        bar.finish_and_clear();
        let bar = progress::bar(coming.pods.len() as u64, &format!("{name} in a live queue"));
        lives
            .push((name.clone(), live::run(&coming, policy, loader.strings(), &mut || bar.inc(1))));
        bar.finish_and_clear();
    }
    let report = report(args, &trace, &swaps, &all, &lives, &pauses);
    if let Some(path) = &args.html {
        write_page(path, &report)?;
    }
    match args.format {
        Format::Json => println!("{}", report.json()?),
        Format::Table => print!("{}", report.text(width())),
    }
    Ok(())
}

fn swap(text: &str) -> anyhow::Result<Swap> {
    let parsed = text.split_once('=').and_then(|(percent, policy)| {
        let percent = percent.parse::<f64>().ok().filter(|p| (0.0..=130.0).contains(p))?;
        Some(Swap { percent, policy: policy.to_owned() })
    });
    parsed.filter(|s| !s.policy.is_empty()).ok_or_else(|| {
        input(anyhow!("--swap: {text:?} is refused: expected PERCENT=POLICY such as 50=fgd"))
    })
}

/// The workload that fills the cluster, and the one that comes and goes.
fn traces(args: &Args) -> anyhow::Result<(Trace, Trace)> {
    if args.data.is_some() {
        let traces = traces_dir(args.data.clone()).map_err(input)?;
        let trace = traces.openb(&args.trace).map_err(input)?;
        return Ok((trace.clone(), trace));
    }
    let generate = Generate { seed: args.seed, load: args.load, ..Generate::default() };
    let generate = generate.scaled(args.nodes as usize);
    // As many pods as the cluster holds make no queue; three times as many do.
    let coming = Generate { pods: generate.pods * 3, ..generate };
    Ok((generate.trace().map_err(input)?, coming.trace().map_err(input)?))
}

/// The run whose policy is swapped on the way, and the pause of each swap.
fn conducted(
    args: &Args,
    swaps: &[Swap],
    loader: &Loader,
    yardstick: &Yardstick<'_>,
    facts: &Values,
    trace: &Trace,
) -> anyhow::Result<(Done, Vec<Duration>)> {
    let slot = Slot::new(loader.runtime().clone());
    let bar = progress::bar(13 * trace.pods.len() as u64 / 10, "policies swapped");
    let mut due: Vec<(f64, &str)> = swaps.iter().map(|s| (s.percent, s.policy.as_str())).collect();
    due.push((-1.0, &args.policy));
    due.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut pauses = vec![];
    let mut problem = None;
    let start = Instant::now();
    let run = yardstick.conduct(args.seed, Decider::default(), &mut |moment| {
        bar.inc(1);
        let (_, name) = due.pop_if(|(percent, _)| *percent <= moment.arrived_pct)?;
        let wasm = match Loader::bytes(name) {
            Ok(wasm) => wasm,
            Err(error) => {
                problem.get_or_insert(error);
                return None;
            }
        };
        let strings = loader.strings().clone();
        let limits = Some(loader.patient());
        let setting = Setting { config: "{}", facts, strings, limits };
        let candidate = Candidate { wasm: &wasm, setting, at: moment.now };
        let mut warmed = Instant::now();
        let swapped = slot.swap(&candidate, |policy| {
            moment.decider.warm(moment.state, "trace", &**policy, moment.now);
            warmed = Instant::now();
        });
        match swapped {
            Ok(live) => {
                pauses.push(warmed.elapsed());
                bar.set_message(format!("decides: {name}"));
                Some(live.policy as Arc<dyn Policy>)
            }
            Err(refusal) => {
                bar.suspend(|| eprintln!("crater: {name}: {refusal}; the last good policy stays"));
                None
            }
        }
    })?;
    bar.finish_and_clear();
    if let Some(error) = problem {
        return Err(error);
    }
    let names: Vec<&str> = std::iter::once(args.policy.as_str())
        .chain(swaps.iter().map(|s| s.policy.as_str()))
        .collect();
    Ok((Done { name: names.join(" → "), run, time: start.elapsed() }, pauses))
}

fn report(
    args: &Args,
    trace: &Trace,
    swaps: &[Swap],
    all: &[Done],
    lives: &[(String, Live)],
    pauses: &[Duration],
) -> Report {
    let decisions: u64 = all.iter().map(|d| d.run.decisions).sum();
    let time: Duration = all.iter().map(|d| d.time).sum();
    let faults: u64 = all.iter().map(|d| d.run.faults).sum();
    let rate = decisions as f64 / time.as_secs_f64();
    let worst = pauses.iter().max().map_or(0.0, |p| p.as_secs_f64() * 1e6);
    let figures = Figures::new("In short")
        .with("decisions", decisions, "", "each by a WebAssembly policy")
        .with("decisions a second", Cell::number(rate, 0), "1/s", "one thread, compiling included")
        .with("longest swap", Cell::number(worst, 0), "µs", "from warm to live, between two rounds")
        .with("policy faults", faults, "", "decided by the queue's fallback");
    let command = if args.data.is_some() {
        format!("crater simulate demo --data DIR --trace {} --seed {}", trace.name, args.seed)
    } else {
        format!("crater simulate demo --nodes {} --seed {}", args.nodes, args.seed)
    };
    let about = "Pods arrive until 1.3 times the cluster's GPU was asked for; none leaves, and what does not fit is dropped (the protocol of the FGD paper, USENIX ATC'23). The less stays unallocated, the better the packing. The first run changes its policy on the way; the marks show when.";
    let mut report = Report::new(
        &format!("{} nodes, {} cards, {}", trace.nodes.len(), trace.gpus(), trace.name),
        &command,
    )
    .with(figures)
    .with(Text::new("What was run", about))
    .with(fill_table(all))
    .with(decided_table(&all[0].run))
    .with(fill_chart(swaps, all, "Unallocated GPU over arrivals", |p| p.unallocated_pct))
    .with(fill_chart(swaps, all, "Fragmented GPU over arrivals", |p| p.fragmented_pct));
    if !lives.is_empty() {
        let waiting = Axis::new("waiting", "pods");
        let allocated = Axis::new("allocated GPU", "% of the cluster");
        report = report
            .with(wait_table(lives))
            .with(live_chart(lives, "Pods that wait", waiting, |s| s.waiting as f64))
            .with(live_chart(lives, "Allocated GPU", allocated, |s| s.allocated_pct));
    }
    report
}

fn fill_table(all: &[Done]) -> Table {
    let mut table = Table::new(
        "Unallocated GPU",
        &[
            "policy",
            "at 80 % arrived (%)",
            "at 100 % (%)",
            "at 120 % (%)",
            "fragmented at 100 % (%)",
            "decisions (1/s)",
        ],
    );
    for done in all {
        let at = |percent: u32| done.run.points.iter().find(|p| p.arrived_pct == percent);
        let cell = |v: Option<f64>| v.map_or(Cell::Empty, |v| Cell::number(v, 2));
        table.push(vec![
            done.name.as_str().into(),
            cell(at(80).map(|p| p.unallocated_pct)),
            cell(at(100).map(|p| p.unallocated_pct)),
            cell(at(120).map(|p| p.unallocated_pct)),
            cell(at(100).map(|p| p.fragmented_pct)),
            Cell::number(done.run.decisions as f64 / done.time.as_secs_f64(), 0),
        ]);
    }
    table
}

/// How many decisions each digest made in the swapped run.
fn decided_table(run: &Run) -> Table {
    let mut table =
        Table::new("Who decided in the first run", &["policy digest", "decisions", "placed"]);
    let mut order = vec![];
    let mut counts: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for Decided { policy, node, .. } in &run.decided {
        let name = policy.map_or_else(|| "none".to_owned(), |d| d.short());
        let count = counts.entry(name.clone()).or_insert_with(|| {
            order.push(name);
            (0, 0)
        });
        count.0 += 1;
        count.1 += u64::from(node.is_some());
    }
    for name in order {
        let (decisions, placed) = counts[&name];
        table.push(vec![name.into(), decisions.into(), placed.into()]);
    }
    table
}

fn fill_chart(
    swaps: &[Swap],
    all: &[Done],
    title: &str,
    y: fn(&crater_sim::yardstick::Point) -> f64,
) -> Chart {
    let series = |done: &Done| {
        let points = done.run.points.iter().map(|p| (f64::from(p.arrived_pct), y(p))).collect();
        Series::new(&done.name, points)
    };
    Chart {
        title: title.into(),
        summary: format!("{title}, one line a run."),
        x: Axis::new("arrived GPU", "% of the cluster"),
        y: Axis::new("GPU", "% of the cluster"),
        series: all.iter().map(series).collect(),
        markers: swaps
            .iter()
            .map(|s| Marker { x: s.percent, label: format!("→ {}", s.policy) })
            .collect(),
        ..Chart::default()
    }
}

fn wait_table(lives: &[(String, Live)]) -> Table {
    let mut table = Table::new(
        "Waiting in a live queue, where pods also leave",
        &["policy", "pods", "mean (s)", "p99 (s)", "started", "still waiting"],
    );
    for (name, live) in lives {
        for class in Class::ALL {
            let Some(waits) = live.waits.get(&class) else { continue };
            table.push(vec![
                name.as_str().into(),
                class.to_string().into(),
                Cell::number(waits.mean(), 1),
                waits.p99().into(),
                waits.seconds.len().into(),
                waits.waiting.into(),
            ]);
        }
    }
    table
}

fn live_chart(
    lives: &[(String, Live)],
    title: &str,
    y: Axis,
    of: fn(&live::Sample) -> f64,
) -> Chart {
    let series = |(name, live): &(String, Live)| {
        Series::new(name, live.samples.iter().map(|s| (s.hours, of(s))).collect())
    };
    Chart {
        title: title.into(),
        summary: format!("{title}: over time in the live queue, one line a policy."),
        x: Axis::new("time", "h"),
        y,
        series: lives.iter().map(series).collect(),
        ..Chart::default()
    }
}
