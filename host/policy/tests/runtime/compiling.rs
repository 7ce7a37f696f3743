//! The compiling process and the cache of what it made.

use crate::guest::{Guest, KEEP};
use crate::world::{COMPILER, MARGIN, builder, limits_of, setting};
use crater_engine::policy::Interface;
use crater_policy::{CacheError, CompileError, Limits, LoadError, Runtime, RuntimeError};
use std::fmt::Write;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A component of a megabyte that is valid, small at run time, and slow to
/// compile: long functions in which everything depends on everything.
fn slow() -> Vec<u8> {
    let mut fields = String::new();
    for f in 0..12 {
        let _ = write!(fields, "(func $slow{f} (param i32) (result i32)");
        fields.push_str(&"(local i32)".repeat(200));
        for step in 0..12_000 {
            let (a, b, to) = (step * 7 % 201, step * 13 % 201, step * 31 % 201);
            let _ = write!(
                fields,
                "(local.set {to} (i32.rotl (i32.add (local.get {a}) (local.get {b})) (local.get 0)))"
            );
            if step % 40 == 0 {
                let _ =
                    write!(fields, "(if (local.get {a}) (then (local.set {b} (local.get {to}))))");
            }
        }
        fields.push_str("(local.get 5))");
    }
    Guest::default().with("filter", KEEP).fields(&fields).build()
}

fn compiled_under(limits: Limits, wasm: &[u8]) -> CompileError {
    match builder().limits(limits).build().unwrap().load(wasm).unwrap_err() {
        LoadError::Compile(error) => error,
        other => panic!("{other}"),
    }
}

#[test]
fn compiling_ends_in_time_and_the_host_lives() {
    let wasm = slow();
    let compile_time = Duration::from_millis(100);
    let from = Instant::now();
    let error = compiled_under(Limits { compile_time, ..limits_of(None) }, &wasm);
    assert!(matches!(error, CompileError::TooSlow { .. }), "{error}");
    assert!(from.elapsed() < compile_time * 4 + MARGIN, "{:?}", from.elapsed());
    assert!(error.to_string().contains("within 0.1 s"), "{error}");
}

#[test]
fn compiling_is_bounded_in_memory() {
    let limits = Limits { compile_memory_bytes: 64 << 20, ..limits_of(None) };
    let error = compiled_under(limits, &slow());
    assert!(matches!(error, CompileError::Died { .. } | CompileError::Failed { .. }), "{error}");
    assert!(error.to_string().contains("64 MiB"), "{error}");
}

#[test]
fn a_program_that_does_not_compile_is_named() {
    let wasm = Guest::default().build();
    let load = |program: &str| {
        Runtime::builder().compiler(program).build().unwrap().load(&wasm).unwrap_err()
    };
    let error = load("/bin/true");
    assert!(matches!(&error, LoadError::Compile(CompileError::NotACompiler { .. })), "{error}");
    assert!(error.to_string().contains("run_if_asked"), "{error}");
    let error = load("/nowhere/at-all");
    assert!(matches!(&error, LoadError::Compile(CompileError::Start { .. })), "{error}");
    let error = load("/bin/false");
    assert!(matches!(&error, LoadError::Compile(CompileError::Failed { .. })), "{error}");
}

#[test]
fn the_compiler_may_be_this_process() {
    let runtime = Runtime::builder().compile_here().build().unwrap();
    assert!(runtime.load(&Guest::default().build()).is_ok());
    let error = runtime.load(b"\0asm\x0d\0\x01\0rubbish").unwrap_err();
    assert!(matches!(error, LoadError::Compile(CompileError::Invalid { .. })), "{error}");
}

fn folder(root: &tempfile::TempDir) -> PathBuf {
    root.path().join("cache")
}

/// A runtime that compiles nothing: what it loads came from the cache.
fn reader(folder: &Path) -> Runtime {
    Runtime::builder().compiler("/bin/false").cache(folder).build().unwrap()
}

fn writer(folder: &Path) -> Runtime {
    builder().cache(folder).build().unwrap()
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(folder).unwrap().map(|e| e.unwrap().path());
    files.filter(|p| p.extension().is_some_and(|e| e == "artefact")).collect()
}

#[test]
fn what_was_compiled_once_is_loaded_after_a_restart() {
    let root = tempfile::tempdir().unwrap();
    let folder = folder(&root);
    let wasm = Guest::default().with("filter", KEEP).build();
    writer(&folder).load(&wasm).unwrap();
    let loaded = reader(&folder).load(&wasm).unwrap();
    assert_eq!(loaded.manifest().exports, [Interface::Filter]);
    assert!(loaded.configure(&setting("", &Vec::new())).is_ok());
    // Fuel needs other code.
    let metered = Runtime::builder().compiler("/bin/false").cache(&folder).metered(1000);
    assert!(metered.build().unwrap().load(&wasm).is_err());
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&folder), mode(&folder.join("key"))), (0o700, 0o600));
    assert_eq!(mode(&entries(&folder)[0]), 0o600);
}

#[test]
fn an_entry_that_was_changed_is_not_loaded() {
    let root = tempfile::tempdir().unwrap();
    let folder = folder(&root);
    let (a, b) = (Guest::default().build(), Guest::default().named("other", "1").build());
    writer(&folder).load(&a).unwrap();
    let entry = entries(&folder).pop().unwrap();
    let good = fs::read(&entry).unwrap();
    assert!(reader(&folder).load(&a).is_ok());
    for at in [0, 20, 48, good.len() / 2, good.len() - 1] {
        let mut bytes = good.clone();
        bytes[at] ^= 1;
        fs::write(&entry, bytes).unwrap();
        assert!(reader(&folder).load(&a).is_err(), "byte {at}");
    }
    for len in [0, 10, 48, good.len() - 1] {
        fs::write(&entry, &good[..len]).unwrap();
        assert!(reader(&folder).load(&a).is_err(), "{len} bytes");
    }
    // Compiled again, and good again.
    assert!(writer(&folder).load(&a).is_ok());
    assert!(reader(&folder).load(&a).is_ok());
    // An entry under another component's name.
    writer(&folder).load(&b).unwrap();
    let other = entries(&folder).into_iter().find(|e| *e != entry).unwrap();
    fs::copy(&entry, &other).unwrap();
    assert!(reader(&folder).load(&b).is_err());
    // Entries of another key.
    let mut key = fs::read(folder.join("key")).unwrap();
    key[0] ^= 1;
    fs::write(folder.join("key"), key).unwrap();
    assert!(reader(&folder).load(&a).is_err());
}

#[test]
fn a_cache_that_others_can_write_is_refused() {
    let open = |folder: &Path| builder().cache(folder).build().unwrap_err();
    let private = |folder: &Path, mode| {
        fs::set_permissions(folder, fs::Permissions::from_mode(mode)).unwrap();
    };
    let root = tempfile::tempdir().unwrap();
    let folder = folder(&root);
    writer(&folder);
    private(&folder, 0o750);
    let error = open(&folder);
    assert!(matches!(error, RuntimeError::Cache(CacheError::NotPrivate { .. })), "{error}");
    assert!(error.to_string().contains("mode 750"), "{error}");
    private(&folder, 0o700);
    private(&folder.join("key"), 0o644);
    assert!(matches!(open(&folder), RuntimeError::Cache(CacheError::NotPrivate { .. })));
    private(&folder.join("key"), 0o600);
    let link = root.path().join("link");
    symlink(&folder, &link).unwrap();
    assert!(matches!(open(&link), RuntimeError::Cache(CacheError::NotPrivate { .. })));
    fs::write(folder.join("key"), "short").unwrap();
    assert!(matches!(open(&folder), RuntimeError::Cache(CacheError::Key { .. })));
}

#[test]
fn the_compiler_is_started_by_the_runtime_alone() {
    let output = std::process::Command::new(COMPILER).output().unwrap();
    assert_eq!(output.status.code(), Some(64));
}
