//! Reports: what was measured, as a table in the terminal, as JSON for
//! machines, or as one HTML page that needs nothing beside it.
//!
//! A report is plain data. It is filled by whoever measured and says the same
//! in all three forms; nothing in it comes from a clock or from chance, so that
//! equal measurements give equal files.

mod bars;
mod figure;
mod html;
mod lines;
mod samples;
mod svg;
mod text;

pub use figure::figure;

use serde::{Serialize, Serializer};

/// What was measured, and by which command.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Report {
    /// Title of the whole.
    pub title: String,
    /// The command that gives the same report again; empty for none.
    pub command: String,
    /// The parts, in the order in which they are read.
    pub sections: Vec<Section>,
}

/// One part of a report.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "section", rename_all = "kebab-case")]
pub enum Section {
    /// Paragraphs.
    Text(Text),
    /// A few figures that say the most.
    Figures(Figures),
    /// A table.
    Table(Table),
    /// A chart, with its data as a table beside it.
    Chart(Chart),
}

/// Paragraphs, separated by blank lines.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Text {
    /// Title; empty for none.
    pub title: String,
    /// The paragraphs.
    pub body: String,
}

/// Figures that say the most, shown large.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Figures {
    /// Title; empty for none.
    pub title: String,
    /// The figures.
    pub figures: Vec<Figure>,
}

/// One figure.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// What it is.
    pub label: String,
    /// Its value.
    pub value: Cell,
    /// Its unit; empty for none.
    pub unit: String,
    /// What it stands beside, such as a published value; empty for none.
    pub note: String,
}

/// A table.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Table {
    /// Title; empty for none.
    pub title: String,
    /// The columns.
    pub columns: Vec<Column>,
    /// The rows. One that is too short ends in empty cells, and what is beyond
    /// the columns is not shown.
    pub rows: Vec<Vec<Cell>>,
    /// A sentence below it; empty for none.
    pub note: String,
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Column {
    /// Name.
    pub name: String,
    /// Unit of its figures; empty for none.
    pub unit: String,
}

/// A cell of a table. In JSON it is a string, a number or null.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Cell {
    /// Nothing, as where nothing was measured.
    #[default]
    Empty,
    /// Words.
    Text(String),
    /// A whole number.
    Integer(i64),
    /// A number shown with so many decimals.
    Decimal {
        /// The number; one that is not finite is shown as nothing.
        value: f64,
        /// Decimals, at most 9.
        places: u8,
    },
}

/// How a chart is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Values between points are on a straight line.
    #[default]
    Line,
    /// A value holds until the next point.
    Step,
    /// One bar for each category and series; x is the category's index.
    Bar,
}

/// An axis of a chart.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Axis {
    /// What is on it.
    pub label: String,
    /// Its unit; empty for none.
    pub unit: String,
}

/// One series of a chart.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Series {
    /// Name in the legend.
    pub name: String,
    /// Points (x, y) in ascending order of x. What is not finite is a gap.
    pub points: Vec<(f64, f64)>,
}

/// A moment worth a vertical line, such as the swap of a policy.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Marker {
    /// Where.
    pub x: f64,
    /// What happened.
    pub label: String,
}

/// A chart.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Chart {
    /// Title.
    pub title: String,
    /// One sentence on what it shows, also for those who cannot see it.
    pub summary: String,
    /// How it is drawn.
    pub kind: Kind,
    /// Horizontal axis; of bars the axis of categories.
    pub x: Axis,
    /// Vertical axis; of bars the axis of values.
    pub y: Axis,
    /// Names of the categories of bars.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub categories: Vec<String>,
    /// The series. More than eight repeat their colours.
    pub series: Vec<Series>,
    /// Vertical lines; bars have none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub markers: Vec<Marker>,
}

impl Report {
    /// An empty report.
    pub fn new(title: &str, command: &str) -> Self {
        Self { title: title.to_owned(), command: command.to_owned(), sections: vec![] }
    }

    /// The report with one more section at its end.
    #[must_use]
    pub fn with(mut self, section: impl Into<Section>) -> Self {
        self.sections.push(section.into());
        self
    }

    /// As tables of at most `width` columns of a terminal, without colours. A
    /// chart is shown as a table of at most twelve of its points.
    pub fn text(&self, width: u16) -> String {
        text::report(self, width)
    }

    /// As JSON, indented. Numbers that are not finite become null. Errors: none
    /// that a report can cause.
    pub fn json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(self)
    }

    /// As one HTML page that loads nothing: styles and charts are inside, and
    /// it follows the reader's choice of light or dark.
    pub fn html(&self) -> String {
        html::page(self)
    }
}

impl Text {
    /// Paragraphs under a title.
    pub fn new(title: &str, body: &str) -> Self {
        Self { title: title.to_owned(), body: body.to_owned() }
    }

    fn paragraphs(&self) -> impl Iterator<Item = &str> {
        self.body.split("\n\n").map(str::trim).filter(|p| !p.is_empty())
    }
}

impl Figures {
    /// No figures yet, under a title.
    pub fn new(title: &str) -> Self {
        Self { title: title.to_owned(), figures: vec![] }
    }

    /// With one more figure.
    #[must_use]
    pub fn with(mut self, label: &str, value: impl Into<Cell>, unit: &str, note: &str) -> Self {
        let (label, unit, note) = (label.to_owned(), unit.to_owned(), note.to_owned());
        self.figures.push(Figure { label, value: value.into(), unit, note });
        self
    }
}

impl Table {
    /// An empty table whose columns are given as `name` or `name (unit)`.
    pub fn new(title: &str, columns: &[&str]) -> Self {
        let columns = columns.iter().map(|c| Column::parse(c)).collect();
        Self { title: title.to_owned(), columns, ..Self::default() }
    }

    /// Adds a row.
    pub fn push(&mut self, row: Vec<Cell>) {
        self.rows.push(row);
    }

    /// Whether a column holds no words, so that its figures stand in line.
    fn numeric(&self, column: usize) -> bool {
        let mut cells = self.rows.iter().filter_map(|row| row.get(column));
        let words = cells.clone().any(|c| matches!(c, Cell::Text(_)));
        !words && cells.any(|c| *c != Cell::Empty)
    }
}

impl Column {
    fn parse(text: &str) -> Self {
        let split = text.strip_suffix(')').and_then(|t| t.rsplit_once(" ("));
        let (name, unit) = split.unwrap_or((text, ""));
        Self { name: name.to_owned(), unit: unit.to_owned() }
    }
}

impl Axis {
    /// An axis with a label and a unit, which may be empty.
    pub fn new(label: &str, unit: &str) -> Self {
        Self { label: label.to_owned(), unit: unit.to_owned() }
    }

    /// `label (unit)`.
    fn heading(&self) -> String {
        heading(&self.label, &self.unit)
    }

    /// A value with its unit, `12.5 %`.
    fn value(&self, value: f64) -> String {
        let figure = figure(value);
        if self.unit.is_empty() { figure } else { format!("{figure} {}", self.unit) }
    }
}

fn heading(name: &str, unit: &str) -> String {
    if unit.is_empty() { name.to_owned() } else { format!("{name} ({unit})") }
}

impl Series {
    /// A series.
    pub fn new(name: &str, points: Vec<(f64, f64)>) -> Self {
        Self { name: name.to_owned(), points }
    }
}

impl Cell {
    /// A number shown with so many decimals.
    pub fn number(value: f64, places: u8) -> Self {
        Self::Decimal { value, places: places.min(9) }
    }

    /// As people read it.
    pub fn show(&self) -> String {
        match self {
            Self::Empty => String::new(),
            Self::Text(text) => text.clone(),
            Self::Integer(n) => figure::grouped(&n.to_string()),
            Self::Decimal { value, places } => figure::fixed(*value, (*places).min(9)),
        }
    }
}

impl Serialize for Cell {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Empty => s.serialize_none(),
            Self::Text(text) => s.serialize_str(text),
            Self::Integer(n) => s.serialize_i64(*n),
            Self::Decimal { value, .. } => s.serialize_f64(*value),
        }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<u64> for Cell {
    fn from(n: u64) -> Self {
        Self::Integer(i64::try_from(n).unwrap_or(i64::MAX))
    }
}

impl From<usize> for Cell {
    fn from(n: usize) -> Self {
        Self::from(n as u64)
    }
}

macro_rules! section {
    ($($name:ident)*) => {$(
        impl From<$name> for Section {
            fn from(part: $name) -> Self {
                Self::$name(part)
            }
        }
    )*};
}

section!(Text Figures Table Chart);
