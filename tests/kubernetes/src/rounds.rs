//! Rounds of faults under load.

use crate::cluster::{self, Ask};
use crate::crater::{Crater, How, SHORT_LEASE};
use crate::judge::Judge;
use crate::plane::Plane;
use crate::proxy::Proxy;
use crate::recount::{compare, recount};
use anyhow::{Context, Result, bail};
use crater_kube::kube::Client;
use rustix::process::Signal;
use serde_json::Value;
use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// What goes wrong in a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The leader is ended without warning.
    Kill,
    /// The leader is paused past its lease, then resumed.
    Pause,
    /// The API server is ended and started again.
    RestartApi,
    /// All watches break, and the next try finds its history gone.
    DropWatch,
    /// Bindings are answered with 504; half of them did happen.
    Timeouts,
}

impl Fault {
    /// All of them, in turns.
    pub const ALL: [Self; 5] =
        [Self::Kill, Self::Pause, Self::RestartApi, Self::DropWatch, Self::Timeouts];
}

/// Two schedulers on one cluster, each by a proxy of its own.
pub struct Rounds {
    plane: Plane,
    admin: Client,
    judge: Judge,
    proxies: [Proxy; 2],
    /// Each with the times that it decided.
    pair: [Option<(Crater, usize)>; 2],
    live: VecDeque<String>,
    made: usize,
    started: usize,
    heedless: bool,
}

/// What a round came to.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// What went wrong.
    pub fault: Fault,
    /// From the fault until every pod was bound.
    pub recovered: Duration,
    /// Faults that proxies did.
    pub faults: u64,
}

impl Rounds {
    /// A cluster of so many nodes of eight cards. `heedless`: leaders go on
    /// writing after their lease, so that only the fence stops them.
    pub async fn start(plane: Plane, nodes: usize, heedless: bool) -> Result<Self> {
        let admin = plane.client("admin").await?;
        cluster::make_nodes(&admin, nodes, 8).await?;
        let judge = Judge::start(admin.clone());
        let crater = plane.client("crater").await?;
        let proxies = [Proxy::start(crater.clone()).await?, Proxy::start(crater).await?];
        let mut rounds = Self {
            plane,
            admin,
            judge,
            proxies,
            pair: [None, None],
            live: VecDeque::new(),
            made: 0,
            started: 0,
            heedless,
        };
        rounds.fill_up().await?;
        Ok(rounds)
    }

    /// Starts whichever of the two does not run; waits until one leads.
    async fn fill_up(&mut self) -> Result<()> {
        for i in 0..2 {
            if self.pair[i].as_mut().is_some_and(|(c, _)| c.process.runs()) {
                continue;
            }
            self.started += 1;
            let mut how = How::with(&[SHORT_LEASE, "--resync=20"]);
            if self.heedless {
                how.args.push("--heedless".into());
            }
            how.by = Some(self.proxies[i].port);
            let name = format!("crater-{}", self.started);
            self.pair[i] = Some((Crater::start(&self.plane, &name, &how)?, 0));
        }
        self.leader().await.map(|_| ())
    }

    /// Which of the two leads: the one that last began to.
    async fn leader(&mut self) -> Result<usize> {
        let until = Instant::now() + Duration::from_secs(40);
        loop {
            for i in 0..2 {
                if let Some((crater, _)) = &self.pair[i] {
                    let log = crater.log();
                    let (began, ended) = (log.rfind("decides: "), log.rfind("stands by"));
                    if began > ended {
                        return Ok(i);
                    }
                }
            }
            if Instant::now() > until {
                bail!("nobody leads");
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// One round: pods come and go, something goes wrong among them, and in
    /// the end all are bound and nothing is oversold.
    pub async fn round(&mut self, fault: Fault, pods: usize) -> Result<Outcome> {
        let before: u64 = self.faults();
        // What makes room, while the new ones come.
        let leave: Vec<String> = {
            let count = self.live.len().saturating_sub(2 * pods);
            self.live.drain(..count).collect()
        };
        let names: Vec<String> = (0..pods).map(|i| format!("p{}", self.made + i)).collect();
        let first = self.made;
        let asks = (0..pods).map(|i| Ask::mixed(first + i));
        let new: Vec<Value> =
            names.iter().zip(asks).map(|(name, ask)| cluster::pod(name, "crater", &ask)).collect();
        self.made += pods;
        self.live.extend(names);
        let leader = self.leader().await?;
        if fault == Fault::Timeouts {
            for proxy in &self.proxies {
                proxy.faults.done_but_504.store(pods as u32 / 4, Ordering::SeqCst);
                proxy.faults.undone_and_504.store(pods as u32 / 4, Ordering::SeqCst);
            }
        }
        let admin = self.admin.clone();
        let held = if matches!(fault, Fault::Pause | Fault::Kill) {
            // Bindings of the leader are under way when it stops, and arrive
            // when another leads.
            let faults = &self.proxies[leader].faults;
            faults.hold_ms.store(3500, Ordering::SeqCst);
            faults.hold.store(8, Ordering::SeqCst);
            Some(faults.clone())
        } else {
            None
        };
        let load = tokio::spawn(async move {
            for name in leave {
                cluster::delete_pod(&admin, &name).await?;
            }
            cluster::make_pods(&admin, new).await
        });
        let until = Instant::now() + Duration::from_secs(3);
        while held.as_ref().is_some_and(|f| f.hold.load(Ordering::SeqCst) == 8)
            && Instant::now() < until
        {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        tokio::time::sleep(Duration::from_millis(60)).await;
        if let Some(faults) = held {
            faults.hold.store(0, Ordering::SeqCst);
        }
        let at = Instant::now();
        self.inject(fault, leader).await?;
        if let Err(error) = load.await? {
            // Only a restart of the API server may lose requests of the load.
            if fault != Fault::RestartApi {
                return Err(error);
            }
            self.look_again().await?;
        }
        cluster::all_bound(&self.admin, Duration::from_mins(1)).await.with_context(|| {
            let logs = self.pair.iter().flatten().map(|(c, _)| c.log());
            let ends = logs.map(|l| l.lines().rev().take(5).collect::<Vec<_>>().join(" | "));
            format!("after {fault:?}: {}", ends.collect::<Vec<_>>().join(" || "))
        })?;
        let recovered = at.elapsed();
        self.fill_up().await?;
        recount(&self.admin).await?;
        self.judge.verdict()?;
        Ok(Outcome { fault, recovered, faults: self.faults() - before })
    }

    fn faults(&self) -> u64 {
        self.proxies.iter().map(|p| p.faults.done.load(Ordering::SeqCst)).sum()
    }

    async fn inject(&mut self, fault: Fault, leader: usize) -> Result<()> {
        match fault {
            Fault::Kill => {
                if let Some((crater, _)) = self.pair[leader].take() {
                    crater.process.kill();
                }
            }
            Fault::Pause => {
                let crater = self.pair[leader].as_ref().context("no leader")?;
                crater.0.process.signal(Signal::STOP)?;
                tokio::time::sleep(Duration::from_millis(4500)).await;
                crater.0.process.signal(Signal::CONT)?;
            }
            Fault::RestartApi => self.plane.restart_api().await?,
            Fault::DropWatch => {
                for proxy in &self.proxies {
                    proxy.faults.history_gone.store(2, Ordering::SeqCst);
                    proxy.faults.drop_watches();
                }
            }
            Fault::Timeouts => {}
        }
        Ok(())
    }

    /// After requests of the load were lost: the pods that there are, oldest
    /// first.
    async fn look_again(&mut self) -> Result<()> {
        let pods = cluster::pods(&self.admin).await?;
        let number = |name: &String| name[1..].parse::<usize>().unwrap_or(0);
        let mut there: Vec<String> = pods.into_iter().filter_map(|p| p.metadata.name).collect();
        there.sort_by_key(number);
        self.live = there.into();
        Ok(())
    }

    /// Ends it: the leader's books against a recount, nothing left promised,
    /// and the counts of both.
    pub async fn end(mut self) -> Result<(u64, Vec<Value>)> {
        // What was learnt by the watch after the last binding has arrived then.
        tokio::time::sleep(Duration::from_secs(1)).await;
        let moments = self.judge.verdict()?;
        let leader = self.leader().await?;
        let counted = recount(&self.admin).await?;
        let mut counts = vec![];
        let order = [1 - leader, leader];
        for i in order {
            let Some((crater, _)) = self.pair[i].take() else { continue };
            if i == leader {
                let (books, own) = crater.end()?;
                compare(&books, &counted)?;
                counts.push(own);
            } else {
                let mut crater = crater;
                crater.process.end(Duration::from_secs(20));
                counts.push(crater.counts()?);
            }
        }
        for (i, own) in counts.iter().enumerate() {
            // Who stands by may have gone on past its lease: beside promises of
            // its own that came to nothing it then saw a successor's bindings.
            let stands_by = i + 1 < counts.len();
            let excused = self.heedless && stands_by;
            if own["defects"] != 0 || own["overpromised"] != 0 && !excused {
                bail!("a scheduler found itself wrong: {own}");
            }
        }
        Ok((moments, counts))
    }
}
