//! What a scenario expects, looked up over the API.

use super::ask::Client;
use super::say::Name;
use crater_model::JobState;
use crater_sim::scenario::script::{Clause, Figure, Of, Standing, Which};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Looks at a server.
pub struct Look<'a> {
    pub client: &'a Client,
    /// By name the youngest job.
    pub jobs: &'a BTreeMap<Name, String>,
    /// Every job.
    pub all: &'a [String],
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no number"))
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn named<'a>(items: &'a Value, name: &str) -> Result<&'a Value, String> {
    list(items).find(|item| item["name"] == *name).ok_or_else(|| format!("there is no {name}"))
}

/// What a job's members hold.
pub fn claims(job: &Value) -> Vec<&Value> {
    list(&job["detail"]["claims"]).collect()
}

/// Sums over healthy cards that are not cut.
fn free(node: &Value, of: impl Fn(&Value) -> u64) -> u64 {
    list(&node["cards"]).filter(|card| card["healthy"] == true).map(of).sum()
}

fn stands(job: &Value, standing: Standing) -> bool {
    let claims = claims(job);
    let ended = ["Succeeded", "Failed", "Cancelled", "Evicted"]
        .contains(&job["status"].as_str().unwrap_or_default());
    let releasing = claims.iter().all(|claim| claim["state"] == "releasing");
    match standing {
        Standing::State(state) => job["status"] == JobState::to_string(&state),
        Standing::Placed => !claims.is_empty() && !ended && !releasing,
        Standing::Releasing => !claims.is_empty() && releasing,
        Standing::Gone => claims.is_empty() && ended,
    }
}

fn holds(job: &Value, clause: &Clause) -> bool {
    let claims = claims(job);
    let cards = || claims.iter().flat_map(|claim| list(&claim["cards"]));
    let decision = &job["detail"]["decision"];
    let contains = |value: &Value, text: &str| value.as_str().unwrap_or_default().contains(text);
    match clause {
        Clause::On(nodes) => {
            let on: BTreeSet<&str> = claims.iter().filter_map(|c| c["node"].as_str()).collect();
            on == nodes.iter().map(|node| &**node).collect()
        }
        Clause::Cards(wanted) => {
            let on: BTreeSet<u64> = cards().map(|card| number(&card["card"])).collect();
            on == wanted.iter().map(|card| *card as u64).collect()
        }
        Clause::Mig(instances) => {
            let mut on: Vec<&str> = cards().filter_map(|card| card["mig"].as_str()).collect();
            let mut wanted: Vec<&str> = instances.iter().map(String::as_str).collect();
            on.sort_unstable();
            wanted.sort_unstable();
            on == wanted
        }
        Clause::Members(n) => claims.len() == *n,
        Clause::Because(text) => contains(&job["reason"], text),
        Clause::By(by) => decision["by"] == format!("{by:?}").to_lowercase(),
        Clause::Fault(text) => contains(&decision["fault"], text),
        Clause::Starts(n) => job["attempts"] == *n,
        Clause::Preemptions(n) => job["preemptions"] == *n,
        Clause::Evicted(cause) => job["cause"] == **cause,
        Clause::Together | Clause::Apart => true,
    }
}

impl Look<'_> {
    /// Everything about a job.
    pub fn job(&self, name: &Name) -> Result<Value, String> {
        let id = self.jobs.get(name).ok_or_else(|| format!("there is no job {name}"))?;
        Ok(self.client.get(&format!("/api/v1/jobs/{id}")))
    }

    /// The jobs stand as they should; an error tells of one that does not.
    pub fn standing(
        &self,
        names: &[Name],
        count: Option<usize>,
        standing: Standing,
        clauses: &[Clause],
    ) -> Result<(), String> {
        let jobs = names.iter().map(|name| self.job(name)).collect::<Result<Vec<_>, _>>()?;
        let mut misses = vec![];
        for (name, job) in names.iter().zip(&jobs) {
            let missed = if stands(job, standing) {
                clauses.iter().find(|c| !holds(job, c)).map(|clause| format!("{clause:?}"))
            } else {
                Some(standing.to_string())
            };
            misses.extend(missed.map(|what| format!("{name} is not {what}: {job}")));
        }
        let hits = names.len() - misses.len();
        match count {
            Some(count) if count != hits => {
                return Err(format!("{hits} of {} are: {}", names.len(), misses.join("\n")));
            }
            None if !misses.is_empty() => return Err(misses.join("\n")),
            _ => {}
        }
        let held = || jobs.iter().flat_map(claims);
        let nodes: BTreeSet<&str> = held().filter_map(|c| c["node"].as_str()).collect();
        if clauses.contains(&Clause::Together) && nodes.len() != 1 {
            return Err(format!("not on one node: {nodes:?}"));
        }
        if clauses.contains(&Clause::Apart) && nodes.len() != held().count() {
            return Err(format!("some on one node: {nodes:?}"));
        }
        Ok(())
    }

    /// The figures are as they should be; an error tells of one that is not.
    pub fn figures(&self, of: &Of, which: Which, figures: &[Figure]) -> Result<(), String> {
        let nodes = self.client.get("/api/v1/nodes");
        let check = |what: &str, found: &dyn Fn(&str) -> Option<u64>| {
            figures.iter().try_for_each(|figure| {
                let text = || format!("{what} {which:?} {}", figure.text);
                let n = found(&figure.key).unwrap_or_else(|| panic!("{}: not told", text()));
                let right = figure.compare.holds(n, figure.value);
                right.then_some(()).ok_or_else(|| format!("{}: it is {n}", text()))
            })
        };
        match of {
            Of::Nodes(names) => names.iter().try_for_each(|name| {
                let node = named(&nodes, name)?;
                check(name, &|key| self.of_node(node, which, key))
            }),
            Of::Cards(name, cards) => cards.iter().try_for_each(|at| {
                let node = named(&nodes, name)?;
                let card = list(&node["cards"]).nth(*at).ok_or("there is no such card")?;
                check(&format!("{name}:{at}"), &|key| of_card(card, which, key))
            }),
            Of::Queue(name) => {
                let queue = self.client.get(&format!("/api/v1/queues/{name}"));
                check(name, &|key| queue[key].as_u64())
            }
            Of::Tenants(names) => names
                .iter()
                .try_for_each(|name| check(name, &|key| self.of_tenant(&nodes, name, which, key))),
            Of::Cluster => check("cluster", &|key| match key {
                "nodes" => Some(list(&nodes).count() as u64),
                "starts" => Some(self.sum(|job| number(&job["attempts"]))),
                "preemptions" => Some(self.sum(|job| number(&job["preemptions"]))),
                "running" => Some(self.sum(|job| claims(job).len() as u64)),
                key => list(&nodes).map(|node| self.of_node(node, which, key)).sum(),
            }),
        }
    }

    fn sum(&self, of: impl Fn(&Value) -> u64) -> u64 {
        let job = |id: &String| self.client.get(&format!("/api/v1/jobs/{id}"));
        self.all.iter().map(job).map(|job| of(&job)).sum()
    }

    fn of_node(&self, node: &Value, which: Which, key: &str) -> Option<u64> {
        let name = node["name"].as_str().unwrap_or_default();
        let field = |name: &str| number(&node[name]);
        // What is used of a card that is gone from the machine is known by who
        // holds it.
        let held = |of: &dyn Fn(&Value) -> u64| {
            self.sum(|job| {
                let here = claims(job).into_iter().filter(|claim| claim["node"] == name);
                here.flat_map(|claim| list(&claim["cards"])).map(of).sum()
            })
        };
        Some(match (which, key) {
            (Which::Free, "cpu") => field("cpu-free-milli"),
            (Which::Free, "memory") => field("memory-free-mib"),
            (Which::Free, "disk") => field("disk-free-mbps"),
            (Which::Free, "iops") => field("iops-free"),
            (Which::Free, "gpu") => free(node, |card| 1000 - number(&card["used-milli"])),
            (Which::Free, "gpu-memory") => {
                free(node, |card| number(&card["memory-mib"]) - number(&card["used-mib"]))
            }
            (Which::Free, "cards" | "idle-cards") => {
                free(node, |card| u64::from(card["claims"] == 0))
            }
            (Which::Used, "cpu") => field("cpu-milli") - field("cpu-free-milli"),
            (Which::Used, "memory") => field("memory-mib") - field("memory-free-mib"),
            (Which::Used, "disk") => field("disk-mbps") - field("disk-free-mbps"),
            (Which::Used, "iops") => field("iops") - field("iops-free"),
            (Which::Used, "gpu") => held(&|card| number(&card["milli"])),
            (Which::Used, "gpu-memory") => held(&|card| number(&card["memory-mib"])),
            (Which::Used, "instances") => held(&|card| u64::from(!card["mig"].is_null())),
            (Which::Used, "members") => field("members"),
            (Which::Total, "cpu") => field("cpu-milli"),
            (Which::Total, "memory") => field("memory-mib"),
            (Which::Total, "gpu-memory") => free(node, |card| number(&card["memory-mib"])),
            (Which::Total, "cards") => list(&node["cards"]).count() as u64,
            _ => return None,
        })
    }

    fn of_tenant(&self, nodes: &Value, path: &str, which: Which, key: &str) -> Option<u64> {
        if let Some(model) = key.strip_prefix("gpu.") {
            // Told where there is a limit on it only; who holds it is told always.
            return (which == Which::Used).then(|| self.of_model(nodes, path, model));
        }
        let answer =
            self.client.send("GET", &format!("/api/v1/tenants/{}", path.replace('/', "~")), b"");
        if answer.status == 404 {
            return (which == Which::Used).then_some(0);
        }
        let tenant = answer.done(path, 200);
        let resource = &tenant["resources"][key];
        let (used, hard) = (number(&resource["figures"][0]), resource["figures"][1].as_u64());
        let amount = |text: &str| {
            let known = crater_model::Resource::parse(key).expect("a resource");
            known.amount(key, text).expect("an amount")
        };
        match which {
            Which::Used => Some(used),
            Which::Total => hard,
            Which::Free => hard.map(|hard| hard.saturating_sub(used)),
            Which::Borrowed => Some(resource["borrowed"].as_str().map_or(0, amount)),
            Which::Excess => {
                let end = format!(" of {key} more than hard; nothing is evicted for that");
                let notes = list(&tenant["notes"]).filter_map(Value::as_str);
                let mut found =
                    notes.filter_map(|note| note.strip_suffix(&end)?.strip_prefix("uses "));
                Some(found.next().map_or(0, amount))
            }
            Which::Count => None,
        }
    }

    fn of_model(&self, nodes: &Value, path: &str, model: &str) -> u64 {
        self.sum(|job| {
            let tenant = job["tenant"].as_str().unwrap_or_default();
            let below =
                tenant.strip_prefix(path).is_some_and(|r| r.is_empty() || r.starts_with('/'));
            let held = claims(job).into_iter().filter(|_| below);
            let of = |claim: &Value| {
                let node = named(nodes, claim["node"].as_str().unwrap_or_default());
                let node = node.cloned().unwrap_or_default();
                let cards = list(&claim["cards"])
                    .filter(|card| node["cards"][number(&card["card"]) as usize]["model"] == model);
                cards.map(|card| number(&card["milli"])).sum::<u64>()
            };
            held.map(of).sum()
        })
    }
}

fn of_card(card: &Value, which: Which, key: &str) -> Option<u64> {
    let (used, memory) = (number(&card["used-milli"]), number(&card["memory-mib"]));
    let healthy = card["healthy"] == true;
    Some(match (which, key) {
        (Which::Free, _) if !healthy => 0,
        (Which::Free, "gpu") => 1000 - used,
        (Which::Free, "gpu-memory" | "memory") => memory - number(&card["used-mib"]),
        (Which::Used, "gpu") => used,
        (Which::Used, "gpu-memory" | "memory") => number(&card["used-mib"]),
        (Which::Used, "shares") => number(&card["claims"]),
        (Which::Total, "gpu-memory" | "memory") => memory,
        _ => return None,
    })
}
