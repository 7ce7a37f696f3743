//! Lines on tenants, and their figures.

use super::expect::Which;
use super::lex::Fields;
use crater_engine::State;
use crater_model::{FieldError, JobChanges, Priority, Resource, TenantSpec, parse};

/// What is said of tenants: parts that are not named stay as they were.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TenantLine {
    /// They are no longer limited.
    pub remove: bool,
    hard: Fields,
    soft: Fields,
    ceiling: Option<String>,
}

impl TenantLine {
    /// Reads `[hard FIELDS] [soft FIELDS] [ceiling=PRIORITY]`, or `remove`.
    pub fn parse(words: &[String]) -> Result<Self, String> {
        let mut line = Self { remove: words == ["remove"], ..Self::default() };
        if line.remove {
            return Ok(line);
        }
        let (mut hard, mut soft) = (vec![], vec![]);
        let mut part = None;
        for word in words {
            match (word.as_str(), part) {
                ("hard" | "soft", _) => part = Some(word == "hard"),
                (word, _) if word.starts_with("ceiling=") => {
                    line.ceiling = word.strip_prefix("ceiling=").map(str::to_owned);
                }
                (_, Some(true)) => hard.push(word.clone()),
                (_, Some(false)) => soft.push(word.clone()),
                (word, None) => {
                    return Err(format!(
                        "hard gpu=8 cpu=64 …, soft gpu=12 …, ceiling=PRIORITY or remove in place \
                         of {word:?}"
                    ));
                }
            }
        }
        (line.hard, line.soft) = (Fields::parse(&hard)?, Fields::parse(&soft)?);
        Ok(line)
    }

    /// Makes the changes.
    pub fn describe(&self, spec: &mut TenantSpec) -> Result<(), FieldError> {
        for (key, value) in &self.hard.0 {
            spec.hard.field(key, value)?;
        }
        for (key, value) in &self.soft.0 {
            spec.soft.field(key, value)?;
        }
        match self.ceiling.as_deref() {
            None => {}
            Some("none") => spec.ceiling = None,
            Some(text) => spec.ceiling = Some(Priority::parse("ceiling", text)?),
        }
        spec.check()
    }
}

/// The fields of an `update` line.
pub fn changes(fields: &Fields) -> Result<JobChanges, FieldError> {
    let mut changes = JobChanges::default();
    for (key, value) in &fields.0 {
        match key.as_str() {
            "priority" => changes.priority = Some(Priority::parse("priority", value)?),
            "preemptible" => changes.preemptible = Some(parse::flag("preemptible", value)?),
            "disk-io" => {
                changes.disk_weight = Some(parse::integer("disk-io", value, 1, 10_000)? as u16);
            }
            _ => return Err(FieldError::new(key, value, "priority, preemptible or disk-io")),
        }
    }
    Ok(changes)
}

/// A figure of a tenant; `None` where there is no limit that it follows from.
pub fn figure(state: &State, path: &str, which: Which, key: &str) -> Option<u64> {
    let resource = Resource::parse(if key == "disk" { "disk-mbps" } else { key })?;
    let level = state.level(path);
    let hard = || level.and_then(|l| l.hard(&resource));
    let used = level.map_or(0, |l| l.used.get(&resource));
    match which {
        Which::Used => Some(used),
        Which::Total => hard(),
        Which::Free => hard().map(|hard| hard.saturating_sub(used)),
        Which::Excess => {
            let excess = level.map(|l| l.excess()).unwrap_or_default();
            Some(excess.into_iter().find(|(r, _)| *r == resource).map_or(0, |(_, n)| n))
        }
        Which::Borrowed => Some(level.map_or(0, |l| l.borrowed.get(&resource))),
        Which::Count => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crater_model::TenantPath;

    fn line(text: &str) -> Result<TenantLine, String> {
        TenantLine::parse(&text.split(' ').map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn what_is_not_named_stays() {
        let mut spec = TenantSpec::new(TenantPath::parse("tenant", "ai").unwrap());
        line("hard gpu=8 gpu.T4=4 soft gpu=9 ceiling=high").unwrap().describe(&mut spec).unwrap();
        line("hard cpu=64 gpu.T4=none").unwrap().describe(&mut spec).unwrap();
        let set: Vec<_> = spec.hard.iter().map(|(r, n)| format!("{r}={}", r.spell(n))).collect();
        assert_eq!((set.join(" ").as_str(), spec.ceiling), ("gpu=8 cpu=64", Some(Priority(100))));
        assert!(line("remove").unwrap().remove);
        assert!(line("gpu=8").is_err() && line("remove hard").is_err());
        assert_eq!(line("hard gpus=8").unwrap().describe(&mut spec).unwrap_err().field, "gpus");
        assert_eq!(line("hard gpu=10").unwrap().describe(&mut spec).unwrap_err().field, "soft gpu");
    }
}
