//! What a policy sees: its wanted columns filled from nodes and jobs.

use crate::node::NodeState;
use crate::policy::{Column, Interface, Manifest, Table, Values};
use crate::state::Job;
use crate::strings::Strings;
use crater_model::columns::{self as c, TableKind};
use crater_model::{Mib, MigMode, MilliCards, Need, Share, Time};
use std::sync::Arc;

/// First id of the columns that stand for wanted labels.
pub const LABELS: u32 = 10_000;

/// A manifest's wishes, sorted by table.
#[derive(Clone, Debug, Default)]
pub struct Layout {
    context: Vec<u32>,
    job: Vec<u32>,
    scalars: Vec<u32>,
    labels: Vec<String>,
    relations: Vec<u32>,
    cards: Vec<u32>,
    links: bool,
    /// Wanted columns of the group table.
    pub groups: Vec<u32>,
    step: u64,
}

/// A job as one decision sees it.
#[derive(Clone, Copy, Debug)]
pub struct Asking<'a> {
    /// The job.
    pub job: &'a Job,
    /// Members placed so far, tentative ones included.
    pub placed: u32,
    /// The time.
    pub now: Time,
    /// The decision's own seed.
    pub seed: u64,
}

impl Layout {
    /// Sorts a manifest's wishes. Ids that this host does not know are left
    /// out: the policy copes without.
    pub fn new(manifest: &Manifest) -> Self {
        let mut layout = Self { labels: manifest.labels.clone(), ..Self::default() };
        let step = manifest.option(c::OPTION_TIME_STEP);
        layout.step = u64::try_from(step).ok().filter(|s| *s > 0).unwrap_or(60);
        for &id in &manifest.wants {
            let Some(info) = c::info(id) else { continue };
            match info.table {
                TableKind::Context => layout.context.push(id),
                TableKind::Job => layout.job.push(id),
                TableKind::Node if info.depends == c::Depends::Both => layout.relations.push(id),
                TableKind::Node => layout.scalars.push(id),
                TableKind::Card if id != c::CARD_OFFSETS => layout.cards.push(id),
                TableKind::Link => layout.links = true,
                TableKind::Group => layout.groups.push(id),
                _ => {}
            }
        }
        layout
    }

    /// Whether answers depend on chance, so that none may be kept.
    pub fn chance(&self) -> bool {
        self.context.contains(&c::SEED)
    }

    /// Whether answers change as time goes by.
    pub fn timed(&self) -> bool {
        self.context.iter().any(|id| *id != c::SEED) || self.job.contains(&c::JOB_WAITED)
    }

    /// Seconds to which times are rounded down.
    pub fn step(&self) -> u64 {
        self.step
    }

    /// Whether rows say something of the job on the node.
    pub fn relations(&self) -> &[u32] {
        &self.relations
    }

    /// Whether a row names its node, so that no two are alike.
    pub fn unique_rows(&self) -> bool {
        self.scalars.contains(&c::NODE_ID)
    }

    /// The call's context.
    pub fn context(&self, now: Time, seed: u64) -> Values {
        let minutes = now.floor(self.step).secs() / 60;
        let values = |id| match id {
            c::NOW => vec![saturate(minutes)],
            c::MINUTE_OF_DAY => vec![saturate(minutes % 1440)],
            // 1970-01-01 was a Thursday.
            c::WEEKDAY => vec![saturate((minutes / 1440 + 3) % 7)],
            c::SEED => vec![seed as u32 as i32, (seed >> 32) as u32 as i32],
            _ => vec![],
        };
        self.context.iter().map(|&id| Column { id, values: values(id) }).collect()
    }

    /// The wanted values of a job.
    pub fn job(&self, asking: &Asking<'_>, strings: &Strings) -> Values {
        let mut out = Values::with_capacity(self.job.len());
        for &id in &self.job {
            let mut values = vec![];
            self.job_value(id, asking, strings, &mut values);
            out.push(Column { id, values });
        }
        out
    }

    /// The same values end to end, each list after its length: equal for jobs
    /// that look the same to the policy.
    pub fn job_key(&self, asking: &Asking<'_>, strings: &Strings, out: &mut Vec<i32>) {
        for &id in &self.job {
            let at = out.len();
            out.push(0);
            self.job_value(id, asking, strings, out);
            out[at] = (out.len() - at - 1) as i32;
        }
    }

    /// The job table of `rank`: one row a job.
    pub fn jobs(&self, jobs: &[Asking<'_>], strings: &Strings) -> Table {
        let columns = self.job.iter().filter(|id| **id != c::JOB_MODELS).map(|&id| {
            let mut values = Vec::with_capacity(jobs.len());
            for (order, asking) in jobs.iter().enumerate() {
                if id == c::JOB_ORDER {
                    values.push(saturate(order as u64));
                } else {
                    self.job_value(id, asking, strings, &mut values);
                }
            }
            Column { id, values }
        });
        Table { rows: jobs.len() as u32, columns: columns.collect() }
    }

    fn job_value(&self, id: u32, asking: &Asking<'_>, strings: &Strings, out: &mut Vec<i32>) {
        let Asking { job, placed, now, .. } = *asking;
        let (spec, request) = (&job.spec, &job.spec.request);
        let need = |need: Need| need as i32;
        out.push(match id {
            c::JOB_ID => opaque(job.uid.0),
            c::JOB_DEPARTMENT => job.owner.department,
            c::JOB_PROJECT => job.owner.project,
            c::JOB_USER => job.owner.user,
            c::JOB_KIND => spec.kind.code(),
            c::JOB_PRIORITY => i32::from(spec.priority.0),
            c::JOB_MEMBERS => saturate(u64::from(spec.members)),
            c::JOB_MIN_MEMBERS => saturate(u64::from(spec.min_members)),
            c::JOB_PLACED => saturate(u64::from(placed)),
            c::JOB_WAITED => {
                let waited = now.secs_since(job.since);
                saturate(waited - waited % self.step)
            }
            c::JOB_ATTEMPTS => saturate(u64::from(job.attempts)),
            c::JOB_PREEMPTIONS => saturate(u64::from(job.preemptions)),
            c::JOB_PREEMPTIBLE => i32::from(spec.preemptible),
            c::JOB_RUN_LIMIT => saturate(u64::from(spec.run_limit)),
            c::JOB_CARDS => saturate(request.cards()),
            c::JOB_CARD_MILLI => card_milli(job).to_s32(),
            c::JOB_CARD_MIB => card_mib(job).to_s32(),
            c::JOB_WHOLE_CARDS => {
                i32::from(request.gpu.as_ref().is_some_and(|g| g.share == Share::Whole))
            }
            c::JOB_CPU => request.cpu.to_s32(),
            c::JOB_MEMORY => request.memory.to_s32(),
            c::JOB_DISK_WEIGHT => i32::from(request.disk.weight),
            c::JOB_DISK_MBPS => request.disk.bandwidth.to_s32(),
            c::JOB_MODELS => {
                out.extend(request.models.iter().map(|m| strings.id(m)));
                return;
            }
            c::JOB_MIG_PROFILE => match request.gpu.as_ref().map(|g| &g.share) {
                Some(Share::Mig { profile }) => strings.id(profile),
                _ => 0,
            },
            c::JOB_NVLINK => need(request.nvlink),
            c::JOB_NUMA => need(request.numa),
            _ => 0,
        });
    }

    /// A node's row in one flat list: scalars, labels, relations, number of
    /// cards, card columns one after the other, link bandwidths.
    pub fn row(&self, node: &NodeState, job: &Job, strings: &Strings, out: &mut Vec<i32>) {
        for &id in &self.scalars {
            out.push(scalar(node, id));
        }
        for label in &self.labels {
            out.push(node.spec.labels.get(label.as_str()).map_or(0, |v| strings.id(v)));
        }
        for &id in &self.relations {
            out.push(relation(node, job, id));
        }
        if self.cards.is_empty() && !self.links {
            return;
        }
        let n = node.cards.len();
        out.push(n as i32);
        for &id in &self.cards {
            out.extend((0..n).map(|i| card(node, id, i)));
        }
        if self.links {
            let known = &node.spec.links.bandwidth;
            if known.len() == n * n {
                out.extend(known.iter().map(|b| i32::from(*b)));
            } else {
                out.extend(std::iter::repeat_n(0, n * n));
            }
        }
    }

    /// An empty node table with room for `rows`.
    pub fn table(&self, rows: usize) -> Table {
        let labels = (0..self.labels.len()).map(|i| LABELS + i as u32);
        let mut ids: Vec<u32> = self
            .scalars
            .iter()
            .copied()
            .chain(labels)
            .chain(self.relations.iter().copied())
            .collect();
        let fixed = ids.len();
        if !self.cards.is_empty() || self.links {
            ids.push(c::CARD_OFFSETS);
            ids.extend(&self.cards);
        }
        if self.links {
            ids.extend([c::LINK_OFFSETS, c::LINK_BANDWIDTH]);
        }
        let column = |(i, id)| {
            let mut values = Vec::with_capacity(if i < fixed { rows } else { rows * 8 + 1 });
            if id == c::CARD_OFFSETS || id == c::LINK_OFFSETS {
                values.push(0);
            }
            Column { id, values }
        };
        Table { rows: 0, columns: ids.into_iter().enumerate().map(column).collect() }
    }

    /// Appends a flat row to a table of this layout.
    pub fn append(&self, row: &[i32], table: &mut Table) {
        table.rows += 1;
        let fixed = self.scalars.len() + self.labels.len() + self.relations.len();
        let (scalars, rest) = row.split_at(fixed);
        for (column, value) in table.columns.iter_mut().zip(scalars) {
            column.values.push(*value);
        }
        let Some((&n, mut rest)) = rest.split_first() else { return };
        let n = n as usize;
        let mut columns = table.columns[fixed..].iter_mut();
        let offsets = |columns: &mut dyn Iterator<Item = &mut Column>, more: usize| {
            if let Some(column) = columns.next() {
                let last = column.values.last().copied().unwrap_or(0);
                column.values.push(last.saturating_add(more as i32));
            }
        };
        offsets(&mut columns, n);
        for column in columns.by_ref().take(self.cards.len()) {
            let (values, tail) = rest.split_at(n);
            column.values.extend_from_slice(values);
            rest = tail;
        }
        if self.links {
            offsets(&mut columns, n * n);
            if let Some(column) = columns.next() {
                column.values.extend_from_slice(rest);
            }
        }
    }
}

/// Whether a policy's answers for a row depend on the rows beside it.
pub fn whole_table(manifest: &Manifest) -> bool {
    manifest.option(c::OPTION_SCOPE) == 1
}

/// Whether the policy says anything about nodes at all.
pub fn speaks_of_nodes(manifest: &Manifest) -> bool {
    manifest.exports(Interface::Filter)
        || manifest.exports(Interface::Score)
        || manifest.exports(Interface::ScoreGroups)
}

/// As an s32, the most it can say where it is more.
pub fn saturate(n: u64) -> i32 {
    i32::try_from(n).unwrap_or(i32::MAX)
}

/// An identity that may only be compared; distinct for 2³¹ in a row.
pub fn opaque(uid: u64) -> i32 {
    (uid & 0x7fff_ffff) as i32
}

fn card_milli(job: &Job) -> MilliCards {
    match job.spec.request.gpu.as_ref().map(|g| &g.share) {
        Some(Share::Whole) => MilliCards::CARD,
        Some(Share::Part { milli, .. }) => *milli,
        _ => MilliCards::ZERO,
    }
}

fn card_mib(job: &Job) -> Mib {
    match job.spec.request.gpu.as_ref().map(|g| &g.share) {
        Some(Share::Part { memory: Some(memory), .. } | Share::Memory { memory }) => *memory,
        _ => Mib::ZERO,
    }
}

fn scalar(node: &NodeState, id: u32) -> i32 {
    let healthy = || node.spec.cards.iter().filter(|c| c.healthy);
    let cards = 0..node.cards.len();
    match id {
        c::NODE_ID => opaque(node.uid.0),
        c::NODE_CPU_TOTAL => node.spec.cpu.to_s32(),
        c::NODE_CPU_FREE => node.cpu_free().to_s32(),
        c::NODE_MEMORY_TOTAL => node.spec.memory.to_s32(),
        c::NODE_MEMORY_FREE => node.memory_free().to_s32(),
        c::NODE_CARDS => healthy().count() as i32,
        c::NODE_CARDS_IDLE => node.cards_idle() as i32,
        c::NODE_GPU_FREE => node.gpu_free().to_s32(),
        c::NODE_GPU_TOTAL => (MilliCards::CARD * healthy().count() as u64).to_s32(),
        c::NODE_GPU_MEMORY_FREE => cards.map(|i| node.card_free(i).1).sum::<Mib>().to_s32(),
        c::NODE_GPU_MEMORY_TOTAL => healthy().map(|c| c.memory).sum::<Mib>().to_s32(),
        c::NODE_DISK_FREE => node.disk_free().to_s32(),
        c::NODE_DISK_TOTAL => node.spec.disk.to_s32(),
        c::NODE_MODEL => node.texts.models.first().copied().unwrap_or(0),
        c::NODE_DOMAIN => node.texts.domain,
        c::NODE_ZONE => node.texts.zone,
        c::NODE_MEMBERS => saturate(u64::from(node.members)),
        c::NODE_GPU_CLASSES => {
            node.residents.iter().filter(|r| r.class >= 0).fold(0, |bits, r| bits | 1 << r.class)
        }
        _ => 0,
    }
}

fn relation(node: &NodeState, job: &Job, id: u32) -> i32 {
    let count = |f: &dyn Fn(&crate::node::Resident) -> bool| {
        saturate(node.residents.iter().filter(|r| f(r)).map(|r| u64::from(r.members)).sum())
    };
    let owner = job.owner;
    match id {
        c::NODE_SAME_JOB => count(&|r| r.job == job.uid),
        c::NODE_SAME_PROJECT => count(&|r| r.owner.project == owner.project),
        c::NODE_SAME_USER => count(&|r| r.owner.user == owner.user),
        c::NODE_SAME_QUEUE => count(&|r| r.owner.queue == owner.queue),
        c::NODE_SAME_DEPARTMENT => count(&|r| r.owner.department == owner.department),
        _ => 0,
    }
}

/// What of the job a relation column compares, so that answers are kept apart.
pub fn relation_key(job: &Job, id: u32) -> i32 {
    match id {
        c::NODE_SAME_JOB => opaque(job.uid.0),
        c::NODE_SAME_PROJECT => job.owner.project,
        c::NODE_SAME_USER => job.owner.user,
        c::NODE_SAME_QUEUE => job.owner.queue,
        _ => job.owner.department,
    }
}

fn card(node: &NodeState, id: u32, i: usize) -> i32 {
    let spec = &node.spec.cards[i];
    match id {
        c::CARD_FREE => node.card_free(i).0.to_s32(),
        c::CARD_MEMORY_FREE => node.card_free(i).1.to_s32(),
        c::CARD_MEMORY_TOTAL => spec.memory.to_s32(),
        c::CARD_MODEL => node.texts.models[i],
        c::CARD_NUMA => spec.numa.map_or(-1, i32::from),
        c::CARD_HEALTHY => i32::from(spec.healthy),
        c::CARD_SHARES => i32::from(node.cards[i].shares),
        c::CARD_MIG => i32::from(spec.mig != MigMode::Off),
        // Alone in its group without NVLink: a number that no group has.
        c::CARD_LINK_GROUP => node.spec.links.group(i).map_or(100_000 + i as i32, i32::from),
        _ => 0,
    }
}

/// The numbers of a node's texts, found once when it is described.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Texts {
    /// Of the interconnect domain.
    pub domain: i32,
    /// Of the zone.
    pub zone: i32,
    /// Of each card's model.
    pub models: Vec<i32>,
}

impl Texts {
    /// Numbers the texts of a description, those of its labels included: a text
    /// has its number from when it is journalled, so that a replay sees the
    /// same ones whatever was decided in between.
    pub fn new(spec: &crater_model::NodeSpec, strings: &Strings) -> Arc<Self> {
        for value in spec.labels.values() {
            strings.id(value);
        }
        Arc::new(Self {
            domain: strings.id(&spec.domain),
            zone: strings.id(&spec.zone),
            models: spec.cards.iter().map(|c| strings.id(&c.model)).collect(),
        })
    }
}
