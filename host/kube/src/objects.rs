//! Crater's own objects in the API server. Written by hand, as the manifests
//! are: see manifests/crds.yaml.

use crate::cards::Assigned;
use k8s_openapi::ClusterResourceScope;
use kube::api::ObjectMeta;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// The group of all of them.
pub const GROUP: &str = "crater.io";
/// Their version.
pub const VERSION: &str = "v1alpha1";
/// `group/version`.
pub const API_VERSION: &str = "crater.io/v1alpha1";

macro_rules! object {
    ($(#[$doc:meta])* $name:ident, $plural:literal, $spec:ty) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Serialize, Deserialize)]
        pub struct $name {
            /// Always `crater.io/v1alpha1`.
            #[serde(rename = "apiVersion")]
            pub api_version: Cow<'static, str>,
            /// The kind.
            pub kind: Cow<'static, str>,
            /// Name, version and so on; the name is the node's.
            pub metadata: ObjectMeta,
            /// What it says.
            pub spec: $spec,
        }

        impl $name {
            /// An object of that name.
            pub fn new(name: &str, spec: $spec) -> Self {
                let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
                Self {
                    api_version: API_VERSION.into(),
                    kind: stringify!($name).into(),
                    metadata,
                    spec,
                }
            }
        }

        impl kube::Resource for $name {
            type DynamicType = ();
            type Scope = ClusterResourceScope;
            fn kind(_: &()) -> Cow<'_, str> {
                stringify!($name).into()
            }
            fn group(_: &()) -> Cow<'_, str> {
                GROUP.into()
            }
            fn version(_: &()) -> Cow<'_, str> {
                VERSION.into()
            }
            fn plural(_: &()) -> Cow<'_, str> {
                $plural.into()
            }
            fn meta(&self) -> &ObjectMeta {
                &self.metadata
            }
            fn meta_mut(&mut self) -> &mut ObjectMeta {
                &mut self.metadata
            }
        }
    };
}

object!(
    /// The cards of a node, one object a node: written by the node's agent, or
    /// by hand.
    NodeInventory,
    "nodeinventories",
    InventorySpec
);
object!(
    /// What the leader has promised on a node and does not yet know to be
    /// bound, one object a node. Written by compare-and-swap only.
    NodeClaims,
    "nodeclaims",
    ClaimsSpec
);

/// What a machine has beside what its Node says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InventorySpec {
    /// uid of the Node that was looked at; another machine of the same name
    /// does not have these cards. Empty: whichever Node has the name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub node_uid: String,
    /// The cards.
    #[serde(default)]
    pub cards: Vec<Card>,
    /// Disk bandwidth that may be reserved, MB/s.
    #[serde(default)]
    pub disk_mb_per_sec: u64,
    /// Disk operations a second that may be reserved.
    #[serde(default)]
    pub disk_iops: u64,
}

/// A GPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Card {
    /// Place on the node, from 0 without gaps.
    pub index: u8,
    /// The driver's uuid.
    pub uuid: String,
    /// Model.
    pub model: String,
    /// Memory as the driver reports it, MiB.
    #[serde(rename = "memoryMiB")]
    pub memory_mib: u64,
    /// NUMA node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub numa: Option<u16>,
    /// Cards with one number reach each other by `NVLink`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link_group: Option<u16>,
    /// Whether it may be used.
    #[serde(default = "yes")]
    pub healthy: bool,
    /// Memory is promised in multiples of so many MiB.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "sliceMiB")]
    pub slice_mib: Option<u64>,
    /// Whether MIG is on; instances are then cut as they are asked for, unless
    /// some are named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mig: Option<Mig>,
}

fn yes() -> bool {
    true
}

/// How a card is cut.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mig {
    /// What is cut; empty: Crater cuts.
    #[serde(default)]
    pub instances: Vec<MigInstance>,
}

/// A MIG instance at a placement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MigInstance {
    /// NVIDIA's name, such as `1g.10gb`.
    pub profile: String,
    /// First memory slice.
    pub start: u8,
}

/// What is promised.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClaimsSpec {
    /// The leader that wrote it. A leader never writes over a greater one.
    pub epoch: u64,
    /// uid of the Node.
    #[serde(default)]
    pub node_uid: String,
    /// Pods that are promised room here and were not yet seen bound.
    #[serde(default)]
    pub claims: Vec<Promise>,
}

/// Room that is promised to a pod.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Promise {
    /// Whom, by uid: a pod that comes back under its name is another one.
    pub pod_uid: String,
    /// Its namespace and name, for people.
    pub pod: String,
    /// Its cards.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cards: Vec<Assigned>,
}
