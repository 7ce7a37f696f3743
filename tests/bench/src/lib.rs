//! A policy's native form behind the engine's port, so that the same decisions
//! can be made with and without WebAssembly.

use crater_engine::policy::{Column, Fault, Interface, Manifest, Policy, Scores, Table, Values};
use crater_engine::{State, Strings};
use crater_model::Digest;
use crater_sdk::native::{Configured, Guest};
use std::path::PathBuf;
use std::sync::Arc;

/// A natively compiled policy.
pub struct Native {
    manifest: Manifest,
    digest: Digest,
    guest: Box<dyn Configured>,
}

struct Names(Arc<Strings>);

impl crater_sdk::strings::Strings for Names {
    fn id(&self, text: &str) -> i32 {
        self.0.id(text)
    }

    fn text(&self, id: i32) -> String {
        self.0.text(id).map_or_else(String::new, |t| t.to_string())
    }
}

/// Columns as a guest sees them.
fn borrowed(columns: &[Column]) -> Vec<(u32, &[i32])> {
    columns.iter().map(|c| (c.id, c.values.as_slice())).collect()
}

impl Native {
    /// Prepares and configures a policy as the runtime would.
    pub fn new(guest: &Guest, config: &str, facts: &Values, state: &State) -> Result<Self, String> {
        let names: Arc<dyn crater_sdk::strings::Strings> = Arc::new(Names(state.strings.clone()));
        crater_sdk::strings::with(names, || {
            let wants = guest.wants();
            let facts: Vec<Column> =
                facts.iter().filter(|c| wants.contains(&c.id)).cloned().collect();
            let exports: Vec<Interface> = Interface::ALL
                .into_iter()
                .filter(|i| {
                    guest.manifest.exports.iter().any(|e| format!("{e:?}") == format!("{i:?}"))
                })
                .collect();
            let prepared = if exports.contains(&Interface::Prepare) {
                guest.prepare(config, &borrowed(&facts))?
            } else {
                vec![]
            };
            let m = &guest.manifest;
            Ok(Self {
                digest: Digest(*blake3::hash(format!("native {}", m.name).as_bytes()).as_bytes()),
                guest: guest.configure(config, &prepared)?,
                manifest: Manifest {
                    name: m.name.to_owned(),
                    version: m.version.to_owned(),
                    wants,
                    labels: m.labels.iter().map(|l| (*l).to_owned()).collect(),
                    options: m.options().to_vec(),
                    reasons: m.reasons.iter().map(|(c, t)| (*c, Arc::from(*t))).collect(),
                    schema: m.schema.to_owned(),
                    exports,
                },
            })
        })
    }
}

/// A table as a guest sees it.
macro_rules! table {
    ($table:expr, $columns:ident) => {{
        $columns = borrowed(&$table.columns);
        crater_sdk::Table { rows: $table.rows, columns: &$columns }
    }};
}

impl Policy for Native {
    fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    fn digest(&self) -> Digest {
        self.digest
    }

    fn filter(&self, context: &Values, job: &Values, nodes: &Table) -> Result<Vec<i32>, Fault> {
        let columns;
        Ok(self.guest.filter(&borrowed(context), &borrowed(job), table!(nodes, columns)))
    }

    fn score(&self, context: &Values, job: &Values, nodes: &Table) -> Result<Scores, Fault> {
        let columns;
        let scores = self.guest.score(&borrowed(context), &borrowed(job), table!(nodes, columns));
        Ok(Scores { scores: scores.values, cards: scores.cards })
    }

    fn score_groups(
        &self,
        context: &Values,
        job: &Values,
        groups: &Table,
    ) -> Result<Vec<i32>, Fault> {
        let columns;
        Ok(self.guest.score_groups(&borrowed(context), &borrowed(job), table!(groups, columns)))
    }

    fn price(
        &self,
        context: &Values,
        preemptor: &Values,
        units: &Table,
    ) -> Result<Vec<(i32, i32)>, Fault> {
        let columns;
        Ok(self.guest.price(&borrowed(context), &borrowed(preemptor), table!(units, columns)))
    }

    fn rank(&self, context: &Values, jobs: &Table) -> Result<Vec<(i32, i32, i32)>, Fault> {
        let columns;
        Ok(self.guest.rank(&borrowed(context), table!(jobs, columns)))
    }

    fn admit(&self, context: &Values, job: &Values) -> Result<Result<Values, String>, Fault> {
        let answer = self.guest.admit(&borrowed(context), &borrowed(job));
        let column = |(id, values)| Column { id, values };
        Ok(answer.map(|set| set.into_iter().map(column).collect()))
    }
}

/// The component of a policy, built before by `cargo xtask policies`.
pub fn component(name: &str) -> Vec<u8> {
    let path = component_file(name);
    match std::fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) => panic!("{}: {error}; run `make build` first", path.display()),
    }
}

/// Where it lies.
pub fn component_file(name: &str) -> PathBuf {
    let folder = std::env::var_os("CRATER_POLICIES").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target/policies"),
        PathBuf::from,
    );
    folder.join(format!("{name}.wasm"))
}

/// Limits that a busy machine does not reach.
pub fn patient() -> crater_policy::Limits {
    crater_policy::Limits { call: std::time::Duration::from_secs(10), ..Default::default() }
}
