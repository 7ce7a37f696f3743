//! Submit lines into jobs.

use super::lex::{Fields, duration};
use super::selectors;
use crate::world::Behaviour;
use crater_model::{
    DiskAsk, FieldError, GpuAsk, JobSpec, Kind, Mib, MilliCards, Need, Priority, Request,
    TenantPath, Together, parse,
};
use std::sync::Arc;

/// What a file sets for all its jobs.
#[derive(Clone, Debug)]
pub struct JobDefaults {
    /// Steps in which `gpu` may be given.
    pub gpu_step: MilliCards,
    /// Behaviour where a job says nothing.
    pub behaviour: Behaviour,
}

impl Default for JobDefaults {
    fn default() -> Self {
        Self { gpu_step: MilliCards(100), behaviour: Behaviour::default() }
    }
}

/// A job by its fields, refused as at the door. `kind_of` knows the kind that
/// a queue gives.
pub fn job(
    name: &str,
    fields: &Fields,
    defaults: &JobDefaults,
    kind_of: &dyn Fn(&str) -> Kind,
) -> Result<(JobSpec, Behaviour), FieldError> {
    let mut request = Request::default();
    let mut ask = Ask::default();
    let tenant = TenantPath::parse("tenant", fields.get("tenant").unwrap_or("lab"))?;
    let queue = fields.get("queue").unwrap_or_default();
    let mut spec = JobSpec::new(name, queue, tenant, Request::default());
    spec.kind = kind_of(queue);
    let mut min = None;
    let mut behaviour = defaults.behaviour;
    for (key, value) in &fields.0 {
        let value = value.as_str();
        match key.as_str() {
            "queue" | "tenant" => {}
            "kind" => spec.kind = Kind::parse("kind", value)?,
            "priority" => spec.priority = Priority::parse("priority", value)?,
            "members" => spec.members = count("members", value)?,
            "min" => min = Some(count("min", value)?),
            "preemptible" => spec.preemptible = parse::flag("preemptible", value)?,
            "run-limit" => {
                spec.run_limit =
                    duration("run-limit", value)?.as_secs().min(u64::from(u32::MAX)) as u32;
            }
            "duration" => behaviour.run = Some(duration("duration", value)?),
            "fails" => {
                behaviour.run = Some(duration("fails", value)?);
                behaviour.fails = true;
            }
            "refuses" => behaviour.refuses = parse::flag("refuses", value)?,
            "together" => spec.together = Some(together(value)?),
            "start-delay" => behaviour.start = duration("start-delay", value)?,
            "shutdown" => behaviour.shutdown = duration("shutdown", value)?,
            "cpu" => request.cpu = parse::cpu("cpu", value)?,
            "memory" => request.memory = parse::memory("memory", value)?,
            "nvlink" => request.nvlink = need("nvlink", value)?,
            "numa" => request.numa = need("numa", value)?,
            "models" => request.models = value.split(',').map(Arc::from).collect(),
            "selector" => request.selectors = selectors::selectors("selector", value)?,
            "tolerate" => request.tolerations = selectors::tolerations("tolerate", value)?,
            "disk-io" | "disk-mbps" | "disk-iops" => disk(&mut request.disk, key, value)?,
            _ => ask.field(key, value, defaults.gpu_step)?,
        }
    }
    request.gpu = ask.gpu()?;
    spec.min_members = min.unwrap_or(spec.members);
    spec.request = Arc::new(request);
    spec.check()?;
    Ok((spec, behaviour))
}

/// The fields that together ask for cards.
#[derive(Default)]
struct Ask {
    gpu: Option<MilliCards>,
    memory: Option<Mib>,
    exclusive: bool,
    mig: Option<(u64, String)>,
}

impl Ask {
    fn field(&mut self, key: &str, value: &str, step: MilliCards) -> Result<(), FieldError> {
        match key {
            "gpu" => self.gpu = Some(parse::gpu("gpu", value, step)?),
            "gpu-memory" => self.memory = Some(parse::memory("gpu-memory", value)?),
            "gpu-exclusive" => self.exclusive = parse::flag("gpu-exclusive", value)?,
            "mig" => {
                let (cards, profile) = match value.split_once('x') {
                    Some((n, profile)) => (parse::integer("mig", n, 1, 255)?, profile),
                    None => (1, value),
                };
                self.mig = Some((cards, profile.to_owned()));
            }
            _ => {
                return Err(FieldError::new(key, value, "a field of a job; see docs/scenarios.md"));
            }
        }
        Ok(())
    }

    fn gpu(self) -> Result<Option<GpuAsk>, FieldError> {
        let Some((cards, profile)) = self.mig else {
            return GpuAsk::new(self.gpu, self.memory, self.exclusive);
        };
        if self.gpu.is_some() || self.memory.is_some() || self.exclusive {
            let expected = "no gpu, gpu-memory or gpu-exclusive beside it";
            return Err(FieldError::new("mig", &profile, expected));
        }
        Ok(Some(GpuAsk::mig(cards, &profile)))
    }
}

fn count(field: &str, text: &str) -> Result<u32, FieldError> {
    parse::integer(field, text, 0, u64::from(u32::MAX)).map(|n| n as u32)
}

fn disk(disk: &mut DiskAsk, key: &str, value: &str) -> Result<(), FieldError> {
    match key {
        "disk-io" => disk.weight = parse::integer("disk-io", value, 1, 10_000)? as u16,
        "disk-mbps" => disk.bandwidth = parse::bandwidth("disk-mbps", value)?,
        _ => disk.iops = parse::iops("disk-iops", value)?,
    }
    Ok(())
}

/// `LEVEL`, or `LEVEL:preferred`.
fn together(text: &str) -> Result<Together, FieldError> {
    let (level, need) = match text.rsplit_once(':') {
        Some((level, word)) => (level, need("together", word)?),
        None => (text, Need::Required),
    };
    Ok(Together { level: level.into(), need })
}

fn need(field: &str, text: &str) -> Result<Need, FieldError> {
    match text {
        "none" => Ok(Need::None),
        "preferred" => Ok(Need::Preferred),
        "required" => Ok(Need::Required),
        _ => Err(FieldError::new(field, text, "none, preferred or required")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crater_model::Share;
    use std::time::Duration;

    fn read(words: &[&str]) -> Result<(JobSpec, Behaviour), FieldError> {
        let words: Vec<String> = words.iter().map(|w| (*w).to_owned()).collect();
        let fields = Fields::parse(&words).unwrap();
        job("j1", &fields, &JobDefaults::default(), &|_| Kind::Offline)
    }

    #[test]
    fn every_field_lands_where_it_belongs() {
        let (spec, behaviour) = read(&[
            "queue=q",
            "gpu=2",
            "gpu-memory=40Gi",
            "cpu=500m",
            "memory=1Gi",
            "members=4",
            "min=2",
            "priority=high",
            "nvlink=required",
            "models=A100,H100",
            "disk-io=200",
            "disk-mbps=50",
            "selector=zone=a",
            "tolerate=*",
            "duration=10m",
            "shutdown=30s",
            "preemptible=true",
        ])
        .unwrap();
        let request = &spec.request;
        assert_eq!(
            request.gpu.as_ref().map(|g| (g.cards, g.share.clone())),
            Some((2, Share::Memory { memory: Mib(20_480) }))
        );
        assert_eq!(
            (request.disk.weight, request.models.len(), request.nvlink),
            (200, 2, Need::Required)
        );
        assert_eq!((spec.members, spec.min_members, spec.kind), (4, 2, Kind::Offline));
        assert_eq!(behaviour.run, Some(Duration::from_mins(10)));
    }

    #[test]
    fn bad_fields_are_refused_by_name() {
        for (word, field) in [
            ("gpu=NaN", "gpu"),
            ("gpu=0.05", "gpu"),
            ("gpu_mem=8000", "gpu_mem"),
            ("gpu-memory=8000MB", "gpu-memory"),
            ("cpu=-4", "cpu"),
            ("min=2", "min"),
            ("nvlink=yes", "nvlink"),
            ("gpu=1", "cpu"),
        ] {
            assert_eq!(read(&[word, "queue=q"]).unwrap_err().field, field, "{word}");
        }
    }
}
