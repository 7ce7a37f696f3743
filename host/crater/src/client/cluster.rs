//! `crater cluster` and `crater node`.

use super::args::{ClusterCommand, Metric, Metrics, NodeCommand, Output};
use super::http::{Api, path};
use super::job::metrics::{history, text};
use super::table::Table;
use super::{print, spell};
use crater_api::cluster::{ClusterView, NodeChange, NodeView};
use crater_model::MilliCards;
use serde::Serialize;
use std::fmt::Write as _;
use ureq::http::Method;

/// Runs `crater cluster`.
pub fn run(api: &Api, output: Output, command: &ClusterCommand) -> anyhow::Result<()> {
    match command {
        ClusterCommand::Metrics(which) => metrics(api, output, which),
        ClusterCommand::Nodes => nodes(api, output),
    }
}

/// Runs `crater node`.
pub fn node(api: &Api, output: Output, command: &NodeCommand) -> anyhow::Result<()> {
    let (name, cordoned, drain) = match command {
        NodeCommand::List => return nodes(api, output),
        NodeCommand::Cordon(node) => (&node.name, Some(true), false),
        NodeCommand::Uncordon(node) => (&node.name, Some(false), false),
        NodeCommand::Drain(node) => (&node.name, None, true),
    };
    let change = NodeChange { cordoned, drain };
    let node: NodeView = api.change(&Method::PATCH, &path(&["nodes", name]), &change)?;
    print::answer(output, &node, |_| {
        let NodeView { name, members, .. } = &node;
        match (drain, node.cordoned) {
            (true, _) => format!(
                "{name} is cordoned; what ran there ends and starts elsewhere, {members} members still on it"
            ),
            (false, true) => {
                format!("{name} is cordoned: nothing new starts there, {members} members run on")
            }
            (false, false) => format!("{name} takes jobs again"),
        }
    })
}

/// One figure of the cluster.
#[derive(Debug, Serialize)]
struct Figure {
    metric: &'static str,
    used: u64,
    total: u64,
    unit: &'static str,
    #[serde(skip)]
    text: (String, String),
}

fn figure(metric: Metric, all: &ClusterView) -> Figure {
    let cards = |milli: u64| MilliCards(milli).to_string();
    let rate = |mbps: u64| format!("{mbps}MB/s");
    let new = |metric, used, total, unit, spell: &dyn Fn(u64) -> String| Figure {
        metric,
        used,
        total,
        unit,
        text: (spell(used), spell(total)),
    };
    match metric {
        Metric::Gpu => new(metric.name(), all.gpu_used_milli, all.gpu_milli, "milli-cards", &cards),
        Metric::GpuMemory => {
            new("gpu-memory", all.gpu_memory_used_mib, all.gpu_memory_mib, "MiB", &spell::roughly)
        }
        Metric::Cpu => new("cpu", all.cpu_used_milli, all.cpu_milli, "milli-cores", &cards),
        Metric::Memory => {
            new("memory", all.memory_used_mib, all.memory_mib, "MiB", &spell::roughly)
        }
        Metric::DiskIo => new("disk-io", all.disk_used_mbps, all.disk_mbps, "MB/s", &rate),
    }
}

/// The cluster now and before.
#[derive(Debug, Serialize)]
struct Shown {
    now: Vec<Figure>,
    cluster: ClusterView,
    history: crater_api::samples::MetricsView,
}

fn metrics(api: &Api, output: Output, which: &Metrics) -> anyhow::Result<()> {
    let only = which.metric;
    let cluster: ClusterView = api.get(&path(&["cluster"]))?;
    let history = history(api, &path(&["cluster", "metrics"]), which)?;
    let wanted = Metric::ALL.into_iter().filter(|metric| only.is_none_or(|only| only == *metric));
    let now: Vec<Figure> = wanted.map(|metric| figure(metric, &cluster)).collect();
    let shown = Shown { now, cluster, history };
    print::answer(output, &shown, |_| {
        let mut table = Table::new(&["METRIC", "PROMISED", "TOTAL", "PERCENT"]);
        for figure in &shown.now {
            let (used, total) = figure.text.clone();
            table.row([
                figure.metric.into(),
                used,
                total,
                spell::percent(figure.used, figure.total),
            ]);
        }
        let mut all = table.text(print::colours());
        if only.is_none() {
            let ClusterView { nodes, cards, cards_in_use, running, waiting, .. } = &shown.cluster;
            let _ = writeln!(
                all,
                "
{nodes} nodes, {cards} cards, {cards_in_use} of them in use; {running} jobs run, {waiting} wait"
            );
        }
        all + "\n" + &text(&shown.history, only)
    })
}

fn nodes(api: &Api, output: Output) -> anyhow::Result<()> {
    let nodes: Vec<NodeView> = api.get(&path(&["nodes"]))?;
    print::answer(output, &nodes, |wide| list(&nodes, wide))
}

fn list(nodes: &[NodeView], wide: bool) -> String {
    let mut head = vec!["NAME", "STATUS", "CARDS", "GPU", "GPU-MEMORY", "CPU", "MEMORY", "MEMBERS"];
    if wide {
        head.extend(["DISK", "UNHEALTHY", "MODEL"]);
    }
    let mut table = Table::new(&head);
    for node in nodes {
        let sum =
            |of: fn(&crater_api::cluster::NodeCard) -> u64| node.cards.iter().map(of).sum::<u64>();
        let of = |used: String, total: String| format!("{used}/{total}");
        let cpu_used = node.cpu_milli.saturating_sub(node.cpu_free_milli);
        let memory_used = node.memory_mib.saturating_sub(node.memory_free_mib);
        let mut row = vec![
            node.name.clone(),
            if node.cordoned { "Cordoned" } else { "Ready" }.into(),
            node.cards.len().to_string(),
            of(MilliCards(sum(|card| card.used_milli)).to_string(), node.cards.len().to_string()),
            of(
                spell::roughly(sum(|card| card.used_mib)),
                spell::roughly(sum(|card| card.memory_mib)),
            ),
            of(MilliCards(cpu_used).to_string(), MilliCards(node.cpu_milli).to_string()),
            of(spell::roughly(memory_used), spell::roughly(node.memory_mib)),
            node.members.to_string(),
        ];
        if wide {
            let unhealthy = sum(|card| u64::from(!card.healthy));
            let mut models: Vec<&str> = node.cards.iter().map(|card| card.model.as_str()).collect();
            models.dedup();
            row.extend([
                format!("{}MB/s", node.disk_mbps),
                unhealthy.to_string(),
                models.join(","),
            ]);
        }
        table.row(row);
    }
    table.text(print::colours())
}
