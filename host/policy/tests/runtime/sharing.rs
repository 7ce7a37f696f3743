//! Case C56: instances are reused, never shared, and keep nothing that shows.

use crate::guest::{Guest, SUM};
use crate::world::{configured, limited, metered, one, runtime, table};
use crater_engine::policy::{Column, Fault, Policy, Table};
use crater_policy::{Configured, Limits};
use proptest::prelude::*;
use std::sync::OnceLock;
use std::thread;

/// Writes the job's id into memory, works a while, and answers what it reads
/// there. A second entry meanwhile, or one after a trap, finds the mark that
/// it left and traps. Every tenth job traps halfway.
const REMEMBER: &str = "
  (local $out i32) (local $id i32) (local $i i32)
  (if (i32.load (i32.const 700)) (then (call $entered_twice)))
  (i32.store (i32.const 700) (i32.const 1))
  (local.set $id (i32.load (i32.load offset=4 (local.get $job))))
  (i32.store (i32.const 704) (local.get $id))
  (loop $work
    (local.set $i (i32.add (local.get $i) (i32.const 1)))
    (br_if $work (i32.lt_u (local.get $i) (i32.const 2000))))
  (if (i32.eqz (i32.rem_u (local.get $id) (i32.const 10))) (then (unreachable)))
  (local.set $out (call $room (i32.const 1)))
  (i32.store (local.get $out) (i32.load (i32.const 704)))
  (i32.store (i32.const 700) (i32.const 0))
  (call $list (local.get $out) (i32.const 1))";

#[test]
fn eight_threads_never_meet_in_an_instance() {
    let guest = Guest::default()
        .with("filter", REMEMBER)
        .with("score", REMEMBER)
        .fields("(func $entered_twice (unreachable))");
    let policy = configured(&runtime(), &guest);
    thread::scope(|scope| {
        for worker in 0..8 {
            let policy = &policy;
            scope.spawn(move || {
                for n in 0..250 {
                    let id = worker * 1000 + n;
                    let (context, job, nodes) = (one(1, 0), one(100, id), table(1, 0));
                    let code = policy.filter(&context, &job, &nodes);
                    let score = policy.score(&context, &job, &nodes).map(|s| s.scores);
                    for answer in [code, score] {
                        match answer {
                            Ok(values) => assert_eq!(values, [id]),
                            Err(Fault::Trap { message, .. }) => {
                                assert_eq!(id % 10, 0, "{message}");
                                assert!(!message.contains("entered_twice"), "{message}");
                            }
                            Err(other) => panic!("{other}"),
                        }
                    }
                }
            });
        }
    });
    let counters = policy.counters();
    assert_eq!((counters.calls, counters.traps, counters.faults()), (4000, 400, 400));
    assert_eq!(counters.instances_dropped, 400);
    assert!(counters.instances_made <= 400 + 8, "{}", counters.instances_made);
}

#[test]
fn a_full_pool_waits_and_does_not_fail() {
    let guest = Guest::default().with("filter", REMEMBER).fields("(func $entered_twice)");
    let limits = Limits { instances: 1, ..Limits::default() };
    let policy = limited(&runtime(), &guest, limits);
    thread::scope(|scope| {
        for worker in 0..4 {
            let policy = &policy;
            scope.spawn(move || {
                for _ in 0..50 {
                    let answer = policy.filter(&one(1, 0), &one(100, worker + 1), &table(1, 0));
                    assert_eq!(answer, Ok(vec![worker + 1]));
                }
            });
        }
    });
    assert_eq!(policy.counters().instances_made, 1);
}

#[test]
fn old_and_swollen_instances_are_retired() {
    let grow = "(drop (memory.grow (i32.const 16))) ".to_owned();
    let guest = Guest::default()
        .with("filter", &(grow + "(call $list (i32.const 1024) (local.get $rows))"));
    let ask = |policy: &Configured| policy.filter(&one(1, 0), &one(100, 1), &table(1, 0)).unwrap();
    let limits = Limits { memory_high_water: 4 << 20, ..Limits::default() };
    let policy = limited(&runtime(), &guest, limits);
    (0..40).for_each(|_| drop(ask(&policy)));
    let counters = policy.counters();
    // A mebibyte a call: the fourth goes beyond the mark.
    assert_eq!((counters.instances_made, counters.instances_dropped), (10, 10));
    let limits = Limits { calls_per_instance: 8, ..Limits::default() };
    let policy = limited(&runtime(), &Guest::default().with("filter", crate::guest::KEEP), limits);
    (0..40).for_each(|_| drop(ask(&policy)));
    // `configure` counts as a call.
    assert_eq!(policy.counters().instances_dropped, 5);
}

/// The same guest on a reused instance, on fresh ones, and counted in fuel.
fn kinds() -> &'static [Configured; 3] {
    static KINDS: OnceLock<[Configured; 3]> = OnceLock::new();
    KINDS.get_or_init(|| {
        let guest = Guest::default().with("filter", SUM).with("score", SUM);
        let fresh = Limits { calls_per_instance: 1, ..Limits::default() };
        [
            configured(&runtime(), &guest),
            limited(&runtime(), &guest, fresh),
            configured(&metered(), &guest),
        ]
    })
}

fn tables() -> impl Strategy<Value = Table> {
    (0_u32..40, 0_usize..6).prop_flat_map(|(rows, columns)| {
        let values = prop::collection::vec(any::<i32>(), rows as usize);
        prop::collection::vec(values, columns).prop_map(move |columns| Table {
            rows,
            columns: (200..).zip(columns).map(|(id, values)| Column { id, values }).collect(),
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn reused_fresh_and_metered_instances_answer_the_same(tables in prop::collection::vec(tables(), 1..4)) {
        for table in &tables {
            let sum = |row: usize| table.columns.iter().fold(0_i32, |s, c| s.wrapping_add(c.values[row]));
            let right: Vec<i32> = (0..table.rows as usize).map(sum).collect();
            for policy in kinds() {
                let codes = policy.filter(&one(1, 0), &one(100, 1), table);
                prop_assert_eq!(codes.as_ref(), Ok(&right));
                let scores = policy.score(&one(1, 0), &one(100, 1), table).map(|s| s.scores);
                prop_assert_eq!(scores.as_ref(), Ok(&right));
            }
        }
    }
}
