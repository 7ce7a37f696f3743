//! What `prepare` makes of the facts: the tables of each card model, the sets
//! of models that jobs are bound to, and the jobs of several cards.

use crate::cores;
use crate::prices::{CELLS, Demand, Table};
use crater_sdk::{Class, Facts, Shape, strings};

/// A card model, by name: string ids do not outlive the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Model {
    /// Its name; empty for all models that are not listed.
    pub name: String,
    /// Memory of a card in MiB; 0 unknown.
    pub mib: i32,
    /// Which of the tables is its.
    pub table: usize,
}

/// Prices and waste of a free share, in millionths of a card.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tables {
    /// U by steps of the share.
    pub prices: Vec<i32>,
    /// V likewise.
    pub waste: Vec<i32>,
}

/// Models that some jobs are bound to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bound {
    /// Their part of the GPU that the mix asks for, in millionths.
    pub part: i32,
    /// The models.
    pub models: Vec<String>,
}

/// A shape of job with several cards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Several {
    /// Worth of each card that is kept for it, in millionths of a card.
    pub worth: i32,
    /// Cards.
    pub cards: i32,
    /// CPU in milli-cores.
    pub cpu: i32,
    /// Models that it may use; empty for any.
    pub models: Vec<String>,
}

/// What is known of the workload.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prepared {
    /// Jobs that the mix has seen.
    pub jobs: i64,
    /// CPU that the mix asks for with each card, in milli-cores.
    pub cores: i64,
    /// The same without the CPU of work that asks for no GPU.
    pub own_cores: i64,
    /// Part of a free GPU that lacks cores, by steps of its own, in millionths.
    pub lack: Vec<i32>,
    /// The models; the one without a name last.
    pub models: Vec<Model>,
    /// Their tables.
    pub tables: Vec<Tables>,
    /// What jobs are bound to.
    pub bounds: Vec<Bound>,
    /// Jobs of several cards.
    pub several: Vec<Several>,
}

/// Share of a card with `mib` memory that a shape takes, in steps, rounded up;
/// none if it does not fit on such a card.
fn steps(shape: &Shape, mib: i32) -> Option<usize> {
    let memory = if shape.card_mib <= 0 || mib <= 0 {
        0
    } else {
        (1000 * i64::from(shape.card_mib) + i64::from(mib) - 1) / i64::from(mib)
    };
    // The nominal size of a card may be a little more than what it has.
    let memory = if (1001..=1020).contains(&memory) { 1000 } else { memory };
    let milli = i64::from(shape.card_milli).max(memory);
    let steps = (milli * CELLS as i64 + 999) / 1000;
    usize::try_from(steps).ok().filter(|steps| (1..=CELLS).contains(steps))
}

/// GPU that a shape asks for, times how often it was seen, in milli-cards.
fn gpu(shape: &Shape, mib: i32) -> i64 {
    let each = steps(shape, mib).unwrap_or(CELLS) * (1000 / CELLS);
    // A size off the grid counts as what it is.
    let each = if shape.card_milli > 0 { i64::from(shape.card_milli) } else { each as i64 };
    i64::from(shape.cards) * each * i64::from(shape.weight)
}

fn millionths(part: f64) -> i32 {
    (part * 1e6).round().clamp(0.0, 2e9) as i32
}

impl Prepared {
    /// From the facts. While the mix has seen fewer jobs than `minimum`, a
    /// neutral one stands in for it.
    pub fn new(facts: &Facts, minimum: i64) -> Self {
        let mut shapes: Vec<Shape> = facts.shapes().filter(|s| s.weight > 0).collect();
        let classes: Vec<Class> = facts.classes().collect();
        let jobs = shapes.iter().map(|s| i64::from(s.weight)).sum();
        let gpu_asked = shapes.iter().any(|s| s.cards > 0);
        if jobs < minimum || !gpu_asked {
            shapes = neutral(&classes);
        }
        let size = mean_size(&classes);
        let total: i64 = shapes.iter().map(|s| gpu(s, size)).sum();
        let mut prepared = Self { jobs, ..Self::default() };
        let cpu: i64 = shapes.iter().map(|s| i64::from(s.cpu) * i64::from(s.weight)).sum();
        prepared.cores = cpu.saturating_mul(1000).checked_div(total).unwrap_or(0);
        let asked = shapes.iter().filter(|s| s.cards > 0);
        let asked =
            asked.map(|s| (gpu(s, size) as f64, f64::from(s.cpu) * f64::from(s.weight) * 1000.0));
        (prepared.own_cores, prepared.lack) = cores::table(&asked.collect::<Vec<_>>());
        let mut known: Vec<(i32, i32)> = Vec::new();
        let sized = classes.iter().map(|class| (class.model, class.card_mib));
        for model in sized.chain(shapes.iter().flat_map(|s| s.models).map(|id| (*id, 0))) {
            if model.0 != 0 && known.iter().all(|(id, _)| *id != model.0) {
                known.push(model);
            }
        }
        let mut demands: Vec<Demand> = Vec::new();
        for (id, mib) in known.into_iter().chain([(0, size)]) {
            let demand = demand(&shapes, id, mib);
            let table = demands.iter().position(|d| *d == demand).unwrap_or(demands.len());
            if table == demands.len() {
                demands.push(demand);
            }
            prepared.models.push(Model { name: strings::text(id), mib, table });
        }
        let column = |table: &Table| table.iter().map(|value| millionths(*value)).collect();
        // The last is that of the model without a name, for which most jobs are.
        let near = demands.last().map(|demand| demand.prices(None));
        let tables = |demand: &Demand| Tables {
            prices: column(&demand.prices(near.as_ref()).table),
            waste: column(&demand.waste()),
        };
        prepared.tables = demands.iter().map(tables).collect();
        let names = |ids: &[i32]| ids.iter().map(|id| strings::text(*id)).collect::<Vec<_>>();
        for shape in shapes.iter().filter(|s| s.cards > 0 && !s.models.is_empty()) {
            let (models, part) =
                (names(shape.models), millionths(gpu(shape, size) as f64 / total as f64));
            match prepared.bounds.iter_mut().find(|b| b.models == models) {
                Some(bound) => bound.part += part,
                None => prepared.bounds.push(Bound { part, models }),
            }
        }
        let cluster: i64 = classes.iter().map(|c| i64::from(c.nodes) * i64::from(c.cards)).sum();
        for shape in shapes.iter().filter(|s| s.cards > 1) {
            let holds =
                |class: &&Class| shape.models.is_empty() || shape.models.contains(&class.model);
            let room: i64 = classes.iter().filter(holds).map(|class| room(shape, class)).sum();
            if room > 0 {
                let part = gpu(shape, size) as f64 / total as f64;
                prepared.several.push(Several {
                    worth: millionths(part * cluster as f64 / room as f64),
                    cards: shape.cards,
                    cpu: shape.cpu,
                    models: names(shape.models),
                });
            }
        }
        prepared
    }
}

/// What stands in for a mix that is not known: as much GPU asked for in
/// quarters, halves, whole cards, pairs and so on up to all cards of a node,
/// with half of the cores that the cluster has for them.
fn neutral(classes: &[Class]) -> Vec<Shape<'static>> {
    let all = |of: fn(&Class) -> i32| -> i64 {
        let with_cards = classes.iter().filter(|class| class.cards > 0);
        with_cards.map(|class| i64::from(class.nodes) * i64::from(of(class))).sum()
    };
    let cores = all(|class| class.cpu).checked_div(all(|class| class.cards)).unwrap_or(0);
    let largest = classes.iter().map(|class| class.cards).max().unwrap_or(0).max(1);
    let shape = |cards, card_milli| {
        let gpu = i64::from(cards) * i64::from(card_milli);
        let cpu = (cores * gpu / 2000).min(i64::from(i32::MAX)) as i32;
        // Jobs of each sort ask for as much GPU together.
        let weight = (i64::from(largest) * 1_000_000 / gpu) as i32;
        Shape { weight, cpu, memory: 0, cards, card_milli, card_mib: 0, models: &[] }
    };
    let mut shapes = vec![shape(1, 250), shape(1, 500)];
    let doubles = std::iter::successors(Some(1), |cards| Some(cards * 2));
    shapes.extend(doubles.take_while(|cards| *cards < largest).map(|cards| shape(cards, 1000)));
    shapes.push(shape(largest, 1000));
    shapes
}

/// The mean memory of the cluster's cards, for shapes that name no model.
fn mean_size(classes: &[Class]) -> i32 {
    let cards = |c: &Class| i64::from(c.nodes) * i64::from(c.cards);
    let all: i64 = classes.iter().map(cards).sum();
    let sum: i64 = classes.iter().map(|c| cards(c).saturating_mul(i64::from(c.card_mib))).sum();
    sum.checked_div(all).unwrap_or(0) as i32
}

/// Cards that a shape could hold on the empty nodes of a class.
fn room(shape: &Shape, class: &Class) -> i64 {
    let members = i64::from(class.cards / shape.cards);
    let by_cpu = i64::from(class.cpu).checked_div(i64::from(shape.cpu)).unwrap_or(members);
    i64::from(class.nodes) * i64::from(shape.cards) * members.min(by_cpu)
}

/// What the jobs that may use a model ask of its cards.
fn demand(shapes: &[Shape], model: i32, mib: i32) -> Demand {
    let mut demand = Demand::default();
    let add =
        |to: &mut Vec<(usize, f64)>, size, amount| match to.iter_mut().find(|(s, _)| *s == size) {
            Some((_, sum)) => *sum += amount,
            None => to.push((size, amount)),
        };
    let mut all = 0.0;
    for shape in shapes {
        let weight = f64::from(shape.weight);
        all += weight;
        let may = shape.models.is_empty() || shape.models.contains(&model);
        let Some(size) = steps(shape, mib).filter(|_| may && shape.cards > 0) else {
            continue;
        };
        add(&mut demand.cards, size, weight * f64::from(shape.cards));
        if shape.cards == 1 {
            add(&mut demand.jobs, size, weight);
        }
    }
    for (_, p) in &mut demand.jobs {
        *p /= all;
    }
    demand
}
