//! Policies by name or file.

use crate::exit::input;
use anyhow::{Context, anyhow, bail};
use crater_engine::Strings;
use crater_engine::policy::Values;
use crater_policy::{Configured, Limits, Loaded, Runtime, Setting};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The policies that the binary brings along: name and component.
pub const BUILT_IN: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/policies.rs"));

/// Finds, compiles and configures policies.
#[derive(Clone)]
pub struct Loader {
    runtime: Runtime,
    strings: Arc<Strings>,
}

impl Loader {
    /// With the user's cache of compiled policies, or without one where there
    /// is no usable folder.
    pub fn new(strings: Arc<Strings>) -> anyhow::Result<Self> {
        let runtime = match cache_folder() {
            Some(folder) => Runtime::builder().cache(folder).build().or_else(|_| Runtime::new()),
            None => Runtime::new(),
        };
        Ok(Self { runtime: runtime?, strings })
    }

    /// The texts that columns refer to.
    pub fn strings(&self) -> &Arc<Strings> {
        &self.strings
    }

    /// The runtime, for queues that swap.
    pub fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    /// The component behind a built-in name or a path.
    pub fn bytes(name: &str) -> anyhow::Result<Vec<u8>> {
        if let Some((_, bytes)) = BUILT_IN.iter().find(|(built_in, _)| *built_in == name) {
            return Ok(bytes.to_vec());
        }
        let looks_like_file = name.contains('/')
            || std::path::Path::new(name)
                .extension()
                .is_some_and(|e| e.eq_ignore_ascii_case("wasm"));
        if looks_like_file {
            let read = std::fs::read(name).with_context(|| format!("policy {name}"));
            return read.map_err(input);
        }
        let known: Vec<_> = BUILT_IN.iter().map(|(name, _)| *name).collect();
        let known = if known.is_empty() {
            "none: this binary was built without policies, see `make build`".to_owned()
        } else {
            known.join(", ")
        };
        Err(input(anyhow!("policy {name:?} is unknown: give a FILE.wasm or one of {known}")))
    }

    /// Limits for simulations, where nobody waits for a single call and a busy
    /// machine must not change the result.
    pub fn patient(&self) -> Limits {
        Limits { call: Duration::from_secs(10), ..*self.runtime.limits() }
    }

    /// Compiles and checks a component.
    pub fn load(&self, name: &str) -> anyhow::Result<Loaded> {
        let bytes = Self::bytes(name)?;
        let loaded = self.runtime.load(&bytes).with_context(|| format!("policy {name}"));
        loaded.map_err(input)
    }

    /// Compiles, prepares and configures a policy.
    pub fn policy(
        &self,
        name: &str,
        config: &str,
        facts: &Values,
    ) -> anyhow::Result<Arc<Configured>> {
        self.configure(&self.load(name)?, config, facts)
    }

    /// Prepares and configures a component.
    pub fn configure(
        &self,
        loaded: &Loaded,
        config: &str,
        facts: &Values,
    ) -> anyhow::Result<Arc<Configured>> {
        let strings = self.strings.clone();
        let setting = Setting { config, facts, strings, limits: Some(self.patient()) };
        let configured = loaded.configure(&setting);
        let configured = configured.with_context(|| format!("policy {}", loaded.manifest().name));
        Ok(Arc::new(configured.map_err(input)?))
    }
}

fn cache_folder() -> Option<PathBuf> {
    let base = match std::env::var_os("XDG_CACHE_HOME") {
        Some(folder) => PathBuf::from(folder),
        None => PathBuf::from(std::env::var_os("HOME")?).join(".cache"),
    };
    let folder = base.join("crater").join("policies");
    std::fs::create_dir_all(folder.parent()?).ok()?;
    Some(folder)
}

/// Refuses a configuration that is not JSON, before any policy is asked.
pub fn config(text: &str) -> anyhow::Result<()> {
    match serde_json::from_str::<serde_json::Value>(text) {
        Ok(serde_json::Value::Object(_)) => Ok(()),
        Ok(_) => bail!(input(anyhow!(
            "--policy-config: a JSON object is expected, such as '{{\"by\":\"nodes\"}}'"
        ))),
        Err(error) => bail!(input(anyhow!("--policy-config: not JSON: {error}"))),
    }
}
