//! Nodes and what is used of the whole.

use crate::app::App;
use crate::auth::Caller;
use crate::extract::{Body, Path};
use crate::problem::Problem;
use axum::Json;
use axum::extract::State as Shared;
use crater_engine::State;
use crater_engine::node::NodeState;
use crater_model::{JobState, NodeSpec};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct NodeView {
    /// Name.
    pub name: String,
    /// Nothing new starts here.
    pub cordoned: bool,
    /// Cores, in thousandths.
    pub cpu_milli: u64,
    /// Of them not promised.
    pub cpu_free_milli: u64,
    /// Memory in MiB.
    pub memory_mib: u64,
    /// Of it not promised.
    pub memory_free_mib: u64,
    /// Reserved disk bandwidth that it has, in MB/s.
    pub disk_mbps: u64,
    /// Of it not promised.
    #[serde(default)]
    pub disk_free_mbps: u64,
    /// Disk operations a second that may be reserved.
    #[serde(default)]
    pub iops: u64,
    /// Of them not promised.
    #[serde(default)]
    pub iops_free: u64,
    /// Members on it.
    pub members: u64,
    /// Cards.
    pub cards: Vec<NodeCard>,
}

/// A card of a machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct NodeCard {
    /// Index.
    pub card: u64,
    /// Model.
    pub model: String,
    /// Whether it may be used.
    pub healthy: bool,
    /// Memory in MiB.
    pub memory_mib: u64,
    /// Of it promised.
    pub used_mib: u64,
    /// Share promised, in thousandths.
    pub used_milli: u64,
    /// Claims on it.
    pub claims: u64,
}

fn view(node: &NodeState) -> NodeView {
    let cards = node.spec.cards.iter().zip(&node.cards).enumerate();
    NodeView {
        name: node.spec.name.to_string(),
        cordoned: node.spec.cordoned,
        cpu_milli: node.spec.cpu.0,
        cpu_free_milli: node.cpu_free().0,
        memory_mib: node.spec.memory.0,
        memory_free_mib: node.memory_free().0,
        disk_mbps: node.spec.disk.0,
        disk_free_mbps: node.disk_free().0,
        iops: node.spec.iops.0,
        iops_free: node.iops_free().0,
        members: u64::from(node.members),
        cards: cards
            .map(|(card, (spec, used))| NodeCard {
                card: card as u64,
                model: spec.model.to_string(),
                healthy: spec.healthy,
                memory_mib: spec.memory.0,
                used_mib: used.memory.0,
                used_milli: used.milli.0,
                claims: u64::from(used.shares),
            })
            .collect(),
    }
}

/// Lists nodes by name.
#[utoipa::path(get, path = "/api/v1/nodes", tag = "cluster", responses((status = 200, body = Vec<NodeView>)))]
pub async fn nodes(Shared(app): Shared<App>, _: Caller) -> Json<Vec<NodeView>> {
    let books = app.system.books.view();
    let mut nodes: Vec<NodeView> = books.state.nodes().map(|node| view(node)).collect();
    nodes.sort_by(|a, b| a.name.cmp(&b.name));
    Json(nodes)
}

/// Changes of a node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct NodeChange {
    /// Nothing new starts here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cordoned: Option<bool>,
    /// What runs here ends and starts elsewhere; cordons, too.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub drain: bool,
}

/// Cordons, uncordons or drains a node.
#[utoipa::path(patch, path = "/api/v1/nodes/{name}", tag = "cluster", params(("name" = String, Path)), request_body = NodeChange,
    responses((status = 200, body = NodeView), (status = 403, body = Problem), (status = 404, body = Problem)))]
pub async fn change(
    Shared(app): Shared<App>,
    caller: Caller,
    Path(name): Path<String>,
    Body(change): Body<NodeChange>,
) -> Result<Json<NodeView>, Problem> {
    caller.admin()?;
    let find = |state: &State| {
        let found = state.nodes().find(|node| *node.spec.name == *name);
        found.map(|node| (node.uid, node.spec.clone()))
    };
    let (uid, spec) =
        find(&app.system.books.view().state).ok_or_else(|| Problem::unknown("node", &name))?;
    let cordoned = if change.drain { true } else { change.cordoned.unwrap_or(spec.cordoned) };
    let (spec, drain) = (NodeSpec { cordoned, ..(*spec).clone() }, change.drain);
    let done = app.system.books.change(move |writer| {
        writer.ledger.change_node(writer.now, uid, spec)?;
        let claims: Vec<_> = writer
            .state()
            .claims()
            .filter(|claim| drain && claim.node == uid)
            .map(|claim| claim.uid)
            .collect();
        for claim in claims {
            writer.ledger.move_claim(writer.now, claim, crater_model::ClaimState::Releasing)?;
        }
        Ok::<(), crater_engine::ledger::Refusal>(())
    });
    done.await??;
    let books = app.system.books.view();
    let found = books.state.node(uid).map(|node| view(node));
    found.map(Json).ok_or_else(|| Problem::unknown("node", &name))
}

/// The cluster in figures.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ClusterView {
    /// Nodes.
    pub nodes: u64,
    /// Cards.
    pub cards: u64,
    /// Cards of which something is promised.
    pub cards_in_use: u64,
    /// Share of all cards, in thousandths.
    pub gpu_milli: u64,
    /// Of it promised.
    pub gpu_used_milli: u64,
    /// GPU memory in MiB.
    pub gpu_memory_mib: u64,
    /// Of it promised.
    pub gpu_memory_used_mib: u64,
    /// Cores, in thousandths.
    pub cpu_milli: u64,
    /// Of them promised.
    pub cpu_used_milli: u64,
    /// Memory in MiB.
    pub memory_mib: u64,
    /// Of it promised.
    pub memory_used_mib: u64,
    /// Disk bandwidth in MB/s.
    pub disk_mbps: u64,
    /// Of it reserved.
    pub disk_used_mbps: u64,
    /// Jobs that wait.
    pub waiting: u64,
    /// Jobs that run or start.
    pub running: u64,
}

/// Sums over all nodes.
pub fn sums(state: &State) -> ClusterView {
    let mut all = ClusterView::default();
    for node in state.nodes() {
        let view = view(node);
        all.nodes += 1;
        all.cpu_milli += view.cpu_milli;
        all.cpu_used_milli += view.cpu_milli.saturating_sub(view.cpu_free_milli);
        all.memory_mib += view.memory_mib;
        all.memory_used_mib += view.memory_mib.saturating_sub(view.memory_free_mib);
        all.disk_mbps += view.disk_mbps;
        for card in &view.cards {
            all.cards += 1;
            all.cards_in_use += u64::from(card.claims > 0);
            all.gpu_milli += 1000;
            all.gpu_used_milli += card.used_milli;
            all.gpu_memory_mib += card.memory_mib;
            all.gpu_memory_used_mib += card.used_mib;
        }
    }
    all.disk_used_mbps = state.claims().map(|claim| claim.held.disk.0).sum();
    for job in state.jobs() {
        match job.state {
            JobState::Pending => all.waiting += 1,
            state if state.ended() => {}
            _ => all.running += 1,
        }
    }
    all
}

/// The cluster in figures.
#[utoipa::path(get, path = "/api/v1/cluster", tag = "cluster", responses((status = 200, body = ClusterView)))]
pub async fn cluster(Shared(app): Shared<App>, _: Caller) -> Json<ClusterView> {
    Json(sums(&app.system.books.view().state))
}
