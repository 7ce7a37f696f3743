//! A report as a page in Markdown: its texts and tables.

use crater_sim::report::{Cell, Report, Section, Table};
use std::fmt::Write as _;

/// The page.
pub fn page(report: &Report) -> String {
    let mut out = format!("# {}\n\n    {}\n", report.title, report.command);
    for section in &report.sections {
        match section {
            Section::Text(text) => {
                heading(&mut out, &text.title);
                let _ = writeln!(out, "\n{}", text.body);
            }
            Section::Table(table) => {
                heading(&mut out, &table.title);
                rows(&mut out, table);
            }
            Section::Figures(_) | Section::Chart(_) => {}
        }
    }
    out
}

fn heading(out: &mut String, title: &str) {
    if !title.is_empty() {
        let _ = writeln!(out, "\n## {title}");
    }
}

fn rows(out: &mut String, table: &Table) {
    let line = |cells: Vec<String>| format!("| {} |", cells.join(" | "));
    let names = table.columns.iter().map(|c| match c.unit.as_str() {
        "" => c.name.clone(),
        unit => format!("{} ({unit})", c.name),
    });
    let _ = writeln!(out, "\n{}", line(names.collect()));
    let _ = writeln!(out, "|{}", "---|".repeat(table.columns.len()));
    for row in &table.rows {
        let cells = row.iter().map(|c| Cell::show(c).replace('|', "\\|"));
        let _ = writeln!(out, "{}", line(cells.collect()));
    }
    if !table.note.is_empty() {
        let _ = writeln!(out, "\n{}", table.note);
    }
}
