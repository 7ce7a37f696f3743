//! A chart's data as rows: for its table, and for what is shown on pointing.

use super::{Chart, Kind, Series};

/// Values of all series at some places.
pub(super) struct Samples {
    /// The places, ascending; of bars the indexes of categories.
    pub xs: Vec<f64>,
    /// For each place the value of each series.
    pub rows: Vec<Vec<Option<f64>>>,
    /// How many places the data has.
    pub all: usize,
}

/// Whether a point can be drawn. What is larger than any amount that a report
/// holds would only spoil the scale.
pub(super) fn drawable((x, y): (f64, f64)) -> bool {
    x.abs() < 1e15 && y.abs() < 1e15
}

/// The drawable points of a series in ascending order.
fn points(series: &Series) -> Vec<(f64, f64)> {
    let mut points: Vec<_> = series.points.iter().copied().filter(|p| drawable(*p)).collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    points
}

fn value(points: &[(f64, f64)], x: f64, kind: Kind) -> Option<f64> {
    let after = points.partition_point(|p| p.0 <= x);
    let before = points.get(after.checked_sub(1)?)?;
    if kind == Kind::Step || before.0 >= x {
        return (kind != Kind::Bar || before.0 >= x).then_some(before.1);
    }
    let next = points.get(after).filter(|_| kind == Kind::Line)?;
    Some(before.1 + (next.1 - before.1) * (x - before.0) / (next.0 - before.0))
}

/// At most `most` places, evenly chosen among those of the data, the first and
/// the last among them.
pub(super) fn samples(chart: &Chart, most: usize) -> Samples {
    let series: Vec<_> = chart.series.iter().map(points).collect();
    let mut xs: Vec<f64> = match chart.kind {
        Kind::Bar => (0..chart.categories.len()).map(|i| i as f64).collect(),
        _ => series.iter().flatten().map(|p| p.0).collect(),
    };
    xs.sort_by(f64::total_cmp);
    xs.dedup_by(|a, b| a.total_cmp(b).is_eq());
    let all = xs.len();
    if all > most && most > 1 && chart.kind != Kind::Bar {
        xs = (0..most).map(|i| xs[i * (all - 1) / (most - 1)]).collect();
    }
    let row = |x: &f64| series.iter().map(|s| value(s, *x, chart.kind)).collect();
    Samples { rows: xs.iter().map(row).collect(), xs, all }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(kind: Kind) -> Chart {
        let series = vec![
            Series::new("a", vec![(0.0, 0.0), (10.0, 100.0)]),
            Series::new("b", vec![(5.0, 1.0), (f64::NAN, 2.0)]),
        ];
        let categories = vec!["x".to_owned(), "y".to_owned()];
        Chart { kind, categories, series, ..Chart::default() }
    }

    #[test]
    fn values_between_points_follow_the_kind() {
        let line = samples(&chart(Kind::Line), 9);
        assert_eq!(line.xs, [0.0, 5.0, 10.0]);
        assert_eq!(line.rows[1], [Some(50.0), Some(1.0)]);
        assert_eq!(line.rows[2], [Some(100.0), None], "nothing is known beyond the last point");
        let step = samples(&chart(Kind::Step), 9);
        assert_eq!(step.rows[1], [Some(0.0), Some(1.0)]);
        assert_eq!(step.rows[2], [Some(100.0), Some(1.0)]);
        let bar = samples(&chart(Kind::Bar), 9);
        assert_eq!(bar.rows, [[Some(0.0), None], [None, None]]);
    }

    #[test]
    fn thinning_keeps_both_ends() {
        let series = vec![Series::new("a", (0..100).map(|i| (f64::from(i), 0.0)).collect())];
        let thin = samples(&Chart { series, ..Chart::default() }, 4);
        assert_eq!((thin.xs, thin.all), (vec![0.0, 33.0, 66.0, 99.0], 100));
    }
}
