//! What a guest gets from the host: strings, the log, prepared data, its
//! configuration.

use crate::guest::{Guest, KEEP};
use crate::world::{builder, configured, one, runtime, setting, table};
use crater_engine::policy::{Column, Policy};
use crater_engine::strings::Strings;
use crater_policy::{ConfigureError, Level, Limits, Setting};
use std::sync::Arc;

const TEXTS: &str = "(data (i32.const 600) \"H100new-onenever\")";

/// Filter that answers the id of a text in every row.
fn asking(at: u32, len: u32) -> String {
    format!(
        "(local $out i32) (local $i i32)
         (local.set $out (call $room (local.get $rows)))
         (loop $l
           (i32.store (i32.add (local.get $out) (i32.mul (local.get $i) (i32.const 4)))
             (call $id (i32.const {at}) (i32.const {len})))
           (local.set $i (i32.add (local.get $i) (i32.const 1)))
           (br_if $l (i32.lt_u (local.get $i) (local.get $rows))))
         (call $list (local.get $out) (local.get $rows))"
    )
}

#[test]
fn texts_have_the_hosts_ids_and_decisions_add_none() {
    let strings = Arc::new(Strings::default());
    let h100 = strings.id("H100");
    let facts = Vec::new();
    let answer = |configure: &str, at, len| {
        let guest = Guest::default().with("filter", &asking(at, len)).fields(TEXTS);
        let loaded = runtime().load(&guest.configure(configure).build()).unwrap();
        let strings = strings.clone();
        let policy = loaded.configure(&Setting { strings, ..setting("", &facts) }).unwrap();
        policy.filter(&one(1, 0), &one(100, 1), &table(1, 0)).unwrap()[0]
    };
    let plain = "(i32.const 512)";
    assert_eq!(answer(plain, 600, 4), h100);
    assert_eq!((answer(plain, 611, 5), strings.len()), (-1, 1));
    let adding = "(drop (call $id (i32.const 604) (i32.const 7))) (i32.const 512)";
    assert_eq!(answer(adding, 604, 7), 2);
    assert_eq!((strings.text(2).as_deref(), strings.len()), (Some("new-one"), 2));
    assert_eq!(answer(plain, 604, 7), 2);
}

#[test]
fn the_text_of_an_id_comes_back() {
    // Reads the text of id 1 and answers its length.
    let body = "(local $out i32)
      (call $text (i32.const 1) (i32.const 900))
      (local.set $out (call $room (i32.const 1)))
      (i32.store (local.get $out) (i32.load (i32.const 904)))
      (call $list (local.get $out) (i32.const 1))";
    let strings = Arc::new(Strings::default());
    strings.id("NVIDIA H100 80GB");
    let loaded = runtime().load(&Guest::default().with("filter", body).build()).unwrap();
    let policy = loaded.configure(&Setting { strings, ..setting("", &Vec::new()) }).unwrap();
    assert_eq!(policy.filter(&one(1, 0), &one(100, 1), &table(1, 0)), Ok(vec![16]));
}

#[test]
fn the_log_is_metered_by_call_and_kept_for_the_owner() {
    let body = format!(
        "(local $out i32) (local $n i32)
         (loop $l
           (call $log (i32.const 2) (i32.const 600) (i32.const 4))
           (local.set $n (i32.add (local.get $n) (i32.const 1)))
           (br_if $l (i32.lt_u (local.get $n) (i32.const 500))))
         {}",
        KEEP.replace("(local $out i32)", "")
    );
    let guest = Guest::default().with("filter", &body).fields(TEXTS);
    let policy = configured(&runtime(), &guest);
    let ask = || policy.filter(&one(1, 0), &one(100, 1), &table(1, 1)).unwrap();
    ask();
    let lines = policy.logs();
    assert_eq!(lines.len(), Limits::default().log_lines);
    assert!(lines.iter().all(|l| l.level == Level::Warning && l.text == "H100"));
    assert_eq!((lines[99].number, lines[99].during), (99, "filter"));
    ask();
    let lines = policy.logs();
    assert_eq!((lines.len(), lines[100].number), (200, 500));
}

/// `prepare` answers the number of facts it saw; `configure` accepts only one.
fn preparing() -> Guest {
    Guest::default()
        .with(
            "prepare",
            "(i32.store8 (i32.const 640) (local.get $facts_len))
             (i32.store (i32.const 772) (i32.const 640))
             (i32.store (i32.const 776) (i32.const 1))
             (i32.store (i32.const 768) (i32.const 0))
             (i32.const 768)",
        )
        .configure(
            "(if (i32.ne (local.get $prepared_len) (i32.const 1)) (then (unreachable)))
             (if (result i32) (i32.eq (i32.load8_u (local.get $prepared)) (i32.const 1))
               (then (i32.const 512))
               (else (call $refuse (i32.const 600) (i32.const 4))))",
        )
        .fields(TEXTS)
}

#[test]
fn prepared_data_reaches_every_instance_and_names_the_policy() {
    let mut guest = preparing();
    guest.manifest.wants = vec![700, 710];
    let loaded = runtime().load(&guest.build()).unwrap();
    let fact = |id, value| Column { id, values: vec![value] };
    let configure =
        |config: &str, facts| loaded.configure(&setting(config, &facts)).map(|p| p.digest());
    let one = configure("{}", vec![fact(700, 3)]).unwrap();
    // What was not wanted is not seen, and so makes no difference.
    assert_eq!(configure("", vec![fact(700, 4), fact(701, 1)]), Ok(one));
    assert_ne!(configure("{\"a\":1}", vec![fact(700, 3)]), Ok(one));
    assert_eq!(
        configure("{ \"b\" : 2, \"a\" : 1 }", vec![fact(700, 3)]),
        configure("{\"a\":1,\"b\":2}", vec![fact(700, 3)]),
    );
    let refused = configure("{}", vec![fact(700, 3), fact(710, 1)]).unwrap_err();
    assert_eq!(refused, ConfigureError::Refused("H100".to_owned()));
    assert!(matches!(configure("[1]", vec![]), Err(ConfigureError::Config(_))));
    let other = Guest {
        manifest: guest.manifest.clone(),
        ..preparing().fields("(global i32 (i32.const 1))")
    };
    let other = runtime().load(&other.build()).unwrap();
    assert_ne!(other.configure(&setting("", &vec![fact(700, 3)])).unwrap().digest(), one);
}

#[test]
fn too_much_prepared_data_is_refused() {
    let guest = Guest::default().with(
        "prepare",
        "(i32.store (i32.const 768) (i32.const 0))
         (i32.store (i32.const 772) (i32.const 0))
         (i32.store (i32.const 776) (i32.const 3000))
         (i32.const 768)",
    );
    let limits = Limits { prepared_bytes: 2999, ..Limits::default() };
    let loaded = builder().limits(limits).build().unwrap().load(&guest.build()).unwrap();
    assert_eq!(
        loaded.configure(&setting("", &Vec::new())).unwrap_err(),
        ConfigureError::PreparedTooLarge { bytes: 3000, limit: 2999 },
    );
}

#[test]
fn admit_prices_and_ranks_come_back() {
    let guest = Guest::default()
        .with(
            "admit",
            "(i32.store (i32.const 700) (i32.const 105))
             (i32.store (i32.const 704) (i32.const 720))
             (i32.store (i32.const 708) (i32.const 1))
             (i32.store (i32.const 720) (i32.const 77))
             (i32.store (i32.const 768) (i32.const 0))
             (i32.store (i32.const 772) (i32.const 700))
             (i32.store (i32.const 776) (i32.const 1))
             (i32.const 768)",
        )
        .with("preempt", "(call $list (i32.const 1024) (local.get $rows))")
        .with("rank", "(call $list (i32.const 1024) (local.get $rows))")
        .with("score-groups", "(call $list (i32.const 1024) (local.get $rows))");
    let policy = configured(&runtime(), &guest);
    assert_eq!(policy.admit(&vec![], &vec![]), Ok(Ok(one(105, 77))));
    assert_eq!(policy.price(&vec![], &vec![], &table(4, 0)).unwrap().len(), 4);
    assert_eq!(policy.rank(&vec![], &table(5, 0)).unwrap().len(), 5);
    assert_eq!(policy.score_groups(&vec![], &vec![], &table(6, 0)).unwrap().len(), 6);
    assert!(policy.filter(&vec![], &vec![], &table(1, 0)).is_err());
    assert_eq!(policy.counters().unavailable, 1);
}

#[test]
fn a_round_has_a_budget() {
    let policy = configured(&runtime(), &Guest::default().with("filter", KEEP));
    let ask = || policy.filter(&one(1, 0), &one(100, 1), &table(100, 3));
    policy.start_round(Some(std::time::Duration::from_micros(200)));
    let answered = (0..1_000_000).take_while(|_| ask().is_ok()).count();
    assert!((1..1_000_000).contains(&answered));
    assert!(policy.spent() >= std::time::Duration::from_micros(200));
    assert!(ask().unwrap_err().to_string().contains("0.2 ms of this round"));
    policy.start_round(Some(std::time::Duration::from_mins(1)));
    assert!(ask().is_ok());
}
