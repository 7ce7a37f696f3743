//! Case C60: replacing a queue's policy under load, and refusing to.

use crate::guest::{Guest, KEEP, SUM};
use crate::hostile::{LOOP, TRAP};
use crate::world::{one, runtime, setting, table};
use crater_engine::policy::{Fault, Policy, Values};
use crater_model::{Digest, Time};
use crater_policy::{Candidate, Live, Refusal, Slot, Stage};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

/// Refuses every row with the first reason.
const REFUSE: &str = "
  (local $out i32) (local $i i32)
  (local.set $out (call $room (local.get $rows)))
  (block $done (loop $l
    (br_if $done (i32.ge_u (local.get $i) (local.get $rows)))
    (i32.store (i32.add (local.get $out) (i32.mul (local.get $i) (i32.const 4))) (i32.const 1))
    (local.set $i (i32.add (local.get $i) (i32.const 1)))
    (br $l)))
  (call $list (local.get $out) (local.get $rows))";

fn filter(body: &str) -> Guest {
    Guest::default().with("filter", body)
}

fn swap(slot: &Slot, wasm: &[u8], at: u64) -> Result<Live, Refusal> {
    let facts = Values::new();
    let at = Time::from_secs(at);
    slot.swap(&Candidate { wasm, setting: setting("", &facts), at }, |_| ())
}

/// One decision as its record would name it.
#[derive(Debug)]
struct Decision {
    generation: u64,
    digest: Digest,
    codes: Result<Vec<i32>, Fault>,
}

fn decide(slot: &Slot) -> Decision {
    let round = slot.round();
    let live = round.as_ref().expect("there is always a version");
    let codes = live.policy.filter(&one(1, 0), &one(100, 1), &table(3, 1));
    Decision { generation: live.generation, digest: live.policy.digest(), codes }
}

#[test]
fn each_decision_names_one_version_and_bad_ones_change_nothing() {
    let runtime = runtime();
    let (q, r) = (Slot::new(runtime.clone()), Slot::new(runtime));
    let (v1, v2) = (filter(REFUSE).build(), filter(KEEP).build());
    swap(&r, &Guest::default().with("filter", REFUSE).named("other", "1").build(), 1).unwrap();
    let first = swap(&q, &v1, 1).unwrap();
    let versions = Mutex::new(BTreeMap::from([(first.policy.digest(), 1)]));
    let active = AtomicU64::new(first.generation);
    let done = AtomicBool::new(false);
    let decided = AtomicU64::new(0);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !done.load(Ordering::SeqCst) {
                    let before = active.load(Ordering::SeqCst);
                    let decision = decide(&q);
                    // Once a version is said to be active, none before it decides.
                    assert!(decision.generation >= before, "{decision:?} after {before}");
                    let code = versions.lock().unwrap().get(&decision.digest).copied();
                    let code = code.expect("a digest that was live");
                    assert_eq!(decision.codes, Ok(vec![code; 3]));
                    assert_eq!(decide(&r).codes, Ok(vec![1; 3]));
                    decided.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        let some_decisions = || {
            let until = decided.load(Ordering::SeqCst) + 50;
            while decided.load(Ordering::SeqCst) < until {
                thread::yield_now();
            }
        };
        some_decisions();
        // The digest is known before it is live.
        let facts = Values::new();
        let candidate =
            Candidate { wasm: &v2, setting: setting("", &facts), at: Time::from_secs(2) };
        let second = q
            .swap(&candidate, |next| {
                versions.lock().unwrap().insert(next.digest(), 0);
            })
            .unwrap();
        active.store(second.generation, Ordering::SeqCst);
        some_decisions();
        let garbage = swap(&q, b"\x7fELF garbage", 3).unwrap_err();
        assert_eq!(garbage.stage, Stage::Verify);
        some_decisions();
        let unfit = swap(&q, &wat::parse_str("(component)").unwrap(), 4).unwrap_err();
        assert_eq!(unfit.stage, Stage::Check);
        let gone = q.unreadable(Time::from_secs(5), "/policies/q.wasm: no such file".to_owned());
        some_decisions();
        let status = q.status();
        let (live, counters) = status.live.unwrap();
        assert_eq!((live.generation, live.since), (2, Time::from_secs(2)));
        assert_eq!(live.policy.digest(), second.policy.digest());
        assert!(counters.calls >= 50);
        assert_eq!(status.refusal, Some(gone));
        assert_eq!((status.swaps, status.refusals), (2, 3));
        done.store(true, Ordering::SeqCst);
    });
    assert_eq!(r.status().live.unwrap().1.faults(), 0);
    assert_eq!(r.status().swaps, 1);
}

#[test]
fn a_refusal_says_where_and_why() {
    let slot = Slot::new(runtime());
    let good = swap(&slot, &filter(KEEP).build(), 1).unwrap();
    let refused = |guest: Guest| {
        let refusal = swap(&slot, &guest.build(), 2).unwrap_err();
        assert_eq!(slot.live().unwrap().policy.digest(), good.policy.digest());
        assert_eq!(slot.status().refusal.as_ref(), Some(&refusal));
        (refusal.stage, refusal.text)
    };
    let (stage, text) = refused(Guest { describe: Some(TRAP.to_owned()), ..Guest::default() });
    assert!(stage == Stage::Describe && text.contains("unreachable"), "{text}");
    let (stage, text) = refused(Guest::default().configure(TRAP));
    assert!(stage == Stage::Configure && text.contains("failed in configure"), "{text}");
    let (stage, text) = refused(Guest::default().with("prepare", TRAP));
    assert!(stage == Stage::Prepare && text.contains("failed in prepare"), "{text}");
    for (body, words) in [
        (TRAP, "trap in filter"),
        (LOOP, "longer than 50 ms"),
        ("(call $list (i32.const 1024) (i32.const 1))", "1 values for 0 rows"),
        (&REFUSE.replace("(i32.const 1))\n", "(i32.const 9))\n"), "code 9, which is not among"),
    ] {
        let (stage, text) = refused(filter(body));
        assert!(stage == Stage::Golden && text.contains(words), "{stage}: {text}");
    }
    let masks = "(local $out i32)
      (local.set $out (call $room (local.get $rows)))
      (memory.fill (local.get $out) (i32.const 4) (i32.mul (local.get $rows) (i32.const 4)))
      (drop (call $list (local.get $out) (local.get $rows)))
      (i32.store (i32.const 776) (local.get $out))
      (i32.store (i32.const 780) (local.get $rows))
      (i32.const 768)";
    let (stage, text) = refused(Guest::default().with("score", masks));
    assert!(stage == Stage::Golden && text.contains("card mask"), "{text}");
}

#[test]
fn a_policy_that_remembers_is_refused() {
    let slot = Slot::new(runtime());
    let counting = "
      (local $out i32)
      (i32.store (i32.const 700) (i32.add (i32.const 1) (i32.load (i32.const 700))))
      (local.set $out (call $room (local.get $rows)))
      (memory.fill (local.get $out) (i32.load (i32.const 700)) (i32.mul (local.get $rows) (i32.const 4)))
      (call $list (local.get $out) (local.get $rows))";
    let refusal = swap(&slot, &Guest::default().with("score", counting).build(), 1).unwrap_err();
    assert_eq!(refusal.stage, Stage::Golden);
    assert!(refusal.text.contains("the same again"), "{}", refusal.text);
    assert!(slot.live().is_none());
}

#[test]
fn the_same_again_changes_nothing_and_ends_the_refusal() {
    let slot = Slot::new(runtime());
    let wasm = Guest::default().with("score", SUM).build();
    let first = swap(&slot, &wasm, 1).unwrap();
    swap(&slot, b"no", 2).unwrap_err();
    let again = swap(&slot, &wasm, 3).unwrap();
    assert_eq!((again.generation, again.since), (first.generation, first.since));
    assert_eq!((slot.status().refusal, slot.status().swaps), (None, 1));
    let facts = Values::new();
    let setting = setting("{\"weight\": 2}", &facts);
    let candidate = Candidate { wasm: &wasm, setting, at: Time::from_secs(4) };
    let other = slot.swap(&candidate, |_| ()).unwrap();
    assert_ne!(other.policy.digest(), first.policy.digest());
    assert_eq!((other.generation, other.policy.counters().calls), (2, 0));
    slot.clear();
    assert!(slot.live().is_none() && slot.status().live.is_none());
}
