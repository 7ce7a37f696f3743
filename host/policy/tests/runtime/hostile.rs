//! Guests that do not behave: each call ends with the fault it deserves, the
//! instance is gone, and the next call has a fresh one.

use crate::guest::{Guest, KEEP, SUM};
use crate::world::{
    MARGIN, builder, configured, limited, limits_of, metered, one, runtime, setting, table,
};
use crater_engine::policy::{Fault, Interface, Policy};
use crater_policy::{Failure, Limits, LoadError};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

pub const LOOP: &str = "(loop $l (br $l)) (unreachable)";
pub const TRAP: &str = "(unreachable)";
const RECURSE: &str = "(call $deeper (i32.const 1))";
const DEEPER: &str = "(func $deeper (param i32) (result i32)
    (i32.add (call $deeper (i32.add (local.get 0) (i32.const 1))) (local.get 0)))";
const GROW: &str = "(loop $l
    (if (i32.eq (memory.grow (i32.const 16)) (i32.const -1)) (then (unreachable)))
    (br $l)) (unreachable)";
const GROW_TABLE: &str = "(loop $l
    (if (i32.eq (table.grow $t (ref.null func) (i32.const 1000)) (i32.const -1))
      (then (unreachable)))
    (br $l)) (unreachable)";
const CHATTER: &str = "(loop $l
    (call $log (i32.const 3) (i32.const 8192) (i32.const 900)) (br $l)) (unreachable)";

/// What a guest with this filter answers for three rows.
fn fault(guest: &Guest) -> Fault {
    let policy = configured(&runtime(), guest);
    let nodes = table(3, 1);
    let fault = policy.filter(&one(1, 0), &one(100, 1), &nodes).unwrap_err();
    let counters = policy.counters();
    assert_eq!((counters.faults(), counters.instances_dropped), (1, 1), "{fault}");
    fault
}

fn filter(body: &str) -> Guest {
    Guest::default().with("filter", body)
}

#[test]
fn each_misdeed_has_its_fault() {
    let at = Interface::Filter;
    assert_eq!(fault(&filter(LOOP)), Fault::Deadline { interface: at, limit_ms: 50 });
    assert_eq!(fault(&filter(CHATTER)), Fault::Deadline { interface: at, limit_ms: 50 });
    let memory = Fault::Memory { interface: at, limit_bytes: 64 << 20 };
    assert_eq!(fault(&filter(GROW)), memory);
    assert_eq!(fault(&filter(GROW_TABLE).fields("(table $t 1 funcref)")), memory);
    let trap = |guest: Guest, text: &str| match fault(&guest) {
        Fault::Trap { interface, message } => {
            assert!(interface == at && message.contains(text), "{message}");
        }
        other => panic!("{other}"),
    };
    trap(filter(TRAP), "unreachable");
    trap(filter("(i32.div_u (i32.const 1) (i32.const 0))"), "divide by zero");
    trap(filter("(i32.load (i32.const -8))"), "out of bounds");
    trap(filter(RECURSE).fields(DEEPER), "call stack exhausted in deeper < deeper");
}

#[test]
fn answers_of_another_length_or_place_are_refused_whole() {
    let detail = |body: &str| match fault(&filter(body)) {
        Fault::BadAnswer { interface: Interface::Filter, detail } => detail,
        other => panic!("{other}"),
    };
    let list = |len: &str| format!("(call $list (i32.const 1024) {len})");
    assert!(detail(&list("(i32.const 4)")).contains("4 values for 3 rows"));
    assert!(detail(&list("(i32.const 0)")).contains("0 values for 3 rows"));
    assert!(detail(&list("(i32.const -1)")).contains("out of bounds"));
    assert!(detail("(call $list (i32.const 1) (local.get $rows))").contains("aligned"));
    assert!(detail("(i32.const -4)").contains("out of bounds"));
}

#[test]
fn a_hundred_megabytes_are_refused_before_they_are_copied() {
    let limits = Limits { memory_bytes: 256 << 20, ..Limits::default() };
    let huge = "(drop (memory.grow (i32.const 1700)))";
    let answer = format!("{huge} (call $list (i32.const 0) (i32.const 25000000))");
    let line = format!(
        "{huge} (call $log (i32.const 1) (i32.const 0) (i32.const 100000000)) {}",
        KEEP.replace("(local $out i32)", "")
    );
    let line = format!("(local $out i32) {line}");
    for body in [answer, line] {
        let policy = limited(&runtime(), &filter(&body), limits);
        let fault = policy.filter(&one(1, 0), &one(100, 1), &table(3, 1)).unwrap_err();
        assert!(matches!(fault, Fault::BadAnswer { .. }), "{fault}");
        assert_eq!(policy.logs(), []);
    }
    let words = Guest::default()
        .with("admit", &format!("{huge} (call $refuse (i32.const 0) (i32.const 100000000))"));
    let policy = limited(&runtime(), &words, limits);
    let fault = policy.admit(&one(1, 0), &one(100, 1)).unwrap_err();
    assert!(matches!(fault, Fault::BadAnswer { interface: Interface::Admit, .. }), "{fault}");
}

#[test]
fn text_that_is_no_text_is_refused() {
    let guest = Guest::default()
        .with("admit", "(call $refuse (i32.const 600) (i32.const 4))")
        .fields("(data (i32.const 600) \"no\\ff\\fe\")");
    let policy = configured(&runtime(), &guest);
    let fault = policy.admit(&one(1, 0), &one(100, 1)).unwrap_err();
    assert!(matches!(fault, Fault::BadAnswer { .. }), "{fault}");
}

/// Scores at the ends of the range, and masks that the engine will judge.
#[test]
fn extreme_scores_are_answers_like_others() {
    let body = "(local $out i32)
      (local.set $out (call $room (i32.const 3)))
      (i32.store (local.get $out) (i32.const 0x7fffffff))
      (i32.store offset=4 (local.get $out) (i32.const 0x80000000))
      (i32.store offset=8 (local.get $out) (i32.const -1))
      (drop (call $list (local.get $out) (i32.const 3)))
      (i32.store (i32.const 776) (local.get $out))
      (i32.store (i32.const 780) (i32.const 3))
      (i32.const 768)";
    let policy = configured(&runtime(), &Guest::default().with("score", body));
    let scores = policy.score(&one(1, 0), &one(100, 1), &table(3, 1)).unwrap();
    assert_eq!(scores.scores, [i32::MAX, i32::MIN, -1]);
    assert_eq!(scores.cards, scores.scores);
}

/// Case C57: limits of the queue and of the runtime, set and unset. The bad
/// ones end, the good one succeeds, on one thread.
#[test]
fn limits_limit_whoever_sets_them() {
    let short = Duration::from_millis(20);
    for (global, own) in
        [(None, None), (Some(short), None), (None, Some(short)), (Some(short), Some(short * 2))]
    {
        let runtime = builder().limits(limits_of(global)).build().unwrap();
        let in_force = own.or(global).unwrap_or(Limits::default().call);
        let queue = |guest: &Guest| match own {
            Some(call) => limited(&runtime, guest, limits_of(Some(call))),
            None => configured(&runtime, guest),
        };
        let good = queue(&filter(KEEP));
        for bad in [filter(LOOP), filter(CHATTER), filter(GROW), filter(RECURSE).fields(DEEPER)] {
            let bad = queue(&bad);
            for _ in 0..2 {
                let from = Instant::now();
                let fault = bad.filter(&one(1, 0), &one(100, 1), &table(3, 1)).unwrap_err();
                let took = from.elapsed();
                assert!(took < in_force + MARGIN, "{took:?} with {in_force:?}: {fault}");
                if let Fault::Deadline { limit_ms, .. } = fault {
                    assert_eq!(u128::from(limit_ms), in_force.as_millis());
                }
                let codes = good.filter(&one(1, 0), &one(100, 1), &table(3, 1));
                assert_eq!(codes, Ok(vec![0; 3]));
            }
        }
        assert_eq!(good.counters().faults(), 0);
    }
}

#[test]
fn another_queue_does_not_notice() {
    let runtime = runtime();
    let good = configured(&runtime, &Guest::default().with("score", SUM));
    let done = AtomicBool::new(false);
    let nodes = table(50, 2);
    let answered = thread::scope(|scope| {
        let asking = scope.spawn(|| {
            let mut answered = 0_u32;
            while !done.load(Ordering::Relaxed) || answered == 0 {
                good.score(&one(1, 0), &one(100, 1), &nodes).unwrap();
                answered += 1;
            }
            answered
        });
        for body in [LOOP, GROW, TRAP, CHATTER] {
            let bad = configured(&runtime, &filter(body));
            for _ in 0..3 {
                bad.filter(&one(1, 0), &one(100, 1), &nodes).unwrap_err();
            }
        }
        done.store(true, Ordering::Relaxed);
        asking.join().unwrap()
    });
    assert_eq!(good.counters().calls, u64::from(answered));
    assert_eq!(good.counters().faults(), 0);
}

/// Counted in instructions, a call ends at the same one everywhere.
#[test]
fn fuel_ends_a_call_at_the_same_instruction() {
    let body = format!(
        "(local $n i32) (local $out i32)
         (local.set $n (i32.load (i32.load offset=4 (local.get $job))))
         (loop $l (local.set $n (i32.sub (local.get $n) (i32.const 1)))
           (br_if $l (i32.gt_s (local.get $n) (i32.const 0))))
         {}",
        KEEP.replace("(local $out i32)", "")
    );
    let guest = filter(&body);
    let longest = || {
        let policy = configured(&metered(), &guest);
        let ends = |n| policy.filter(&one(1, 0), &one(100, n), &table(1, 1)).is_ok();
        let (mut fine, mut over) = (1, 10_000_000);
        while fine + 1 < over {
            let middle = i32::midpoint(fine, over);
            if ends(middle) { fine = middle } else { over = middle }
        }
        fine
    };
    let first = longest();
    assert!(first > 1000);
    assert_eq!(longest(), first);
    let policy = configured(&metered(), &filter(LOOP));
    let fault = policy.filter(&one(1, 0), &one(100, 1), &table(1, 1)).unwrap_err();
    assert!(matches!(fault, Fault::Deadline { .. }), "{fault}");
}

#[test]
fn setting_up_is_limited_too() {
    let short = Limits { setup: Duration::from_millis(20), ..Limits::default() };
    let runtime = builder().limits(short).build().unwrap();
    let load = |guest: &Guest| runtime.load(&guest.build());
    let describing = |body: &str| Guest { describe: Some(body.to_owned()), ..Guest::default() };
    assert!(matches!(load(&describing(LOOP)), Err(LoadError::Describe(Failure::Deadline(_)))));
    assert!(matches!(load(&describing(TRAP)), Err(LoadError::Describe(Failure::Trap(_)))));
    let lost = describing("(i32.const 65000000)");
    assert!(matches!(load(&lost), Err(LoadError::Describe(Failure::Answer(_)))));
    let starting = Guest::default().fields("(func $s (loop $l (br $l))) (start $s)");
    assert!(matches!(load(&starting), Err(LoadError::Start(Failure::Deadline(_)))));
    let large = Guest::default().fields("(memory 1025)");
    assert!(matches!(load(&large), Err(LoadError::Start(Failure::Memory(_)))));
    let configure = |body: &str| {
        let guest = Guest::default().configure(body).fields("(data (i32.const 600) \"too big\")");
        load(&guest).unwrap().configure(&setting("", &Vec::new())).unwrap_err().to_string()
    };
    assert!(configure(LOOP).contains("failed in configure: it took longer than 20 ms"));
    assert!(configure(TRAP).contains("failed in configure: it trapped"));
    let refused = configure("(call $refuse (i32.const 600) (i32.const 7))");
    assert_eq!(refused, "the policy refused its configuration: too big");
}
