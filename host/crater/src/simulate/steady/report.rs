//! Many runs as tables and charts.

use super::record::Record;
use crater_sim::report::{Axis, Cell, Chart, Kind, Report, Series, Table, Text};
use crater_sim::steady::{Estimate, Group, Waits, estimate};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// Groups of pods with a column of their own.
const GROUPS: [Group; 5] =
    [Group::CpuOnly, Group::Fraction, Group::OneCard, Group::SeveralCards, Group::EightCards];

const ABOUT: &str = "Pods arrive at random (Poisson), each drawn from the trace's pods that have a life time; they leave after it (at most the trace's 99th percentile). Who finds no room waits, is tried again at each arrival and departure in order of age, and does not hold back who fits. The load is share × life time of all that arrives, in percent of the cluster's cards. Measured are arrivals after a warm-up of twice the mean life time of the GPU in use and of twice as many arrivals as run at a time; the stream goes on until all measured pods have started, or a quarter as many have come again. Who waits even then counts with the wait so far.\n\nFigures are means over the seeds ± half a 95 % interval (Student's t). Policies see the same arrivals under the same seed; below each stands its difference to the policy it is compared with, seed by seed.";

/// What a run comes to in one figure, where it does.
type Metric<'a> = &'a dyn Fn(&Record) -> Option<f64>;

/// The runs in order.
struct Runs<'a> {
    records: &'a [Record],
    against: &'a str,
    traces: Vec<&'a str>,
    policies: Vec<&'a str>,
}

/// Runs of one trace, load and policy, by seed.
type Cells<'a> = BTreeMap<u64, &'a Record>;

impl<'a> Runs<'a> {
    fn new(records: &'a [Record], against: &'a str) -> Self {
        let once = |of: &dyn Fn(&'a Record) -> &'a str| {
            let mut names = vec![];
            for record in records {
                if !names.contains(&of(record)) {
                    names.push(of(record));
                }
            }
            names
        };
        let (traces, policies) = (once(&|r| &r.cell.trace), once(&|r| &r.cell.policy));
        Self { records, against, traces, policies }
    }

    fn loads(&self, trace: &str) -> BTreeSet<u32> {
        self.records.iter().filter(|r| r.cell.trace == trace).map(|r| r.cell.load).collect()
    }

    fn cells(&self, trace: &str, load: u32, policy: &str) -> Cells<'a> {
        let here =
            |r: &&Record| (&*r.cell.trace, r.cell.load, &*r.cell.policy) == (trace, load, policy);
        self.records.iter().filter(here).map(|r| (r.cell.seed, r)).collect()
    }

    /// A row for each trace, load and policy, and below it one of differences.
    fn rows(&self, table: &mut Table, metrics: &[Metric<'_>], sums: &[fn(&Record) -> u64]) {
        for &trace in &self.traces {
            for load in self.loads(trace) {
                let base = self.cells(trace, load, self.against);
                for &policy in &self.policies {
                    let cells = self.cells(trace, load, policy);
                    if cells.is_empty() {
                        continue;
                    }
                    let row =
                        |name: String| vec![Cell::from(trace), u64::from(load).into(), name.into()];
                    let mut means = row(policy.to_owned());
                    means.extend(metrics.iter().map(|m| show(mean(&cells, m), false)));
                    means.extend(
                        sums.iter().map(|s| cells.values().map(|r| s(r)).sum::<u64>().into()),
                    );
                    table.push(means);
                    if policy != self.against && !base.is_empty() {
                        let mut less = row(format!("  less {}", self.against));
                        less.extend(
                            metrics.iter().map(|m| show(difference(&cells, &base, m), true)),
                        );
                        table.push(less);
                    }
                }
            }
        }
    }
}

fn mean(cells: &Cells<'_>, metric: Metric<'_>) -> Option<Estimate> {
    estimate(&cells.values().filter_map(|r| metric(r)).collect::<Vec<_>>())
}

/// Seed by seed, over the seeds that both have.
fn difference(cells: &Cells<'_>, base: &Cells<'_>, metric: Metric<'_>) -> Option<Estimate> {
    let pairs = cells.iter().filter_map(|(seed, r)| Some(metric(r)? - metric(base.get(seed)?)?));
    estimate(&pairs.collect::<Vec<_>>())
}

fn show(estimate: Option<Estimate>, signed: bool) -> Cell {
    let Some(Estimate { mean, half }) = estimate else { return Cell::Empty };
    let places = match mean.abs().max(half.unwrap_or(0.0)) {
        s if s >= 100.0 => 0,
        s if s >= 10.0 => 1,
        _ => 2,
    };
    let number = |v: f64| Cell::number(v, places).show();
    let sign = if signed && mean > 0.0 { "+" } else { "" };
    let half = half.map(|h| format!(" ± {}", number(h))).unwrap_or_default();
    Cell::Text(format!("{sign}{}{half}", number(mean)))
}

fn waits(group: Group, of: fn(&Waits) -> f64) -> impl Fn(&Record) -> Option<f64> {
    move |record| record.run.waits.get(&group).map(of)
}

/// For the terminal: waits and the pool.
pub fn short(records: &[Record], against: &str) -> Report {
    let runs = Runs::new(records, against);
    start(&runs).with(wait_table(&runs)).with(pool_table(&runs))
}

/// For a page: also percentiles and charts.
pub fn page(records: &[Record], against: &str) -> Report {
    let runs = Runs::new(records, against);
    let mut report = start(&runs).with(wait_table(&runs)).with(pool_table(&runs));
    for &trace in &runs.traces {
        for chart in charts(&runs, trace) {
            report = report.with(chart);
        }
    }
    report.with(rank_table(&runs))
}

fn start(runs: &Runs<'_>) -> Report {
    let seeds: BTreeSet<u64> = runs.records.iter().map(|r| r.cell.seed).collect();
    let loads: BTreeSet<u32> = runs.records.iter().map(|r| r.cell.load).collect();
    let arrivals: BTreeSet<u64> = runs.records.iter().map(|r| r.cell.arrivals).collect();
    let list = |all: &mut dyn Iterator<Item = String>| all.collect::<Vec<_>>().join(",");
    let seeds = match (seeds.first(), seeds.last()) {
        (Some(first), Some(last)) if first < last => format!("{first}-{last}"),
        (Some(only), _) => only.to_string(),
        _ => String::new(),
    };
    let mut command = format!(
        "crater simulate steady --trace {} --load {} --seeds {seeds} --arrivals {}",
        runs.traces.join(","),
        list(&mut loads.iter().map(ToString::to_string)),
        list(&mut arrivals.iter().map(ToString::to_string)),
    );
    for policy in &runs.policies {
        let quote = if policy.contains('=') { "'" } else { "" };
        let _ = write!(command, " --policy {quote}{policy}{quote}");
    }
    let mut about = ABOUT.to_owned();
    let borrowed = runs.records.iter().filter(|r| r.cell.lives != r.cell.trace);
    let borrowed: BTreeSet<&str> = borrowed.map(|r| &*r.cell.trace).collect();
    if !borrowed.is_empty() {
        let names = borrowed.into_iter().collect::<Vec<_>>().join(", ");
        let _ = write!(
            about,
            "\n\nWithout life times of their own, and given those of another trace, by name of the pod or in turn by class: {names}."
        );
    }
    Report::new("Waiting in the steady state", &command).with(Text::new("", &about))
}

fn wait_table(runs: &Runs<'_>) -> Table {
    let names = GROUPS.map(|g| format!("{g} (s)"));
    let columns = ["trace", "load (%)", "policy"].into_iter().chain(names.iter().map(|n| &**n));
    let mut table = Table::new("Mean wait", &columns.collect::<Vec<_>>());
    let metrics = GROUPS.map(|g| waits(g, |w| w.mean));
    let metrics: Vec<Metric<'_>> = metrics.iter().map(|m| m as Metric<'_>).collect();
    runs.rows(&mut table, &metrics, &[]);
    table
}

fn pool_table(runs: &Runs<'_>) -> Table {
    let mut table = Table::new(
        "The pool",
        &[
            "trace",
            "load (%)",
            "policy",
            "unallocated GPU (%)",
            "while GPU is waited for (%)",
            "time GPU is waited for (%)",
            "waiting pods",
            "arrivals that wait (%)",
            "still waiting",
            "faults",
        ],
    );
    let metrics: [Metric<'_>; 5] = [
        &|r| Some(r.run.unallocated_pct),
        &|r| r.run.unallocated_while_waiting_pct,
        &|r| Some(r.run.gpu_waits_pct),
        &|r| Some(r.run.queue),
        &waits(Group::All, |w| w.waited_pct),
    ];
    let still = |r: &Record| r.run.waits.get(&Group::All).map_or(0, |w| w.still);
    runs.rows(&mut table, &metrics, &[still, |r| r.run.faults]);
    table.note = "Still waiting: measured pods that had not started at the end of the run, over all seeds. Faults: decisions that the queue's fallback made because the policy failed, over all seeds.".into();
    table
}

fn rank_table(runs: &Runs<'_>) -> Table {
    let mut table = Table::new(
        "Waits by class",
        &[
            "trace",
            "load (%)",
            "policy",
            "class",
            "pods",
            "that wait (%)",
            "mean in the first half (s)",
            "in the second (s)",
            "median (s)",
            "p95 (s)",
            "p99 (s)",
            "still waiting",
        ],
    );
    let of: [fn(&Waits) -> f64; 6] = [
        |w| w.waited_pct,
        |w| half(&w.tenths, 0),
        |w| half(&w.tenths, 5),
        |w| w.median,
        |w| w.p95,
        |w| w.p99,
    ];
    for &trace in &runs.traces {
        for load in runs.loads(trace) {
            for &policy in &runs.policies {
                let cells = runs.cells(trace, load, policy);
                for group in GROUPS {
                    let all = cells.values().filter_map(|r| r.run.waits.get(&group));
                    let (pods, still) =
                        all.fold((0, 0), |(pods, still), w| (pods + w.pods, still + w.still));
                    if pods == 0 {
                        continue;
                    }
                    let mut row = vec![trace.into(), u64::from(load).into(), policy.into()];
                    row.extend([group.to_string().into(), Cell::from(pods)]);
                    row.extend(of.map(|of| show(mean(&cells, &waits(group, of)), false)));
                    row.push(still.into());
                    table.push(row);
                }
            }
        }
    }
    table.note = "Pods and those still waiting over all seeds; percentiles are means over the seeds of each run's own. Where waits are longer in the second half of the measured arrivals, seed after seed, the queue grows: the policy does not carry the load, and the mean says how long was measured.".into();
    table
}

/// Mean of the five tenths from one on.
fn half(tenths: &[f64], from: usize) -> f64 {
    tenths.iter().skip(from).take(5).sum::<f64>() / 5.0
}

/// Of one trace: waits by load for each class, and what stays unallocated.
fn charts(runs: &Runs<'_>, trace: &str) -> Vec<Chart> {
    let loads = runs.loads(trace);
    let unallocated: Metric<'_> = &|r| r.run.unallocated_while_waiting_pct;
    if let (1, Some(&load)) = (loads.len(), loads.first()) {
        let chart = Chart {
            title: format!("Mean wait, {trace} at {load} %"),
            summary: "How long pods of each class wait, one bar a policy.".into(),
            kind: Kind::Bar,
            x: Axis::new("class", ""),
            y: Axis::new("mean wait", "s"),
            categories: GROUPS.map(|g| g.to_string()).into(),
            ..Chart::default()
        };
        let series = |policy: &&str| {
            let cells = runs.cells(trace, load, policy);
            let points = (0_u32..).zip(GROUPS).filter_map(|(i, group)| {
                Some((f64::from(i), mean(&cells, &waits(group, |w| w.mean))?.mean))
            });
            Series::new(policy, points.collect())
        };
        return vec![Chart { series: runs.policies.iter().map(series).collect(), ..chart }];
    }
    let chart = |title: String, summary: &str, y: Axis, metric: Metric<'_>| {
        let series = |policy: &&str| {
            let points = loads.iter().filter_map(|load| {
                let found = mean(&runs.cells(trace, *load, policy), metric)?;
                Some((f64::from(*load), found.mean))
            });
            Series::new(policy, points.collect())
        };
        Chart {
            title,
            summary: summary.into(),
            x: Axis::new("load", "% of the cluster's GPU"),
            y,
            series: runs.policies.iter().map(series).collect(),
            ..Chart::default()
        }
    };
    let mut all: Vec<Chart> = GROUPS
        .into_iter()
        .rev()
        .map(|group| {
            let title = format!("Mean wait of pods with {group}, {trace}");
            let metric = waits(group, |w| w.mean);
            chart(title, "By load, one line a policy.", Axis::new("mean wait", "s"), &metric)
        })
        .filter(|chart| chart.series.iter().any(|s| !s.points.is_empty()))
        .collect();
    all.push(chart(
        format!("Unallocated GPU while GPU is waited for, {trace}"),
        "By load, one line a policy; where none waits there is no point.",
        Axis::new("unallocated GPU", "% of the cluster"),
        unallocated,
    ));
    all
}
