//! A report as one page.

use super::svg::{COLOURS, SIZES};
use super::text::table;
use super::{Cell, Chart, Figures, Kind, Report, Section, Table, Text, bars, heading, lines};
use maud::{DOCTYPE, Markup, PreEscaped, html};

/// Rows of the table beside a chart.
const ROWS: usize = 100;

/// The page may load nothing and run nothing.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'";

pub(super) fn page(report: &Report) -> String {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="color-scheme" content="light dark";
                title { (report.title) }
                style { (PreEscaped(include_str!("style.css"))) }
            }
            body {
                main {
                    header {
                        h1 { (report.title) }
                        @if !report.command.is_empty() {
                            pre.command { code { (report.command) } }
                        }
                    }
                    @for (i, section) in report.sections.iter().enumerate() {
                        section id=(format!("section-{}", i + 1)) {
                            @match section {
                                Section::Text(text) => (paragraphs(text)),
                                Section::Figures(figures) => (tiles(figures)),
                                Section::Table(table) => (titled_table(table)),
                                Section::Chart(chart) => (figure_of(chart, i + 1)),
                            }
                        }
                    }
                }
            }
        }
    }
    .into_string()
}

fn title(text: &str) -> Markup {
    html! { @if !text.is_empty() { h2 { (text) } } }
}

fn paragraphs(text: &Text) -> Markup {
    html! {
        (title(&text.title))
        @for paragraph in text.paragraphs() { p { (paragraph) } }
    }
}

fn tiles(figures: &Figures) -> Markup {
    html! {
        (title(&figures.title))
        dl.tiles {
            @for figure in &figures.figures {
                div {
                    dt { (figure.label) }
                    dd {
                        span.value { (figure.value.show()) }
                        @if !figure.unit.is_empty() { span.unit { (figure.unit) } }
                    }
                    @if !figure.note.is_empty() { dd.note { (figure.note) } }
                }
            }
        }
    }
}

fn titled_table(table: &Table) -> Markup {
    html! {
        (title(&table.title))
        (grid(table, &table.title))
        @if !table.note.is_empty() { p.note { (table.note) } }
    }
}

/// The table itself, which scrolls sideways where the page is too narrow.
fn grid(table: &Table, label: &str) -> Markup {
    let right: Vec<bool> = (0..table.columns.len()).map(|i| table.numeric(i)).collect();
    let class = |i: usize| right[i].then_some("figure");
    let cell = |row: &[Cell], i: usize| row.get(i).map(Cell::show).unwrap_or_default();
    html! {
        div.scroll role="region" aria-label=(label) tabindex="0" {
            table {
                thead {
                    tr {
                        @for (i, column) in table.columns.iter().enumerate() {
                            th scope="col" class=[class(i)] { (heading(&column.name, &column.unit)) }
                        }
                    }
                }
                tbody {
                    @for row in &table.rows {
                        tr {
                            @for i in 0..right.len() {
                                @if i == 0 {
                                    th scope="row" class=[class(0)] { (cell(row, 0)) }
                                } @else {
                                    td class=[class(i)] { (cell(row, i)) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn figure_of(chart: &Chart, number: usize) -> Markup {
    let drawn: Vec<String> = SIZES
        .iter()
        .filter_map(|size| match chart.kind {
            Kind::Bar => bars::svg(chart, size, number),
            _ => lines::svg(chart, size, number),
        })
        // What cannot be drawn is still in the table.
        .filter_map(Result::ok)
        .collect();
    html! {
        (title(&chart.title))
        @if !chart.summary.is_empty() { p { (chart.summary) } }
        figure {
            @if chart.series.len() > 1 { (legend(chart)) }
            @for svg in &drawn { (PreEscaped(svg)) }
            @if drawn.is_empty() { p.note { "Nothing to draw." } }
            @if !chart.markers.is_empty() && chart.kind != Kind::Bar { (markers(chart)) }
        }
        details {
            summary { "Data as a table" }
            @let table = table(chart, ROWS);
            (grid(&table, &chart.title))
            @if !table.note.is_empty() { p.note { (table.note) } }
        }
    }
}

fn legend(chart: &Chart) -> Markup {
    html! {
        ul.legend {
            @for (i, series) in chart.series.iter().enumerate() {
                li {
                    svg viewBox="0 0 96 48" aria-hidden="true" {
                        @if chart.kind == Kind::Bar {
                            rect class=(format!("fill-s{}", i % COLOURS)) x="24" width="48" height="48" {}
                        } @else {
                            path class=(format!("stroke-s{}", i % COLOURS)) d="M0 24h96" stroke-width="10" {}
                        }
                    }
                    (series.name)
                }
            }
        }
    }
}

fn markers(chart: &Chart) -> Markup {
    html! {
        ul.markers {
            @for (i, marker) in chart.markers.iter().enumerate() {
                li { b { (lines::letter(i)) } " " (chart.x.value(marker.x)) ": " (marker.label) }
            }
        }
    }
}
