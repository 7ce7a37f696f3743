//! C09's clock jump on a real API server: a lease whose holder's clock is hours
//! off, either way. What counts is when it was last seen to change.

use crater_kube::k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use crater_kube::k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use crater_kube::k8s_openapi::jiff::{SignedDuration, Timestamp};
use crater_kube::kube::api::{Api, ObjectMeta, PostParams};
use crater_kubernetes::crater::{Crater, How, SHORT_LEASE};
use crater_kubernetes::plane::Plane;
use crater_kubernetes::programs::{self, Programs};
use crater_kubernetes::world::until;
use std::time::{Duration, Instant};

const LASTS: Duration = Duration::from_secs(3);

/// A holder whose clock is so many hours ahead.
fn held(hours: i64) -> LeaseSpec {
    let wall = MicroTime(Timestamp::now() + SignedDuration::from_hours(hours));
    LeaseSpec {
        holder_identity: Some("another".into()),
        lease_duration_seconds: Some(3),
        acquire_time: Some(wall.clone()),
        renew_time: Some(wall),
        lease_transitions: Some(7),
        ..LeaseSpec::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_lasts_from_when_it_was_seen_to_change_whatever_time_is_written_in_it() {
    let programs = match Programs::find().and_then(|p| programs::crater().map(|_| p)) {
        Ok(programs) => programs,
        Err(why) => return println!("skipped: {why}"),
    };
    let mut plane = Plane::start(&programs).await.unwrap();
    plane.nobody_plays();
    let admin = plane.client("admin").await.unwrap();
    let leases: Api<Lease> = Api::namespaced(admin, "kube-system");
    let renew = async |hours: i64| {
        // Whatever was written between: this holder wants it.
        until("the lease is written", async || {
            let mut lease = leases.get("crater").await.unwrap();
            lease.spec = Some(held(hours));
            leases.replace("crater", &PostParams::default(), &lease).await.ok()
        })
        .await
    };

    // Hours in the future: no reason to wait longer than it lasts.
    let metadata = ObjectMeta { name: Some("crater".into()), ..ObjectMeta::default() };
    let lease = Lease { metadata, spec: Some(held(3)) };
    leases.create(&PostParams::default(), &lease).await.unwrap();
    let began = Instant::now();
    let mut crater = Crater::start(&plane, "ours", &How::with(&[SHORT_LEASE])).unwrap();
    crater.decides(1, Duration::from_mins(1)).await.unwrap();
    assert!(began.elapsed() >= LASTS, "it was held when it was first seen");
    let spec = leases.get("crater").await.unwrap().spec.unwrap();
    assert_eq!((spec.holder_identity.as_deref(), spec.lease_transitions), (Some("ours"), Some(8)));

    // Hours in the past, and renewed: no reason to take it.
    renew(-3).await;
    until("it steps down", async || crater.log().contains("stands by").then_some(())).await;
    let began = Instant::now();
    let mut last = began;
    while began.elapsed() < LASTS * 2 {
        last = Instant::now();
        renew(-3).await;
        tokio::time::sleep(Duration::from_millis(400)).await;
    }
    assert_eq!(crater.log().matches("leads with epoch").count(), 1, "{}", crater.log());

    // Not renewed any more.
    crater.decides(2, Duration::from_mins(1)).await.unwrap();
    assert!(last.elapsed() >= LASTS);
    assert!(crater.log().contains("leads with epoch 2"), "{}", crater.log());
}
