//! `crater policy`.

use crate::cli::{Check, Format, PolicyCommand};
use crate::loader::{BUILT_IN, Loader, config};
use crater_engine::Strings;
use crater_model::columns;
use std::sync::Arc;

/// Runs the command.
pub fn run(command: &PolicyCommand) -> anyhow::Result<()> {
    match command {
        PolicyCommand::List => list(),
        PolicyCommand::Check(args) => check(args),
        PolicyCommand::Status(common) => crate::client::policy_status(common),
    }
}

fn list() -> anyhow::Result<()> {
    let loader = Loader::new(Arc::new(Strings::default()))?;
    println!("{:<18} {:<8} {:>7}  DECIDES", "NAME", "VERSION", "BYTES");
    for (name, bytes) in BUILT_IN {
        let loaded = loader.load(name)?;
        let manifest = loaded.manifest();
        let exports: Vec<_> = manifest.exports.iter().map(|i| i.name()).collect();
        let (version, size) = (&manifest.version, bytes.len());
        println!("{name:<18} {version:<8} {size:>7}  {}", exports.join(" "));
    }
    Ok(())
}

fn check(args: &Check) -> anyhow::Result<()> {
    config(&args.config)?;
    let loader = Loader::new(Arc::new(Strings::default()))?;
    let state = crater_engine::State::new(loader.strings().clone());
    let facts = crater_engine::facts::facts(&[], &state);
    let policy = loader.policy(&args.policy, &args.config, &facts)?;
    let manifest = policy.manifest();
    let wants: Vec<String> = manifest
        .wants
        .iter()
        .map(|id| columns::info(*id).map_or_else(|| id.to_string(), |i| i.name.to_owned()))
        .collect();
    let exports: Vec<_> = manifest.exports.iter().map(|i| i.name()).collect();
    match args.format {
        Format::Json => println!(
            "{}",
            serde_json::json!({
                "name": manifest.name,
                "version": manifest.version,
                "digest": policy.digest(),
                "decides": exports,
                "wants": wants,
                "labels": manifest.labels,
            })
        ),
        Format::Table => {
            println!("name     {} {}", manifest.name, manifest.version);
            println!("digest   {}", policy.digest());
            println!("decides  {}", exports.join(" "));
            println!("wants    {}", wants.join(" "));
            if !manifest.labels.is_empty() {
                println!("labels   {}", manifest.labels.join(" "));
            }
        }
    }
    Ok(())
}
