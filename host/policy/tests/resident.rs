//! Memory of this process stays flat: alone in its own, so that no other test
//! shows in the figures.

#[path = "runtime/guest.rs"]
#[allow(dead_code)]
mod guest;
#[path = "runtime/world.rs"]
#[allow(dead_code)]
mod world;

use crater_engine::policy::{Policy, Values};
use crater_model::Time;
use crater_policy::{Candidate, Slot};
use guest::{Guest, KEEP, SUM};
use world::{builder, one, setting, table};

/// Resident bytes.
fn resident() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

/// 50,000 evaluations with a swap every thousand, and hostile calls between.
#[test]
fn swaps_and_faults_leave_nothing_behind() {
    let cache = tempfile::tempdir().unwrap();
    let slot = Slot::new(builder().cache(cache.path().join("c")).build().unwrap());
    let grow =
        "(if (i32.eqz (local.get $rows)) (then (return (call $list (i32.const 0) (i32.const 0)))))
      (if (i32.eq (i32.load (i32.load offset=4 (local.get $job))) (i32.const 666))
        (then (loop $l
          (if (i32.eq (memory.grow (i32.const 64)) (i32.const -1)) (then (unreachable)))
          (memory.fill
            (i32.mul (i32.sub (memory.size) (i32.const 64)) (i32.const 65536))
            (i32.const 1) (i32.const 4194304))
          (br $l))))";
    let keep = format!("(local $out i32) {grow} {}", KEEP.replace("(local $out i32)", ""));
    let versions = [
        Guest::default().with("filter", &keep).build(),
        Guest::default().with("filter", &keep).with("score", SUM).build(),
    ];
    let facts = Values::new();
    let nodes = table(200, 4);
    let mut start = 0;
    for round in 0..50_u64 {
        let wasm = &versions[(round % 2) as usize];
        let at = Time::from_secs(round);
        slot.swap(&Candidate { wasm, setting: setting("", &facts), at }, |_| ()).unwrap();
        for call in 0..1000 {
            let live = slot.live().unwrap();
            let job = if call == 500 && round % 5 == 0 { 666 } else { call.min(600) };
            let answer = live.policy.filter(&one(1, 0), &one(100, job), &nodes);
            assert_eq!(answer.is_ok(), job != 666);
        }
        if round == 9 {
            start = resident();
        }
    }
    let grown = resident().saturating_sub(start);
    assert!(grown < 16 << 20, "{} KiB more than after ten swaps", grown >> 10);
}
