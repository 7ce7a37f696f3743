//! Tables of words that other programs can take apart: columns by spaces, a
//! dash where there is nothing, free text last.

use super::print::clean;
use std::fmt::Write as _;

/// A table.
pub struct Table {
    head: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// With these columns.
    pub fn new(head: &[&str]) -> Self {
        Self { head: head.iter().map(|&name| name.to_owned()).collect(), rows: vec![] }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        let dash = |cell: String| if cell.is_empty() { "-".to_owned() } else { clean(&cell) };
        self.rows.push(cells.into_iter().map(dash).collect());
    }

    /// Keeps so many rows.
    pub fn truncate(&mut self, rows: usize) {
        self.rows.truncate(rows);
    }

    /// As text. With colours those words are painted that say how something
    /// stands.
    pub fn text(&self, colours: bool) -> String {
        let lines = || std::iter::once(&self.head).chain(&self.rows);
        let width = |i: usize| lines().filter_map(|l| l.get(i)).map(|c| c.chars().count()).max();
        let widths: Vec<usize> = (0..self.head.len()).map(|i| width(i).unwrap_or(0)).collect();
        let mut text = String::new();
        for (n, line) in lines().enumerate() {
            for (i, cell) in line.iter().enumerate() {
                let cell_text = match colour(cell).filter(|_| colours && n > 0) {
                    Some(code) => format!("\x1b[{code}m{cell}\x1b[0m"),
                    None if colours && n == 0 => format!("\x1b[1m{cell}\x1b[0m"),
                    None => cell.clone(),
                };
                text.push_str(&cell_text);
                if i + 1 < line.len() {
                    let pad = widths.get(i).map_or(0, |w| w - cell.chars().count());
                    let _ = write!(text, "{:pad$}  ", "");
                }
            }
            text.push('\n');
        }
        text
    }
}

/// The colour of a word that says how something stands.
fn colour(word: &str) -> Option<&'static str> {
    Some(match word {
        "Running" | "Succeeded" | "Ready" | "live" => "32",
        "Pending" | "Starting" | "Preempting" | "Cordoned" | "paused" => "33",
        "Failed" | "Evicted" | "revoked" | "expired" => "31",
        "Cancelled" => "2",
        _ => return None,
    })
}

/// Names and values below each other.
pub fn pairs<'a>(pairs: impl IntoIterator<Item = (&'a str, String)>) -> String {
    let pairs: Vec<_> = pairs.into_iter().collect();
    let width = pairs.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    pairs.iter().fold(String::new(), |mut text, (name, value)| {
        let _ = writeln!(text, "{name:width$}  {}", clean(value));
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_nothing_moves_the_cursor() {
        let mut table = Table::new(&["ID", "STATUS", "REASON"]);
        table.row(["job-001".into(), "Running".into(), String::new()]);
        table.row(["job-1000".into(), "Failed".into(), "a\x1b[2Jb\nc".into()]);
        assert_eq!(
            table.text(false),
            "ID        STATUS   REASON\njob-001   Running  -\njob-1000  Failed   a [2Jb c\n"
        );
        let painted = table.text(true);
        assert!(painted.contains("\x1b[32mRunning\x1b[0m  -"), "{painted}");
        assert!(painted.contains("\x1b[31mFailed\x1b[0m   a"), "{painted}");
    }
}
