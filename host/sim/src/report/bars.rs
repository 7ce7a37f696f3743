//! Bar charts: bars lie, so that the names of categories can be read.

use super::Chart;
use super::figure::{fixed, places, tick};
use super::samples::samples;
use super::svg::{AXIS, Area, Failure, GRID, STRONG, Size, TEXT, UNIT, hint, series_colour};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};
use std::ops::Range;

/// Height of one bar in letters.
const BAR: f64 = 1.6;
/// Room between categories in letters.
const GAP: f64 = 0.8;

/// Draws a chart; `None` if it has no bar.
pub(super) fn svg(chart: &Chart, size: &Size, number: usize) -> Option<Result<String, Failure>> {
    let rows = samples(chart, usize::MAX).rows;
    let values = || rows.iter().flatten().flatten().copied();
    values().next()?;
    let (least, most) = (values().fold(0.0, f64::min), values().fold(0.0, f64::max));
    let most = if least < most { most } else { least + 1.0 };
    let group = chart.series.len() as f64 * BAR + GAP;
    let letters = rows.len() as f64 * group + 4.5;
    let height = (letters * f64::from(size.font)) as i32;
    let draw = |area: &Area<'_>| draw(chart, size, area, &rows, least..most);
    Some(super::svg::svg(chart, size, height, number, draw))
}

fn draw(
    chart: &Chart,
    size: &Size,
    area: &Area<'_>,
    rows: &[Vec<Option<f64>>],
    range: Range<f64>,
) -> Result<String, Failure> {
    let font = size.font * UNIT;
    let width = size.width * UNIT;
    let names = chart.categories.iter().map(|c| size.measure(c)).max().unwrap_or(0);
    let names = names.min(width * 2 / 5) + font;
    let places = places(rows.iter().flatten().flatten());
    let values = rows.iter().flatten().flatten().map(|v| size.measure(&fixed(*v, places))).max();
    let group = chart.series.len() as f64 * BAR + GAP;
    let (least, span) = (range.start, range.end - range.start);
    let label = |v: &f64| tick(*v, span);
    let mut plot = ChartBuilder::on(area)
        .margin_left(names)
        .margin_right(values.unwrap_or(0) + font)
        .margin_top(font / 2)
        .x_label_area_size(font * 4)
        .build_cartesian_2d(range, rows.len() as f64 * group..0.0)?;
    plot.configure_mesh()
        .disable_y_mesh()
        .disable_y_axis()
        .x_max_light_lines(0)
        .bold_line_style(GRID.stroke_width(UNIT as u32))
        .axis_style(AXIS.stroke_width(UNIT as u32))
        .label_style(size.text(TEXT, HPos::Center, VPos::Center))
        .set_all_tick_mark_size(6 * UNIT)
        .x_labels((size.width / 75) as usize)
        .x_label_formatter(&label)
        .draw()?;
    let (across, _) = plot.plotting_area().get_pixel_range();
    let (_, total) = area.dim_in_pixel();
    let below = size.text(STRONG, HPos::Right, VPos::Bottom);
    let heading = size.cut(&chart.y.heading(), width - font);
    area.draw(&Text::new(heading, (across.end, total as i32 - font / 4), below))?;

    if least < 0.0 {
        let zero = vec![(0.0, 0.0), (0.0, rows.len() as f64 * group)];
        plot.draw_series([PathElement::new(zero, AXIS.stroke_width(UNIT as u32))])?;
    }
    let mut over = String::new();
    for (i, values) in rows.iter().enumerate() {
        let top = i as f64 * group + GAP / 2.0;
        let middle = plot.backend_coord(&(0.0, top + (group - GAP) / 2.0)).1;
        let style = size.text(TEXT, HPos::Right, VPos::Center);
        let name = size.cut(&chart.categories[i], names - font);
        area.draw(&Text::new(name, (across.start - font / 2, middle), style))?;
        for (s, value) in values.iter().enumerate() {
            let Some(value) = value else { continue };
            let top = top + s as f64 * BAR;
            let corners = [(value.min(0.0), top + 0.1), (value.max(0.0), top + BAR - 0.1)];
            plot.draw_series([Rectangle::new(corners, series_colour(s).filled())])?;
            let (x, y) = plot.backend_coord(&(value.max(0.0), top + BAR / 2.0));
            let style = size.text(STRONG, HPos::Left, VPos::Center);
            area.draw(&Text::new(fixed(*value, places), (x + font / 3, y), style))?;
            let half = (BAR / 2.0 * f64::from(font)) as i32;
            let place = (across.start - names, y - half, width - across.start + names, 2 * half);
            let mut title = chart.categories[i].clone();
            if chart.series.len() > 1 {
                title = format!("{title}, {}", chart.series[s].name);
            }
            let title = format!("{title}: {}", chart.y.value(*value));
            hint(&mut over, place, "", &title);
        }
    }
    Ok(over)
}
