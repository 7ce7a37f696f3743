//! Who leads: a Lease, and a number that grows with every leader.
//!
//! The lease keeps two from working at once most of the time; the epoch is
//! what makes it certain (see claims.rs). Expiry is judged by what this
//! process saw change and when, by its own monotonic clock: wall clocks of
//! others, and jumps of our own, mean nothing. The wall clock is written into
//! the lease for people to read, and read by nothing here.

use crate::api::within;
use crate::settings::{Fence, Settings};
use crate::watch::Backoff;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::Timestamp;
use kube::Client;
use kube::api::{Api, ObjectMeta, PostParams};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A moment by both clocks. What judges gets it as a value.
#[derive(Clone, Copy, Debug)]
struct Moment {
    /// Goes on evenly, whatever anybody sets. All waiting is by this.
    steady: Instant,
    /// What people take the time to be; may jump either way.
    wall: Timestamp,
}

impl Moment {
    fn now() -> Self {
        Self { steady: Instant::now(), wall: Timestamp::now() }
    }
}

/// The object that holds the epoch.
pub const EPOCH_OBJECT: &str = "crater-epoch";

/// One time of leading.
#[derive(Debug)]
pub struct Tenure {
    /// Its number, greater than that of every leader before.
    pub epoch: u64,
    began: Instant,
    /// Milliseconds after `began` until which the lease lasts without another
    /// renewal.
    until: AtomicU64,
    over: AtomicBool,
    heed_lease: bool,
}

impl Tenure {
    fn new(epoch: u64, until: Instant, heed_lease: bool) -> Self {
        let tenure = Self {
            epoch,
            began: Instant::now(),
            until: AtomicU64::new(0),
            over: AtomicBool::new(false),
            heed_lease,
        };
        tenure.extend(until);
        tenure
    }

    fn extend(&self, until: Instant) {
        let lasts = until.saturating_duration_since(self.began);
        self.until.fetch_max(lasts.as_millis() as u64, Ordering::AcqRel);
    }

    /// Whether it may still write. Once it may not, it never may again: what
    /// was under way then was given up, and is taken up by the next tenure.
    pub fn lasts(&self) -> bool {
        self.lasts_at(Instant::now())
    }

    fn lasts_at(&self, now: Instant) -> bool {
        if self.over.load(Ordering::Acquire) {
            return false;
        }
        let lasts = Duration::from_millis(self.until.load(Ordering::Acquire));
        let since = now.saturating_duration_since(self.began);
        let lasts = !self.heed_lease || since < lasts;
        if !lasts {
            self.end();
        }
        lasts
    }

    /// Ends it: a newer leader was seen.
    pub fn end(&self) {
        self.over.store(true, Ordering::Release);
    }
}

/// What the election says.
#[derive(Debug)]
pub enum Election {
    /// This process leads.
    Leads(Arc<Tenure>),
    /// It does not any more.
    Follows,
}

/// Contends for the lease for ever.
pub async fn contend(
    client: Client,
    settings: Arc<Settings>,
    mut tell: impl FnMut(Election) -> bool,
    mut trouble: impl FnMut(&'static str, String),
) {
    let leases: Api<Lease> = Api::namespaced(client.clone(), &settings.namespace);
    let mut seen = Observed::default();
    loop {
        tokio::time::sleep(settings.lease.retry).await;
        let began = Instant::now();
        match try_for(&leases, &settings, &mut seen).await {
            Ok(true) => {}
            Ok(false) => continue,
            Err(error) => {
                trouble("lease", error);
                continue;
            }
        }
        let until = began + settings.lease.renew;
        let epoch = match next_epoch(&client, &settings).await {
            Ok(epoch) => epoch,
            Err(error) => {
                trouble("epoch", error);
                continue;
            }
        };
        let tenure = Arc::new(Tenure::new(epoch, until, settings.heed_lease));
        if settings.fence == Fence::Admission
            && let Err(error) = old_is_refused(&client, &settings, &tenure).await
        {
            trouble("fence", error);
            continue;
        }
        if !tell(Election::Leads(tenure.clone())) {
            return;
        }
        while !tenure.over.load(Ordering::Acquire) {
            tokio::time::sleep(settings.lease.retry).await;
            let before = Instant::now();
            match try_for(&leases, &settings, &mut seen).await {
                Ok(true) => tenure.extend(before + settings.lease.renew),
                Ok(false) => break,
                Err(error) => trouble("lease", error),
            }
            if settings.heed_lease && !tenure.lasts() {
                break;
            }
        }
        tenure.end();
        if !tell(Election::Follows) {
            return;
        }
    }
}

/// The lease as it was last seen to change, and when.
#[derive(Debug, Default)]
struct Observed {
    version: Option<String>,
    at: Option<Instant>,
}

impl Observed {
    /// What to write into the lease as it is found; `None` while another holds
    /// it.
    fn judge(&mut self, found: &Lease, settings: &Settings, now: Moment) -> Option<LeaseSpec> {
        if self.version != found.metadata.resource_version {
            let version = found.metadata.resource_version.clone();
            *self = Self { version, at: Some(now.steady) };
        }
        let empty = LeaseSpec::default();
        let spec = found.spec.as_ref().unwrap_or(&empty);
        let holder = spec.holder_identity.as_deref().unwrap_or_default();
        let transitions = spec.lease_transitions.unwrap_or(0);
        if holder == settings.identity {
            return Some(mine(settings, now, transitions, spec.acquire_time.clone()));
        }
        let lasts = spec.lease_duration_seconds.map_or(settings.lease.lasts, |secs| {
            Duration::from_secs(u64::try_from(secs).unwrap_or(0)).max(settings.lease.lasts)
        });
        let unchanged = self.at.map(|at| now.steady.saturating_duration_since(at));
        if !holder.is_empty() && unchanged.is_some_and(|u| u < lasts) {
            return None;
        }
        Some(mine(settings, now, transitions.saturating_add(1), None))
    }
}

/// The lease as its holder writes it.
fn mine(
    settings: &Settings,
    now: Moment,
    transitions: i32,
    acquired: Option<MicroTime>,
) -> LeaseSpec {
    let wall = MicroTime(now.wall);
    LeaseSpec {
        holder_identity: Some(settings.identity.clone()),
        lease_duration_seconds: i32::try_from(settings.lease.lasts.as_secs().max(1)).ok(),
        acquire_time: acquired.or_else(|| Some(wall.clone())),
        renew_time: Some(wall),
        lease_transitions: Some(transitions),
        ..LeaseSpec::default()
    }
}

/// Takes or renews the lease; `false` while another holds it.
async fn try_for(
    leases: &Api<Lease>,
    settings: &Settings,
    seen: &mut Observed,
) -> Result<bool, String> {
    let name = &*settings.scheduler_name;
    let limit = settings.lease.renew / 2;
    let known = within(limit, leases.get_opt(name)).await.map_err(|v| format!("{v:?}"))?;
    let now = Moment::now();
    let Some(mut lease) = known else {
        let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
        let lease = Lease { metadata, spec: Some(mine(settings, now, 0, None)) };
        let made = within(limit, leases.create(&PostParams::default(), &lease)).await;
        return made.map(|_| true).map_err(|v| format!("{v:?}"));
    };
    let Some(spec) = seen.judge(&lease, settings, now) else { return Ok(false) };
    lease.spec = Some(spec);
    // With the version that was read: who loses the race is told 409.
    let won = within(limit, leases.replace(name, &PostParams::default(), &lease)).await;
    match won {
        Ok(_) => Ok(true),
        Err(crate::api::Verdict::No(409, _)) => Ok(false),
        Err(verdict) => Err(format!("{verdict:?}")),
    }
}

/// Gives the lease back, so that the next one need not wait.
pub async fn release(client: &Client, settings: &Settings) {
    let leases: Api<Lease> = Api::namespaced(client.clone(), &settings.namespace);
    let name = &*settings.scheduler_name;
    let Ok(Some(mut lease)) = within(settings.timeout, leases.get_opt(name)).await else { return };
    if let Some(spec) = &mut lease.spec
        && spec.holder_identity.as_deref() == Some(&settings.identity)
    {
        spec.holder_identity = Some(String::new());
        // Whoever cannot give it back lets it run out.
        let _ =
            within(settings.timeout, leases.replace(name, &PostParams::default(), &lease)).await;
    }
}

/// Makes the epoch one greater. It has an object of its own: a lease that is
/// deleted would begin anew.
async fn next_epoch(client: &Client, settings: &Settings) -> Result<u64, String> {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), &settings.namespace);
    let params = PostParams::default();
    let told = |v| format!("{v:?}");
    let known = within(settings.timeout, maps.get_opt(EPOCH_OBJECT)).await.map_err(told)?;
    let epoch = |map: &ConfigMap| -> Result<u64, String> {
        let text = map.data.as_ref().and_then(|d| d.get("epoch"));
        let text = text.ok_or_else(|| format!("{EPOCH_OBJECT} has no epoch"))?;
        text.parse().map_err(|_| format!("{EPOCH_OBJECT}: {text:?} is no epoch"))
    };
    let data = |n: u64| Some(BTreeMap::from([("epoch".to_owned(), n.to_string())]));
    if let Some(mut map) = known {
        let next = epoch(&map)? + 1;
        map.data = data(next);
        within(settings.timeout, maps.replace(EPOCH_OBJECT, &params, &map)).await.map_err(told)?;
        return Ok(next);
    }
    let metadata = ObjectMeta { name: Some(EPOCH_OBJECT.to_owned()), ..ObjectMeta::default() };
    let map = ConfigMap { metadata, data: data(1), ..ConfigMap::default() };
    within(settings.timeout, maps.create(&params, &map)).await.map_err(told)?;
    Ok(1)
}

/// Asks without doing until the API server refuses the epoch before ours.
async fn old_is_refused(
    client: &Client,
    settings: &Settings,
    tenure: &Tenure,
) -> Result<(), String> {
    let mut pause = Backoff::default();
    while tenure.lasts() {
        let old = tenure.epoch.saturating_sub(1);
        let answer = crate::bind::dry_run(client, &settings.namespace, old, settings.timeout).await;
        match answer {
            // Whether the pod exists is looked at after admission.
            Err(crate::api::Verdict::No(code, _)) if code != 404 => return Ok(()),
            Err(_) | Ok(()) => {
                tokio::time::sleep(pause.grow()).await;
            }
        }
    }
    Err("the API server does not refuse an older epoch: is fence-at-admission.yaml applied?".into())
}

#[cfg(test)]
#[path = "lease_tests.rs"]
mod tests;
