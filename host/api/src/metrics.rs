//! Figures for Prometheus.

use crate::app::App;
use crate::auth::Caller;
use axum::extract::State as Shared;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use crater_engine::State;
use crater_model::Resource;
use crater_server::metrics::Labels;
use prometheus_client::encoding::prometheus_text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use std::sync::atomic::AtomicU64;

const MIB: f64 = 1_048_576.0;

type Gauges<const N: usize> = Family<Labels<N>, Gauge<f64, AtomicU64>>;

/// The text format that every Prometheus reads.
const FORMAT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// All figures. Without a token they say nothing of single tenants; with one
/// the quotas are there that it may see.
pub async fn metrics(Shared(app): Shared<App>, headers: HeaderMap) -> Response {
    let caller = match headers.get(header::AUTHORIZATION) {
        None => None,
        Some(given) => match crate::auth::caller(&app, Some(given)) {
            Ok(caller) => Some(caller),
            Err(problem) => return problem.into_response(),
        },
    };
    let mut page = String::new();
    let written = encode(&mut page, app.system.metrics.registry())
        .and_then(|()| encode(&mut page, &now(&app, caller.as_ref())));
    match written {
        Ok(()) => ([(header::CONTENT_TYPE, FORMAT)], page).into_response(),
        Err(error) => {
            tracing::error!(%error, "metrics cannot be written");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

/// How things are at this moment.
fn now(app: &App, caller: Option<&Caller>) -> Registry {
    let books = app.system.books.view();
    let state = &books.state;
    let mut registry = Registry::with_prefix("crater");
    let build = gauges(&mut registry, "build_info", "The version that runs");
    set(&build, &[("version", env!("CARGO_PKG_VERSION").to_owned())], 1.0);
    let entries = Counter::<u64>::default();
    entries.inc_by(state.seq);
    registry.register("journal_entries", "Entries of the journal so far", entries);
    capacity(&mut registry, state);
    queues(&mut registry, app, state);
    policies(&mut registry, app);
    if let Some(caller) = caller {
        quotas(&mut registry, state, caller);
    }
    registry
}

fn gauges<const N: usize>(registry: &mut Registry, name: &str, help: &str) -> Gauges<N> {
    let family = Gauges::<N>::default();
    registry.register(name, help, family.clone());
    family
}

fn set<const N: usize>(family: &Gauges<N>, labels: &Labels<N>, value: f64) {
    family.get_or_create(labels).set(value);
}

/// What there is and what of it is promised, by resource, in base units.
fn capacity(registry: &mut Registry, state: &State) {
    let sums = crate::cluster::sums(state);
    let all = gauges(registry, "capacity", "What all nodes have, by resource and unit");
    let used = gauges(registry, "allocated", "What of it is promised, by resource and unit");
    let milli = |n: u64| n as f64 / 1000.0;
    let mib = |n: u64| n as f64 * MIB;
    let rate = |n: u64| n as f64 * 1e6;
    for (resource, unit, has, promised) in [
        ("gpu", "cards", milli(sums.gpu_milli), milli(sums.gpu_used_milli)),
        ("gpu-memory", "bytes", mib(sums.gpu_memory_mib), mib(sums.gpu_memory_used_mib)),
        ("cpu", "cores", milli(sums.cpu_milli), milli(sums.cpu_used_milli)),
        ("memory", "bytes", mib(sums.memory_mib), mib(sums.memory_used_mib)),
        ("disk", "bytes-per-second", rate(sums.disk_mbps), rate(sums.disk_used_mbps)),
    ] {
        let labels = || [("resource", resource.to_owned()), ("unit", unit.to_owned())];
        set(&all, &labels(), has);
        set(&used, &labels(), promised);
    }
    let nodes = gauges(registry, "nodes", "Nodes");
    set(&nodes, &[("status", "ready".into())], 0.0);
    for node in state.nodes() {
        let status = if node.spec.cordoned { "cordoned" } else { "ready" };
        nodes.get_or_create(&[("status", status.to_owned())]).inc();
    }
}

fn queues(registry: &mut Registry, app: &App, state: &State) {
    let waiting =
        gauges(registry, "waiting_jobs", "Jobs that wait, by queue and the commonest reason");
    for ((queue, reason), n) in app.system.books.board().waiting(state) {
        set(&waiting, &[("queue", queue.to_string()), ("reason", reason)], n as f64);
    }
    let active = gauges(registry, "active_jobs", "Jobs that hold something, by queue");
    for queue in state.queues().values() {
        let labels = [("queue", queue.spec.name.to_string())];
        set(&active, &labels, queue.running.len() as f64);
    }
}

fn policies(registry: &mut Registry, app: &App) {
    let info = gauges(registry, "policy_info", "The policy that is live, by queue");
    let swaps: Family<Labels<2>, Counter> = Family::default();
    registry.register(
        "policy_replacements",
        "Replacements of policies, by queue and result: live, refused",
        swaps.clone(),
    );
    for (queue, _, status) in app.system.policies.status() {
        for (result, n) in [("live", status.swaps), ("refused", status.refusals)] {
            let labels = [("queue", queue.to_string()), ("result", result.to_owned())];
            swaps.get_or_create(&labels).inc_by(n);
        }
        if let Some((live, _)) = &status.live {
            let manifest = live.policy.manifest();
            let labels = [
                ("queue", queue.to_string()),
                ("policy", manifest.name.clone()),
                ("version", manifest.version.clone()),
                ("digest", live.policy.digest().short()),
            ];
            set(&info, &labels, 1.0);
        }
    }
}

/// Quotas that the caller may see, in base units.
fn quotas(registry: &mut Registry, state: &State, caller: &Caller) {
    let used = gauges(registry, "quota_used", "What a tenant holds, by resource, in base units");
    let hard = gauges(registry, "quota_hard", "What a tenant may always hold, by resource");
    for level in state.quotas().levels() {
        if !caller.sees(&level.path) {
            continue;
        }
        for resource in Resource::COMMON {
            let base = |n: u64| match resource {
                Resource::Gpu | Resource::Cpu | Resource::Model(_) => n as f64 / 1000.0,
                Resource::GpuMemory | Resource::Memory => n as f64 * MIB,
                Resource::Disk => n as f64 * 1e6,
            };
            let labels =
                || [("tenant", level.path.to_string()), ("resource", resource.to_string())];
            set(&used, &labels(), base(level.used.get(&resource)));
            let limit = level.spec.as_ref().and_then(|spec| spec.hard.get(&resource));
            if let Some(limit) = limit {
                set(&hard, &labels(), base(limit));
            }
        }
    }
}
