//! A report in the terminal.

use super::figure::places;
use super::samples::samples;
use super::{Chart, Figures, Kind, Report, Section, Table, Text, figure, heading};
use comfy_table::{
    Cell, CellAlignment, ColumnConstraint, ContentArrangement, LineStyle, TableStyle, Width,
};

const CHART_ROWS: usize = 12;

/// A line below the header and no other.
const STYLE: TableStyle =
    TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));

pub(super) fn report(report: &Report, width: u16) -> String {
    let mut parts = vec![report.title.clone()];
    if !report.command.is_empty() {
        parts.push(format!("$ {}", report.command));
    }
    parts.extend(report.sections.iter().map(|section| match section {
        Section::Text(text) => paragraphs(text),
        Section::Figures(figures) => few(figures, width),
        Section::Table(table) => full(table, width),
        Section::Chart(chart) => points(chart, width),
    }));
    parts.retain(|p| !p.is_empty());
    parts.join("\n\n") + "\n"
}

fn titled(title: &str, body: String) -> String {
    if title.is_empty() { body } else { format!("{title}\n{body}") }
}

fn paragraphs(text: &Text) -> String {
    titled(&text.title, text.paragraphs().collect::<Vec<_>>().join("\n\n"))
}

fn grid(width: u16) -> comfy_table::Table {
    let mut grid = comfy_table::Table::new();
    grid.load_style(STYLE).set_width(width).set_content_arrangement(ContentArrangement::Dynamic);
    grid
}

/// Lines without the spaces that only pad them.
fn lines(grid: &comfy_table::Table) -> String {
    grid.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>().join("\n")
}

fn aligned(text: String, right: bool) -> Cell {
    let side = if right { CellAlignment::Right } else { CellAlignment::Left };
    Cell::new(text).set_alignment(side)
}

fn few(figures: &Figures, width: u16) -> String {
    let mut grid = grid(width);
    for f in &figures.figures {
        grid.add_row([
            aligned(f.label.clone(), false),
            aligned(f.value.show(), true),
            aligned(f.unit.clone(), false),
            aligned(f.note.clone(), false),
        ]);
    }
    titled(&figures.title, lines(&grid))
}

fn full(table: &Table, width: u16) -> String {
    let mut grid = grid(width);
    let right: Vec<bool> = (0..table.columns.len()).map(|i| table.numeric(i)).collect();
    let header = table.columns.iter().zip(&right);
    grid.set_header(header.map(|(c, right)| aligned(heading(&c.name, &c.unit), *right)));
    // Words may break to fit the width, figures may not.
    for (i, column) in grid.column_iter_mut().enumerate().filter(|(i, _)| right[*i]) {
        let cells = table.rows.iter().filter_map(|row| row.get(i));
        let widest = cells.map(|c| c.show().chars().count()).max().unwrap_or(0) as u16;
        column.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(widest + 2)));
    }
    for row in &table.rows {
        let cell = |i: usize| row.get(i).map(super::Cell::show).unwrap_or_default();
        grid.add_row(right.iter().enumerate().map(|(i, right)| aligned(cell(i), *right)));
    }
    let body = titled(&table.title, lines(&grid));
    if table.note.is_empty() { body } else { format!("{body}\n{}", table.note) }
}

fn points(chart: &Chart, width: u16) -> String {
    let table = table(chart, CHART_ROWS);
    let marks = chart.markers.iter().filter(|_| chart.kind != Kind::Bar);
    let marks = marks.map(|m| format!("  at {}: {}", chart.x.value(m.x), m.label));
    std::iter::once(full(&table, width)).chain(marks).collect::<Vec<_>>().join("\n")
}

/// A chart's data as a table of at most `most` rows.
pub(super) fn table(chart: &Chart, most: usize) -> Table {
    let samples = samples(chart, most);
    let first = if chart.kind == Kind::Bar { chart.x.label.clone() } else { chart.x.heading() };
    let mut columns = vec![super::Column { name: first, unit: String::new() }];
    columns.extend(
        chart
            .series
            .iter()
            .map(|series| super::Column { name: series.name.clone(), unit: chart.y.unit.clone() }),
    );
    let x_places = places(samples.xs.iter());
    let y_places = places(samples.rows.iter().flatten().flatten());
    let place = |i: usize| match chart.kind {
        Kind::Bar => super::Cell::Text(chart.categories[i].clone()),
        _ => super::Cell::number(samples.xs[i], x_places),
    };
    let rows: Vec<Vec<_>> = samples
        .rows
        .iter()
        .enumerate()
        .map(|(i, values)| {
            let cell = |v: &Option<f64>| v.map(|v| super::Cell::number(v, y_places));
            let cells = values.iter().map(|v| cell(v).unwrap_or_default());
            std::iter::once(place(i)).chain(cells).collect()
        })
        .collect();
    let note = if samples.all > rows.len() {
        format!("{} of {} points; the JSON has all.", rows.len(), figure(samples.all as f64))
    } else {
        String::new()
    };
    Table { title: chart.title.clone(), columns, rows, note }
}
