//! No data makes a report panic or its drawing run away.

use crater_sim::report::{Axis, Cell, Chart, Kind, Marker, Report, Series, Table};
use proptest::prelude::*;

fn number() -> impl Strategy<Value = f64> {
    prop_oneof![
        4 => -1e3..1e3,
        2 => Just(0.0),
        2 => any::<f64>(),
        1 => Just(f64::NAN),
        1 => Just(f64::INFINITY),
        1 => 1e14..1.001e14,
        1 => -1e-12..1e-12,
    ]
}

fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![Just(Kind::Line), Just(Kind::Step), Just(Kind::Bar)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn any_chart(
        kind in kind(),
        points in proptest::collection::vec((number(), number()), 0..30),
        markers in proptest::collection::vec((number(), "\\PC{0,20}"), 0..30),
        words in proptest::collection::vec("\\PC{0,60}", 5),
        categories in proptest::collection::vec("\\PC{0,60}", 0..4),
    ) {
        let half = points.len() / 2;
        let bars = (0..categories.len()).map(|i| i as f64).zip(points.iter().map(|p| p.1)).collect();
        let chart = Chart {
            title: words[0].clone(),
            summary: words[1].clone(),
            kind,
            x: Axis::new(&words[2], &words[3]),
            y: Axis::new(&words[4], "%"),
            categories,
            series: vec![
                Series::new(&words[0], points[..half].to_vec()),
                Series::new(&words[1], points[half..].to_vec()),
                Series::new(&words[2], bars),
            ],
            markers: markers.into_iter().map(|(x, label)| Marker { x, label }).collect(),
        };
        let report = Report::new(&words[0], &words[1]).with(chart);
        prop_assert!(report.html().len() < 1_000_000);
        prop_assert!(report.text(80).len() < 1_000_000);
        prop_assert!(report.json().is_ok());
    }

    #[test]
    fn any_table(
        columns in proptest::collection::vec("\\PC{0,30}", 0..5),
        cells in proptest::collection::vec((number(), 0u8.., "\\PC{0,30}"), 0..20),
        width in 0u16..200,
    ) {
        let names: Vec<&str> = columns.iter().map(String::as_str).collect();
        let mut table = Table::new("any", &names);
        for (i, (value, places, text)) in cells.into_iter().enumerate() {
            let mut row = vec![Cell::Decimal { value, places }, text.into(), Cell::Empty];
            row.truncate(i % 4);
            table.push(row);
        }
        let report = Report::new("any", "").with(table);
        let _ = (report.html(), report.text(width), report.json());
    }
}
