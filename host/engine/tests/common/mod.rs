//! Small builders for the engine's tests.
#![allow(dead_code, missing_docs, clippy::format_push_string)]

use crater_engine::{Decider, Ledger, MemoryJournal, Outcome, Plan, Policies, Round, Strings};
use crater_model::{
    CardSpec, GpuAsk, JobSpec, JobUid, Kind, Mib, MilliCards, MilliCores, NodeSpec, QueueSpec,
    Request, TenantPath, Time,
};
use std::sync::Arc;

pub struct Bench {
    pub ledger: Ledger<MemoryJournal>,
    pub decider: Decider,
    pub policies: Policies,
    pub now: Time,
}

pub fn request(gpu: u64, gpu_mib: u64, cpu: u64, memory: u64) -> Request {
    let some = |n| (n > 0).then_some(n);
    let gpu = GpuAsk::new(some(gpu).map(MilliCards), some(gpu_mib).map(Mib), false).unwrap();
    Request { gpu, cpu: MilliCores(cpu), memory: Mib(memory), ..Request::default() }
}

pub fn node(name: &str, cpu: u64, memory: u64, cards: usize, card_mib: u64) -> NodeSpec {
    NodeSpec::new(name, MilliCores(cpu), Mib(memory))
        .with_cards(cards, &CardSpec::new("A100", Mib(card_mib)))
}

pub fn job(name: &str, request: Request) -> JobSpec {
    JobSpec::new(name, "q", TenantPath::parse("tenant", "ai/nlp/mei").unwrap(), request)
}

impl Bench {
    pub fn new(nodes: impl IntoIterator<Item = NodeSpec>) -> Self {
        let journal = MemoryJournal { keep: true, ..MemoryJournal::default() };
        let mut ledger = Ledger::new(journal, Arc::new(Strings::default()));
        let now = Time::from_secs(1000);
        ledger.set_queue(now, QueueSpec::new("q", Kind::Training)).unwrap();
        for node in nodes {
            ledger.add_node(now, node).unwrap();
        }
        Self { ledger, decider: Decider::default(), policies: Policies::new(), now }
    }

    pub fn submit(&mut self, spec: JobSpec) -> JobUid {
        self.ledger.submit(self.now, spec).unwrap()
    }

    /// One round: decided, committed, audited.
    pub fn round(&mut self) -> Plan {
        let round = Round::new(self.now, 7);
        let plan = self.decider.decide(self.ledger.state(), &self.policies, round);
        let committed = self.ledger.commit(self.now, &plan).unwrap();
        assert_eq!(committed.stale, []);
        self.ledger.state().audit().unwrap();
        plan
    }

    /// The plan as lines: `name → node[cards]` or `name waits: why`.
    pub fn lines(&self, plan: &Plan) -> String {
        let state = self.ledger.state();
        let mut out = String::new();
        for record in &plan.records {
            let name = &state.job(record.job).unwrap().spec.name;
            match &record.outcome {
                Outcome::Waits(reasons) => out += &format!("{name} waits: {reasons}\n"),
                Outcome::Placed(placement) => {
                    for member in &placement.members {
                        let node = &state.node(member.node).unwrap().spec.name;
                        let cards: Vec<_> = member
                            .held
                            .cards
                            .iter()
                            .map(|c| format!("{}:{}/{}", c.card, c.milli, c.memory))
                            .collect();
                        out += &format!("{name} → {node} [{}]\n", cards.join(" "));
                    }
                }
            }
        }
        out
    }
}
