//! The quick part: on a real API server, in seconds.

use crater_kube::kube::api::{Api, ListParams, PostParams};
use crater_kube::objects::{ClaimsSpec, NodeClaims};
use crater_kubernetes::cluster::{self, Ask};
use crater_kubernetes::crater::{Crater, How, SHORT_LEASE};
use crater_kubernetes::judge::Judge;
use crater_kubernetes::plane::Plane;
use crater_kubernetes::programs::{self, Programs};
use crater_kubernetes::recount::{compare, recount};
use std::time::Duration;

/// A control plane, or the reason why there is none.
async fn plane() -> Option<Plane> {
    let programs = match Programs::find().and_then(|p| programs::crater().map(|_| p)) {
        Ok(programs) => programs,
        Err(why) => {
            println!("skipped: {why}");
            return None;
        }
    };
    Some(Plane::start(&programs).await.expect("a control plane"))
}

/// 50 nodes, 300 pods: all bound, books equal to a recount, before and after
/// the leader is killed; a write of the old epoch is refused.
#[tokio::test(flavor = "multi_thread")]
async fn pods_are_bound_once_whoever_leads() {
    let Some(plane) = plane().await else { return };
    let admin = plane.client("admin").await.unwrap();
    cluster::make_nodes(&admin, 50, 8).await.unwrap();
    let judge = Judge::start(admin.clone());
    let how = How::with(&[SHORT_LEASE, "--queue=training=binpack"]);
    let mut first = Crater::start(&plane, "first", &how).unwrap();
    first.decides(1, Duration::from_mins(1)).await.unwrap();
    let mut second = Crater::start(&plane, "second", &how).unwrap();

    let pods = |from: usize, to: usize| {
        (from..to).map(|i| cluster::pod(&format!("p{i}"), "crater", &Ask::mixed(i)))
    };
    cluster::make_pods(&admin, pods(0, 200)).await.unwrap();
    cluster::all_bound(&admin, Duration::from_mins(1)).await.unwrap();
    recount(&admin).await.unwrap();

    // Half of the rest is on its way when the leader dies.
    cluster::make_pods(&admin, pods(200, 250)).await.unwrap();
    first.process.kill();
    cluster::make_pods(&admin, pods(250, 300)).await.unwrap();
    second.decides(1, Duration::from_mins(1)).await.unwrap();
    cluster::all_bound(&admin, Duration::from_mins(1)).await.unwrap();

    // C09: whoever still believes to be the first leader cannot promise more.
    let claims: Api<NodeClaims> = Api::all(plane.client("crater").await.unwrap());
    let any = claims.list(&ListParams::default()).await.unwrap().items;
    let new = any.into_iter().find(|o| o.spec.epoch == 2).expect("the second leader promised");
    let name = new.metadata.name.clone().unwrap();
    let old = NodeClaims { spec: ClaimsSpec { epoch: 1, ..new.spec.clone() }, ..new };
    let refused = claims.replace(&name, &PostParams::default(), &old).await.unwrap_err();
    assert!(refused.to_string().contains("older leader"), "{refused}");

    tokio::time::sleep(Duration::from_secs(1)).await;
    let counted = recount(&admin).await.unwrap();
    let (books, counts) = second.end().unwrap();
    compare(&books, &counted).unwrap();
    assert_eq!((&counts["defects"], &counts["overpromised"]), (&0.into(), &0.into()), "{counts}");
    assert!(judge.verdict().unwrap() > 300);
}
