//! Machines that exist only here, as the configuration declares them.

use super::Text;
use crater_model::parse::{cpu, memory};
use crater_model::{CardSpec, FieldError, Iops, MbPerSec, NodeSpec};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

/// Equal machines.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema, PartialEq)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Nodes {
    /// Their name; with a count above 1 each gets a number: gpu-node-01.
    pub name: String,
    /// How many.
    #[serde(default = "one")]
    pub count: u32,
    /// Cores of each.
    pub cpu: Text,
    /// Memory of each, such as 1Ti.
    pub memory: Text,
    /// Disk bandwidth of each in MB/s.
    #[serde(default)]
    pub disk: u64,
    /// Disk operations of each in a second.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub iops: u64,
    /// Cards of each: a group of equal ones, or a list of groups, numbered on
    /// from one to the next.
    #[serde(default, skip_serializing_if = "CardGroups::is_empty")]
    pub cards: CardGroups,
    /// Cards, by number, that may not be used.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sick: Vec<u32>,
    /// Labels.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Interconnect domain.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub domain: String,
    /// Zone.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub zone: String,
}

/// Equal cards of a machine.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema, PartialEq)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Cards {
    /// How many.
    pub count: u32,
    /// Their model.
    pub model: String,
    /// Memory of each, such as 80Gi.
    pub memory: Text,
    /// Memory is promised in multiples of this, such as 8192.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slice: Option<Text>,
    /// Cards that reach each other by `NVLink`, in groups of so many.
    #[serde(default)]
    pub nvlink: u32,
    /// NUMA node that they hang on; unknown without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub numa: Option<u16>,
    /// MIG cuts them, as instances are asked for.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub mig: bool,
    /// Each is cut by MIG into these instances and no others, such as 2g.20gb@0.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub instances: Vec<String>,
}

/// Cards of a machine: nothing, one group, or a list of groups.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CardGroups(pub Vec<Cards>);

impl CardGroups {
    /// There are none.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Serialize for CardGroups {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match &self.0[..] {
            [one] => one.serialize(to),
            many => many.serialize(to),
        }
    }
}

impl<'de> Deserialize<'de> for CardGroups {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        /// By hand, so that a wrong field is named, which a guess between two
        /// shapes would not do.
        struct OneOrMany;
        impl<'de> Visitor<'de> for OneOrMany {
            type Value = CardGroups;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(
                    "cards, such as {count: 8, model: A100, memory: 80Gi}, or a list of them",
                )
            }
            fn visit_unit<E>(self) -> Result<CardGroups, E> {
                Ok(CardGroups::default())
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<CardGroups, A::Error> {
                let one = Cards::deserialize(MapAccessDeserializer::new(map))?;
                Ok(CardGroups(vec![one]))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<CardGroups, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(list)).map(CardGroups)
            }
        }
        from.deserialize_any(OneOrMany)
    }
}

impl JsonSchema for CardGroups {
    fn schema_name() -> Cow<'static, str> {
        "CardGroups".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let (one, many) =
            (generator.subschema_for::<Cards>(), generator.subschema_for::<Vec<Cards>>());
        json_schema!({ "anyOf": [one, many] })
    }
}

fn one() -> u32 {
    1
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "as serde asks for it")]
const fn is_zero(n: &u64) -> bool {
    *n == 0
}

impl Nodes {
    /// The machines of a server that was told of none.
    pub(super) fn usual() -> Self {
        let cards = Cards {
            count: 8,
            model: "A100-80GB".into(),
            memory: Text("80Gi".into()),
            slice: None,
            nvlink: 8,
            numa: None,
            mig: false,
            instances: vec![],
        };
        Self {
            name: "gpu-node".into(),
            count: 8,
            cpu: Text("128".into()),
            memory: Text("1Ti".into()),
            disk: 4000,
            iops: 0,
            cards: CardGroups(vec![cards]),
            sick: vec![],
            labels: BTreeMap::new(),
            domain: String::new(),
            zone: String::new(),
        }
    }

    /// Each machine in the engine's words.
    pub(super) fn specs(&self) -> Result<Vec<NodeSpec>, FieldError> {
        if !(1..=100_000).contains(&self.count) {
            return Err(FieldError::new("count", &self.count.to_string(), "1 to 100000"));
        }
        let mut spec =
            NodeSpec::new(&self.name, cpu("cpu", &self.cpu.0)?, memory("memory", &self.memory.0)?);
        spec.disk = MbPerSec(self.disk);
        spec.iops = Iops(self.iops);
        spec.domain = self.domain.as_str().into();
        spec.zone = self.zone.as_str().into();
        let labels = self.labels.iter();
        spec.labels = labels.map(|(k, v)| (k.as_str().into(), v.as_str().into())).collect();
        for cards in &self.cards.0 {
            cards.join(&mut spec)?;
        }
        if self.cards.0.iter().all(|cards| cards.nvlink <= 1) {
            spec.links.groups.clear();
        }
        for number in &self.sick {
            let card = spec.cards.get_mut(*number as usize);
            let refused = || FieldError::new("sick", &number.to_string(), "cards of the node");
            card.ok_or_else(refused)?.healthy = false;
        }
        let width = self.count.to_string().len().max(2);
        let numbered = |i: u32| match self.count {
            1 => self.name.clone(),
            _ => format!("{}-{i:0width$}", self.name),
        };
        (1..=self.count)
            .map(|i| {
                let named = NodeSpec { name: numbered(i).into(), ..spec.clone() };
                named.check().map(|()| named)
            })
            .collect()
    }
}

impl Cards {
    /// Adds them to a machine; who is linked to nobody has a group of its own.
    fn join(&self, spec: &mut NodeSpec) -> Result<(), FieldError> {
        let first = spec.cards.len();
        if first as u64 + u64::from(self.count) > 255 {
            return Err(FieldError::new("cards", &self.count.to_string(), "at most 255 cards"));
        }
        let mut card = CardSpec::new(&self.model, memory("cards.memory", &self.memory.0)?);
        card.slice = self.slice.as_ref().map(|s| memory("cards.slice", &s.0)).transpose()?;
        card.numa = self.numa;
        if self.mig || !self.instances.is_empty() {
            let listed = self.instances.iter().map(String::as_str);
            card.mig = card.cut(Some(listed).filter(|_| !self.instances.is_empty()))?;
        }
        // Numbered by their first cards: no two groups have the same.
        let group = |nth: u32| first as u32 + nth / self.nvlink.max(1) * self.nvlink.max(1);
        spec.links.groups.extend((0..self.count).map(|nth| group(nth) as u16));
        spec.cards.extend(std::iter::repeat_n(card, self.count as usize));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crater_model::{Mib, MigMode};

    fn node(cards: &str) -> Result<NodeSpec, String> {
        let text = format!("name: n\ncpu: 8\nmemory: 32Gi\n{cards}");
        let nodes: Nodes = serde_saphyr::from_str(&text).map_err(|e| e.to_string())?;
        nodes.specs().map(|mut specs| specs.remove(0)).map_err(|e| e.to_string())
    }

    #[test]
    fn one_group_of_cards_is_written_without_a_list() {
        let spec = node("cards: {count: 4, model: A100, memory: 80Gi, nvlink: 2}").unwrap();
        assert_eq!((spec.cards.len(), &spec.links.groups[..]), (4, &[0, 0, 2, 2][..]));
        let plain = node("cards: {count: 2, model: T4, memory: 16Gi}").unwrap();
        assert!(plain.links.groups.is_empty());
        assert!(node("").unwrap().cards.is_empty());
    }

    #[test]
    fn groups_of_cards_are_numbered_on() {
        let spec = node(
            "cards:\n- {count: 1, model: small, memory: 10Gi, numa: 0}\n\
             - {count: 2, model: A100, memory: 40Gi, nvlink: 2, numa: 1, mig: true}\n\
             - {count: 1, model: A100, memory: 80Gi, instances: [2g.20gb@0, 1g.10gb@2]}\nsick: [0]\n",
        );
        let spec = spec.unwrap();
        let cards: Vec<_> = spec.cards.iter().map(|c| (c.memory, c.numa, c.healthy)).collect();
        let expected = [
            (Mib(10_240), Some(0), false),
            (Mib(40_960), Some(1), true),
            (Mib(40_960), Some(1), true),
            (Mib(81_920), None, true),
        ];
        assert_eq!(cards, expected);
        let groups: Vec<_> = (0..4).map(|card| spec.links.group(card)).collect();
        assert_eq!(groups, [None, Some(1), Some(1), None]);
        assert!(matches!(spec.cards[1].mig, MigMode::Free(_)));
        let MigMode::Fixed { instances, .. } = &spec.cards[3].mig else { panic!("{spec:?}") };
        assert_eq!(instances.len(), 2);
    }

    #[test]
    fn what_is_wrong_with_cards_is_named() {
        for (cards, part) in [
            ("cards: {count: 1, model: T4}", "memory"),
            ("cards: {count: 1, model: T4, memory: 16Gi, nvlinks: 2}", "nvlinks"),
            ("cards: [{count: 1, model: T4, memory: 16Gi, nvlinks: 2}]", "nvlinks"),
            ("cards: many", "a list of them"),
            ("cards: {count: 300, model: T4, memory: 16Gi}", "at most 255 cards"),
            ("cards: {count: 1, model: T4, memory: 16Gi, mig: true}", "that MIG can cut"),
            ("cards: {count: 1, model: A100, memory: 40Gi, instances: [9g@0]}", "card mig"),
            ("cards: {count: 1, model: A100, memory: 40Gi, instances: [1g.5gb]}", "such as"),
            ("sick: [0]", "cards of the node"),
        ] {
            let error = node(cards).unwrap_err();
            assert!(error.contains(part), "{cards}: {error}");
        }
    }

    #[test]
    fn what_is_written_is_read_again() {
        for cards in [
            "",
            "cards: {count: 8, model: A100, memory: 80Gi, nvlink: 8}",
            "cards: [{count: 1, model: a, memory: 1Gi}, {count: 1, model: b, memory: 2Gi, numa: 1}]",
        ] {
            let text = format!("name: n\ncpu: 8\nmemory: 32Gi\niops: 7\n{cards}");
            let nodes: Nodes = serde_saphyr::from_str(&text).unwrap();
            let json = serde_json::to_string(&nodes).unwrap();
            assert_eq!(serde_json::from_str::<Nodes>(&json).unwrap(), nodes, "{json}");
        }
    }
}
