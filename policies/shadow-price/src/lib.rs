//! `shadow-price`: places work where the least GPU is stranded, measured by
//! prices that the usual mix of jobs sets.
//!
//! Each free share of a card has a price, what the mix could still earn from it
//! at best, and an expected waste, what will be left of it after the jobs that
//! come ([`prices`]). A card's stranded value W is a mean of waste and of
//! share minus price; a job goes where W grows least. Added are what one card
//! does not show: cores that a node's idle GPUs will need, card models that
//! bound jobs will need, and idle cards that jobs of several cards will need.
//!
//! With Δx = x before − x after, G the node's free GPUs, C its free cores, r
//! the requested GPUs and ρ the mix's cores a GPU, in cards:
//!
//! | term | |
//! |---|---|
//! | stranded value | Δ Σ W(f) over cards |
//! | cores | 0.2 · Δmax(0, G − C / 0.82ρ) + 0.3 · Δmax(0, G − C / 0.4ρ); on demand w · Δ(G · F(C / G)), F of [`cores`] |
//! | opening | − 0.06 if a share opens an idle card |
//! | several | − 0.4 · ΔM, M the room for jobs of several cards ([`room`]) |
//! | draining | − 0.2 · r · G after / 8 for whole cards, − 0.2 · r · idle after / 8 for shares, − 0.8 · G after / 8 without a GPU |
//! | scarcity | − 4 · r · max(0, R − 0.3), R of the card model: Σ over sets of models that jobs are bound to and that it is in, of their part of the GPU asked for · free GPUs / free GPUs of the set |
//!
//! Those are the constants of the profile `steady`, for queues where jobs come
//! and go; `fill` is for clusters that are filled once. The scarcity comes
//! through `score_group`, since it depends on the whole cluster but only on a
//! node's model, so that rows stay cached. Scores are millionths of a card.
//!
//! Where memory binds before share, the card counts as what its memory still
//! allows. Sizes are rounded up and free shares down to ten thousandths of a
//! card; what lies between is stranded.
//!
//! While the mix has seen fewer jobs than `minimum`, a neutral one stands in for
//! it: quarters, halves, whole cards and whole nodes, with the cores that the
//! cluster has.

mod constants;
mod cores;
mod mix;
mod prices;
mod room;
mod text;

use constants::Constants;
use cores::Cores;
use crater_sdk::prelude::*;
use crater_sdk::strings;
use mix::{Prepared, Tables};
use prices::CELLS;
use room::Room;

/// What a node's card model brings.
#[derive(Clone, Debug)]
struct Of {
    /// W in cards, by free milli-cards.
    stranded: Vec<f64>,
    room: Room,
}

/// Models that jobs are bound to, by string id, and their part of the GPU.
type Bound = (f64, Vec<i32>);

/// The policy with its tables.
#[derive(Clone, Debug)]
pub struct ShadowPrice {
    constants: Constants,
    /// By string id of the model; the one for all others, id 0, last.
    models: Vec<(i32, Of)>,
    /// Memory of a card by string id of its model.
    sizes: Vec<(i32, i32)>,
    bounds: Vec<Bound>,
    /// GPUs that a milli-core feeds, at the usual and at the least.
    feeds: (f64, f64),
    /// GPU that lacks cores by the mix's own jobs.
    cores: Cores,
}

impl Of {
    fn new(tables: &Tables, room: Room, waste: f64) -> Self {
        let stranded = |milli: usize| {
            let cell = milli * CELLS / 1000;
            let between = (milli * CELLS % 1000) as f64 / (1000 * CELLS) as f64;
            let at = |table: &[i32]| f64::from(table.get(cell).copied().unwrap_or(0)) / 1e6;
            let share = milli as f64 / 1000.0;
            waste * (at(&tables.waste) + between) + (1.0 - waste) * (share - at(&tables.prices))
        };
        Self { stranded: (0..=1000).map(stranded).collect(), room }
    }

    #[inline]
    fn stranded(&self, milli: i32) -> f64 {
        self.stranded.get(milli.max(0) as usize).or(self.stranded.last()).copied().unwrap_or(0.0)
    }
}

/// What is free on a card: its share, or what its memory allows if that is
/// less, rounded up, since memory in proportion was rounded down.
#[inline]
fn free(share: i32, memory: i32, total: i32) -> i32 {
    if i64::from(memory) * 1000 >= i64::from(share) * i64::from(total) {
        return share;
    }
    let total = i64::from(total);
    ((i64::from(memory) * 1000 + total - 1) / total) as i32
}

/// The card columns of a node.
struct Cards<'a> {
    share: &'a [i32],
    memory: &'a [i32],
    total: &'a [i32],
}

impl<'a> Cards<'a> {
    #[inline]
    fn of(node: &Node<'a>) -> Self {
        Self {
            share: node.card_column(CARD_FREE),
            memory: node.card_column(CARD_MEMORY_FREE),
            total: node.card_column(CARD_MEMORY_TOTAL),
        }
    }

    /// Free share, memory and total memory of a card.
    #[inline]
    fn at(&self, card: usize) -> (i32, i32, i32) {
        let get = |column: &[i32]| column.get(card).copied().unwrap_or(0);
        (get(self.share), get(self.memory), get(self.total))
    }

    /// What is free on a card.
    #[inline]
    fn free(&self, card: usize) -> i32 {
        let (share, memory, total) = self.at(card);
        free(share, memory, total)
    }

    /// What is free on a card once its part of the job is there.
    #[inline]
    fn left(&self, ask: &Ask, card: usize) -> i32 {
        let (share, memory, total) = self.at(card);
        free(share - ask.milli_on(total), memory - ask.mib_on(total), total)
    }
}

/// What a job does to a node's cards.
#[derive(Clone, Copy, Debug, Default)]
struct Effect {
    /// Growth of stranded value, with the charges for opening, in cards.
    gain: f64,
    /// What it takes of what counts as free, in milli-cards.
    milli: i32,
    /// Idle cards that it opens.
    opened: usize,
    /// Cards that it is to get; 0 leaves that to the host.
    mask: u32,
}

impl ShadowPrice {
    #[inline]
    fn of(&self, model: i32) -> Option<&Of> {
        self.models.iter().find(|(id, _)| *id == model).or(self.models.last()).map(|(_, of)| of)
    }

    /// What the job does to the cards, each chosen by the least stranded value.
    #[inline]
    fn effect(&self, of: &Of, ask: &Ask, node: &Node, cards: &Cards) -> Effect {
        let mut effect = Effect::default();
        if ask.takes_all() {
            // Idle cards are alike; which ones, the host knows best by links.
            let count = ask.cards as i32;
            effect.gain = f64::from(count) * (of.stranded(1000) - of.stranded(0));
            (effect.milli, effect.opened) = (1000 * count, ask.cards);
            return effect;
        }
        let mut taken = 0_u32;
        for _ in 0..ask.cards {
            let mut best: Option<(f64, usize)> = None;
            let mut last = (0, 0);
            for card in node.fitting(ask).filter(|card| *card < 32 && taken >> card & 1 == 0) {
                // An equal card cannot be better than the one before.
                let now = cards.free(card);
                let this = (now, cards.at(card).1);
                if this == last {
                    continue;
                }
                last = this;
                let open = if now >= 1000 { self.constants.open } else { 0.0 };
                let gain = of.stranded(now) - of.stranded(cards.left(ask, card)) - open;
                if best.is_none_or(|(most, _)| gain > most) {
                    best = Some((gain, card));
                }
            }
            let Some((gain, card)) = best else { break };
            taken |= 1 << card;
            effect.gain += gain;
            // Of what counted as free, which memory may bound.
            effect.milli += cards.free(card) - cards.left(ask, card);
            effect.opened += usize::from(cards.free(card) >= 1000);
        }
        effect.mask = if ask.by_host { 0 } else { taken };
        effect
    }

    /// Score and cards of a node.
    #[inline]
    fn node(&self, of: &Of, job: &Job, ask: &Ask, node: &Node) -> Score {
        let cards = Cards::of(node);
        let (mut gpu, mut idle) = (0, 0);
        for ((share, memory), total) in cards.share.iter().zip(cards.memory).zip(cards.total) {
            let free = free(*share, *memory, *total);
            gpu += free;
            idle += usize::from(free >= 1000);
        }
        let cpu = node.get(NODE_CPU_FREE);
        let left = cpu.saturating_sub(job.get(JOB_CPU));
        let effect =
            if ask.cards == 0 { Effect::default() } else { self.effect(of, ask, node, &cards) };
        let idle_left = idle.saturating_sub(effect.opened);
        let gpu_left = gpu - effect.milli;
        let cores = |gpu: i32, cpu: i32| {
            let of_mix =
                if self.constants.curve.0 > 0.0 { self.cores.lacking(gpu, cpu) } else { 0.0 };
            let (gpu, cpu) = (f64::from(gpu) / 1000.0, f64::from(cpu));
            let lack = |feeds: f64| (gpu - cpu * feeds).max(0.0);
            self.constants.usual.0 * lack(self.feeds.0)
                + self.constants.least.0 * lack(self.feeds.1)
                + self.constants.curve.0 * of_mix
        };
        let mut score = effect.gain + cores(gpu, cpu) - cores(gpu_left, left);
        if ask.cards > 0 || self.constants.several_for_all {
            let room = of.room.of(idle, cpu) - of.room.of(idle_left, left);
            score -= self.constants.several * room;
        }
        let [whole, share, none] = self.constants.drain;
        let requested = f64::from(effect.milli) / 1000.0;
        score -= if ask.cards == 0 {
            none * f64::from(gpu_left) / 8000.0
        } else if ask.takes_all() {
            whole * requested * f64::from(gpu_left) / 8000.0
        } else {
            share * requested * idle_left as f64 / 8.0
        };
        Score::on((score * 1e6).round() as i32, effect.mask)
    }
}

impl Policy for ShadowPrice {
    fn prepare(config: &str, facts: &Facts) -> Result<Vec<u8>, String> {
        let minimum = Constants::read(config)?.minimum;
        Ok(Prepared::new(facts, minimum).to_text().into_bytes())
    }

    fn configure(config: &str, prepared: &[u8]) -> Result<Self, String> {
        let constants = Constants::read(config)?;
        let text = std::str::from_utf8(prepared).map_err(|_| "the prepared tables are not text")?;
        let prepared = match text {
            "" => Prepared::new(&Facts::new(&[]), constants.minimum),
            text => Prepared::from_text(text)?,
        };
        if prepared.jobs < constants.minimum {
            crater_sdk::log!(
                Warning,
                "the mix has seen {} jobs, fewer than {}: a neutral one stands in for it",
                prepared.jobs,
                constants.minimum
            );
        }
        let cores = Cores::new(&prepared, constants.curve.1);
        let mut rule = Self {
            constants,
            models: vec![],
            sizes: vec![],
            bounds: vec![],
            feeds: (0.0, 0.0),
            cores,
        };
        for model in &prepared.models {
            let Some(tables) = prepared.tables.get(model.table) else { continue };
            let room = Room::new(&prepared.several, &model.name);
            let id = strings::id(&model.name);
            rule.models.push((id, Of::new(tables, room, constants.waste)));
            rule.sizes.push((id, model.mib));
        }
        for bound in &prepared.bounds {
            let models = bound.models.iter().map(|name| strings::id(name)).collect();
            rule.bounds.push((f64::from(bound.part) / 1e6, models));
        }
        let cores = prepared.cores as f64;
        // Where the mix asks for no cores, none are lacking.
        let feeds =
            |part: f64| if cores * part > 0.0 { 1.0 / (cores * part) } else { f64::INFINITY };
        rule.feeds = (feeds(constants.usual.1), feeds(constants.least.1));
        Ok(rule)
    }

    fn score(&self, _: &Context, job: &Job, node: &Node) -> Score {
        let ask = Ask::of(job);
        let model = node.card_column(CARD_MODEL).first().copied().unwrap_or(0);
        match self.of(model) {
            Some(of) => self.node(of, job, &ask, node),
            None => Score::default(),
        }
    }

    /// As `score`, with what only depends on the job read once.
    fn score_rows(&self, _: &Context, job: &Job, nodes: &Nodes, out: &mut Scores) {
        let ask = Ask::of(job);
        let mut last = None;
        for node in nodes.iter() {
            let model = node.card_column(CARD_MODEL).first().copied().unwrap_or(0);
            let of = match last {
                Some((m, of)) if m == model => of,
                _ => self.of(model),
            };
            last = Some((model, of));
            out.push(match of {
                Some(of) => self.node(of, job, &ask, &node),
                None => Score::default(),
            });
        }
    }

    /// All rows at once: what is scarce depends on all models.
    fn score_group_rows(&self, _: &Context, job: &Job, groups: &Groups, out: &mut Vec<i32>) {
        let ask = Ask::of(job);
        let (names, free) = (groups.column(GROUP_NAME), groups.column(GROUP_GPU_FREE));
        let all: f64 = free.iter().map(|free| f64::from(*free)).sum();
        for model in names {
            if ask.cards == 0 || self.bounds.is_empty() {
                out.push(0);
                continue;
            }
            let mut scarce = 0.0;
            for (part, models) in self.bounds.iter().filter(|(_, models)| models.contains(model)) {
                let of_set = names.iter().zip(free).filter(|(name, _)| models.contains(name));
                let sum: f64 = of_set.map(|(_, free)| f64::from(*free)).sum();
                scarce += part * all / sum.max(1.0);
            }
            let (weight, from) = self.constants.scarcity;
            let mib = self.sizes.iter().find(|(id, _)| id == model).map_or(0, |(_, mib)| *mib);
            let each = if ask.takes_all() { 1000 } else { ask.milli_on(mib).min(1000) };
            let requested = f64::from(each) * ask.cards as f64 / 1000.0;
            let score = -weight * requested * (scarce - from).max(0.0);
            out.push((score * 1e6).round().max(-2e9) as i32);
        }
    }
}

crater_sdk::export!(ShadowPrice {
    name: "shadow-price",
    exports: [prepare, score, score_groups],
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
        GROUP_NAME,
        GROUP_GPU_FREE,
        MIX_WEIGHT,
        MIX_CPU,
        MIX_CARDS,
        MIX_CARD_MILLI,
        MIX_CARD_MIB,
        MIX_MODELS_OFFSETS,
        MIX_MODELS,
        CLASS_NODES,
        CLASS_CPU,
        CLASS_CARDS,
        CLASS_MODEL,
        CLASS_CARD_MIB
    ],
    group_by: crater_sdk::Manifest::BY_MODEL,
    schema: include_str!("../schema.json"),
});

#[cfg(test)]
mod tests;
