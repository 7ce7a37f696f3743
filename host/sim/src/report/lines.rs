//! Line and step charts.

use super::figure::tick;
use super::samples::{drawable, samples};
use super::svg::{
    AXIS, Area, Failure, GRID, MARKER, STRONG, Size, TEXT, UNIT, hint, series_colour,
};
use super::{Chart, Kind, Marker};
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};
use std::fmt::Write;
use std::ops::Range;

type Plot<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;

/// Draws a chart; `None` if it has no point.
pub(super) fn svg(chart: &Chart, size: &Size, number: usize) -> Option<Result<String, Failure>> {
    let points = || chart.series.iter().flat_map(|s| &s.points).copied().filter(|p| drawable(*p));
    let markers = chart.markers.iter().map(|m| m.x).filter(|x| drawable((*x, 0.0)));
    let x = span(points().map(|p| p.0).chain(markers))?;
    let y = nice(&span(points().map(|p| p.1))?);
    let x = apart(&x);
    let draw = |area: &Area<'_>| draw(chart, size, area, x, y);
    Some(super::svg::svg(chart, size, size.height, number, draw))
}

fn span(values: impl Iterator<Item = f64>) -> Option<Range<f64>> {
    values.fold(None, |range: Option<Range<f64>>, v| {
        let range = range.unwrap_or(v..v);
        Some(range.start.min(v)..range.end.max(v))
    })
}

/// A range in which values can be told apart, wider than the given one if that
/// is a single value but for rounding.
fn apart(range: &Range<f64>) -> Range<f64> {
    let largest = range.start.abs().max(range.end.abs());
    if range.end - range.start >= largest.max(1e-6) * 1e-9 {
        return range.clone();
    }
    let half = if largest > 1e-9 { largest * 0.5 } else { 0.5 };
    range.start - half..range.end + half
}

/// A range that begins and ends at round values, with zero where that wastes
/// little.
fn nice(range: &Range<f64>) -> Range<f64> {
    let (mut from, mut to) = (range.start, range.end);
    if from >= 0.0 && from <= 0.5 * to {
        from = 0.0;
    }
    Range { start: from, end: to } = apart(&(from..to));
    let rough = (to - from) / 4.0;
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|s| s * power).into_iter().find(|s| *s >= rough * 0.999);
    let step = step.unwrap_or(rough);
    (from / step).floor() * step..(to / step).ceil() * step
}

fn draw(
    chart: &Chart,
    size: &Size,
    area: &Area<'_>,
    x: Range<f64>,
    y: Range<f64>,
) -> Result<String, Failure> {
    let font = size.font * UNIT;
    let (x_span, y_span) = (x.end - x.start, y.end - y.start);
    let x_label = |v: &f64| tick(*v, x_span);
    let y_label = |v: &f64| tick(*v, y_span);
    let left = (0..=8).map(|i| size.measure(&y_label(&(y.start + y_span * f64::from(i) / 8.0))));
    let left = left.max().unwrap_or(0) + 2 * font;
    let widest = size.measure(&x_label(&x.start)).max(size.measure(&x_label(&x.end)));
    let across = (size.width * UNIT - left) / (widest + 3 * font);
    let markers = if chart.markers.is_empty() { 0 } else { font * 3 / 2 };
    let top = font * 2 + markers;
    let mut plot: Plot<'_, '_> = ChartBuilder::on(area)
        .margin_top(top)
        .margin_right(font * 2)
        .x_label_area_size(font * 4)
        .y_label_area_size(left)
        .build_cartesian_2d(x, y)?;
    let small = size.text(TEXT, HPos::Center, VPos::Center);
    plot.configure_mesh()
        .disable_x_mesh()
        .y_max_light_lines(0)
        .bold_line_style(GRID.stroke_width(UNIT as u32))
        .axis_style(AXIS.stroke_width(UNIT as u32))
        .label_style(small)
        .set_all_tick_mark_size(6 * UNIT)
        .x_labels(across.clamp(2, 12) as usize)
        .y_labels(6)
        .x_label_formatter(&x_label)
        .y_label_formatter(&y_label)
        .draw()?;
    let (across, down) = plot.plotting_area().get_pixel_range();

    let above = size.text(STRONG, HPos::Left, VPos::Top);
    let heading = size.cut(&chart.y.heading(), size.width * UNIT - font);
    area.draw(&Text::new(heading, (font / 2, font / 4), above))?;
    let below = size.text(STRONG, HPos::Right, VPos::Bottom);
    let heading = size.cut(&chart.x.heading(), across.end - across.start);
    area.draw(&Text::new(heading, (across.end, size.height * UNIT - font / 4), below))?;

    draw_markers(chart, size, area, &plot)?;
    for (i, series) in chart.series.iter().enumerate() {
        let style = series_colour(i).stroke_width(UNIT as u32 * 2);
        for run in runs(&series.points) {
            let run = thin(&run, |p| plot.backend_coord(&p).0 / UNIT);
            let run = if chart.kind == Kind::Step { steps(&run) } else { run };
            if let [only] = run[..] {
                plot.draw_series([Circle::new(only, 3 * UNIT, style.filled())])?;
            } else {
                plot.draw_series(LineSeries::new(run, style))?;
            }
        }
    }
    Ok(hints(chart, size, &plot, &across, &down))
}

/// Runs of points without gaps between them.
fn runs(points: &[(f64, f64)]) -> Vec<Vec<(f64, f64)>> {
    let runs = points.split(|p| !drawable(*p));
    runs.filter(|run| !run.is_empty()).map(<[_]>::to_vec).collect()
}

/// At most four points for each pixel column: the first, the extremes and the
/// last, so that no peak is lost.
fn thin(points: &[(f64, f64)], column: impl Fn((f64, f64)) -> i32) -> Vec<(f64, f64)> {
    let mut out = vec![];
    for same in points.chunk_by(|a, b| column(*a) == column(*b)) {
        let by_y = |a: &&(f64, f64), b: &&(f64, f64)| a.1.total_cmp(&b.1);
        let least = same.iter().min_by(by_y);
        let most = same.iter().max_by(by_y);
        let mut kept: Vec<_> =
            [same.first(), least, most, same.last()].into_iter().flatten().copied().collect();
        if same.len() <= 4 {
            kept = same.to_vec();
        }
        kept.sort_by(|a, b| a.0.total_cmp(&b.0));
        out.extend(kept);
    }
    out
}

/// The corners of a line that holds each value until the next point.
fn steps(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let corners = points.windows(2).flat_map(|w| [w[0], (w[1].0, w[0].1)]);
    corners.chain(points.last().copied()).collect()
}

/// Vertical lines with their labels above the plot; where the labels would not
/// stand side by side, letters that the page explains.
fn draw_markers(
    chart: &Chart,
    size: &Size,
    area: &Area<'_>,
    plot: &Plot<'_, '_>,
) -> Result<(), Failure> {
    let (across, down) = plot.plotting_area().get_pixel_range();
    let at = |x: f64| plot.backend_coord(&(x, plot.y_range().start)).0;
    let all = chart.markers.iter().enumerate().filter(|(_, m)| drawable((m.x, 0.0)));
    let labels = fitting(all.clone().map(|(_, m)| m), size, &across, at);
    for (nth, (i, marker)) in all.enumerate() {
        let x = at(marker.x);
        let line = vec![(x, down.start - size.font * UNIT / 3), (x, down.end)];
        area.draw(&PathElement::new(line, MARKER.stroke_width(UNIT as u32)))?;
        let style = size.text(MARKER, HPos::Center, VPos::Bottom);
        let (label, x) = match &labels {
            Some(labels) => (marker.label.clone(), labels[nth]),
            None => (letter(i), x),
        };
        area.draw(&Text::new(label, (x, down.start - size.font * UNIT / 2), style))?;
    }
    Ok(())
}

/// The centres of the markers' labels, if all stand side by side.
fn fitting<'a>(
    markers: impl Iterator<Item = &'a Marker>,
    size: &Size,
    across: &Range<i32>,
    at: impl Fn(f64) -> i32,
) -> Option<Vec<i32>> {
    let mut taken: Vec<Range<i32>> = vec![];
    let gap = size.font * UNIT;
    for marker in markers {
        let half = size.measure(&marker.label) / 2;
        if 2 * half > across.end - across.start {
            return None;
        }
        let x = at(marker.x).clamp(across.start + half, across.end - half);
        let wanted = x - half..x + half;
        if taken.iter().any(|t| t.start < wanted.end + gap && wanted.start < t.end + gap) {
            return None;
        }
        taken.push(wanted);
    }
    Some(taken.iter().map(|t| i32::midpoint(t.start, t.end)).collect())
}

/// A, B … Z, then numbers.
pub(super) fn letter(index: usize) -> String {
    match u8::try_from(index) {
        Ok(i) if i < 26 => char::from(b'A' + i).to_string(),
        _ => (index + 1).to_string(),
    }
}

/// Columns that show the values of all series when pointed at.
fn hints(
    chart: &Chart,
    size: &Size,
    plot: &Plot<'_, '_>,
    across: &Range<i32>,
    down: &Range<i32>,
) -> String {
    let samples = samples(chart, size.places);
    let base = plot.y_range().start;
    let places: Vec<i32> = samples.xs.iter().map(|x| plot.backend_coord(&(*x, base)).0).collect();
    let mut out = String::new();
    for (i, (x, values)) in samples.xs.iter().zip(&samples.rows).enumerate() {
        let here = places[i];
        let from = i.checked_sub(1).map_or(across.start, |p| i32::midpoint(places[p], here));
        let to = places.get(i + 1).map_or(across.end, |next| i32::midpoint(here, *next));
        let (top, height) = (down.start, down.end - down.start);
        let mut marks = format!("<path class=\"stroke-axis\" d=\"M{here} {top}v{height}\"/>");
        let mut title = format!("{}: {}", chart.x.label, chart.x.value(*x));
        for (s, value) in values.iter().enumerate() {
            let Some(value) = value else { continue };
            let y = plot.backend_coord(&(*x, *value)).1;
            let colour = s % super::svg::COLOURS;
            let _ = write!(
                marks,
                "<circle class=\"fill-s{colour}\" cx=\"{here}\" cy=\"{y}\" r=\"{}\"/>",
                4 * UNIT
            );
            let _ = write!(title, "\n{}: {}", chart.series[s].name, chart.y.value(*value));
        }
        hint(&mut out, (from, top, (to - from).max(1), height), &marks, &title);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_round_and_hold_their_values() {
        assert_eq!(nice(&(1.2..9.7)), 0.0..10.0);
        assert_eq!(nice(&(4.76..13.46)), 0.0..15.0);
        assert_eq!(nice(&(90.0..98.0)), 90.0..98.0);
        assert_eq!(nice(&(5.0..5.0)), 2.0..8.0);
        assert_eq!(nice(&(0.0..0.0)), -0.5..0.5);
        assert_eq!(nice(&(-3.0..4.0)), -4.0..4.0);
    }

    #[test]
    fn thinning_keeps_peaks() {
        let mut points: Vec<_> = (0..1000).map(|i| (f64::from(i), 0.0)).collect();
        points[577].1 = 9.0;
        let thin = thin(&points, |p| p.0 as i32 / 100);
        assert!(thin.len() <= 40 && thin.contains(&(577.0, 9.0)), "{}", thin.len());
    }

    #[test]
    fn a_step_holds_until_the_next_point() {
        let corners = steps(&[(0.0, 1.0), (2.0, 5.0)]);
        assert_eq!(corners, [(0.0, 1.0), (2.0, 1.0), (2.0, 5.0)]);
    }
}
