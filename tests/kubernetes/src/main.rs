//! `make kubernetes`: the measurements and rounds of docs/kubernetes.md.

use anyhow::{Result, anyhow, bail};
use crater_kubernetes::cluster;
use crater_kubernetes::crater::How;
use crater_kubernetes::measure::{self, Figures};
use crater_kubernetes::plane::Plane;
use crater_kubernetes::programs::Programs;
use crater_kubernetes::rounds::{Fault, Rounds};

const HELP: &str = "\
crater-kubernetes measure [NODES PODS QPS]   pods a second beside kube-scheduler (1000 5000 2000)
crater-kubernetes faults [ROUNDS [heedless]] rounds of faults under load (30)
";

#[tokio::main]
async fn main() -> Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate())?;
    // Dropped, the work ends what it started.
    tokio::select! {
        done = work() => done,
        _ = terminate.recv() => bail!("told to end"),
        _ = tokio::signal::ctrl_c() => bail!("told to end"),
    }
}

async fn work() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let programs = Programs::find().map_err(|e| anyhow!(e))?;
    match words[..] {
        ["measure"] => measure_all(&programs, 1000, 5000, 2000).await,
        ["measure", nodes, pods, qps] => {
            measure_all(&programs, nodes.parse()?, pods.parse()?, qps.parse()?).await
        }
        ["faults"] => faults(&programs, 30, false).await,
        ["faults", rounds] => faults(&programs, rounds.parse()?, false).await,
        ["faults", rounds, "heedless"] => faults(&programs, rounds.parse()?, true).await,
        _ => bail!("{HELP}"),
    }
}

async fn measure_all(programs: &Programs, nodes: usize, pods: usize, qps: u32) -> Result<()> {
    let plane = Plane::start(programs).await?;
    let admin = plane.client("admin").await?;
    cluster::make_nodes(&admin, nodes, 8).await?;
    println!("{nodes} nodes of 8 cards, {pods} pods, {qps} requests/s, burst {}", 2 * qps);
    println!("| run | pods/s | seconds | CPU s | peak MiB | API server CPU s |");
    println!("|---|---|---|---|---|---|");
    let limits = |fence: &str| {
        How::with(&[
            "--lease=15000,10000,300",
            "--queue=training=binpack",
            &format!("--qps={qps}"),
            &format!("--burst={}", 2 * qps),
            &format!("--fence={fence}"),
        ])
    };
    let mut counts = vec![];
    cluster::make_pods(&admin, measure::mixed(pods)).await?;
    let figures = measure::crater(&plane, &admin, pods, &limits("claims")).await?;
    counts.push(line("crater, shares and whole cards", &figures));
    measure::clear(&admin).await?;
    cluster::make_pods(&admin, measure::whole(pods, "crater")).await?;
    let figures = measure::crater(&plane, &admin, pods, &limits("claims")).await?;
    counts.push(line("crater, whole cards", &figures));
    if programs.has("kube-scheduler") {
        measure::clear(&admin).await?;
        cluster::make_pods(&admin, measure::whole(pods, "default-scheduler")).await?;
        let figures = measure::kube_scheduler(&plane, &admin, pods, qps, 2 * qps).await?;
        line("kube-scheduler, whole cards", &figures);
    }
    // Last: from here on only Bindings with the epoch go through.
    crater_kubernetes::plane::apply(&admin, crater_kube::FENCE_AT_ADMISSION).await?;
    measure::clear(&admin).await?;
    cluster::make_pods(&admin, measure::whole(pods, "crater")).await?;
    let figures = measure::crater(&plane, &admin, pods, &limits("admission")).await?;
    counts.push(line("crater, whole cards, fence at admission", &figures));
    println!();
    for counts in counts.into_iter().flatten() {
        println!("counts: {counts}");
    }
    Ok(())
}

fn line(run: &str, f: &Figures) -> Option<serde_json::Value> {
    println!(
        "| {run} | {:.0} | {:.1} | {:.1} | {} | {:.1} |",
        f.rate(),
        f.secs,
        f.used.cpu,
        f.used.peak_mib,
        f.api_cpu
    );
    f.counts.clone()
}

async fn faults(programs: &Programs, count: usize, heedless: bool) -> Result<()> {
    let plane = Plane::start(programs).await?;
    let mut rounds = Rounds::start(plane, 40, heedless).await?;
    println!("| round | fault | all bound after (s) | answers falsified |");
    println!("|---|---|---|---|");
    for i in 0..count {
        let fault = Fault::ALL[i % Fault::ALL.len()];
        let outcome = rounds.round(fault, 80).await?;
        let secs = outcome.recovered.as_secs_f64();
        println!("| {} | {fault:?} | {secs:.1} | {} |", i + 1, outcome.faults);
    }
    let (moments, counts) = rounds.end().await?;
    println!("\nEvery one of {moments} moments was right; books equal the recount.");
    for counts in counts {
        println!("counts: {counts}");
    }
    Ok(())
}
