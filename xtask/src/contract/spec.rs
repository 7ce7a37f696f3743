//! wit/columns.toml: reading and checking it.

use anyhow::{Context as _, Result, bail, ensure};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Ids from here on are node labels of the manifest, not columns of the file.
pub const FIRST_LABEL: u32 = 10_000;

/// The whole file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    #[serde(rename = "table")]
    pub tables: Vec<Table>,
    #[serde(rename = "option")]
    pub options: Vec<OptionSpec>,
}

/// A table of the contract: `node`, `job` and so on.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    pub name: String,
    pub about: String,
    pub columns: Vec<Column>,
}

/// One id.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Column {
    pub id: u32,
    pub name: String,
    pub unit: String,
    pub shape: Shape,
    #[serde(default)]
    pub depends: Option<Depends>,
    /// `admit` may fill it in.
    #[serde(default)]
    pub set: bool,
    pub about: String,
}

/// How values belong to rows.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Shape {
    Value,
    List,
    Offsets,
    Ragged,
    Pair,
}

impl Shape {
    /// The variant of the generated enum.
    pub fn variant(self) -> &'static str {
        match self {
            Self::Value => "Value",
            Self::List => "List",
            Self::Offsets => "Offsets",
            Self::Ragged => "Ragged",
            Self::Pair => "Pair",
        }
    }

    /// The word of the file.
    pub fn word(self) -> &'static str {
        match self {
            Self::Value => "value",
            Self::List => "list",
            Self::Offsets => "offsets",
            Self::Ragged => "ragged",
            Self::Pair => "pair",
        }
    }

    /// What the shape means, for the doc comment of a constant.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Value => "one a row",
            Self::List => "a list",
            Self::Offsets => "rows + 1 values",
            Self::Ragged => "several a row",
            Self::Pair => "n × n a row",
        }
    }
}

/// What a value depends on.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Depends {
    Call,
    Job,
    Node,
    Both,
}

impl Depends {
    /// The variant of the generated enum.
    pub fn variant(self) -> &'static str {
        match self {
            Self::Call => "Call",
            Self::Job => "Job",
            Self::Node => "Node",
            Self::Both => "Both",
        }
    }

    /// The word of the page.
    pub fn word(self) -> &'static str {
        match self {
            Self::Call => "call",
            Self::Job => "job",
            Self::Node => "node",
            Self::Both => "both",
        }
    }
}

/// An option of the manifest.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OptionSpec {
    pub id: u32,
    pub name: String,
    pub about: String,
}

impl Table {
    /// The variant of the generated enum.
    pub fn variant(&self) -> String {
        let mut letters = self.name.chars();
        letters.next().map_or_else(String::new, |first| {
            first.to_uppercase().collect::<String>() + letters.as_str()
        })
    }

    /// What a column depends on: as written, else as its table implies.
    pub fn depends(&self, column: &Column) -> Depends {
        column.depends.unwrap_or(match self.name.as_str() {
            "job" => Depends::Job,
            _ => Depends::Call,
        })
    }

    /// The offsets column that a ragged column or a column of pairs lies over:
    /// the one whose name without `-offsets` begins the column's name.
    pub fn offsets(&self, column: &Column) -> Option<&Column> {
        if !matches!(column.shape, Shape::Ragged | Shape::Pair) {
            return None;
        }
        self.columns
            .iter()
            .filter(|c| c.shape == Shape::Offsets)
            .filter(|c| c.name.strip_suffix("-offsets").is_some_and(|f| column.name.starts_with(f)))
            .max_by_key(|c| c.name.len())
    }
}

/// The constant of a kebab-case name.
pub fn constant(name: &str) -> String {
    name.to_uppercase().replace('-', "_")
}

impl Spec {
    /// Reads the file and checks it.
    pub fn read(path: &Path) -> Result<Self> {
        let text =
            std::fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
        let spec: Self = toml::from_str(&text).with_context(|| format!("in {}", path.display()))?;
        spec.check().with_context(|| format!("in {}", path.display()))?;
        Ok(spec)
    }

    /// All columns with their tables, by id.
    pub fn columns(&self) -> Vec<(&Table, &Column)> {
        let mut all: Vec<_> =
            self.tables.iter().flat_map(|t| t.columns.iter().map(move |c| (t, c))).collect();
        all.sort_by_key(|(_, c)| c.id);
        all
    }

    fn check(&self) -> Result<()> {
        let mut ids = BTreeMap::new();
        let mut names = BTreeSet::new();
        let mut tables = BTreeSet::new();
        for table in &self.tables {
            name_is_plain(&table.name)?;
            ensure!(tables.insert(&table.name), "table {} is there twice", table.name);
            for column in &table.columns {
                name_is_plain(&column.name)?;
                if let Some(other) = ids.insert(column.id, &column.name) {
                    bail!("id {} is given to {other} and to {}", column.id, column.name);
                }
                ensure!(names.insert(&column.name), "the name {} is given twice", column.name);
                ensure!(
                    (1..FIRST_LABEL).contains(&column.id),
                    "id {} of {} is outside 1–{}",
                    column.id,
                    column.name,
                    FIRST_LABEL - 1
                );
                let lies_over = matches!(column.shape, Shape::Ragged | Shape::Pair);
                ensure!(
                    !lies_over || table.offsets(column).is_some(),
                    "{} has no offsets column in its table",
                    column.name
                );
                ensure!(
                    !column.set || table.name == "job",
                    "{} is settable, which only job columns can be",
                    column.name
                );
                ensure!(
                    column.depends.is_some()
                        == matches!(table.name.as_str(), "node" | "card" | "link"),
                    "{}: `depends` is for columns of nodes, and needed there",
                    column.name
                );
                ensure!(
                    !column.about.is_empty() && !column.unit.is_empty(),
                    "{} lacks words",
                    column.name
                );
            }
        }
        let mut options = BTreeMap::new();
        for option in &self.options {
            name_is_plain(&option.name)?;
            if let Some(other) = options.insert(option.id, &option.name) {
                bail!("option {} is given to {other} and to {}", option.id, option.name);
            }
            ensure!(names.insert(&option.name), "the name {} is given twice", option.name);
        }
        Ok(())
    }
}

fn name_is_plain(name: &str) -> Result<()> {
    let plain = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_lowercase())
            && part.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
    };
    ensure!(name.split('-').all(plain), "{name:?} is not kebab-case");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str) -> String {
        let spec: Spec = toml::from_str(text).unwrap();
        spec.check().err().map_or_else(String::new, |e| e.to_string())
    }

    #[test]
    fn ids_and_names_are_given_once() {
        let table = |columns: &str| {
            format!("option = []\n[[table]]\nname = \"job\"\nabout = \"A.\"\ncolumns = [{columns}]")
        };
        let a = r#"{ id = 1, name = "a", unit = "u", shape = "value", about = "A." }"#;
        let b = r#"{ id = 1, name = "b", unit = "u", shape = "value", about = "B." }"#;
        let c = r#"{ id = 2, name = "a", unit = "u", shape = "value", about = "C." }"#;
        let d = r#"{ id = 3, name = "a-d", unit = "u", shape = "ragged", about = "D." }"#;
        assert_eq!(check(&table(a)), "");
        assert_eq!(check(&table(&format!("{a},{b}"))), "id 1 is given to a and to b");
        assert_eq!(check(&table(&format!("{a},{c}"))), "the name a is given twice");
        assert_eq!(check(&table(d)), "a-d has no offsets column in its table");
    }
}
