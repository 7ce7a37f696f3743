//! `fgd`: fragmentation gradient descent (Weng, Yang et al., "Beware of
//! Fragmentation", USENIX ATC'23). A job goes where it leaves the least GPU
//! share that the usual mix of jobs could not use.
//!
//! Free share of a node is a *fragment* for a shape of job if that shape could
//! not use it: all of it where the shape wants no GPU, another model, more CPU
//! than is free or more cards than have room; else what lies on cards with less
//! free than the shape asks for. A node's fragmentation F is the mean over the
//! typical shapes, weighted by how often each was asked for. Memory is ignored.
//!
//! | | |
//! |---|---|
//! | score | ⌊100 · sigmoid((F before − F after) / 1000)⌋, so 50 changes nothing |
//! | share of a card | the first card with the best score |
//! | whole cards | the lowest-numbered idle ones |
//! | typical shapes | most frequent first until `cover` percent (95) of the jobs are covered |
//!
//! Until a mix is known, a whole card is taken as the only typical shape.
//!
//! F is a sum over shapes, but for shapes of one card it is a sum over the
//! node's cards with weights that `table` sums up beforehand, so a node costs a
//! few steps a card. All sums are whole numbers, as weights are counts of jobs:
//! the score's floor is exact and the same natively and in WebAssembly.

mod mix;
mod sigmoid;
mod table;

use crater_sdk::prelude::*;
use crater_sdk::strings;
use mix::Mix;
use sigmoid::Floors;
use table::{Rooms, Table};

/// The policy with its tables.
#[derive(Clone, Debug)]
pub struct Fgd {
    /// One for each model that a shape names, by string id; the last one, for
    /// the shapes that take any model, serves all other nodes.
    tables: Vec<(i32, Table)>,
    floors: Floors,
    weight: i64,
}

/// Space that is kept from row to row.
#[derive(Debug, Default)]
struct Scratch {
    rooms: Rooms,
    /// Free shares as they will be, for jobs of several cards.
    free: Vec<i32>,
}

/// Percent of the jobs that the typical shapes cover.
fn cover(config: &str) -> Result<i32, String> {
    let mut settings = Settings::read(config)?;
    let cover = settings.int("cover", 1..=100, 95)?;
    settings.end()?;
    Ok(cover)
}

impl Fgd {
    fn new(mix: &Mix) -> Self {
        let weight = mix.shapes.iter().map(|s| s.weight).sum();
        let mut names: Vec<&str> = Vec::new();
        let sized = mix.sizes.iter().map(|(model, _)| model);
        for name in mix.shapes.iter().flat_map(|s| &s.models).chain(sized) {
            if !names.contains(&name.as_str()) {
                names.push(name);
            }
        }
        let table = |model: &str| (strings::id(model), Table::new(mix, model));
        let tables = names.into_iter().chain([""]).map(table).collect();
        Self { tables, floors: Floors::new(weight), weight }
    }

    fn table(&self, model: i32) -> Option<&Table> {
        let of = self.tables.iter().find(|(id, _)| *id == model).or(self.tables.last());
        of.map(|(_, table)| table)
    }

    /// Score and cards of one node.
    #[inline]
    fn node(
        &self,
        table: &Table,
        job: &Job,
        ask: &Ask,
        node: &Node,
        scratch: &mut Scratch,
    ) -> Score {
        let cpu = node.get(NODE_CPU_FREE);
        let left = cpu.saturating_sub(job.get(JOB_CPU));
        let free = node.card_column(CARD_FREE);
        let usable = table.usable(free, cpu, left, &mut scratch.rooms);
        if ask.cards == 0 {
            return self.floors.score(usable.after - usable.before).into();
        }
        let memory = node.card_column(CARD_MEMORY_TOTAL);
        let share = |card: usize| ask.milli_on(memory.get(card).copied().unwrap_or(0));
        if ask.cards == 1 && !ask.by_host {
            let mut best: Option<Score> = None;
            // (free, share) of the card before: an equal one cannot be better.
            let mut last = (0, 0);
            for card in node.cards().take(32) {
                let free = card.get(CARD_FREE);
                let this = (free, share(card.index()));
                if free < this.1 || this == last || !ask.fits(&card) {
                    continue;
                }
                last = this;
                let after = table.usable_with(&usable, free, this.1, &scratch.rooms);
                let gain = after - usable.before + i64::from(this.1) * self.weight;
                let score = self.floors.score(gain);
                if best.is_none_or(|b| score > b.value) {
                    best = Some(Score::on(score, card.bit()));
                }
            }
            return best.unwrap_or_default();
        }
        let mask = node.tightest(ask);
        let mut then = std::mem::take(&mut scratch.free);
        then.clear();
        then.extend_from_slice(free);
        let mut taken = 0;
        // Where the host chooses, the first that fit stand for those.
        let chosen = |card: &usize| mask == 0 || *card < 32 && mask >> card & 1 == 1;
        for card in node.fitting(ask).filter(chosen).take(ask.cards) {
            if let Some(free) = then.get_mut(card) {
                *free -= share(card);
                taken += i64::from(share(card));
            }
        }
        let after = table.usable(&then, left, left, &mut scratch.rooms).after;
        scratch.free = then;
        Score::on(self.floors.score(after - usable.before + taken * self.weight), mask)
    }
}

impl Policy for Fgd {
    fn prepare(config: &str, facts: &Facts) -> Result<Vec<u8>, String> {
        Ok(Mix::typical(facts, cover(config)?).to_text().into_bytes())
    }

    fn configure(config: &str, prepared: &[u8]) -> Result<Self, String> {
        cover(config)?;
        let text = std::str::from_utf8(prepared).map_err(|_| "the prepared mix is not text")?;
        Ok(Self::new(&Mix::from_text(text)?))
    }

    fn score(&self, _: &Context, job: &Job, node: &Node) -> Score {
        let model = node.card_column(CARD_MODEL).first().copied().unwrap_or(0);
        let Some(table) = self.table(model) else {
            return Score::default();
        };
        self.node(table, job, &Ask::of(job), node, &mut Scratch::default())
    }

    /// As `score`, with one scratch space for all rows.
    fn score_rows(&self, _: &Context, job: &Job, nodes: &Nodes, out: &mut Scores) {
        let ask = Ask::of(job);
        let mut scratch = Scratch::default();
        let mut last = None;
        for node in nodes.iter() {
            let model = node.card_column(CARD_MODEL).first().copied().unwrap_or(0);
            let table = match last {
                Some((m, table)) if m == model => table,
                _ => match self.table(model) {
                    Some(table) => table,
                    None => continue,
                },
            };
            last = Some((model, table));
            out.push(self.node(table, job, &ask, &node, &mut scratch));
        }
    }
}

crater_sdk::export!(Fgd {
    name: "fgd",
    exports: [prepare, score],
    wants: [
        JOB_CARDS,
        JOB_CARD_MILLI,
        JOB_CARD_MIB,
        JOB_WHOLE_CARDS,
        JOB_MODELS,
        JOB_MIG_PROFILE,
        JOB_NVLINK,
        JOB_NUMA,
        JOB_CPU,
        NODE_CPU_FREE,
        CARD_FREE,
        CARD_MEMORY_FREE,
        CARD_MEMORY_TOTAL,
        CARD_MODEL,
        MIX_WEIGHT,
        MIX_CPU,
        MIX_CARDS,
        MIX_CARD_MILLI,
        MIX_CARD_MIB,
        MIX_MODELS_OFFSETS,
        MIX_MODELS,
        CLASS_NODES,
        CLASS_MODEL,
        CLASS_CARD_MIB
    ],
    schema: include_str!("../schema.json"),
});

#[cfg(test)]
mod tests;
