//! A machine: what its Node and its `NodeInventory` say together.

use crate::objects::{Card, InventorySpec, NodeInventory};
use crate::quantity::{self, Rounding};
use crate::want::{NAME_LABEL, effect};
use crater_model::mig::{Geometry, Instance};
use crater_model::select::{Labels, Taint};
use crater_model::{
    CardSpec, FieldError, Iops, Links, MbPerSec, Mib, MigMode, MilliCores, NodeSpec,
};
use k8s_openapi::api::core::v1::Node;
use std::sync::Arc;

/// A Node, as far as it counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeSeen {
    /// Its identity: a machine that comes back under a name is another one.
    pub uid: Arc<str>,
    /// Its name, by which pods are bound to it.
    pub name: Arc<str>,
    /// Its description without cards.
    spec: NodeSpec,
}

impl NodeSeen {
    /// Reads what counts. What cannot be read counts as nothing.
    pub fn new(node: &Node) -> Self {
        let meta = &node.metadata;
        let name: Arc<str> = meta.name.as_deref().unwrap_or_default().into();
        let uid: Arc<str> = meta.uid.as_deref().unwrap_or_default().into();
        let allocatable = node.status.as_ref().and_then(|s| s.allocatable.as_ref());
        let amount = |key: &str| allocatable.and_then(|a| a.get(key)).map(|q| q.0.as_str());
        let down = Rounding::Down;
        let cpu = amount("cpu").and_then(|t| quantity::cpu("cpu", t, down).ok());
        let memory = amount("memory").and_then(|t| quantity::memory("memory", t, down).ok());
        let pods = amount("pods").and_then(|t| quantity::count("pods", t, down).ok());
        let mut labels: Labels = meta
            .labels
            .iter()
            .flatten()
            .map(|(k, v)| (k.as_str().into(), v.as_str().into()))
            .collect();
        let label = |key: &str| labels.get(key).cloned().unwrap_or_default();
        let (domain, zone) = (label("crater.io/domain"), label("topology.kubernetes.io/zone"));
        labels.insert(NAME_LABEL.into(), name.clone());
        let taints = node.spec.as_ref().and_then(|s| s.taints.as_ref());
        let taints = taints.into_iter().flatten().filter_map(|t| {
            Some(Taint {
                key: t.key.as_str().into(),
                value: t.value.as_deref().unwrap_or_default().into(),
                effect: effect(&t.effect).ok()?,
            })
        });
        let ready = node
            .status
            .as_ref()
            .and_then(|s| s.conditions.as_ref())
            .is_some_and(|all| all.iter().any(|c| c.type_ == "Ready" && c.status == "True"));
        let closed = node.spec.as_ref().and_then(|s| s.unschedulable) == Some(true);
        // Names of nodes may be longer than names of ours; a uid is not.
        let short = crater_model::id::check_name("node name", &name).is_ok();
        let spec = NodeSpec {
            members: pods.map_or(110, |n| u32::try_from(n).unwrap_or(u32::MAX)),
            labels,
            taints: taints.collect(),
            domain,
            zone,
            cordoned: closed || !ready,
            ..NodeSpec::new(
                if short { &name } else { &uid },
                cpu.unwrap_or(MilliCores::ZERO),
                memory.unwrap_or(Mib::ZERO),
            )
        };
        Self { uid, name, spec }
    }
}

/// A machine's inventory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InventorySeen {
    /// The node's name.
    pub name: Arc<str>,
    /// What it says.
    pub spec: InventorySpec,
}

impl InventorySeen {
    /// Reads an object.
    pub fn new(object: &NodeInventory) -> Self {
        let name = object.metadata.name.as_deref().unwrap_or_default();
        Self { name: name.into(), spec: object.spec.clone() }
    }
}

/// A machine for the books, with the uuids of its cards by index. An inventory
/// of another machine, or one that contradicts itself, gives no cards: the
/// machine still takes work without GPU.
pub fn describe(
    node: &NodeSeen,
    inventory: Option<&InventorySeen>,
) -> (NodeSpec, Vec<Arc<str>>, Option<FieldError>) {
    let bare = || node.spec.clone();
    let Some(inventory) = inventory.map(|i| &i.spec) else { return (bare(), vec![], None) };
    if !inventory.node_uid.is_empty() && *inventory.node_uid != *node.uid {
        return (bare(), vec![], None);
    }
    match with_cards(bare(), inventory) {
        Ok((spec, uuids)) => (spec, uuids, None),
        Err(error) => (bare(), vec![], Some(error)),
    }
}

fn with_cards(
    mut spec: NodeSpec,
    inventory: &InventorySpec,
) -> Result<(NodeSpec, Vec<Arc<str>>), FieldError> {
    let mut cards: Vec<&Card> = inventory.cards.iter().collect();
    cards.sort_by_key(|c| c.index);
    let mut uuids: Vec<Arc<str>> = vec![];
    for (i, card) in cards.iter().enumerate() {
        if usize::from(card.index) != i {
            let expected = format!("{i}: indices count from 0 without gaps");
            return Err(FieldError::new("card index", &card.index.to_string(), expected));
        }
        if card.uuid.is_empty() || uuids.iter().any(|u| **u == *card.uuid) {
            return Err(FieldError::new("card uuid", &card.uuid, "one of its own for each card"));
        }
        uuids.push(card.uuid.as_str().into());
        spec.cards.push(CardSpec {
            numa: card.numa,
            healthy: card.healthy,
            slice: card.slice_mib.map(Mib),
            mig: mig(card)?,
            ..CardSpec::new(&card.model, Mib(card.memory_mib))
        });
    }
    if cards.iter().any(|c| c.link_group.is_some()) {
        // Cards without a group get one each, from the far end.
        let alone = (0..=u16::MAX).rev();
        let groups = cards.iter().zip(alone).map(|(c, own)| c.link_group.unwrap_or(own));
        spec.links = Links { groups: groups.collect(), bandwidth: vec![] };
    }
    spec.disk = MbPerSec(inventory.disk_mb_per_sec);
    spec.iops = Iops(inventory.disk_iops);
    spec.check()?;
    Ok((spec, uuids))
}

fn mig(card: &Card) -> Result<MigMode, FieldError> {
    let Some(mig) = &card.mig else { return Ok(MigMode::Off) };
    let geometry = Geometry::of_model(&card.model).ok_or_else(|| {
        FieldError::new("card mig", &card.model, "no MIG on a model whose placements are unknown")
    })?;
    let geometry = Arc::new(geometry);
    if mig.instances.is_empty() {
        return Ok(MigMode::Free(geometry));
    }
    let instance = |i: &crate::objects::MigInstance| Instance {
        profile: (&*i.profile).into(),
        start: i.start,
    };
    Ok(MigMode::Fixed { geometry, instances: mig.instances.iter().map(instance).collect() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn node(uid: &str) -> NodeSeen {
        NodeSeen::new(
            &serde_json::from_value(json!({
                "metadata": {"name": "n1", "uid": uid, "labels": {"zone": "a"}},
                "spec": {"taints": [{"key": "gpu", "effect": "NoSchedule"}]},
                "status": {
                    "allocatable": {"cpu": "64", "memory": "512Gi", "pods": "250"},
                    "conditions": [{"type": "Ready", "status": "True"}],
                },
            }))
            .unwrap(),
        )
    }

    fn inventory(cards: &serde_json::Value) -> InventorySeen {
        let spec = json!({"nodeUid": "u1", "cards": cards});
        InventorySeen { name: "n1".into(), spec: serde_json::from_value(spec).unwrap() }
    }

    #[test]
    fn a_node_and_its_inventory_make_a_machine() {
        let cards = json!([
            {"index": 1, "uuid": "GPU-b", "model": "H100", "memoryMiB": 81559, "linkGroup": 0},
            {"index": 0, "uuid": "GPU-a", "model": "H100", "memoryMiB": 81559, "healthy": false},
        ]);
        let (spec, uuids, error) = describe(&node("u1"), Some(&inventory(&cards)));
        assert_eq!(error, None);
        assert_eq!((spec.cpu, spec.memory, spec.members), (MilliCores(64_000), Mib(524_288), 250));
        assert_eq!(uuids, ["GPU-a".into(), "GPU-b".into()]);
        assert_eq!((spec.cards[0].healthy, spec.cards[1].healthy), (false, true));
        assert!(!spec.cordoned);
        let (other, _, error) = describe(&node("u2"), Some(&inventory(&cards)));
        assert_eq!((other.cards.len(), error), (0, None), "another machine of the same name");
    }

    #[test]
    fn an_inventory_that_contradicts_itself_gives_no_cards() {
        let card = |index: u8, uuid: &str| json!({"index": index, "uuid": uuid, "model": "T4", "memoryMiB": 15109});
        for bad in [
            json!([card(1, "a")]),
            json!([card(0, "a"), card(1, "a")]),
            json!([{"index": 0, "uuid": "a", "model": "T4", "memoryMiB": 15109, "mig": {}}]),
        ] {
            let (spec, _, error) = describe(&node("u1"), Some(&inventory(&bad)));
            assert!(error.is_some(), "{bad}");
            assert_eq!((spec.cards.len(), spec.cpu), (0, MilliCores(64_000)));
        }
    }
}
