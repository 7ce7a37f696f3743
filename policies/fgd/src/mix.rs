//! The typical shapes of job: chosen off the round, carried as text.

use crater_sdk::{Facts, Shape as Seen, strings};
use std::fmt::Write;

/// A typical shape. Models are texts: string ids do not outlive the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Jobs seen.
    pub weight: i64,
    /// CPU in milli-cores.
    pub cpu: i32,
    /// Cards; 0 without a GPU.
    pub cards: i32,
    /// Share of each card in milli-cards; 0 where memory decides.
    pub milli: i32,
    /// Memory of each card in MiB, where it decides.
    pub mib: i32,
    /// Models that it may use; empty for any.
    pub models: Vec<String>,
}

/// What `prepare` makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mix {
    /// Most frequent first.
    pub shapes: Vec<Shape>,
    /// Card memory in MiB by model.
    pub sizes: Vec<(String, i32)>,
}

const HEAD: &str = "crater fgd 1";

/// Numbers in ascending order, each once. All sorting of this policy goes
/// through this one function, for a small component.
pub fn ascending(numbers: impl Iterator<Item = u64>) -> Vec<u64> {
    let mut all: Vec<u64> = numbers.collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Greatest sum of weights, so that sums of weight times share stay exact.
const WEIGHT: i64 = 1 << 31;

impl Mix {
    /// The most frequent shapes that together make up `cover` percent of the
    /// jobs; the host's order among equals.
    pub fn typical(facts: &Facts, cover: i32) -> Self {
        let all: Vec<Seen> = facts.shapes().filter(|s| s.weight > 0).collect();
        let total: i64 = all.iter().map(|s| i64::from(s.weight)).sum();
        // Greatest weight first, then the host's order.
        let key = |(i, s): (usize, &Seen)| u64::from(u32::MAX - s.weight as u32) << 32 | i as u64;
        let order = ascending(all.iter().enumerate().map(key));
        let scale = total / WEIGHT + 1;
        let mut seen = 0;
        let mut shapes = Vec::new();
        for shape in order.iter().filter_map(|key| all.get(*key as u32 as usize)) {
            if seen * 100 >= total * i64::from(cover) {
                break;
            }
            seen += i64::from(shape.weight);
            shapes.push(Shape {
                weight: (i64::from(shape.weight) / scale).max(1),
                cpu: shape.cpu,
                cards: shape.cards,
                milli: shape.card_milli,
                mib: shape.card_mib,
                models: shape.models.iter().map(|id| strings::text(*id)).collect(),
            });
        }
        let mut sizes: Vec<(String, i32)> = Vec::new();
        for class in facts.classes().filter(|class| class.model != 0) {
            let model = strings::text(class.model);
            if sizes.iter().all(|(known, _)| *known != model) {
                sizes.push((model, class.card_mib));
            }
        }
        Self { shapes, sizes }
    }

    /// Without a mix: a whole card is typical.
    fn unknown() -> Self {
        let whole = Shape { weight: 1, cpu: 0, cards: 1, milli: 1000, mib: 0, models: vec![] };
        Self { shapes: vec![whole], sizes: vec![] }
    }

    /// One line a shape or size; models last, as their names are free text.
    pub fn to_text(&self) -> String {
        let mut text = String::from(HEAD);
        for s in &self.shapes {
            let Shape { weight, cpu, cards, milli, mib, .. } = s;
            // Writing to a text cannot fail.
            let _ = write!(text, "\nshape {weight} {cpu} {cards} {milli} {mib}");
            for model in &s.models {
                text.push('\t');
                text.push_str(model);
            }
        }
        for (model, mib) in &self.sizes {
            let _ = write!(text, "\nsize {mib}\t{model}");
        }
        text
    }

    /// What `to_text` wrote; nothing means that no mix is known.
    pub fn from_text(text: &str) -> Result<Self, String> {
        let mut lines = text.lines();
        match lines.next() {
            None => return Ok(Self::unknown()),
            Some(HEAD) => {}
            Some(_) => return Err("the prepared mix is not this policy's".into()),
        }
        let mut mix = Self { shapes: vec![], sizes: vec![] };
        for line in lines {
            mix.line(line).ok_or_else(|| format!("the prepared mix has a bad line: {line}"))?;
        }
        Ok(if mix.shapes.is_empty() { Self { sizes: mix.sizes, ..Self::unknown() } } else { mix })
    }

    fn line(&mut self, line: &str) -> Option<()> {
        let mut models = line.split('\t');
        let mut words = models.next()?.split(' ');
        let kind = words.next()?;
        let mut number = || words.next()?.parse::<i32>().ok();
        if kind == "size" {
            let mib = number()?;
            self.sizes.push((models.next()?.to_owned(), mib));
            return Some(());
        }
        self.shapes.push(Shape {
            weight: i64::from(number()?),
            cpu: number()?,
            cards: number()?,
            milli: number()?,
            mib: number()?,
            models: models.map(str::to_owned).collect(),
        });
        Some(())
    }
}
