//! Slow knowledge for `prepare`: the workload's mix and the cluster's sorts of
//! nodes.

use crate::policy::{Column, Values};
use crate::state::State;
use crate::strings::Strings;
use crater_model::columns as c;
use crater_model::{Mib, MilliCards, MilliCores};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// One shape of job and how often it was asked for. Serialised, each amount
/// says its unit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MixShape {
    /// Times.
    pub weight: u64,
    /// CPU.
    #[serde(rename = "cpu_milli", default)]
    pub cpu: MilliCores,
    /// Memory.
    #[serde(rename = "memory_mib", default)]
    pub memory: Mib,
    /// Cards.
    #[serde(default)]
    pub cards: u64,
    /// Share asked of each.
    #[serde(rename = "card_milli", default)]
    pub milli: MilliCards,
    /// Memory asked of each; none in proportion.
    #[serde(rename = "card_memory_mib", default)]
    pub card_memory: Mib,
    /// Card models it may use; empty for any.
    #[serde(default)]
    pub models: Vec<Arc<str>>,
}

/// CPU, memory, number of cards, their model and their memory.
type Class = (u64, u64, usize, i32, u64);

/// All facts that there are, for the policy's wishes to choose from.
pub fn facts(mix: &[MixShape], state: &State) -> Values {
    let strings: &Strings = &state.strings;
    let saturate = |n: u64| i32::try_from(n).unwrap_or(i32::MAX);
    let mut offsets = vec![0];
    let mut models = vec![];
    for shape in mix {
        models.extend(shape.models.iter().map(|m| strings.id(m)));
        offsets.push(models.len() as i32);
    }
    let of_mix =
        |id, f: &dyn Fn(&MixShape) -> i32| Column { id, values: mix.iter().map(f).collect() };
    let mut classes: BTreeMap<Class, u64> = BTreeMap::new();
    for node in state.nodes() {
        let spec = &node.spec;
        let model = node.texts.models.first().copied().unwrap_or(0);
        let card = spec.cards.first().map_or(0, |c| c.memory.0);
        let key = (spec.cpu.0, spec.memory.0, spec.cards.len(), model, card);
        *classes.entry(key).or_default() += 1;
    }
    let of_class = |id, f: &dyn Fn(&Class, u64) -> u64| Column {
        id,
        values: classes.iter().map(|(k, n)| saturate(f(k, *n))).collect(),
    };
    vec![
        of_mix(c::MIX_WEIGHT, &|s| saturate(s.weight)),
        of_mix(c::MIX_CPU, &|s| s.cpu.to_s32()),
        of_mix(c::MIX_MEMORY, &|s| s.memory.to_s32()),
        of_mix(c::MIX_CARDS, &|s| saturate(s.cards)),
        of_mix(c::MIX_CARD_MILLI, &|s| s.milli.to_s32()),
        of_mix(c::MIX_CARD_MIB, &|s| s.card_memory.to_s32()),
        Column { id: c::MIX_MODELS_OFFSETS, values: offsets },
        Column { id: c::MIX_MODELS, values: models },
        of_class(c::CLASS_NODES, &|_, n| n),
        of_class(c::CLASS_CPU, &|k, _| k.0),
        of_class(c::CLASS_MEMORY, &|k, _| k.1),
        of_class(c::CLASS_CARDS, &|k, _| k.2 as u64),
        of_class(c::CLASS_MODEL, &|k, _| k.3 as u64),
        of_class(c::CLASS_CARD_MIB, &|k, _| k.4),
    ]
}
