//! A cluster for tests of the books: what is seen of it is said by the test.

use crate::machine::{InventorySeen, NodeSeen};
use crate::mirror::{Mirror, Promised};
use crate::objects::{Card, InventorySpec};
use crate::pod::{Phase, PodSeen, Takes};
use crater_engine::{Decider, Policies, Round};
use crater_model::{
    GpuAsk, JobSpec, Kind, Mib, MilliCards, MilliCores, QueueSpec, Request, TenantPath, Time,
};
use std::sync::Arc;

pub(crate) const T: Time = Time(1);

pub(crate) struct World {
    pub(crate) mirror: Mirror,
    decider: Decider,
}

pub(crate) fn card(index: u8, node: &str) -> Card {
    Card {
        index,
        uuid: format!("GPU-{node}-{index}"),
        model: "A100-SXM4-40GB".into(),
        memory_mib: 40_960,
        numa: None,
        link_group: None,
        healthy: true,
        slice_mib: None,
        mig: None,
    }
}

pub(crate) fn node(name: &str, uid: &str, ready: bool) -> NodeSeen {
    let ready = if ready { "True" } else { "False" };
    NodeSeen::new(
        &serde_json::from_value(serde_json::json!({
            "metadata": {"name": name, "uid": uid},
            "status": {
                "allocatable": {"cpu": "64", "memory": "512Gi", "pods": "110"},
                "conditions": [{"type": "Ready", "status": ready}],
            },
        }))
        .unwrap(),
    )
}

pub(crate) fn pod(uid: &str, cards: u64) -> PodSeen {
    let request = Request {
        gpu: GpuAsk::new(Some(MilliCards::CARD * cards), None, false).unwrap(),
        cpu: MilliCores(4000),
        memory: Mib(1024),
        ..Request::default()
    };
    let tenant = TenantPath::parse("namespace", "ai").unwrap();
    PodSeen {
        uid: uid.into(),
        namespace: "ai".into(),
        name: format!("pod-{uid}").into(),
        node: None,
        ours: true,
        terminating: false,
        gated: false,
        phase: Phase::Pending,
        takes: Takes { cpu: MilliCores(4000), memory: Mib(1024), ..Takes::default() },
        wants: Some(Ok(Arc::new(JobSpec::new(uid, "training", tenant, request)))),
        assigned: None,
        told: None,
    }
}

pub(crate) fn foreign(uid: &str, node: &str, cards: u64) -> PodSeen {
    let takes = Takes { cards, ..pod(uid, 0).takes };
    PodSeen { ours: false, wants: None, node: Some(node.into()), takes, ..pod(uid, 0) }
}

impl World {
    pub(crate) fn new(nodes: &[(&str, u8)]) -> Self {
        let queues = [QueueSpec::new("training", Kind::Training)];
        let mirror = Mirror::new(T, &queues, Arc::default()).unwrap();
        let mut world = Self { mirror, decider: Decider::default() };
        for (name, cards) in nodes {
            world.cards(name, (0..*cards).map(|i| card(i, name)).collect());
            world.mirror.node_seen(T, node(name, &format!("{name}-uid"), true));
        }
        world
    }

    pub(crate) fn cards(&mut self, name: &str, cards: Vec<Card>) {
        let spec = InventorySpec { cards, ..InventorySpec::default() };
        self.mirror.inventory(T, name, Some(InventorySeen { name: name.into(), spec }));
    }

    pub(crate) fn see(&mut self, pod: &PodSeen) {
        self.mirror.pod_seen(T, &Arc::new(pod.clone()));
        self.mirror.audit().unwrap();
    }

    /// A round; who was promised room, and where.
    pub(crate) fn decide(&mut self) -> Vec<Promised> {
        let plan = self.decider.decide(self.mirror.state(), &Policies::new(), Round::new(T, 0));
        let promised = self.mirror.commit(T, &plan).unwrap();
        self.mirror.audit().unwrap();
        promised
    }

    /// The pod as the API server has it after its Binding.
    pub(crate) fn bind(&mut self, promised: &Promised) -> PodSeen {
        let bound = PodSeen {
            node: Some(promised.node.clone()),
            assigned: Some(promised.cards.clone()),
            ..PodSeen::clone(&promised.pod)
        };
        self.mirror.binding_done(T, &bound.uid);
        self.see(&bound);
        bound
    }

    pub(crate) fn run(&mut self, pod: &PodSeen) -> PodSeen {
        self.see(pod);
        let promised = self.decide();
        assert_eq!(promised.len(), 1, "{} finds room", pod.uid);
        let bound = self.bind(&promised[0]);
        let running = PodSeen { phase: Phase::Running, ..bound };
        self.see(&running);
        running
    }

    pub(crate) fn idle(&self, name: &str) -> usize {
        let node = self.mirror.node(name).unwrap();
        self.mirror.state().node(node).unwrap().cards_idle()
    }

    pub(crate) fn milli(&self, name: &str) -> u64 {
        let figures = self.mirror.figures();
        let node = figures.iter().find(|f| &*f.node == name).unwrap();
        node.cards.iter().map(|c| c.0).sum()
    }

    /// The same cluster in the books of a new leader.
    pub(crate) fn again(&self) -> Self {
        let mut world = Self::new(&[]);
        for inventory in self.mirror.inventories.values() {
            world.mirror.inventory(T, &inventory.name, Some(inventory.clone()));
        }
        // Pods first: lists come in any order.
        for entry in self.mirror.pods.values() {
            world.see(&entry.seen);
        }
        for machine in self.mirror.machines.values() {
            world.mirror.node_seen(T, machine.seen.clone());
        }
        world.mirror.audit().unwrap();
        world
    }
}
