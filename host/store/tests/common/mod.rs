//! A small cluster over a store, driven as a server would.
#![allow(dead_code, missing_docs)]

use crater_engine::{Decider, Ledger, Plan, Policies, Round, State};
use crater_model::{
    CardSpec, ClaimState, GpuAsk, JobSpec, JobUid, Kind, Mib, MilliCards, MilliCores, NodeSpec,
    QueueSpec, Request, TenantPath, Time,
};
use crater_store::{Store, StoreError};
use std::path::Path;
use std::sync::Arc;

pub struct Server {
    pub ledger: Ledger<Store>,
    pub decider: Decider,
    pub now: Time,
}

pub fn tenant(path: &str) -> TenantPath {
    TenantPath::parse("tenant", path).unwrap()
}

pub fn job(name: &str, queue: &str, path: &str) -> JobSpec {
    let gpu = GpuAsk::new(Some(MilliCards(500)), None, false).unwrap();
    let request = Request { gpu, cpu: MilliCores(1000), memory: Mib(1024), ..Request::default() };
    JobSpec::new(name, queue, tenant(path), request)
}

impl Server {
    /// Opens the folder; a new one gets queues `q` and `r` and two nodes.
    pub fn open(dir: &Path) -> Result<Self, StoreError> {
        let (store, recovered) = Store::open(dir)?;
        let state = recovered.books(Arc::default())?;
        let now = state.at.max(Time::from_secs(1_000_000));
        let mut ledger = Ledger::resume(store, state);
        if ledger.state().seq == 0 {
            for queue in ["q", "r"] {
                ledger.set_queue(now, QueueSpec::new(queue, Kind::Training)).unwrap();
            }
            for name in ["n0", "n1"] {
                let node = NodeSpec::new(name, MilliCores(64_000), Mib(262_144))
                    .with_cards(4, &CardSpec::new("A100", Mib(81_920)));
                ledger.add_node(now, node).unwrap();
            }
        }
        Ok(Self { ledger, decider: Decider::default(), now })
    }

    pub fn state(&self) -> &State {
        self.ledger.state()
    }

    pub fn store(&mut self) -> &mut Store {
        self.ledger.journal_mut()
    }

    pub fn sync(&mut self) {
        self.store().sync().unwrap();
    }

    pub fn submit(&mut self, spec: JobSpec) -> JobUid {
        self.now.0 += 10;
        self.ledger.submit(self.now, spec).unwrap()
    }

    /// Decides and commits once.
    pub fn round(&mut self) -> Plan {
        self.now.0 += 10;
        let round = Round::new(self.now, 7);
        let plan = self.decider.decide(self.ledger.state(), &Policies::new(), round);
        self.ledger.commit(self.now, &plan).unwrap();
        plan
    }

    /// Everything that was placed runs, and then ends.
    pub fn finish(&mut self) {
        let claims: Vec<_> = self.state().claims().map(|c| c.uid).collect();
        for claim in &claims {
            self.now.0 += 10;
            self.ledger.move_claim(self.now, *claim, ClaimState::Held).unwrap();
        }
        for claim in &claims {
            self.now.0 += 10;
            self.ledger.member_ended(self.now, *claim, true).unwrap();
        }
    }

    /// Submits jobs and sees them through.
    pub fn run(&mut self, count: usize) {
        for n in 0..count {
            self.submit(job(&format!("job-{n}"), "q", "ai/nlp/mei"));
        }
        while self.state().jobs().any(|j| !j.state.ended()) {
            self.round();
            self.finish();
        }
    }
}
