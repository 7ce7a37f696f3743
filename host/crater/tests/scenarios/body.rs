//! Jobs, machines and quotas of a scenario as bodies of requests and configurations.

use crater_model::mig::Instance;
use crater_model::{Amounts, CardSpec, MigMode, NodeSpec, TenantSpec};
use crater_sim::scenario::script::{Fields, duration};
use serde_json::{Map, Value, json};

/// Longest that a job runs or ends within a test, in seconds: long enough to be
/// looked at before, also on a busy machine.
const SPAN: u64 = 12;

/// A job as it is submitted. Values go as they are written, so that the server
/// is the one that refuses them.
pub fn job(name: &str, fields: &Fields, fails: bool) -> Result<Value, String> {
    let mut body = json!({"name": name, "tenant": "lab"});
    // Unless it says otherwise it starts and ends at once, as in a scenario.
    let mut env = Map::new();
    let mut refuses = None;
    let mut play = |what: &str, value: Value| {
        env.insert(format!("CRATER_SIMULATE_{what}"), json!(value.to_string()));
    };
    play("START", json!(0));
    play("STOP", json!(0));
    if fails {
        play("FAIL", json!(SPAN));
    }
    for (key, value) in &fields.0 {
        match key.as_str() {
            "models" => body["card-model"] = value.split(',').collect(),
            "disk-mbps" => body["disk-bandwidth"] = json!(value),
            "mig" => {
                let (cards, profile) = value.split_once('x').unwrap_or(("1", value));
                body["gpu"] = json!(cards);
                body["mig-profile"] = json!(profile);
            }
            "selector" => body["node-selector"] = Value::Object(selector(value)?),
            "run-limit" => body["run-limit"] = json!(seconds(value)),
            "members" | "min" | "preemptible" | "gpu-exclusive" => body[key] = typed(value),
            "duration" => play("SECONDS", json!(seconds(value).min(SPAN))),
            "fails" => {
                play("SECONDS", json!(seconds(value).min(SPAN)));
                play("EXIT", json!(1));
            }
            "start-delay" => play("START", json!(seconds(value))),
            "shutdown" => {
                play("STOP", json!(seconds(value).min(SPAN)));
                body["grace"] = json!(seconds(value));
            }
            "tolerate" => return Err("tolerate=".to_owned()),
            "refuses" => {
                refuses = Some("the machine says no");
            }
            _ => body[key] = json!(value),
        }
    }
    if let Some(words) = refuses {
        env.insert("CRATER_SIMULATE_REFUSE".to_owned(), json!(words));
    }
    body["env"] = Value::Object(env);
    Ok(body)
}

/// Labels that a node must have; other conditions cannot be asked.
fn selector(text: &str) -> Result<Map<String, Value>, String> {
    let plain = |part: &str| {
        let (key, value) = part.split_once('=')?;
        let odd = |text: &str| text.contains(['!', '<', '>', '(', '|', ' ']);
        (!odd(key) && !odd(value)).then(|| (key.to_owned(), json!(value)))
    };
    let pairs = text.split(',').map(plain).collect::<Option<_>>();
    pairs.ok_or_else(|| format!("selector={text}"))
}

/// A machine as the configuration declares it.
pub fn node(spec: &NodeSpec) -> Result<Value, String> {
    if !spec.taints.is_empty() {
        return Err("taints=".to_owned());
    }
    if spec.members != NodeSpec::default_members() {
        return Err("members= of a node".to_owned());
    }
    let labels: Map<String, Value> =
        spec.labels.iter().map(|(key, value)| (key.to_string(), json!(**value))).collect();
    let sick: Vec<usize> = (0..spec.cards.len()).filter(|c| !spec.cards[*c].healthy).collect();
    Ok(json!({
        "name": &*spec.name,
        "cpu": spec.cpu.to_string(),
        "memory": spec.memory.to_string(),
        "disk": spec.disk.0,
        "iops": spec.iops.0,
        "cards": groups(spec),
        "sick": sick,
        "labels": labels,
        "domain": &*spec.domain,
        "zone": &*spec.zone,
    }))
}

/// Equal neighbours among the cards, each sort with its links.
fn groups(spec: &NodeSpec) -> Vec<Value> {
    let same = |a: usize, b: usize| {
        let sort = |card: usize| CardSpec { healthy: true, ..spec.cards[card].clone() };
        sort(a) == sort(b) && spec.links.group(a) == spec.links.group(b)
    };
    let mut groups: Vec<Value> = vec![];
    for card in 0..spec.cards.len() {
        if card > 0 && same(card - 1, card) {
            let group = groups.last_mut().expect("the group of the card before");
            group["count"] = json!(group["count"].as_u64().unwrap_or(0) + 1);
            if spec.links.group(card).is_some() {
                group["nvlink"] = group["count"].clone();
            }
            continue;
        }
        let known = &spec.cards[card];
        let mut group =
            json!({"count": 1, "model": &*known.model, "memory": known.memory.to_string()});
        if let Some(slice) = known.slice {
            group["slice"] = json!(slice.to_string());
        }
        if let Some(numa) = known.numa {
            group["numa"] = json!(numa);
        }
        let spell = |instance: &Instance| format!("{}@{}", instance.profile, instance.start);
        match &known.mig {
            MigMode::Off => {}
            MigMode::Free(_) => group["mig"] = json!(true),
            MigMode::Fixed { instances, .. } => {
                group["instances"] = instances.iter().map(spell).collect();
            }
        }
        groups.push(group);
    }
    groups
}

/// A value as JSON and YAML have it.
pub fn typed(text: &str) -> Value {
    serde_json::from_str(text)
        .ok()
        .filter(|v: &Value| !v.is_string())
        .unwrap_or_else(|| json!(text))
}

/// A span in whole seconds.
fn seconds(text: &str) -> u64 {
    duration("span", text).map_or(0, |span| span.as_secs())
}

/// What makes a tenant's quota of another.
pub fn quota(before: Option<&TenantSpec>, spec: &TenantSpec) -> Value {
    let mut body = json!({"hard": {}, "soft": {}, "ceiling": "none"});
    if let Some(ceiling) = spec.ceiling {
        body["ceiling"] = json!(ceiling.0);
    }
    let parts = [
        ("hard", before.map(|b| &b.hard), &spec.hard),
        ("soft", before.map(|b| &b.soft), &spec.soft),
    ];
    for (part, before, now) in parts {
        for (resource, _) in before.into_iter().flat_map(Amounts::iter) {
            body[part][resource.to_string()] = json!("none");
        }
        for (resource, amount) in now.iter() {
            body[part][resource.to_string()] = json!(resource.spell(amount));
        }
    }
    body
}
