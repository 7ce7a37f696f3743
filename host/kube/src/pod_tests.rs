use super::*;
use crater_model::{Kind, Share};
use serde_json::{Value, json};

fn defaults() -> want::Defaults {
    want::Defaults {
        scheduler_name: "crater".into(),
        queue: "training".into(),
        kinds: BTreeMap::from([("inference".into(), Kind::Inference)]),
    }
}

fn pod(annotations: &Value, requests: &Value) -> PodSeen {
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "p", "namespace": "ai", "uid": "u-1", "annotations": annotations},
        "spec": {
            "schedulerName": "crater",
            "containers": [{"name": "c", "resources": {"requests": requests}}],
        },
    });
    PodSeen::new(&serde_json::from_value(pod).unwrap(), &defaults())
}

fn refused(annotations: &Value, requests: &Value) -> String {
    pod(annotations, requests).wants.unwrap().unwrap_err().to_string()
}

#[test]
fn a_pod_says_what_it_wants() {
    let words = json!({
        "crater.io/gpu": "0.5", "crater.io/gpu-memory": "8000",
        "crater.io/queue": "training", "crater.io/preemptible": "true",
    });
    let job = pod(&words, &json!({"cpu": "2", "memory": "4Gi"})).wants.unwrap().unwrap();
    assert!(job.preemptible);
    assert_eq!((job.request.cpu, job.request.memory), (MilliCores(2000), Mib(4096)));
    let share = &job.request.gpu.as_ref().unwrap().share;
    assert_eq!(
        *share,
        Share::Part { milli: crater_model::MilliCards(500), memory: Some(Mib(8000)) }
    );
}

#[test]
fn whole_cards_may_be_asked_for_as_everywhere() {
    let wants = pod(&json!({}), &json!({"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": "2"})).wants;
    assert_eq!(wants.unwrap().unwrap().request.cards(), 2);
    let both = refused(
        &json!({"crater.io/gpu": "0.5"}),
        &json!({"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": "2"}),
    );
    assert!(both.starts_with("nvidia.com/gpu: \"2\" is refused"), "{both}");
}

#[test]
fn what_cannot_be_meant_is_refused_by_its_key() {
    let amounts = json!({"cpu": "1", "memory": "1Gi"});
    for (words, key) in [
        (json!({"crater.io/gpu": "NaN"}), "crater.io/gpu: "),
        (json!({"crater.io/gpu-memory": "8GB"}), "crater.io/gpu-memory: "),
        (json!({"crater.io/preemptible": "yes"}), "crater.io/preemptible: "),
        (json!({"crater.io/queue": "inference", "crater.io/preemptible": "true"}), "preemptible: "),
    ] {
        let error = refused(&words, &amounts);
        assert!(error.starts_with(key), "{error}");
    }
    assert!(refused(&json!({"crater.io/gpu": "1"}), &json!({})).starts_with("cpu: "));
}

#[test]
fn side_cars_add_and_init_containers_do_not() {
    let spec = json!({
        "containers": [
            {"name": "a", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}},
            {"name": "b", "resources": {"requests": {"cpu": "500m"}}},
        ],
        "initContainers": [
            {"name": "i", "resources": {"requests": {"cpu": "3"}}},
            {"name": "s", "restartPolicy": "Always", "resources": {"requests": {"memory": "1Gi"}}},
        ],
        "overhead": {"cpu": "100m"},
    });
    let takes = takes(&serde_json::from_value(spec).unwrap()).unwrap();
    assert_eq!((takes.cpu, takes.memory), (MilliCores(3100), Mib(2048)));
}

#[test]
fn c32_a_side_car_adds_to_the_init_steps_after_it() {
    let needs = |init: &[(&str, u32)], main: u32| {
        let gib = |n: u32| json!({"requests": {"memory": format!("{n}Gi"), "nvidia.com/gpu": n}});
        let init = init.iter().map(|(policy, n)| match *policy {
            "step" => json!({"name": "i", "resources": gib(*n)}),
            _ => json!({"name": "s", "restartPolicy": "Always", "resources": gib(*n)}),
        });
        let spec = json!({
            "containers": [{"name": "a", "resources": gib(main)}],
            "initContainers": init.collect::<Vec<_>>(),
        });
        let takes = takes(&serde_json::from_value(spec).unwrap()).unwrap();
        assert_eq!(takes.memory.0, takes.cards * 1024, "all resources by one rule");
        takes.cards
    };
    assert_eq!(needs(&[("step", 10), ("step", 10), ("step", 10)], 1), 10);
    assert_eq!(needs(&[("step", 4), ("car", 4)], 10), 14);
    assert_eq!(needs(&[("car", 4), ("step", 12)], 10), 16, "the side-car runs already");
    assert_eq!(needs(&[("step", 12), ("car", 4)], 10), 14);
    assert_eq!(needs(&[("car", 8)], 10), 18);
}

#[test]
fn affinity_and_selector_hold_together() {
    let pod = json!({
        "metadata": {"name": "p", "namespace": "ai", "uid": "u-1"},
        "spec": {
            "schedulerName": "crater",
            "nodeSelector": {"zone": "a"},
            "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [
                    {"key": "gpu", "operator": "In", "values": ["h100"]},
                ]}, {}],
            }}},
            "containers": [{"name": "c"}],
        },
    });
    let seen = PodSeen::new(&serde_json::from_value(pod).unwrap(), &defaults());
    let selectors = &seen.wants.unwrap().unwrap().request.selectors;
    let labels =
        |pairs: &[(&str, &str)]| pairs.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect();
    let matches = |pairs| selectors.iter().any(|s| s.matches(&labels(pairs)));
    assert!(matches(&[("zone", "a"), ("gpu", "h100")]));
    assert!(!matches(&[("zone", "b"), ("gpu", "h100")]));
    assert!(!matches(&[("zone", "a")]), "an empty term means no node");
}
