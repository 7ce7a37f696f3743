//! What a decider remembers of one policy: rows, answers, shapes, groups.
//! Forgetting any of it changes no decision.

use crate::groups::Groups;
use crate::node::NodeState;
use crate::overlay::Overlay;
use crate::policy::{Interface, Policy};
use crate::rows::{Asking, Layout};
use crate::shape::{Answer, Shape};
use crate::state::Job;
use crate::strings::Strings;
use crater_model::columns as c;
use crater_model::{Fallback, Request};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Leaves over all shapes of one policy; 48 bytes each.
const MAX_LEAVES: usize = 16 << 20;
/// Rows and answers; about 200 and 32 bytes each.
const MAX_ROWS: usize = 100_000;
const MAX_ANSWERS: usize = 4 << 20;

/// What tells one shape of job from another under one policy.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ShapeKey {
    /// What a member asks for.
    pub request: Arc<Request>,
    /// Declared values of the context and the job, and what relation columns
    /// compare.
    pub values: Box<[i32]>,
    /// The queue's order, by which the host scores where the policy does not.
    pub order: Fallback,
}

/// One policy's memory.
#[derive(Debug, Default)]
pub struct Cache {
    /// The policy's wishes.
    pub layout: Layout,
    /// Shapes by key, each with its number.
    pub shapes: FxHashMap<ShapeKey, (u32, Shape)>,
    /// Groups, if the policy scores them.
    pub groups: Option<Groups>,
    /// Position in the decider's log up to which groups are counted.
    pub groups_cursor: u64,
    /// Rows seen and answers to them.
    pub rows: Rows,
    next_shape: u32,
    decisions: u64,
}

impl Cache {
    /// For a policy, or for a built-in order.
    pub fn new(policy: Option<&dyn Policy>) -> Self {
        let mut cache = Self::default();
        if let Some(policy) = policy {
            let manifest = policy.manifest();
            cache.layout = Layout::new(manifest);
            if manifest.exports(Interface::ScoreGroups) {
                cache.groups = Some(Groups::new(manifest.option(c::OPTION_GROUP_BY)));
            }
        }
        cache
    }

    /// The key of a job's shape.
    pub fn key(&self, asking: &Asking<'_>, order: Fallback, strings: &Strings) -> ShapeKey {
        let mut values = Vec::with_capacity(32);
        for column in self.layout.context(asking.now, 0) {
            values.extend(column.values);
        }
        self.layout.job_key(asking, strings, &mut values);
        for id in self.layout.relations() {
            values.push(crate::rows::relation_key(asking.job, *id));
        }
        ShapeKey { request: asking.job.spec.request.clone(), values: values.into(), order }
    }

    /// Takes a shape out, to be put back after use; a new one if it is unknown.
    pub fn take(&mut self, key: &ShapeKey) -> (u32, Shape) {
        self.decisions += 1;
        if let Some(found) = self.shapes.get_mut(key) {
            return (found.0, std::mem::take(&mut found.1));
        }
        self.next_shape += 1;
        (self.next_shape, Shape::unknown())
    }

    /// Puts a shape back.
    pub fn put(&mut self, key: ShapeKey, number: u32, mut shape: Shape) {
        shape.used = self.decisions;
        let size = shape.size();
        if let Some(slot) = self.shapes.get_mut(&key) {
            *slot = (number, shape);
        } else {
            self.shapes.insert(key, (number, shape));
            self.shed(size);
        }
    }

    /// Forgets a shape.
    pub fn forget(&mut self, key: &ShapeKey) {
        self.shapes.remove(key);
    }

    /// Keeps within bounds: the half of the shapes used longest ago goes. All
    /// of them have as many leaves as there are nodes.
    fn shed(&mut self, size: usize) {
        if self.shapes.len() * size <= MAX_LEAVES || self.shapes.len() < 2 {
            return;
        }
        let mut used: Vec<u64> = self.shapes.values().map(|s| s.1.used).collect();
        used.sort_unstable();
        let middle = used[used.len() / 2];
        self.shapes.retain(|_, s| s.1.used >= middle);
    }
}

/// Rows by content: nodes with equal declared values are asked about once.
#[derive(Debug, Default)]
pub struct Rows {
    ids: FxHashMap<Arc<[i32]>, u32>,
    contents: Vec<Arc<[i32]>>,
    /// Per slot: the node's stamp and its row.
    known: Vec<(u64, u32)>,
    answers: FxHashMap<(u32, u32), Answer>,
    buffer: Vec<i32>,
}

impl Rows {
    /// The row of a node, by its number.
    pub fn id(&mut self, layout: &Layout, node: &NodeState, job: &Job, strings: &Strings) -> u32 {
        let slot = node.uid.0 as usize;
        let shared = layout.relations().is_empty();
        if shared
            && let Some((stamp, row)) = self.known.get(slot)
            && *stamp == node.stamp
        {
            return *row;
        }
        self.buffer.clear();
        layout.row(node, job, strings, &mut self.buffer);
        let id = if let Some(id) = self.ids.get(self.buffer.as_slice()) {
            *id
        } else {
            let row: Arc<[i32]> = self.buffer.as_slice().into();
            let id = self.contents.len() as u32;
            self.contents.push(row.clone());
            self.ids.insert(row, id);
            id
        };
        if shared {
            if self.known.len() <= slot {
                self.known.resize(slot + 1, (0, 0));
            }
            self.known[slot] = (node.stamp, id);
        }
        id
    }

    /// The content of a row.
    pub fn row(&self, id: u32) -> &[i32] {
        &self.contents[id as usize]
    }

    /// The answer for a shape and a row, if it is known.
    pub fn answer(&self, shape: u32, row: u32) -> Option<Answer> {
        self.answers.get(&(shape, row)).copied()
    }

    /// Remembers an answer.
    pub fn remember(&mut self, shape: u32, row: u32, answer: Answer) {
        self.answers.insert((shape, row), answer);
    }

    /// Forgets everything when there is too much of it. To be called between
    /// evaluations, since it renumbers rows.
    pub fn bound(&mut self) {
        if self.contents.len() > MAX_ROWS || self.answers.len() > MAX_ANSWERS {
            *self = Self { buffer: std::mem::take(&mut self.buffer), ..Self::default() };
        }
    }
}

/// Members of a job by group, for the `group-same-job` column.
pub fn same_job(groups: &Groups, overlay: &Overlay<'_>, slots: u32, job: &Job) -> Vec<i32> {
    let mut counts = vec![0; groups.len()];
    for slot in 0..slots {
        let Some(node) = overlay.get(slot) else { continue };
        let own = node.residents.iter().filter(|r| r.job == job.uid);
        let members: u32 = own.map(|r| r.members).sum();
        if members > 0 {
            for group in groups.of(slot) {
                counts[group] += members as i32;
            }
        }
    }
    counts
}
