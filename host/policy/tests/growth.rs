//! The contract grows in data and in optional interfaces: a component built
//! against its first version is loaded and asked as before.
//!
//! tests/fixtures/first-contract.wasm is `old()` of this file as it was built
//! when 0.1.0 was new. It is not built again when the contract grows.
#![allow(missing_docs)]

#[path = "runtime/guest.rs"]
#[allow(dead_code)]
mod guest;

use crater_engine::policy::{Column, Interface, Policy, Table};
use crater_engine::strings::Strings;
use crater_policy::{Runtime, Setting};
use guest::{Guest, KEEP, SUM};
use std::sync::Arc;

const FIRST: &[u8] = include_bytes!("../../../tests/fixtures/first-contract.wasm");

fn old() -> Guest {
    Guest::default().with("filter", KEEP).with("score", SUM).named("first", "1")
}

fn column(id: u32, values: &[i32]) -> Column {
    Column { id, values: values.to_vec() }
}

#[test]
fn the_first_component_is_asked_as_before_by_a_host_that_grew() {
    let runtime = Runtime::builder().compile_here().build().unwrap();
    let loaded = runtime.load(FIRST).unwrap();
    assert_eq!(loaded.manifest().exports, [Interface::Filter, Interface::Score]);
    // A fact and a column that did not exist when it was built.
    let facts = vec![column(700, &[5]), column(799, &[7])];
    let setting = Setting {
        config: "{}",
        facts: &facts,
        strings: Arc::new(Strings::default()),
        limits: None,
    };
    let policy = loaded.configure(&setting).unwrap();
    let job = vec![column(100, &[1]), column(104, &[2])];
    let columns = vec![column(204, &[10, 20]), column(207, &[1, 2])];
    let nodes = Table { rows: 2, columns };
    let answers = policy.score(&vec![], &job, &nodes).unwrap();
    assert_eq!(answers.scores, [11, 22]);
    assert_eq!(policy.filter(&vec![], &job, &nodes).unwrap(), [0, 0]);
    let mut grown = nodes.clone();
    grown.columns.push(column(299, &[0, 0]));
    let mut job_grown = job.clone();
    job_grown.push(column(199, &[3]));
    assert_eq!(policy.score(&vec![], &job_grown, &grown).unwrap(), answers);
}

#[test]
fn a_component_of_a_grown_contract_loads_on_this_host() {
    // A column and an interface that this host does not know, beside those it
    // does: it gets what there is.
    let grown = "interface forecast { forecast: func(minutes: s32) -> s32; }\nworld everything {";
    let function = "(func (export \"crater:policy/forecast@0.1.0#forecast\") (param i32) (result i32) (local.get 0))";
    let mut guest =
        old().edit("world everything {", grown).world("export forecast;").fields(function);
    guest.manifest.wants.push(299);
    guest.manifest.wants.push(799);
    let wasm = guest.build();
    let runtime = Runtime::builder().compile_here().build().unwrap();
    let loaded = runtime.load(&wasm).unwrap();
    assert!(!loaded.manifest().wants.contains(&299));
    assert_eq!(loaded.manifest().exports, [Interface::Filter, Interface::Score]);
}
