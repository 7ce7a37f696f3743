//! Components: made from core modules, and held to the contract's borders.

use anyhow::{Context as _, Result, bail, ensure};
use std::fs;
use std::path::Path;
use wit_component::ComponentEncoder;
use wit_parser::decoding::{DecodedWasm, decode};

/// The contract's package.
const PACKAGE: &str = "crater:policy/";

/// What a policy may import; `types` has no functions.
const IMPORTS: [&str; 3] = ["log", "strings", "types"];

/// A core module with its embedded description as a component.
pub fn wrap(module: &[u8]) -> Result<Vec<u8>> {
    ComponentEncoder::default().module(module)?.validate(true).encode()
}

/// That it exports `policy` and imports nothing that is not the contract's. The
/// host refuses others when it loads them; here the author hears of it when
/// building. What else it exports is never called: languages leave things there.
pub fn check(component: &[u8]) -> Result<()> {
    let DecodedWasm::Component(resolve, world) =
        decode(component).context("reading the component")?
    else {
        bail!("this is a WIT package, not a component");
    };
    let world = &resolve.worlds[world];
    let imports = world.imports.keys().map(|k| resolve.name_world_key(k));
    let foreign: Vec<_> =
        imports.filter(|name| !interface(name).is_some_and(|i| IMPORTS.contains(&i))).collect();
    ensure!(foreign.is_empty(), "imports what no policy may: {}", foreign.join(", "));
    let mut exports = world.exports.keys().map(|k| resolve.name_world_key(k));
    ensure!(exports.any(|n| interface(&n) == Some("policy")), "does not export `policy`");
    Ok(())
}

/// `filter` of `crater:policy/filter@0.1.0`.
fn interface(name: &str) -> Option<&str> {
    name.strip_prefix(PACKAGE)?.split('@').next()
}

/// Writes it unless it is there already, so that the host's caches and file
/// watches stay quiet; in one step, since tests may be reading.
pub fn save(path: &Path, bytes: &[u8]) -> Result<()> {
    if fs::read(path).is_ok_and(|old| old == bytes) {
        return Ok(());
    }
    let part = path.with_extension("part");
    fs::write(&part, bytes).with_context(|| format!("writing {}", part.display()))?;
    fs::rename(&part, path).with_context(|| format!("writing {}", path.display()))?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    println!("built target/policies/{name} ({} kB)", bytes.len().div_ceil(1000));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn component(world: &str) -> Vec<u8> {
        let wit = fs::read_to_string(crate::tree::root().join("wit/policy.wit")).unwrap();
        let mut resolve = wit_parser::Resolve::default();
        let wasi = "package wasi:clocks@0.2.0; interface wall-clock { now: func() -> u64; }";
        resolve.push_source("wasi.wit", wasi).unwrap();
        let wit = format!("{wit}\nworld t {{ {world} }}");
        let package = resolve.push_source("policy.wit", &wit).unwrap();
        let world = resolve.select_world(&[package], Some("t")).unwrap();
        let mut module = wit_component::dummy_module(
            &resolve,
            world,
            wit_parser::ManglingAndAbi::Legacy(wit_parser::LiftLowerAbi::Sync),
        );
        wit_component::embed_component_metadata(
            &mut module,
            &resolve,
            world,
            wit_component::StringEncoding::UTF8,
            false,
        )
        .unwrap();
        wrap(&module).unwrap()
    }

    fn refusal(world: &str) -> String {
        check(&component(world)).err().map_or_else(String::new, |e| e.to_string())
    }

    #[test]
    fn borders() {
        assert_eq!(refusal("import log; export policy; export score;"), "");
        assert_eq!(refusal("export filter;"), "does not export `policy`");
        assert_eq!(
            refusal("import wasi:clocks/wall-clock@0.2.0; export policy;"),
            "imports what no policy may: wasi:clocks/wall-clock@0.2.0"
        );
    }
}
