//! "What of the ledger is where", the table of ARCHITECTURE.md, row by row: each
//! sets its situation, the leader is killed, another begins, and each sees what
//! the row says. One restart for all of them, each on machines of its own.

use crater_kube::k8s_openapi::api::coordination::v1::Lease;
use crater_kube::k8s_openapi::api::core::v1::{ConfigMap, Node, Pod};
use crater_kube::kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use crater_kube::objects::{NodeClaims, NodeInventory};
use crater_kubernetes::cluster::{self, Ask};
use crater_kubernetes::crater::{Crater, How, SHORT_LEASE};
use crater_kubernetes::plane::Plane;
use crater_kubernetes::programs::{self, Programs};
use crater_kubernetes::proxy::Proxy;
use crater_kubernetes::world::{World, until};
use serde_json::{Value, json};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

#[tokio::test(flavor = "multi_thread")]
async fn every_field_of_the_ledger_after_a_restart() {
    let programs = match Programs::find().and_then(|p| programs::crater().map(|_| p)) {
        Ok(programs) => programs,
        Err(why) => return println!("skipped: {why}"),
    };
    let mut plane = Plane::start(&programs).await.unwrap();
    plane.nobody_plays();
    let admin = plane.client("admin").await.unwrap();
    let proxy = Proxy::start(plane.client("crater").await.unwrap()).await.unwrap();
    let how = |more: &[&str]| {
        let args = [&[SHORT_LEASE, "--resync=600", "--queue=training=binpack"], more].concat();
        How { by: Some(proxy.port), ..How::with(&args) }
    };
    let (first, second) = (how(&[]), how(&["--queue=night=binpack"]));
    let world = World { admin, proxy };
    // All machines first: their number is part of what pods are told.
    for (name, cards) in [
        ("machines", 2),
        ("bound", 3),
        ("promised", 2),
        ("lives", 3),
        ("asks", 1),
        ("order", 1),
        ("backoff", 1),
    ] {
        world.node(name, cards).await;
    }
    let mut leader = Crater::start(&plane, "first", &first).unwrap();
    leader.decides(1, Duration::from_mins(1)).await.unwrap();

    machines::set(&world).await;
    bound::set(&world).await;
    lives::set(&world).await;
    asks::set(&world).await;
    told::set(&world).await;
    order::set(&world).await;
    queues::set(&world).await;
    let epoch = epoch::set(&world).await;
    let version = told::version(&world).await;
    let promise = promises::set(&world).await;
    backoff::set(&world).await;
    leader.process.kill();
    promises::meanwhile(&world).await;
    told::meanwhile(&world).await;
    let mut next = Crater::start(&plane, "next", &second).unwrap();
    next.decides(1, Duration::from_mins(1)).await.unwrap();
    let began = Instant::now();

    backoff::seen(&world, began).await;
    promises::seen(&world, &promise).await;
    epoch::seen(&world, epoch).await;
    machines::seen(&world).await;
    bound::seen(&world).await;
    lives::seen(&world).await;
    asks::seen(&world).await;
    told::seen(&world, &version).await;
    order::seen(&world).await;
    queues::seen(&world).await;

    let (books, counts) = next.end().unwrap();
    for (count, value) in [("defects", 0), ("overpromised", 0), ("doubted", 0)] {
        assert_eq!(counts[count], value, "{count}: {counts}");
    }
    assert!(counts["honoured"].as_u64() >= Some(1), "{counts}");
    let of = |node: &str| {
        let all = books.as_array().unwrap();
        all.iter().find(|n| n["node"] == node).unwrap()["cards"].clone()
    };
    let (whole, none) = (json!([1000, 81_920]), json!([0, 0]));
    assert_eq!(of("machines"), json!([whole, none]), "nodes, cards, taints, health");
    assert_eq!(of("bound"), json!([whole, whole, whole]), "what bound pods hold, pods of others");
}

fn tolerant(name: &str, cards: u64) -> Value {
    let mut pod = World::described(name, "machines", cards);
    pod["spec"]["tolerations"] = json!([{"key": "lab", "operator": "Exists"}]);
    pod
}

/// nodes, cards, taints, health: derived, the same.
mod machines {
    use super::*;

    pub async fn set(world: &World) {
        let nodes: Api<Node> = Api::all(world.admin.clone());
        let taint = json!({"spec": {"taints": [{"key": "lab", "effect": "NoSchedule"}]}});
        let params = PatchParams::default();
        nodes.patch("machines", &params, &Patch::Strategic(taint)).await.unwrap();
        let inventories: Api<NodeInventory> = Api::all(world.admin.clone());
        let mut object = inventories.get("machines").await.unwrap();
        object.spec.cards[1].healthy = false;
        inventories.replace("machines", &PostParams::default(), &object).await.unwrap();
        let why = "1 node(s) had unhealthy cards";
        world.until_kept_out("machines-try", why, |name| tolerant(name, 2)).await;
        waiters(world, "before").await;
        world.make(tolerant("machines-one", 1)).await;
        world.runs("machines-one").await;
    }

    /// The taint keeps one out, the sick card another.
    async fn waiters(world: &World, when: &str) {
        let (tainted, sick) = (format!("machines-taint-{when}"), format!("machines-sick-{when}"));
        // The card fell sick after the taint came: who hears of it knows both.
        world.make(tolerant(&sick, 2)).await;
        world.waits_for(&sick, "1 node(s) had unhealthy cards").await;
        world.pod(&tainted, "machines", 0).await;
        world.waits_for(&tainted, "1 node(s) had untolerated taint {lab: }").await;
        world.gone(&tainted).await;
        world.gone(&sick).await;
    }

    pub async fn seen(world: &World) {
        waiters(world, "after").await;
        world.make(tolerant("machines-cpu", 0)).await;
        assert_eq!(world.runs("machines-cpu").await, "machines");
    }
}

/// what bound pods hold, pods of others: derived, the same; cards of pods that
/// name none are given anew.
mod bound {
    use super::*;

    fn half(name: &str) -> Value {
        let mut pod = World::described(name, "bound", 0);
        pod["metadata"]["annotations"]["crater.io/gpu"] = "0.5".into();
        pod
    }

    pub async fn set(world: &World) {
        world.make(half("bound-half")).await;
        world.runs("bound-half").await;
        let mut foreign =
            cluster::pod("bound-foreign", "other", &Ask { cards: 1, ..Ask::default() });
        foreign["spec"]["nodeName"] = "bound".into();
        let mut preset = World::described("bound-preset", "bound", 1);
        preset["spec"]["nodeName"] = "bound".into();
        world.make(foreign).await;
        world.make(preset).await;
        world.pod("bound-before", "bound", 1).await;
        world.waits_for("bound-before", "Insufficient crater.io/gpu").await;
        world.gone("bound-before").await;
    }

    pub async fn seen(world: &World) {
        world.pod("bound-after", "bound", 1).await;
        world.waits_for("bound-after", "Insufficient crater.io/gpu").await;
        world.make(half("bound-other")).await;
        assert_eq!(world.cards("bound-other").await, world.cards("bound-half").await);
    }
}

/// promises not yet bound: kept in `NodeClaims`, honoured: same node, same cards.
mod promises {
    use super::*;

    /// Bindings that are held: this one and its repetitions.
    const HELD: u32 = 1000;

    /// The uuid that was promised.
    pub async fn set(world: &World) -> String {
        world.pod("promised-first", "promised", 1).await;
        world.runs("promised-first").await;
        // Longer than this leader lives: what it sent never arrives.
        world.proxy.faults.hold_ms.store(60_000, Ordering::SeqCst);
        world.proxy.faults.hold.store(HELD, Ordering::SeqCst);
        world.pod("promised-second", "promised", 1).await;
        let uid = world.get("promised-second").await.metadata.uid.unwrap();
        let claims: Api<NodeClaims> = Api::all(world.admin.clone());
        until("the promise is written", async || {
            let object = claims.get_opt("promised").await.unwrap()?;
            let promise = object.spec.claims.into_iter().find(|c| c.pod_uid == uid)?;
            let held = world.proxy.faults.hold.load(Ordering::SeqCst) < HELD;
            held.then(|| promise.cards[0].uuid.to_string())
        })
        .await
    }

    /// Whoever decided anew would take the first card.
    pub async fn meanwhile(world: &World) {
        world.proxy.faults.hold.store(0, Ordering::SeqCst);
        assert_eq!(world.bound("promised-second").await, None);
        world.gone("promised-first").await;
    }

    pub async fn seen(world: &World, uuid: &str) {
        assert_eq!(uuid, "GPU-promised-1");
        assert_eq!(world.cards("promised-second").await, [(uuid.to_owned(), 1000, 81_920)]);
    }
}

/// who leads, epoch: kept in Lease and `ConfigMap`, epoch one greater.
mod epoch {
    use super::*;

    async fn read(world: &World) -> (u64, String, i32) {
        let maps: Api<ConfigMap> = Api::namespaced(world.admin.clone(), "kube-system");
        let map = maps.get("crater-epoch").await.unwrap();
        let leases: Api<Lease> = Api::namespaced(world.admin.clone(), "kube-system");
        let lease = leases.get("crater").await.unwrap().spec.unwrap();
        let holder = lease.holder_identity.unwrap();
        (map.data.unwrap()["epoch"].parse().unwrap(), holder, lease.lease_transitions.unwrap())
    }

    pub async fn set(world: &World) -> u64 {
        let (epoch, holder, transitions) = read(world).await;
        assert_eq!((epoch, &*holder, transitions), (1, "first", 0));
        epoch
    }

    pub async fn seen(world: &World, before: u64) {
        assert_eq!(read(world).await, (before + 1, "next".to_owned(), 1));
        let pod = world.get("promised-second").await;
        assert_eq!(pod.metadata.annotations.unwrap()["crater.io/epoch"], "2");
    }
}

/// terminating, running, over: derived from the pod, the same.
mod lives {
    use super::*;

    pub async fn set(world: &World) {
        for name in ["lives-running", "lives-ending", "lives-over"] {
            world.pod(name, "lives", 1).await;
            world.runs(name).await;
            world.phase(name, "Running").await;
        }
        let pods: Api<Pod> = Api::namespaced(world.admin.clone(), "default");
        pods.delete("lives-ending", &DeleteParams::default()).await.unwrap();
        world.phase("lives-over", "Succeeded").await;
    }

    pub async fn seen(world: &World) {
        // What is over holds nothing; what runs or ends holds its card.
        let over = world.cards("lives-over").await;
        world.pod("lives-new", "lives", 1).await;
        assert_eq!(world.cards("lives-new").await, over);
        world.pod("lives-waits", "lives", 1).await;
        world.waits_for("lives-waits", "Insufficient crater.io/gpu").await;
        let ending = world.cards("lives-ending").await;
        world.gone("lives-ending").await;
        assert_eq!(world.cards("lives-waits").await, ending);
    }
}

/// what a pod asks for, its queue, priority: derived, the same.
mod asks {
    use super::*;

    pub async fn set(world: &World) {
        world.pod("asks-first", "asks", 1).await;
        world.runs("asks-first").await;
        for i in 0..4 {
            world.pod(&format!("asks-low-{i}"), "asks", 1).await;
        }
        let mut high = World::described("asks-high", "asks", 0);
        high["metadata"]["annotations"] =
            json!({"crater.io/gpu-memory": "40000", "crater.io/priority": "high"});
        world.make(high).await;
        world.waits("asks-high").await;
    }

    pub async fn seen(world: &World) {
        world.gone("asks-first").await;
        let cards = world.cards("asks-high").await;
        assert_eq!(cards, [("GPU-asks-0".to_owned(), 489, 40_000)]);
        for i in 0..4 {
            assert_eq!(world.bound(&format!("asks-low-{i}")).await, None);
        }
    }
}

/// why a pod waits: kept in its condition, told again only if it changed; and
/// back-off of words: losable, so what changed is told at once.
mod told {
    use super::*;

    const WHY: &str = "node(s) didn't match Pod's node affinity/selector";

    pub async fn set(world: &World) {
        world.pod("told", "nowhere", 1).await;
        world.waits_for("told", WHY).await;
        let mut pod = World::described("told-changes", "nowhere", 4);
        pod["spec"]["nodeSelector"] = json!({"told": "yes"});
        world.make(pod).await;
        world.waits_for("told-changes", WHY).await;
    }

    pub async fn version(world: &World) -> String {
        world.get("told").await.metadata.resource_version.unwrap()
    }

    pub async fn meanwhile(world: &World) {
        let nodes: Api<Node> = Api::all(world.admin.clone());
        let label = Patch::Strategic(json!({"metadata": {"labels": {"told": "yes"}}}));
        nodes.patch("order", &PatchParams::default(), &label).await.unwrap();
    }

    pub async fn seen(world: &World, before: &str) {
        world.waits_for("told-changes", "1 Insufficient crater.io/gpu").await;
        // Words are told in turn: when this one is told, the other would be.
        world.pod("told-after", "nowhere", 1).await;
        let why = world.waits("told-after").await;
        assert_eq!(world.told("told").await, Some(why));
        assert_eq!(version(world).await, before, "it was not told the same again");
    }
}

/// order of equal jobs: losable, by uid and not by age.
mod order {
    use super::*;

    const EQUAL: [&str; 4] = ["order-0", "order-1", "order-2", "order-3"];

    pub async fn set(world: &World) {
        world.pod("order-first", "order", 1).await;
        world.runs("order-first").await;
        for name in EQUAL {
            world.pod(name, "order", 1).await;
            world.waits(name).await;
        }
    }

    pub async fn seen(world: &World) {
        let mut by_uid = vec![];
        for name in EQUAL {
            by_uid.push((world.get(name).await.metadata.uid.unwrap(), name));
        }
        by_uid.sort();
        let mut before = "order-first";
        for (_, name) in by_uid {
            world.gone(before).await;
            let next = until("one of them is bound", async || {
                for name in EQUAL.into_iter().filter(|n| *n != before) {
                    if world.bound(name).await.is_some() {
                        return Some(name);
                    }
                }
                None
            });
            assert_eq!(next.await, name);
            before = name;
        }
    }
}

/// back-off of refused bindings: losable, tried at once.
mod backoff {
    use super::*;

    /// After three refusals the pause is of four seconds.
    const PAUSE: Duration = Duration::from_secs(4);

    pub async fn set(world: &World) {
        world.proxy.faults.refuse.store(3, Ordering::SeqCst);
        world.pod("backoff", "backoff", 1).await;
        until("it is refused three times", async || {
            (world.proxy.faults.refuse.load(Ordering::SeqCst) == 0).then_some(())
        })
        .await;
    }

    pub async fn seen(world: &World, began: Instant) {
        world.runs("backoff").await;
        assert!(began.elapsed() < PAUSE, "it was not tried at once: {:?}", began.elapsed());
    }
}

/// queues and policies: command line, as given.
mod queues {
    use super::*;

    pub async fn set(world: &World) {
        let mut pod = World::described("queues", "bound", 0);
        pod["metadata"]["annotations"]["crater.io/queue"] = "night".into();
        world.make(pod).await;
        world.waits_for("queues", "queue night is unknown").await;
    }

    pub async fn seen(world: &World) {
        assert_eq!(world.runs("queues").await, "bound");
    }
}
