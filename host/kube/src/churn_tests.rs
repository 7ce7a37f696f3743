//! Books of a cluster in which pods come and go for ever, and what of them a
//! new leader does not know.

use super::*;
use crate::pod::Phase;
use crate::world::{T, World, pod};

#[test]
fn jobs_of_pods_that_came_and_went_are_forgotten() {
    let mut world = World::new(&[("n", 8)]);
    let lives = world.run(&pod("lives", 1));
    let mut most = 0;
    for i in 0..10_000 {
        let uid = format!("p{i}");
        match i % 3 {
            // Gone while it waits; over while it runs; deleted while it runs.
            0 => world.mirror.pod_seen(T, &Arc::new(pod(&uid, 8))),
            1 => {
                let run = world.run(&pod(&uid, 1));
                world.mirror.pod_seen(T, &Arc::new(PodSeen { phase: Phase::Over(true), ..run }));
            }
            _ => drop(world.run(&pod(&uid, 1))),
        }
        world.mirror.pod_gone(T, &uid);
        let kept = world.mirror.state().jobs().count();
        assert_eq!(kept, world.mirror.jobs_kept());
        most = most.max(kept);
    }
    let state = world.mirror.state();
    assert!(state.next_job().0 > 10_000);
    assert!(most <= FORGET_FROM + 2, "{most} jobs in the books");
    assert_eq!((world.mirror.pods().count(), world.mirror.jobs.len()), (1, 1));
    assert_eq!(state.claims().count(), 1);
    assert!(world.mirror.promised.is_empty() && world.mirror.doubts.is_empty());
    assert_eq!(world.mirror.troubles, Troubles::default());
    world.mirror.pod_gone(T, &lives.uid);
    world.mirror.audit().unwrap();
}

#[test]
fn preemptions_and_attempts_are_losable() {
    let mut world = World::new(&[("n", 1)]);
    world.see(&pod("j1", 1));
    world.decide();
    world.mirror.refused_binding(T, "j1");
    let counts = |world: &World| {
        let Standing::Waiting(job) = world.mirror.pod("j1").unwrap().standing else {
            panic!("it waits")
        };
        let job = world.mirror.state().job(job).unwrap();
        (job.attempts, job.preemptions)
    };
    // A binding that was refused is a start, and nobody's preemption.
    assert_eq!((counts(&world), counts(&world.again())), ((1, 0), (0, 0)));
}
