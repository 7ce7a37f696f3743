//! A report with everything in it.

use crater_sim::report::{Axis, Cell, Chart, Figures, Kind, Marker, Report, Series, Table, Text};

/// A curve of the shape that unallocated GPU has over arrivals: it falls as pods
/// arrive and ends on a floor.
fn curve(floor: f64) -> Vec<(f64, f64)> {
    let fall = |x: f64| (100.0 - x + floor * (x / 130.0).powi(3)).max(floor);
    (0..=26).map(|i| f64::from(i) * 5.0).map(|x| (x, fall(x))).collect()
}

pub fn published() -> Table {
    let columns = ["policy", "unallocated (%)", "published (%)", "seeds", "decisions (1/s)"];
    let mut table = Table::new("Unallocated GPU at 100 % arrived", &columns);
    for (policy, here, published, rate) in [
        ("FGD", 4.762, Some(4.767), 301_234u64),
        ("BestFit", 7.19, Some(7.14), 1_152_000),
        ("Random", 13.46, Some(13.7), 980),
        ("shadow-price", 4.0, None, 250_000),
    ] {
        let published = published.map_or(Cell::Empty, |p| Cell::number(p, 2));
        table.push(vec![
            policy.into(),
            Cell::number(here, 2),
            published,
            10u64.into(),
            rate.into(),
        ]);
    }
    table.note =
        "Means over the seeds 42 to 51; the published means are of Weng, Yang et al.".into();
    table
}

pub fn lines() -> Chart {
    let series =
        [("FGD", 4.8), ("BestFit", 7.1), ("Packing", 8.2), ("DotProd", 9.4), ("Random", 13.7)]
            .map(|(name, floor)| Series::new(name, curve(floor)));
    Chart {
        title: "Unallocated GPU while pods arrive".into(),
        summary: "Share of all cards that no pod holds, against the GPU asked for by all pods that have arrived.".into(),
        kind: Kind::Line,
        x: Axis::new("Arrived", "% of the cluster's GPU"),
        y: Axis::new("Unallocated GPU", "%"),
        series: series.into(),
        ..Chart::default()
    }
}

pub fn steps() -> Chart {
    let wait = |scale: f64| {
        (0..60)
            .map(f64::from)
            .map(|i| (i / 10.0, (scale * (i * 0.7).sin().abs() * (1.0 + i / 30.0)).round()))
            .collect()
    };
    Chart {
        title: "Jobs waiting while the policy is swapped".into(),
        summary: "Queue lengths over six hours; the training queue changes its policy twice without a restart.".into(),
        kind: Kind::Step,
        x: Axis::new("Time since start", "h"),
        y: Axis::new("Jobs waiting", ""),
        series: vec![Series::new("training", wait(220.0)), Series::new("inference", wait(60.0))],
        markers: vec![
            Marker { x: 2.0, label: "binpack → fgd".into() },
            Marker { x: 4.25, label: "fgd → shadow-price 0.3.1".into() },
        ],
        ..Chart::default()
    }
}

pub fn bars() -> Chart {
    let series = |name: &str, values: [f64; 4]| {
        Series::new(name, values.into_iter().enumerate().map(|(i, v)| (i as f64, v)).collect())
    };
    Chart {
        title: "Mean waiting time by queue".into(),
        summary: "Two policies on the same arrivals.".into(),
        kind: Kind::Bar,
        x: Axis::new("Queue", ""),
        y: Axis::new("Mean waiting time", "min"),
        categories: ["training", "inference", "offline", "large language models of department A"]
            .map(String::from)
            .into(),
        series: vec![
            series("binpack", [14.2, 0.4, 55.0, 21.0]),
            series("fgd", [11.9, 0.35, 61.25, 18.5]),
        ],
        ..Chart::default()
    }
}

pub fn report() -> Report {
    let figures = Figures::new("")
        .with("Unallocated GPU", Cell::number(4.76, 2), "%", "published 4.77 %")
        .with("Pods placed", 10_812u64, "", "of 10,846 arrived")
        .with("Decisions", Cell::number(301_234.0, 0), "1/s", "one thread, scores cached")
        .with("Longest decision", Cell::number(1.8, 1), "ms", "");
    Report::new("Yardstick: openb default under six policies", "crater simulate yardstick --trace default --seeds 42-51 --html report.html")
        .with(figures)
        .with(Text::new("", "Every policy sees the same arrivals in the same order.\n\nNobody leaves and nothing is retried: a pod that fits nowhere is dropped & counted as <arrived>."))
        .with(lines())
        .with(published())
        .with(steps())
        .with(bars())
}
