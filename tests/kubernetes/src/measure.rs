//! How fast pods are bound, and what it costs.

use crate::child::{Running, Used};
use crate::cluster::{self, Ask};
use crate::crater::{Crater, How};
use crate::plane::Plane;
use crate::recount::{compare, recount};
use anyhow::{Context, Result};
use crater_kube::kube::Client;
use serde_json::Value;
use std::process::Command;
use std::time::{Duration, Instant};

/// What a run came to.
#[derive(Clone, Debug)]
pub struct Figures {
    /// Pods bound.
    pub pods: usize,
    /// From the scheduler's first binding to the last, as seen.
    pub secs: f64,
    /// What the scheduler used.
    pub used: Used,
    /// CPU seconds of the API server meanwhile.
    pub api_cpu: f64,
    /// The scheduler's own counts, if it is ours.
    pub counts: Option<Value>,
}

impl Figures {
    /// Pods a second.
    pub fn rate(&self) -> f64 {
        self.pods as f64 / self.secs.max(0.001)
    }
}

/// Binds pods that wait already with Crater, and checks the books.
pub async fn crater(plane: &Plane, admin: &Client, pods: usize, how: &How) -> Result<Figures> {
    let crater = Crater::start(plane, "measured", how)?;
    let (secs, api_cpu) = until_bound(plane, admin).await?;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let used = crater.process.used();
    let counted = recount(admin).await?;
    let (books, counts) = crater.end()?;
    compare(&books, &counted)?;
    Ok(Figures { pods, secs, used, api_cpu, counts: Some(counts) })
}

/// The same with kube-scheduler.
pub async fn kube_scheduler(
    plane: &Plane,
    admin: &Client,
    pods: usize,
    qps: u32,
    burst: u32,
) -> Result<Figures> {
    let config = plane.file("kube-scheduler.yaml");
    let kubeconfig = plane.kubeconfig("admin");
    std::fs::write(
        &config,
        format!(
            "apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {{kubeconfig: \"{}\", qps: {qps}, burst: {burst}}}
leaderElection: {{leaderElect: false}}
profiles:
  - schedulerName: default-scheduler
    pluginConfig:
      - name: NodeResourcesFit
        args:
          apiVersion: kubescheduler.config.k8s.io/v1
          kind: NodeResourcesFitArgs
          scoringStrategy:
            type: MostAllocated
            resources: [{{name: nvidia.com/gpu, weight: 1}}]
",
            kubeconfig.display()
        ),
    )?;
    let [port] = crate::plane::free_ports()?;
    let mut command = Command::new(plane.programs().path("kube-scheduler"));
    command.arg("--config").arg(&config).args([
        "--bind-address=127.0.0.1",
        &format!("--secure-port={port}"),
        "--authorization-always-allow-paths=*",
    ]);
    let process =
        Running::start("kube-scheduler", &mut command, &plane.file("kube-scheduler.log"))?;
    let bound = until_bound(plane, admin).await;
    let (secs, api_cpu) =
        bound.with_context(|| crate::plane::tail(&plane.file("kube-scheduler.log")))?;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let used = process.used();
    drop(process);
    Ok(Figures { pods, secs, used, api_cpu, counts: None })
}

/// From the first pod seen bound until all are. Looks are lists of few bytes:
/// what is looked with must not be what is measured.
async fn until_bound(plane: &Plane, admin: &Client) -> Result<(f64, f64)> {
    let until = Instant::now() + Duration::from_mins(5);
    let mut began: Option<(Instant, f64)> = None;
    loop {
        let waiting = unbound(admin).await?;
        if began.is_none() && waiting.0 {
            began = Some((Instant::now(), plane.api_used().cpu));
        }
        if waiting.1 == 0 {
            let (at, cpu) = began.context("all were bound before the first look")?;
            return Ok((at.elapsed().as_secs_f64(), plane.api_used().cpu - cpu));
        }
        if Instant::now() > until {
            anyhow::bail!("{} pods wait after 300 s", waiting.1);
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// Whether some pod is bound, and how many are not: by lists of one.
async fn unbound(admin: &Client) -> Result<(bool, i64)> {
    let count = async |selector: &str| -> Result<i64> {
        let path = format!("/api/v1/namespaces/default/pods?limit=1&fieldSelector={selector}");
        let list: Value = admin.request(http::Request::get(path).body(vec![])?).await?;
        let here = list["items"].as_array().map_or(0, Vec::len) as i64;
        Ok(here + list["metadata"]["remainingItemCount"].as_i64().unwrap_or(0))
    };
    // With a selector the server does not count the rest: 1 means some.
    Ok((count("spec.nodeName!%3D").await? > 0, count("spec.nodeName%3D").await?))
}

/// Takes all pods away.
pub async fn clear(admin: &Client) -> Result<()> {
    use crater_kube::k8s_openapi::api::core::v1::Pod;
    use crater_kube::kube::api::{Api, DeleteParams, ListParams};
    let api: Api<Pod> = Api::namespaced(admin.clone(), "default");
    let at_once = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() };
    api.delete_collection(&at_once, &ListParams::default()).await?;
    while !cluster::pods(admin).await?.is_empty() {
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    Ok(())
}

/// Fractional and whole cards for Crater.
pub fn mixed(pods: usize) -> Vec<Value> {
    let one = |i| cluster::pod(&format!("m{i}"), "crater", &Ask::mixed(i));
    (0..pods).map(one).collect()
}

/// One whole card each, for a scheduler.
pub fn whole(pods: usize, scheduler: &str) -> Vec<Value> {
    let ask = Ask { cards: 1, ..Ask::default() };
    (0..pods).map(|i| cluster::pod(&format!("w{i}"), scheduler, &ask)).collect()
}
