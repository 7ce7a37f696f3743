//! What `prepare` made, as lines of text: readable where it is kept, and
//! without a library in the component.

use crate::cores::STEPS;
use crate::mix::{Bound, Model, Prepared, Several, Tables};
use crate::prices::CELLS;
use std::fmt::Write;

const HEAD: &str = "crater shadow-price 2";

impl Prepared {
    /// One line a thing: its kind and numbers, then names, which are free text,
    /// each after a tab.
    pub fn to_text(&self) -> String {
        let mut text = String::from(HEAD);
        let mut line = |kind: &str, numbers: &[i64], names: &[String]| {
            text.push('\n');
            text.push_str(kind);
            for number in numbers {
                // Writing to a text cannot fail.
                let _ = write!(text, " {number}");
            }
            for name in names {
                text.push('\t');
                text.push_str(name);
            }
        };
        line("jobs", &[self.jobs, self.cores], &[]);
        if !self.lack.is_empty() {
            let values = self.lack.iter().map(|n| i64::from(*n));
            line("cores", &std::iter::once(self.own_cores).chain(values).collect::<Vec<_>>(), &[]);
        }
        for table in &self.tables {
            let numbers = table.prices.iter().chain(&table.waste).map(|n| i64::from(*n));
            line("table", &numbers.collect::<Vec<_>>(), &[]);
        }
        for model in &self.models {
            let numbers = [i64::from(model.mib), model.table as i64];
            line("model", &numbers, std::slice::from_ref(&model.name));
        }
        for bound in &self.bounds {
            line("bound", &[i64::from(bound.part)], &bound.models);
        }
        for s in &self.several {
            line("several", &[s.worth, s.cards, s.cpu].map(i64::from), &s.models);
        }
        text
    }

    /// What `to_text` wrote.
    pub fn from_text(text: &str) -> Result<Self, String> {
        let mut lines = text.lines();
        let mut prepared = Self::default();
        if lines.next() != Some(HEAD) {
            return Err("the prepared tables are not this policy's".into());
        }
        for line in lines {
            prepared.line(line).ok_or_else(|| {
                let start: String = line.chars().take(60).collect();
                format!("the prepared tables have a bad line: {start}")
            })?;
        }
        let tables = prepared.tables.len();
        if prepared.models.iter().any(|m| m.table >= tables) {
            return Err("the prepared tables lack one that a model names".into());
        }
        Ok(prepared)
    }

    fn line(&mut self, line: &str) -> Option<()> {
        let mut names = line.split('\t');
        let mut words = names.next()?.split(' ');
        let kind = words.next()?;
        let numbers: Option<Vec<i64>> = words.map(|word| word.parse().ok()).collect();
        let numbers = numbers?;
        let small: Option<Vec<i32>> = numbers.iter().map(|n| i32::try_from(*n).ok()).collect();
        let mut names = names.map(str::to_owned);
        match (kind, numbers.as_slice(), small.as_deref()) {
            ("jobs", &[jobs, cores], _) => (self.jobs, self.cores) = (jobs, cores),
            ("cores", &[own, ..], Some([_, values @ ..])) if values.len() == STEPS + 1 => {
                (self.own_cores, self.lack) = (own, values.to_vec());
            }
            ("table", _, Some(values)) if values.len() == 2 * (CELLS + 1) => {
                let (prices, waste) = values.split_at(CELLS + 1);
                self.tables.push(Tables { prices: prices.to_vec(), waste: waste.to_vec() });
            }
            ("model", &[_, table], Some(&[mib, _])) => {
                let table = usize::try_from(table).ok()?;
                self.models.push(Model { name: names.next()?, mib, table });
            }
            ("bound", _, Some(&[part])) => {
                self.bounds.push(Bound { part, models: names.collect() });
            }
            ("several", _, Some(&[worth, cards, cpu])) if cards > 0 => {
                self.several.push(Several { worth, cards, cpu, models: names.collect() });
            }
            _ => return None,
        }
        Some(())
    }
}
