//! Public bug reports as tests on a real API server: C09, C11, C12, C15, C17,
//! C18 and C24 of the project's collection. Their machines are played by the
//! test, so that nothing happens by itself. Each stands in host/kube's
//! `mirror_tests.rs` too, where every order of events can be tried.

use crater_kube::k8s_openapi::api::core::v1::{Node, Pod};
use crater_kube::kube::api::{Api, DeleteParams, PostParams};
use crater_kube::objects::NodeInventory;
use crater_kubernetes::cluster::{self, Ask};
use crater_kubernetes::crater::{Crater, How, SHORT_LEASE};
use crater_kubernetes::plane::Plane;
use crater_kubernetes::programs::{self, Programs};
use crater_kubernetes::proxy::Proxy;
use crater_kubernetes::recount::recount;
use crater_kubernetes::world::World;
use serde_json::json;
use std::sync::atomic::Ordering;
use std::time::Duration;

#[tokio::test(flavor = "multi_thread")]
async fn reported_bugs_do_not_come_back() {
    let programs = match Programs::find().and_then(|p| programs::crater().map(|_| p)) {
        Ok(programs) => programs,
        Err(why) => return println!("skipped: {why}"),
    };
    let mut plane = Plane::start(&programs).await.unwrap();
    plane.nobody_plays();
    let admin = plane.client("admin").await.unwrap();
    let proxy = Proxy::start(plane.client("crater").await.unwrap()).await.unwrap();
    let how = How { by: Some(proxy.port), ..How::with(&[SHORT_LEASE, "--resync=600"]) };
    let mut crater = Crater::start(&plane, "cases", &how).unwrap();
    crater.decides(1, Duration::from_mins(1)).await.unwrap();
    let world = World { admin, proxy };
    c09_an_assumed_placement_does_not_expire(&world).await;
    c11_a_missed_delete_leaves_no_ghost(&world).await;
    c12_a_new_machine_under_an_old_name(&world).await;
    c15_an_over_full_node(&world).await;
    c17_a_blip(&world).await;
    c18_terminating_is_not_gone(&world).await;
    c24_work_of_others(&world).await;

    // The same for whoever leads next.
    let counted = recount(&world.admin).await.unwrap();
    let (books, _) = crater.end().unwrap();
    let mut crater = Crater::start(&plane, "again", &how).unwrap();
    crater.decides(1, Duration::from_mins(1)).await.unwrap();
    let (again, counts) = crater.end().unwrap();
    assert_eq!(books, again, "books before and after a restart");
    assert_eq!(recount(&world.admin).await.unwrap(), counted, "nobody was bound meanwhile");
    assert_eq!((&counts["defects"], &counts["overpromised"]), (&0.into(), &0.into()), "{counts}");
}

async fn c09_an_assumed_placement_does_not_expire(world: &World) {
    world.node("c09", 1).await;
    // Longer than the scheduler waits for an answer.
    world.proxy.faults.hold_ms.store(12_000, Ordering::SeqCst);
    world.proxy.faults.hold.store(1, Ordering::SeqCst);
    world.pod("c09-j1", "c09", 1).await;
    while world.proxy.faults.done.load(Ordering::SeqCst) == 0 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    world.pod("c09-j2", "c09", 1).await;
    world.waits("c09-j2").await;
    world.runs("c09-j1").await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(world.bound("c09-j2").await, None);
    world.gone("c09-j1").await;
    world.runs("c09-j2").await;
}

async fn c11_a_missed_delete_leaves_no_ghost(world: &World) {
    world.node("c11", 8).await;
    world.pod("c11-a", "c11", 8).await;
    world.runs("c11-a").await;
    world.pod("c11-b", "c11", 8).await;
    let why = world.waits("c11-b").await;
    assert!(
        why.contains("nodes are available: ") && why.contains("1 Insufficient crater.io/gpu"),
        "{why}"
    );
    // The watch breaks, and what came meanwhile is no more in the history.
    world.proxy.faults.history_gone.store(8, Ordering::SeqCst);
    world.proxy.faults.drop_watches();
    world.gone("c11-a").await;
    world.runs("c11-b").await;
    world.proxy.faults.history_gone.store(0, Ordering::SeqCst);
}

async fn c12_a_new_machine_under_an_old_name(world: &World) {
    world.node("c12", 1).await;
    world.pod("c12-p", "c12", 1).await;
    world.runs("c12-p").await;
    world.pod("c12-x", "c12", 1).await;
    world.waits("c12-x").await;
    world.gone("c12-x").await;
    let nodes: Api<Node> = Api::all(world.admin.clone());
    nodes.delete("c12", &DeleteParams::default()).await.unwrap();
    world.gone("c12-p").await;
    world.node("c12", 1).await;
    world.pod("c12-y", "c12", 1).await;
    world.runs("c12-y").await;
}

async fn c15_an_over_full_node(world: &World) {
    world.node("c15", 8).await;
    world.pod("c15-j0", "c15", 8).await;
    world.runs("c15-j0").await;
    let api: Api<NodeInventory> = Api::all(world.admin.clone());
    let mut object = api.get("c15").await.unwrap();
    object.spec.cards.pop();
    api.replace("c15", &PostParams::default(), &object).await.unwrap();
    world.pod("c15-g", "c15", 1).await;
    world.waits("c15-g").await;
    world.pod("c15-j1", "c15", 0).await;
    assert_eq!(world.runs("c15-j1").await, "c15");
    world.gone("c15-g").await;
    world.gone("c15-j0").await;
    world.gone("c15-j1").await;
}

async fn c17_a_blip(world: &World) {
    world.node("c17", 4).await;
    world.pod("c17-j1", "c17", 4).await;
    world.runs("c17-j1").await;
    let ready =
        |status: &str| json!({"status": {"conditions": [{"type": "Ready", "status": status}]}});
    world.patch_node("c17", ready("Unknown")).await;
    world.pod("c17-j3", "c17", 4).await;
    world.waits("c17-j3").await;
    world.patch_node("c17", ready("True")).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(world.bound("c17-j3").await, None, "the first still runs there");
    assert_eq!(world.runs("c17-j1").await, "c17");
    world.gone("c17-j3").await;
}

async fn c18_terminating_is_not_gone(world: &World) {
    world.node("c18", 2).await;
    world.pod("c18-j1", "c18", 2).await;
    world.runs("c18-j1").await;
    // Nobody plays the kubelet here: it stays until it is taken away.
    let pods: Api<Pod> = Api::namespaced(world.admin.clone(), "default");
    pods.delete("c18-j1", &DeleteParams::default()).await.unwrap();
    let terminating = async || {
        let pod = cluster::find(&world.admin, "c18-j1").await.unwrap();
        pod.is_some_and(|p| p.metadata.deletion_timestamp.is_some())
    };
    assert!(terminating().await, "it is being deleted and still there");
    world.pod("c18-j2", "c18", 2).await;
    world.waits("c18-j2").await;
    assert!(terminating().await, "still there");
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(world.bound("c18-j2").await, None);
    world.gone("c18-j1").await;
    world.runs("c18-j2").await;
}

async fn c24_work_of_others(world: &World) {
    world.node("c24", 2).await;
    let mut foreign = cluster::pod("c24-f", "somebody", &Ask { cards: 1, ..Ask::default() });
    foreign["spec"]["nodeName"] = "c24".into();
    cluster::make_pods(&world.admin, [foreign]).await.unwrap();
    // What is seen of a pod is in order: when this is known, so is the other.
    world.pod("c24-j2", "c24", 2).await;
    world.waits("c24-j2").await;
    world.pod("c24-j1", "c24", 1).await;
    world.runs("c24-j1").await;
    world.gone("c24-j2").await;
}
