//! Constants in each language.

use super::spec::{Column, FIRST_LABEL, Spec, Table, constant};
use std::fmt::Write as _;

const NOTE: &str = "Written by `cargo xtask contract` from wit/columns.toml; change that file.";
const LABEL_ABOUT: &str =
    "The first label column of the node table: label i of the manifest is this plus i.";

/// The first sentence of what a constant is, and its unit and shape.
fn about(column: &Column) -> (&str, String) {
    (&column.about, format!("Unit: {}; {}.", column.unit, column.shape.meaning()))
}

/// Words as they may stand in a Rust doc comment.
fn rust_doc(words: &str) -> String {
    words.replace('[', "\\[").replace(']', "\\]").replace('<', "\\<").replace('>', "\\>")
}

fn rust_constants(spec: &Spec) -> String {
    let mut out = String::new();
    for (table, column) in spec.columns() {
        let (about, unit) = about(column);
        let _ = write!(
            out,
            "\n/// {}\n///\n/// {} Table `{}`.\npub const {}: u32 = {};\n",
            rust_doc(about),
            rust_doc(&unit),
            table.name,
            constant(&column.name),
            column.id
        );
    }
    let _ = write!(out, "\n/// {LABEL_ABOUT}\npub const FIRST_LABEL: u32 = {FIRST_LABEL};\n");
    for option in &spec.options {
        let _ = write!(
            out,
            "\n/// Option of the manifest. {}\npub const OPTION_{}: u32 = {};\n",
            rust_doc(&option.about),
            constant(&option.name),
            option.id
        );
    }
    out
}

/// What guests need: the constants.
pub fn rust_guest(spec: &Spec) -> String {
    format!(
        "//! Every id of the contract.\n//!\n//! {NOTE}\n\n#![allow(clippy::doc_markdown)]\n{}",
        rust_constants(spec)
    )
}

/// What the host needs: the constants and a table of what is known of each.
pub fn rust_host(spec: &Spec) -> String {
    let mut out = format!(
        "//! Every id of the policy contract, and what is known of it.\n//!\n//! {NOTE}\n\n\
         #![allow(clippy::doc_markdown)]\n"
    );
    out.push_str(
        "
/// How values belong to rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Shape {
    /// One a row.
    Value,
    /// Many, of the one thing that the call is about.
    List,
    /// Rows + 1 positions: where the values of each row begin.
    Offsets,
    /// Many a row, end to end, over the offsets column of the family.
    Ragged,
    /// n × n a row, row by row, over the offsets column of the family.
    Pair,
}

/// What a value depends on, and so which answers may be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Depends {
    /// On what the call is about: time, chance, groups, units, facts.
    Call,
    /// On the job alone.
    Job,
    /// On the node alone.
    Node,
    /// On the job and the node: a relation.
    Both,
}

/// The table that a column belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TableKind {
",
    );
    for table in &spec.tables {
        let _ = write!(out, "    /// {}\n    {},\n", rust_doc(&table.about), table.variant());
    }
    out.push_str(
        "}

/// What is known of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnInfo {
    /// Its id.
    pub id: u32,
    /// Its name, kebab-case.
    pub name: &'static str,
    /// Its table.
    pub table: TableKind,
    /// How its values belong to rows.
    pub shape: Shape,
    /// What its values depend on.
    pub depends: Depends,
    /// `admit` may fill it in.
    pub settable: bool,
    /// The offsets column that it lies over, for `Ragged` and `Pair`.
    pub offsets: Option<u32>,
    /// What its integers count.
    pub unit: &'static str,
}

/// An option of the manifest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptionInfo {
    /// Its id.
    pub id: u32,
    /// Its name, kebab-case.
    pub name: &'static str,
}

/// What is known of a column; nothing of an id that this version lacks.
pub fn info(id: u32) -> Option<&'static ColumnInfo> {
    let at = COLUMNS.binary_search_by_key(&id, |c| c.id).ok()?;
    COLUMNS.get(at)
}

/// What is known of an option.
pub fn option(id: u32) -> Option<&'static OptionInfo> {
    OPTIONS.iter().find(|o| o.id == id)
}
",
    );
    out.push_str(&rust_constants(spec));
    out.push_str("\n/// Every column and fact, ascending by id.\n#[rustfmt::skip]\npub static COLUMNS: &[ColumnInfo] = &[\n");
    for (table, column) in spec.columns() {
        out.push_str(&row(table, column));
    }
    out.push_str("];\n\n/// Every option, ascending by id.\n#[rustfmt::skip]\npub static OPTIONS: &[OptionInfo] = &[\n");
    for option in &spec.options {
        let _ = writeln!(out, "    OptionInfo {{ id: {}, name: {:?} }},", option.id, option.name);
    }
    out.push_str("];\n");
    out
}

fn row(table: &Table, column: &Column) -> String {
    let offsets = table.offsets(column).map_or("None".into(), |o| format!("Some({})", o.id));
    format!(
        "    ColumnInfo {{ id: {}, name: {:?}, table: TableKind::{}, shape: Shape::{}, \
         depends: Depends::{}, settable: {}, offsets: {offsets}, unit: {:?} }},\n",
        column.id,
        column.name,
        table.variant(),
        column.shape.variant(),
        table.depends(column).variant(),
        column.set,
        column.unit
    )
}

/// Constants for Python guests.
pub fn python(spec: &Spec) -> String {
    let mut out = format!("\"\"\"Every id of the contract.\n\n{NOTE}\n\"\"\"\n");
    for table in &spec.tables {
        let _ = write!(out, "\n# {}: {}\n", table.name, table.about);
        for column in &table.columns {
            let (about, unit) = about(column);
            let _ =
                write!(out, "\n#: {about} {unit}\n{} = {}\n", constant(&column.name), column.id);
        }
    }
    let _ = write!(
        out,
        "\n#: {LABEL_ABOUT}\nFIRST_LABEL = {FIRST_LABEL}\n\n# Options of the manifest.\n"
    );
    for option in &spec.options {
        let _ = write!(
            out,
            "\n#: {}\nOPTION_{} = {}\n",
            option.about,
            constant(&option.name),
            option.id
        );
    }
    out
}

/// Constants for JavaScript guests.
pub fn javascript(spec: &Spec) -> String {
    let mut out = format!("// Every id of the contract.\n//\n// {NOTE}\n");
    for table in &spec.tables {
        let _ = write!(out, "\n// {}: {}\n", table.name, table.about);
        for column in &table.columns {
            let (about, unit) = about(column);
            let _ = write!(
                out,
                "\n/** {about} {unit} */\nexport const {} = {};\n",
                constant(&column.name),
                column.id
            );
        }
    }
    let _ = write!(
        out,
        "\n/** {LABEL_ABOUT} */\nexport const FIRST_LABEL = {FIRST_LABEL};\n\n// Options of the manifest.\n"
    );
    for option in &spec.options {
        let _ = write!(
            out,
            "\n/** {} */\nexport const OPTION_{} = {};\n",
            option.about,
            constant(&option.name),
            option.id
        );
    }
    out
}
