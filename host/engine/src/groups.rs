//! Groups of nodes by card model, domain and zone, summed up for
//! `score-groups` and kept as nodes change.

use crate::node::NodeState;
use crate::policy::{Column, Table};
use crater_model::columns as c;
use rustc_hash::FxHashMap;

/// Bits of the `group-by` option.
const KINDS: [i32; 3] = [1, 2, 4];

/// What a node adds to its groups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sums {
    nodes: i64,
    cards: i64,
    idle: i64,
    gpu: i64,
    cpu: i64,
}

impl Sums {
    fn of(node: &NodeState) -> Self {
        Self {
            nodes: 1,
            cards: node.spec.cards.iter().filter(|c| c.healthy).count() as i64,
            idle: node.cards_idle() as i64,
            gpu: node.gpu_free().0 as i64,
            cpu: node.cpu_free().0 as i64,
        }
    }

    fn add(&mut self, other: Self, sign: i64) {
        self.nodes += sign * other.nodes;
        self.cards += sign * other.cards;
        self.idle += sign * other.idle;
        self.gpu += sign * other.gpu;
        self.cpu += sign * other.cpu;
    }
}

/// Where a node counts: one group of each kind.
type Place = [u32; 3];

/// All groups that one policy asked for.
#[derive(Clone, Debug, Default)]
pub struct Groups {
    by: i32,
    /// (kind, name) → group.
    ids: FxHashMap<(i32, i32), u32>,
    keys: Vec<(i32, i32)>,
    sums: Vec<Sums>,
    /// Groups that have nodes, by kind and name: the rows of the table. Not
    /// every group that ever was, so that the past changes no answer.
    rows: Vec<u32>,
    /// Per slot: where it was counted and with what.
    counted: Vec<Option<(Place, Sums)>>,
    /// Per slot: its lane, once it was asked for; none after its place changed.
    lane_of: Vec<Option<u32>>,
    /// Places that occur, each a lane of its own in a shape.
    lanes: FxHashMap<Place, u32>,
    places: Vec<Place>,
}

/// No group of that kind.
const NONE: u32 = u32::MAX;

impl Groups {
    /// Groups of the kinds in a `group-by` option.
    pub fn new(by: i32) -> Self {
        Self { by, ..Self::default() }
    }

    /// Counts a slot anew.
    pub fn update(&mut self, slot: u32, node: Option<&NodeState>) {
        let slot = slot as usize;
        if self.counted.len() <= slot {
            self.counted.resize(slot + 1, None);
            self.lane_of.resize(slot + 1, None);
        }
        let before = self.counted[slot].take();
        if let Some((place, sums)) = before {
            self.add(place, sums, -1);
        }
        let place = node.map(|node| {
            let (place, sums) = (self.place(node), Sums::of(node));
            self.add(place, sums, 1);
            self.counted[slot] = Some((place, sums));
            place
        });
        if place != before.map(|b| b.0) {
            self.lane_of[slot] = None;
            self.rows.clear();
            self.rows
                .extend((0..self.keys.len() as u32).filter(|id| self.sums[*id as usize].nodes > 0));
            let keys = &self.keys;
            self.rows.sort_unstable_by_key(|id| keys[*id as usize]);
        }
    }

    fn add(&mut self, place: Place, sums: Sums, sign: i64) {
        for id in place.into_iter().filter(|id| *id != NONE) {
            self.sums[id as usize].add(sums, sign);
        }
    }

    fn place(&mut self, node: &NodeState) -> Place {
        let names =
            [node.texts.models.first().copied().unwrap_or(0), node.texts.domain, node.texts.zone];
        let mut place = [NONE; 3];
        for ((kind, name), out) in KINDS.into_iter().zip(names).zip(&mut place) {
            if self.by & kind != 0 && name != 0 {
                *out = *self.ids.entry((kind, name)).or_insert_with(|| {
                    self.keys.push((kind, name));
                    self.sums.push(Sums::default());
                    self.keys.len() as u32 - 1
                });
            }
        }
        place
    }

    /// The lane of a slot: all nodes that get the same addition.
    pub fn lane(&mut self, slot: u32) -> u32 {
        if let Some(lane) = self.lane_of.get(slot as usize).copied().flatten() {
            return lane;
        }
        let place = self.counted.get(slot as usize).copied().flatten().map_or([NONE; 3], |c| c.0);
        let lane = *self.lanes.entry(place).or_insert_with(|| {
            self.places.push(place);
            self.places.len() as u32 - 1
        });
        if let Some(of) = self.lane_of.get_mut(slot as usize) {
            *of = Some(lane);
        }
        lane
    }

    /// The group table for a call. `same_job` counts members of the asking
    /// job by group, if that was wanted.
    pub fn table(&self, wanted: &[u32], same_job: &[i32]) -> Table {
        let saturate = |n: i64| i32::try_from(n).unwrap_or(i32::MAX);
        let column = |&id: &u32| {
            let value = |group: &u32| {
                let i = *group as usize;
                let sums = &self.sums[i];
                match id {
                    c::GROUP_KIND => self.keys[i].0,
                    c::GROUP_NAME => self.keys[i].1,
                    c::GROUP_NODES => saturate(sums.nodes),
                    c::GROUP_CARDS => saturate(sums.cards),
                    c::GROUP_CARDS_IDLE => saturate(sums.idle),
                    c::GROUP_GPU_FREE => saturate(sums.gpu),
                    c::GROUP_CPU_FREE => saturate(sums.cpu),
                    c::GROUP_SAME_JOB => same_job.get(i).copied().unwrap_or(0),
                    _ => 0,
                }
            };
            Column { id, values: self.rows.iter().map(value).collect() }
        };
        Table { rows: self.rows.len() as u32, columns: wanted.iter().map(column).collect() }
    }

    /// The groups of a slot.
    pub fn of(&self, slot: u32) -> impl Iterator<Item = usize> + '_ {
        let place = self.counted.get(slot as usize).copied().flatten().map_or([NONE; 3], |c| c.0);
        place.into_iter().filter(|id| *id != NONE).map(|id| id as usize)
    }

    /// Number of groups that ever were.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Number of groups that have nodes: rows of the table.
    pub fn rows(&self) -> usize {
        self.rows.len()
    }

    /// What each lane adds, given what each row of the table adds.
    pub fn additions(&self, answers: &[i32]) -> Vec<i64> {
        let mut added = vec![0; self.keys.len()];
        for (group, answer) in self.rows.iter().zip(answers) {
            added[*group as usize] = i64::from(*answer);
        }
        let of = |place: &Place| {
            place.iter().filter(|id| **id != NONE).map(|id| added[*id as usize]).sum()
        };
        self.places.iter().map(of).collect()
    }
}
