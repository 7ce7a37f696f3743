//! `crater job metrics`, and what it shares with `crater cluster metrics`.

use crate::client::args::{JobMetrics, Metric, Metrics, Output};
use crate::client::curve::{WIDTH, columns, curve, spark};
use crate::client::http::{Api, path, with_query};
use crate::client::table::Table;
use crate::client::{print, spell};
use crater_api::samples::{MetricsView, SeriesView};
use crater_model::{Mib, MilliCards};
use std::fmt::Write as _;

/// Runs the command.
pub fn run(api: &Api, output: Output, args: &JobMetrics) -> anyhow::Result<()> {
    let found = history(api, &path(&["jobs", &args.id, "metrics"]), &args.which)?;
    print::answer(output, &found, |_| text(&found, args.which.metric))
}

/// All points of a range, page by page.
pub fn history(api: &Api, path: &str, which: &Metrics) -> anyhow::Result<MetricsView> {
    let mut query = vec![("range", format!("{}s", which.range.as_secs()))];
    query.extend(which.metric.map(|metric| ("metric", metric.name().to_owned())));
    let mut all: MetricsView = api.get(&with_query(path, &query))?;
    while let Some(cursor) = all.next.take() {
        let mut next = query.clone();
        next.push(("cursor", cursor));
        let page: MetricsView = api.get(&with_query(path, &next))?;
        for (series, more) in all.series.iter_mut().zip(page.series) {
            series.points.extend(more.points);
        }
        all.next = page.next;
    }
    Ok(all)
}

/// What the measurements came to.
struct Summary {
    held: u64,
    low: u64,
    mean: u64,
    high: u64,
    last: u64,
    columns: Vec<Option<u64>>,
}

fn summary(series: &SeriesView) -> Option<Summary> {
    let points = &series.points;
    let last = points.last()?;
    let time = |at: &str| {
        at.parse::<jiff::Timestamp>()
            .map_or(0, |at| u64::try_from(at.as_millisecond()).unwrap_or(0))
    };
    let curve: Vec<(u64, u64)> = points.iter().map(|p| (time(&p.at), p.used)).collect();
    // A row of five minutes counts for as much as it stands for.
    let weight = |span: u64| span.max(15);
    let weights: u64 = points.iter().map(|p| weight(p.span)).sum();
    let sum: u64 = points.iter().map(|p| p.used.saturating_mul(weight(p.span))).sum();
    Some(Summary {
        held: points.iter().map(|p| p.held).max().unwrap_or(0),
        low: points.iter().map(|p| p.low).min().unwrap_or(0),
        mean: sum / weights.max(1),
        high: points.iter().map(|p| p.high).max().unwrap_or(0),
        last: last.used,
        columns: columns(&curve, WIDTH),
    })
}

/// An amount of a metric for people.
fn amount(metric: &str, n: u64) -> String {
    match metric {
        "gpu" | "cpu" => MilliCards(n).to_string(),
        "gpu-memory" | "memory" if n < 10_240 => Mib(n).to_string(),
        "gpu-memory" | "memory" => spell::roughly(n),
        _ => format!("{n}MB/s"),
    }
}

/// A table with a line for each metric; of one that was asked for its curve.
pub fn text(found: &MetricsView, only: Option<Metric>) -> String {
    if found.series.iter().all(|series| series.points.is_empty()) {
        return format!(
            "{}: nothing was measured since {}; it is measured every {} s while it runs\n",
            found.subject,
            spell::moment(&found.from),
            found.interval
        );
    }
    let mut head = vec!["METRIC", "HELD", "MIN", "MEAN", "MAX", "LAST"];
    if only.is_none() {
        head.push("USED");
    }
    let mut table = Table::new(&head);
    let mut below = String::new();
    for series in &found.series {
        let Some(sum) = summary(series) else { continue };
        let say = |n: u64| amount(&series.metric, n);
        let top = sum.held.max(sum.high);
        let mut row = vec![series.metric.clone()];
        row.extend([sum.held, sum.low, sum.mean, sum.high, sum.last].map(say));
        if only.is_none() {
            row.push(spark(&sum.columns, top));
        } else {
            below.push('\n');
            below += &curve(&sum.columns, top, &say);
            let ends = (series.points.first(), series.points.last());
            if let (Some(first), Some(last)) = ends {
                let (first, last) = (spell::age(&first.at), spell::age(&last.at));
                let _ = writeln!(below, "  used, from {first} ago to {last} ago");
            }
        }
        table.row(row);
    }
    table.text(print::colours()) + &below
}

#[cfg(test)]
mod tests {
    use super::*;
    use crater_api::samples::PointView;

    #[test]
    fn the_summary_weighs_rows_by_what_they_stand_for() {
        let point = |at: &str, span, used| PointView {
            at: format!("2026-12-01T{at}Z"),
            span,
            held: 1000,
            used,
            low: used / 2,
            high: used * 2,
        };
        let points = vec![point("10:00:00", 300, 100), point("10:05:00", 0, 520)];
        let series = SeriesView { metric: "gpu".into(), unit: "milli-cards".into(), points };
        let sum = summary(&series).unwrap();
        assert_eq!((sum.low, sum.mean, sum.high, sum.last), (50, 120, 1040, 520));
        let found = MetricsView {
            subject: "job-001".into(),
            from: "2026-12-01T09:00:00Z".into(),
            interval: 15,
            series: vec![series],
            next: None,
        };
        let shown = text(&found, Some(Metric::Gpu));
        assert!(shown.contains("gpu     1     0.05  0.12  1.04  0.52"), "{shown}");
        assert!(shown.contains('█') || shown.contains('▄'), "{shown}");
        let none = MetricsView { series: vec![], ..found };
        assert!(text(&none, None).contains("nothing was measured since 2026-12-01T09:00:00Z"));
    }
}
