//! What every trace is read or generated into.

use crater_model::{GpuAsk, Mib, MilliCards, MilliCores, NodeSpec, Request, Share};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// A cluster and what arrives at it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// Name, such as `default` or `gpuspec33`.
    pub name: String,
    /// The machines.
    pub nodes: Vec<NodeSpec>,
    /// What arrives, in the order of the file.
    pub pods: Vec<Pod>,
}

impl Trace {
    /// Cards of all machines.
    pub fn gpus(&self) -> u64 {
        self.nodes.iter().map(|n| n.cards.len() as u64).sum()
    }
}

/// How much a pod is promised, in the words of the openb traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Qos {
    /// `LS`, latency sensitive.
    LatencySensitive,
    /// `BE`, best effort.
    BestEffort,
    /// `Burstable`.
    Burstable,
    /// `Guaranteed`.
    Guaranteed,
}

/// Pods by what they ask of cards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// No card.
    CpuOnly,
    /// A part of one card.
    Fraction,
    /// One whole card.
    OneCard,
    /// Two whole cards or more.
    SeveralCards,
}

impl Class {
    /// All of them, in order.
    pub const ALL: [Self; 4] = [Self::CpuOnly, Self::Fraction, Self::OneCard, Self::SeveralCards];
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::CpuOnly => "CPU only",
            Self::Fraction => "part of a card",
            Self::OneCard => "one card",
            Self::SeveralCards => "several cards",
        })
    }
}

/// One arrival of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pod {
    /// Name, unique in its trace.
    pub name: Arc<str>,
    /// CPU.
    pub cpu: MilliCores,
    /// Memory; 0 where the trace says so.
    pub memory: Mib,
    /// Number of cards.
    pub cards: u64,
    /// Share of each card: 0 without cards, 1–1000 of one card, 1000 of
    /// several.
    pub card_milli: MilliCards,
    /// Card models that it may use, sorted and distinct; empty means any.
    pub models: Vec<Arc<str>>,
    /// The models as the trace writes them, in its order and with its
    /// repetitions: the published experiment takes other words for another
    /// shape of pod.
    pub spec: Arc<str>,
    /// When it arrives, in seconds from the trace's own beginning.
    pub arrive: Option<u64>,
    /// When it leaves, on the same clock, never before it arrives.
    pub leave: Option<u64>,
    /// What it is promised, where the trace says so.
    pub qos: Option<Qos>,
}

impl Pod {
    /// Share of all its cards together.
    pub fn gpu(&self) -> MilliCards {
        self.card_milli * self.cards
    }

    /// The class that it belongs to.
    pub fn class(&self) -> Class {
        match self.cards {
            0 => Class::CpuOnly,
            1 if self.card_milli < MilliCards::CARD => Class::Fraction,
            1 => Class::OneCard,
            _ => Class::SeveralCards,
        }
    }

    /// How long it runs in seconds, where the trace says both ends.
    pub fn seconds(&self) -> Option<u64> {
        Some(self.leave?.saturating_sub(self.arrive?))
    }

    /// What it asks for. A card must come with CPU and memory, so that a pod
    /// of the trace with a card and none of them asks for the least amount.
    pub fn request(&self) -> Request {
        let share = match self.class() {
            Class::Fraction => Share::Part { milli: self.card_milli, memory: None },
            _ => Share::Whole,
        };
        let gpu = (self.cards > 0).then_some(GpuAsk { cards: self.cards, share });
        let least = u64::from(gpu.is_some());
        Request {
            gpu,
            cpu: self.cpu.max(MilliCores(least)),
            memory: self.memory.max(Mib(least)),
            models: self.models.clone(),
            ..Request::default()
        }
    }
}
