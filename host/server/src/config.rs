//! The server's one configuration file: what there is, who may use how much,
//! and which policy decides each queue.

mod amounts;
mod hooks;
mod local;
mod machines;
mod room;

pub use amounts::Text;
pub use hooks::Webhook;
pub use local::ThisMachine;
pub use machines::{CardGroups, Cards, Nodes};

use crate::policies::{Source, Wanted};
use crate::webhooks::Hook;
use crater_model::{
    Fallback, FieldError, Kind, NodeSpec, PlatformSpec, Priority, QueueName, QueueSpec, Resource,
    TenantPath, TenantSpec,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// The configuration cannot be used; nothing of it was applied.
#[derive(Debug, Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("{file}: {error}")]
    Read {
        /// The file.
        file: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// It is no YAML of this shape.
    #[error("{file}: {error}")]
    Shape {
        /// The file.
        file: PathBuf,
        /// Where and what.
        error: String,
    },
    /// A value is refused.
    #[error("{file}: {place}: {error}")]
    Value {
        /// The file.
        file: PathBuf,
        /// Where in it.
        place: String,
        /// What.
        error: FieldError,
    },
}

/// Everything that `crater serve` is told. What is left out keeps its default.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema, PartialEq)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Config {
    /// Where the server listens: address and port. Without TLS only loopback
    /// addresses are taken, unless `allow-plain-http` is set.
    pub listen: String,
    /// Serve plain HTTP on other addresses than loopback, too: anyone on the
    /// way can read tokens.
    pub allow_plain_http: bool,
    /// Certificate and key for HTTPS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<Tls>,
    /// The cluster.
    pub cluster: Cluster,
    /// The queues.
    pub queues: Vec<Queue>,
    /// Departments, projects and persons, and their quotas.
    pub tenants: Vec<Tenant>,
    /// A tenant's soft quota where none is set: this many times its hard one.
    pub soft_quota_ratio: f64,
    /// Tenants may use more than their hard quota, up to the soft one, while
    /// little of the cluster is in use. What others lent can be reclaimed.
    pub borrowing: bool,
    /// Borrowing opens while less of the cluster's GPU is in use, in percent.
    pub borrow_opens_below: u8,
    /// Once open, borrowing closes when so much is in use, in percent.
    pub borrow_closes_at: u8,
    /// Jobs that are not preemptible may borrow, too. What they borrow cannot
    /// be reclaimed before they end.
    pub borrow_unpreemptible: bool,
    /// How long history, usage and decisions are kept, such as 30d or 12h.
    pub retention: String,
    /// How what jobs use is measured.
    pub metrics: Metrics,
    /// Who is told when jobs start, are preempted and end.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub webhooks: Vec<Webhook>,
}

/// How what jobs use is measured.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema, PartialEq)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Metrics {
    /// How often, 1s to 5m.
    pub interval: String,
}

impl Default for Metrics {
    fn default() -> Self {
        Self { interval: "15s".into() }
    }
}

/// Files for HTTPS, PEM.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema, PartialEq)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Tls {
    /// The certificate chain.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

/// The cluster.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema, PartialEq)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Cluster {
    /// Machines that exist only here.
    pub nodes: Vec<Nodes>,
    /// How long a simulated member runs unless its job says otherwise.
    pub run: String,
    /// This machine in the place of simulated ones: jobs run on it, as
    /// processes. `crater serve --cluster local` does it with these defaults.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub local: Option<ThisMachine>,
}

/// A queue.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema, PartialEq)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Queue {
    /// Its name.
    pub name: String,
    /// Kind of the jobs that do not say theirs: inference, training, offline.
    pub kind: String,
    /// Greater goes first where queues compete.
    #[serde(default)]
    pub priority: u16,
    /// Its policy: a built-in name, or a path to a component (`.wasm`),
    /// relative to this file. Without one its fallback decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// The policy's configuration.
    #[serde(default, skip_serializing_if = "serde_json::Map::is_empty")]
    pub config: serde_json::Map<String, serde_json::Value>,
    /// Who decides when the policy cannot: binpack, spread or hold.
    #[serde(default = "binpack")]
    pub fallback: String,
    /// The tenant that it belongs to, whose managers set its policy; without
    /// one the platform.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// Nothing of it starts.
    #[serde(default)]
    pub paused: bool,
    /// Milliseconds that its policy may compute in one round of decisions;
    /// beyond them the fallback decides. Without it only each call is bounded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round_budget: Option<u32>,
    /// A job that has run for less than this is not preempted, such as 60s.
    #[serde(default = "room::minute")]
    pub minimum_run: String,
    /// Most preemptions of its jobs in any hour; 0 for any number.
    #[serde(default)]
    pub preemptions_per_hour: u32,
    /// A job that was preempted this often is not preempted again; 0 for any
    /// number.
    #[serde(default)]
    pub preemptions_per_job: u32,
    /// The first job that finds no room has room kept for it after it has
    /// waited so long, such as 5m; 0s for never.
    #[serde(default = "room::five_minutes")]
    pub reserve_after: String,
}

fn binpack() -> String {
    "binpack".into()
}

/// A tenant.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema, PartialEq)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Tenant {
    /// department, department/project or department/project/person.
    pub path: String,
    /// What it may always use.
    #[serde(default)]
    pub hard: Quota,
    /// Up to where it may borrow, once borrowing is on.
    #[serde(default)]
    pub soft: Quota,
    /// Highest priority of its jobs: low, medium, high or 0 to 1000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ceiling: Option<Text>,
}

/// By resource: gpu, gpu-memory, cpu, memory, disk-mbps, gpu.MODEL. What is left
/// out has no limit.
pub type Quota = BTreeMap<String, Text>;

impl Default for Cluster {
    fn default() -> Self {
        Self { nodes: vec![Nodes::usual()], run: "5m".into(), local: None }
    }
}

impl Default for Config {
    fn default() -> Self {
        let queue = |name: &str, policy: &str, priority, fallback: &str| Queue {
            name: name.into(),
            kind: name.into(),
            priority,
            policy: Some(policy.into()),
            config: serde_json::Map::new(),
            fallback: fallback.into(),
            tenant: None,
            paused: false,
            round_budget: None,
            minimum_run: room::minute(),
            preemptions_per_hour: 0,
            preemptions_per_job: 0,
            reserve_after: room::five_minutes(),
        };
        Self {
            listen: "127.0.0.1:8470".into(),
            allow_plain_http: false,
            tls: None,
            cluster: Cluster::default(),
            queues: vec![
                queue("inference", "spread", 20, "spread"),
                queue("training", "binpack", 10, "binpack"),
                queue("offline", "priority", 0, "binpack"),
            ],
            tenants: vec![],
            soft_quota_ratio: 2.0,
            borrowing: true,
            borrow_opens_below: 50,
            borrow_closes_at: 55,
            borrow_unpreemptible: false,
            retention: "30d".into(),
            metrics: Metrics::default(),
            webhooks: vec![],
        }
    }
}

/// The configuration, checked, in the engine's words.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Machines.
    pub nodes: Vec<NodeSpec>,
    /// Queues with the policies that they want.
    pub queues: Vec<(QueueSpec, Option<Wanted>)>,
    /// Tenants.
    pub tenants: Vec<TenantSpec>,
    /// What holds for all tenants.
    pub platform: PlatformSpec,
    /// How long a simulated member runs.
    pub run: std::time::Duration,
    /// How long history is kept.
    pub retention: std::time::Duration,
    /// How often what jobs use is measured.
    pub interval: std::time::Duration,
    /// Who is told of jobs.
    pub webhooks: Vec<Hook>,
    /// How long queues' policies may compute in one round.
    pub budgets: BTreeMap<QueueName, std::time::Duration>,
}

impl Config {
    /// Reads a file.
    pub fn read(file: &Path) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(file)
            .map_err(|error| ConfigError::Read { file: file.into(), error })?;
        Self::parse(file, &text)
    }

    /// Reads a file's text.
    pub fn parse(file: &Path, text: &str) -> Result<Self, ConfigError> {
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        serde_saphyr::from_str(text)
            .map_err(|error| ConfigError::Shape { file: file.into(), error: error.to_string() })
    }

    /// JSON Schema of the file, for editors.
    pub fn schema() -> serde_json::Value {
        schemars::schema_for!(Self).to_value()
    }

    /// Checks all of it. Paths of policies are relative to the file's folder.
    pub fn plan(&self, file: &Path) -> Result<Plan, ConfigError> {
        let refuse = |place: String| {
            let file = file.to_path_buf();
            move |error| ConfigError::Value { file: file.clone(), place: place.clone(), error }
        };
        let mut nodes = vec![];
        for (i, group) in self.cluster.nodes.iter().enumerate() {
            nodes.extend(group.specs().map_err(refuse(format!("cluster.nodes[{i}]")))?);
        }
        let mut names = std::collections::BTreeSet::new();
        for node in &nodes {
            if !names.insert(node.name.clone()) {
                let error = FieldError::new("name", &node.name, "a name that no other node has");
                return Err(refuse("cluster.nodes".into())(error));
            }
        }
        let mut queues: Vec<(QueueSpec, Option<Wanted>)> = vec![];
        for (i, queue) in self.queues.iter().enumerate() {
            let place = || refuse(format!("queues[{i}]"));
            let spec = queue.spec().map_err(place())?;
            if queues.iter().any(|(known, _)| known.name == spec.name) {
                let error = FieldError::new("name", &spec.name, "a name that no other queue has");
                return Err(place()(error));
            }
            queues.push((spec, queue.wanted(file)));
        }
        let mut tenants = vec![];
        for (i, tenant) in self.tenants.iter().enumerate() {
            tenants.push(tenant.spec().map_err(refuse(format!("tenants[{i}]")))?);
        }
        let run = span("run", &self.cluster.run).map_err(refuse("cluster".into()))?;
        let retention = span("retention", &self.retention).map_err(refuse("retention".into()))?;
        let platform = self.platform().map_err(|error| refuse(error.field.clone())(error))?;
        let interval = self.interval().map_err(refuse("metrics".into()))?;
        let webhooks = self.hooks(&refuse)?;
        let budgets = self.queues.iter().filter_map(|queue| {
            let budget = std::time::Duration::from_millis(queue.round_budget?.into());
            Some((queue.name.as_str().into(), budget))
        });
        let budgets = budgets.collect();
        Ok(Plan { nodes, queues, tenants, platform, run, retention, interval, webhooks, budgets })
    }

    /// How often what jobs use is measured.
    pub fn interval(&self) -> Result<std::time::Duration, FieldError> {
        let interval = span("interval", &self.metrics.interval)?;
        if !(1..=300).contains(&interval.as_secs()) {
            return Err(FieldError::new("interval", &self.metrics.interval, "1s to 5m"));
        }
        Ok(interval)
    }

    fn hooks<E: FnOnce(FieldError) -> ConfigError>(
        &self,
        refuse: &dyn Fn(String) -> E,
    ) -> Result<Vec<Hook>, ConfigError> {
        let mut hooks: Vec<Hook> = vec![];
        for (i, webhook) in self.webhooks.iter().enumerate() {
            let refuse = || refuse(format!("webhooks[{i}]"));
            let hook = webhook.hook().map_err(refuse())?;
            if hooks.iter().any(|known| known.url == hook.url) {
                let expected = "an address that no other webhook has";
                return Err(refuse()(FieldError::new("url", &hook.url, expected)));
            }
            if i >= hooks::MOST {
                let expected = format!("at most {} webhooks", hooks::MOST);
                return Err(refuse()(FieldError::new("url", &hook.url, expected)));
            }
            hooks.push(hook);
        }
        Ok(hooks)
    }
}

/// A span of time such as `30d`, `5m` or `90s`.
pub fn span(field: &str, text: &str) -> Result<std::time::Duration, FieldError> {
    let refuse = || FieldError::new(field, text, "a span of time such as 30d, 12h, 5m or 90s");
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().map_err(|_| refuse())?;
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86_400,
        "w" => 604_800,
        _ => return Err(refuse()),
    };
    let all =
        number.checked_mul(seconds).filter(|s| *s <= 100 * 366 * 86_400).ok_or_else(refuse)?;
    Ok(std::time::Duration::from_secs(all))
}

impl Tenant {
    fn spec(&self) -> Result<TenantSpec, FieldError> {
        let mut spec = TenantSpec::new(TenantPath::parse("path", &self.path)?);
        for (part, given, amounts) in
            [("hard", &self.hard, &mut spec.hard), ("soft", &self.soft, &mut spec.soft)]
        {
            for (name, text) in given {
                let field = format!("{part}.{name}");
                let resource = Resource::parse(name).ok_or_else(|| {
                    let expected = "gpu, gpu-memory, cpu, memory, disk-mbps or gpu.MODEL";
                    FieldError::new(&field, name, expected)
                })?;
                amounts.set(&resource, Some(resource.amount(&field, &text.0)?));
            }
        }
        let ceiling = self.ceiling.as_ref().map(|text| Priority::parse("ceiling", &text.0));
        spec.ceiling = ceiling.transpose()?;
        let spec = spec.rounded();
        spec.check().map(|()| spec)
    }
}

impl Queue {
    fn spec(&self) -> Result<QueueSpec, FieldError> {
        let mut spec = QueueSpec::new(&self.name, Kind::parse("kind", &self.kind)?);
        spec.priority = self.priority;
        spec.fallback = Fallback::parse("fallback", &self.fallback)?;
        spec.paused = self.paused;
        spec.room = self.room()?;
        if self.round_budget == Some(0) {
            return Err(FieldError::new("round-budget", "0", "milliseconds, 1 or more"));
        }
        spec.check()?;
        Ok(spec)
    }

    fn wanted(&self, file: &Path) -> Option<Wanted> {
        let source = match Source::parse(self.policy.as_deref()?) {
            Source::File(path) if path.is_relative() => {
                Source::File(file.parent().unwrap_or(Path::new("")).join(path))
            }
            source => source,
        };
        let config = serde_json::Value::Object(self.config.clone()).to_string();
        Some(Wanted { source, config })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(text: &str) -> Result<Plan, String> {
        let file = Path::new("etc/crater.yaml");
        let config = Config::parse(file, text).map_err(|e| e.to_string())?;
        config.plan(file).map_err(|e| e.to_string())
    }

    #[test]
    fn without_a_word_there_are_eight_nodes_and_three_queues() {
        let plan = plan("").unwrap();
        assert_eq!((plan.nodes.len(), plan.nodes[0].cards.len()), (8, 8));
        assert_eq!(&*plan.nodes[0].name, "gpu-node-01");
        let queues: Vec<_> = plan.queues.iter().map(|(q, _)| &*q.name).collect();
        assert_eq!(queues, ["inference", "training", "offline"]);
    }

    #[test]
    fn what_is_not_understood_is_refused_with_its_place() {
        for (text, part) in [
            ("listn: 1", "listn"),
            ("cluster: {nodes: [{name: a, cpu: x, memory: 1Gi}]}", "cluster.nodes[0]: cpu: \"x\""),
            ("queues: [{name: Q, kind: training}]", "queues[0]: queue: \"Q\""),
            ("queues: [{name: q, kind: train}]", "queues[0]: kind: \"train\""),
            ("queues: [{name: q, kind: training}, {name: q, kind: offline}]", "queues[1]: name"),
            ("retention: 30", "retention: \"30\""),
            ("soft-quota-ratio: 0.5", "soft-quota-ratio"),
            ("borrow-closes-at: 40", "borrow-closes-at: \"40\""),
            ("queues: [{name: q, kind: training, minimum-run: 60}]", "queues[0]: minimum-run"),
            ("metrics: {interval: 10m}", "metrics: interval: \"10m\""),
            ("webhooks: [{url: ftp://x}]", "webhooks[0]: url: \"ftp://x\""),
            ("webhooks: [{url: 'http://h/'}, {url: 'http://h/'}]", "webhooks[1]: url"),
            (
                "cluster: {nodes: [{name: a, cpu: 1, memory: 1Gi}, {name: a, cpu: 1, memory: 1Gi}]}",
                "no other node",
            ),
        ] {
            let error = plan(text).unwrap_err();
            assert!(error.contains(part) && error.contains("etc/crater.yaml"), "{text}: {error}");
        }
    }

    #[test]
    fn borrowing_is_on_and_room_is_kept_after_five_minutes_unless_it_says_otherwise() {
        let usual = plan("").unwrap();
        let (platform, room) = (usual.platform, usual.queues[1].0.room);
        assert!(platform.borrowing && !platform.borrow_unpreemptible);
        assert_eq!(
            (platform.borrow_opens_below_percent, platform.borrow_closes_at_percent),
            (50, 55)
        );
        assert_eq!((room.minimum_run, room.reserve_after), (60, 300));
        let other = plan(
            "borrowing: false\nborrow-opens-below: 70\nborrow-closes-at: 80\nqueues: \
             [{name: q, kind: training, minimum-run: 2m, preemptions-per-hour: 3, \
             preemptions-per-job: 2, reserve-after: 0s}]",
        );
        let other = other.unwrap();
        let room = other.queues[0].0.room;
        assert!(!other.platform.borrowing);
        assert_eq!((room.minimum_run, room.reserve_after), (120, 0));
        assert_eq!((room.preemptions_per_hour, room.preemptions_per_job), (3, 2));
    }

    #[test]
    fn a_policys_path_is_relative_to_the_file() {
        let plan =
            plan("queues: [{name: q, kind: training, policy: my/own.wasm, config: {by: nodes}}]");
        let wanted = plan.unwrap().queues[0].1.clone().unwrap();
        assert_eq!(wanted.source, Source::File("etc/my/own.wasm".into()));
        assert_eq!(wanted.config, r#"{"by":"nodes"}"#);
    }

    #[test]
    fn the_schema_knows_every_setting() {
        let schema = Config::schema().to_string();
        for name in [
            "listen",
            "soft-quota-ratio",
            "borrowing",
            "reserve-after",
            "nvlink",
            "fallback",
            "ceiling",
            "webhooks",
            "interval",
        ] {
            assert!(schema.contains(&format!("\"{name}\"")), "{name}");
        }
    }
}
