//! Files that are no policies: each is refused with what its author should do.

use crate::guest::{Guest, KEEP, SUM};
use crate::world::{metered, one, runtime, setting, table};
use crater_engine::policy::{Interface, Policy};
use crater_policy::{CompileError, ContractError, Limits, LoadError, Runtime};
use proptest::prelude::*;
use std::sync::OnceLock;
use std::time::Duration;

fn refusal(bytes: &[u8]) -> LoadError {
    runtime().load(bytes).unwrap_err()
}

#[track_caller]
fn says(error: &LoadError, words: &[&str]) {
    let text = error.to_string();
    for word in words {
        assert!(text.contains(word), "{word:?} is not in {text:?}");
    }
}

#[test]
fn what_is_no_component_is_not_compiled() {
    assert!(matches!(refusal(b""), LoadError::Empty));
    assert!(matches!(refusal(b"(component)"), LoadError::NotWasm { .. }));
    says(&refusal(b"#!/bin/sh\n"), &["not WebAssembly", "23"]);
    let core = refusal(&Guest::default().core());
    assert!(matches!(core, LoadError::CoreModule));
    says(&core, &["core module", "wasm-tools component new"]);
    let mut large = Guest::default().build();
    large.resize(200 << 20, 0);
    says(&refusal(&large), &["209715200 bytes", "33554432"]);
}

#[test]
fn a_damaged_component_is_invalid() {
    let good = Guest::default().build();
    for cut in [9, good.len() / 2, good.len() - 1] {
        let error = refusal(&good[..cut]);
        assert!(matches!(error, LoadError::Compile(CompileError::Invalid { .. })), "{error}");
    }
    let mut noise = good.clone();
    let middle = noise.len() / 2;
    noise[middle..middle + 40].fill(0xff);
    let error = refusal(&noise);
    assert!(matches!(error, LoadError::Compile(CompileError::Invalid { .. })), "{error}");
}

#[test]
fn imports_beyond_the_contract_are_named() {
    let wasi = wat::parse_str(
        r#"(component
          (import "wasi:cli/environment@0.2.0" (instance
            (export "get-environment" (func (result (list string))))))
          (import "wasi:clocks/wall-clock@0.2.0" (instance)))"#,
    )
    .unwrap();
    let error = refusal(&wasi);
    says(&error, &["wasi:cli/environment@0.2.0", "wasi:clocks/wall-clock@0.2.0", "--stub-wasi"]);
    let other = wat::parse_str(r#"(component (import "crater:policy/secrets@0.1.0" (instance)))"#);
    let error = refusal(&other.unwrap());
    says(&error, &["crater:policy/secrets@0.1.0", "log and strings"]);
    assert!(!error.to_string().contains("wasi"));
}

#[test]
fn another_version_of_the_contract_is_named() {
    let next =
        Guest::default().edit("package crater:policy@0.1.0;", "package crater:policy@0.2.0;");
    let error = refusal(&next.build());
    says(&error, &["built for crater:policy 0.2.0", "this host speaks 0.1.0"]);
    let patch = Guest::default()
        .with("filter", KEEP)
        .edit("package crater:policy@0.1.0;", "package crater:policy@0.1.9;");
    let loaded = runtime().load(&patch.build()).unwrap();
    assert_eq!(loaded.manifest().exports, [Interface::Filter]);
}

#[test]
fn a_component_without_the_required_interface_is_no_policy() {
    let empty = refusal(&wat::parse_str("(component)").unwrap());
    assert!(matches!(empty, LoadError::Contract(ContractError::NoPolicy { .. })));
    says(&empty, &["does not export crater:policy/policy@0.1.0", "nothing"]);
}

#[test]
fn a_mistyped_interface_is_refused_and_shown() {
    let wide = Guest::default().with("filter", "(call $list (i32.const 1024) (i32.const 0))").edit(
        "filter: func(context: values, job: values, nodes: table) -> list<s32>;",
        "filter: func(context: values, job: values, nodes: table) -> list<s64>;",
    );
    says(
        &refusal(&wide.build()),
        &[
            "filter.filter must be func(context: values, job: values, nodes: table) -> list<s32>",
            "has func(context: values, job: values, nodes: table) -> list<s64>",
        ],
    );
    let renamed = Guest::default().with("filter", "(call $list (i32.const 1024) (i32.const 0))");
    let renamed = renamed.edit("filter: func(", "sieve: func(");
    let renamed = renamed.build_edited("#filter\"", "#sieve\"");
    says(&refusal(&renamed), &["filter.filter must be", "no such function"]);
    let mistyped = Guest::default()
        .edit("log: func(level: s32, text: string);", "log: func(level: s64, text: string);");
    let log = "\"log\" (func $log (param i32 i32 i32))";
    let error = refusal(&mistyped.build_edited(log, &log.replace("(param i32", "(param i64")));
    assert!(matches!(error, LoadError::Contract(ContractError::ImportType { .. })), "{error}");
}

/// The contract grows by optional interfaces, which an older host ignores.
#[test]
fn interfaces_of_tomorrow_are_ignored() {
    let grown = Guest::default()
        .with("filter", KEEP)
        .edit(
            "/// Lines for the queue's owner",
            "interface forecast { tomorrow: func() -> s32; }\n/// Lines for the queue's owner",
        )
        .world("export forecast;")
        .fields(
            "(func (export \"crater:policy/forecast@0.1.0#tomorrow\") (result i32) (i32.const 1))",
        );
    let loaded = runtime().load(&grown.build()).unwrap();
    assert_eq!(loaded.manifest().exports, [Interface::Filter]);
}

#[test]
fn a_manifest_that_cannot_be_used_is_refused() {
    let mut guest = Guest::default();
    guest.manifest.reasons.push((-4, "negative".to_owned()));
    says(&refusal(&guest.build()), &["reasons", "code -4"]);
    let mut guest = Guest::default();
    guest.manifest.reasons.push((4, "x".repeat(201)));
    says(&refusal(&guest.build()), &["201 characters for code 4"]);
}

/// Only the metered runtime needs fuel; both take the same components.
#[test]
fn a_component_names_itself_the_same_everywhere() {
    let wasm = Guest::default().named("twin", "2.0").build();
    let (a, b) = (runtime().load(&wasm).unwrap(), metered().load(&wasm).unwrap());
    assert_eq!((a.wasm(), a.manifest()), (b.wasm(), b.manifest()));
    assert_eq!((a.manifest().name.as_str(), a.manifest().version.as_str()), ("twin", "2.0"));
    assert_eq!(a.manifest().wants, [100, 104, 204, 207]);
}

/// A runtime that compiles quickly and gives up soon.
fn hasty() -> &'static Runtime {
    static HASTY: OnceLock<Runtime> = OnceLock::new();
    let setup = Duration::from_millis(20);
    let limits = Limits { setup, call: setup, ..Limits::default() };
    HASTY.get_or_init(|| Runtime::builder().compile_here().limits(limits).build().unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 200, ..ProptestConfig::default() })]

    /// Whatever the bytes are, they are refused or asked, and the host lives.
    #[test]
    fn damaged_policies_harm_nobody(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in prop::option::weighted(0.1, any::<prop::sample::Index>()),
    ) {
        let mut wasm = Guest::default().with("filter", KEEP).with("score", SUM).build();
        for (at, value) in changes {
            let at = at.index(wasm.len());
            wasm[at] = value;
        }
        if let Some(cut) = cut {
            wasm.truncate(cut.index(wasm.len()));
        }
        if let Ok(loaded) = hasty().load(&wasm)
            && let Ok(policy) = loaded.configure(&setting("", &Vec::new()))
        {
            let _ = policy.filter(&one(1, 0), &one(100, 1), &table(9, 2));
            let _ = policy.score(&one(1, 0), &one(100, 1), &table(9, 2));
        }
    }
}
