//! Who may write a pod may write what the scheduler writes, unless the API
//! server keeps it: first what the books make of that, then the policy that
//! keeps it, `host/kube/manifests/assigned-at-admission.yaml`.

use crater_kube::ASSIGNED_AT_ADMISSION;
use crater_kube::k8s_openapi::api::core::v1::Pod;
use crater_kube::kube::Error;
use crater_kube::kube::api::{Api, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use crater_kube::kube::core::{ApiResource, GroupVersionKind};
use crater_kubernetes::crater::{Crater, How, SHORT_LEASE};
use crater_kubernetes::plane::{Plane, apply};
use crater_kubernetes::programs::{self, Programs};
use crater_kubernetes::proxy::Proxy;
use crater_kubernetes::world::{World, until};
use serde_json::{Value, json};
use std::time::Duration;

const ASSIGNED: &str = "crater.io/assigned-cards";

/// A pod whose author says that it holds next to nothing of a card.
fn forged(name: &str, cards: u64) -> Value {
    let mut pod = World::described(name, "n", cards);
    let little = json!([{"uuid": "GPU-n-0", "index": 0, "milli": 1, "memoryMiB": 1}]);
    pod["metadata"]["annotations"][ASSIGNED] = little.to_string().into();
    pod
}

fn preset(mut pod: Value) -> Value {
    pod["spec"]["nodeName"] = "n".into();
    pod
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_pod_s_author_says_of_its_cards_gives_nobody_a_card() {
    let programs = match Programs::find().and_then(|p| programs::crater().map(|_| p)) {
        Ok(programs) => programs,
        Err(why) => return println!("skipped: {why}"),
    };
    let mut plane = Plane::start(&programs).await.unwrap();
    plane.nobody_plays();
    let admin = plane.client("admin").await.unwrap();
    let proxy = Proxy::start(plane.client("crater").await.unwrap()).await.unwrap();
    let how = How { by: Some(proxy.port), ..How::with(&[SHORT_LEASE, "--resync=600"]) };
    let world = World { admin, proxy };
    world.node("n", 2).await;
    let mut crater = Crater::start(&plane, "books", &how).unwrap();
    crater.decides(1, Duration::from_mins(1)).await.unwrap();
    the_books_charge_what_it_asks_for(&world).await;
    a_binding_writes_over_it(&world).await;
    apply(&world.admin, ASSIGNED_AT_ADMISSION).await.unwrap();
    the_api_server_keeps_it(&world).await;
    let (_, counts) = crater.end().unwrap();
    assert_eq!((&counts["doubted"], &counts["defects"]), (&1.into(), &0.into()), "{counts}");
}

async fn the_books_charge_what_it_asks_for(world: &World) {
    world.make(preset(forged("f", 2))).await;
    // What is seen of pods is in order: when this is known, so is the other.
    world.pod("a", "n", 1).await;
    world.waits_for("a", "Insufficient crater.io/gpu").await;
    let kind = GroupVersionKind::gvk("events.k8s.io", "v1", "Event");
    let resource = ApiResource::from_gvk(&kind);
    let events: Api<DynamicObject> =
        Api::namespaced_with(world.admin.clone(), "default", &resource);
    let note = until("its pod is told", async || {
        let all = events.list(&ListParams::default()).await.unwrap().items;
        let told = all.iter().find(|e| e.data["reason"] == "AssignmentDoubted")?;
        assert_eq!(told.data["regarding"]["name"], "f");
        told.data["note"].as_str().map(str::to_owned)
    })
    .await;
    assert!(note.contains("names 1 cards and the pod asks for 2"), "{note}");
    assert!(note.contains("GPU-n-0 1000 milli 81920 MiB, GPU-n-1 1000 milli"), "{note}");
    world.gone("f").await;
    world.runs("a").await;
}

async fn a_binding_writes_over_it(world: &World) {
    world.make(forged("b", 0)).await;
    assert_eq!(world.cards("b").await, []);
    world.make(forged("c", 1)).await;
    assert_eq!(world.cards("c").await[0].1, 1000);
    world.gone("b").await;
    world.gone("c").await;
}

async fn the_api_server_keeps_it(world: &World) {
    let pods: Api<Pod> = Api::namespaced(world.admin.clone(), "default");
    let no = |what: &str, answer: Result<(), Error>| match answer {
        Err(Error::Api(status)) => {
            assert_eq!(status.code, 422, "{what}: {status:?}");
            status.message
        }
        other => panic!("{what}: {other:?}"),
    };
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    let make = async |pod: Value| {
        let pod = serde_json::from_value(pod).unwrap();
        pods.create(&dry, &pod).await.map(|_| ())
    };
    // The API server takes a moment to learn of a policy.
    let answer = until("words of the scheduler are refused", async || {
        let answer = make(forged("d", 1)).await;
        answer.is_err().then_some(answer)
    })
    .await;
    assert!(no("made", answer).contains("the scheduler's to write"));
    let answer = make(preset(World::described("d", "n", 1))).await;
    assert!(no("preset", answer).contains("use nodeSelector"));
    let mut other = preset(World::described("d", "n", 1));
    other["spec"]["schedulerName"] = "other".into();
    make(other).await.expect("a pod of another scheduler");

    let params = PatchParams { dry_run: true, ..PatchParams::default() };
    let annotate =
        |key: &str, value: Value| Patch::Merge(json!({"metadata": {"annotations": {key: value}}}));
    for (key, value) in [
        (ASSIGNED, json!("[]")),
        (ASSIGNED, Value::Null),
        ("crater.io/epoch", json!("99")),
        ("crater.io/gpu", json!("0.1")),
    ] {
        let patch = annotate(key, value);
        let done = pods.patch("a", &params, &patch).await.map(|_| ());
        no(key, done);
        let done = pods.patch_status("a", &params, &patch).await.map(|_| ());
        no(key, done);
    }
    let harmless = annotate("example.org/note", json!("mine"));
    pods.patch("a", &params, &harmless).await.unwrap();
    world.phase("a", "Running").await;

    // A pod that waits may still be edited; bound it is by the scheduler alone.
    world.pod("e", "n", 2).await;
    world.waits("e").await;
    let binding = json!({
        "apiVersion": "v1", "kind": "Binding",
        "metadata": {"name": "e", "annotations": {ASSIGNED: "[]"}},
        "target": {"kind": "Node", "name": "n"},
    });
    let request = http::Request::post("/api/v1/namespaces/default/pods/e/binding")
        .header("Content-Type", "application/json")
        .body(serde_json::to_vec(&binding).unwrap())
        .unwrap();
    let bound = world.admin.request_text(request).await.map(|_| ());
    assert!(no("bound", bound).contains("the scheduler's to write"));
    let less = annotate("crater.io/gpu", json!("1"));
    pods.patch("e", &PatchParams::default(), &less).await.unwrap();
    assert_eq!(world.cards("e").await.len(), 1);
    assert_eq!(world.get("e").await.metadata.annotations.unwrap()["crater.io/epoch"], "1");
}
