//! Talking to the API server: the client, its limits, and what an answer means.

use crate::settings::Settings;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use std::sync::Mutex;
use std::time::{Duration, Instant};
use thiserror::Error;
use tokio::sync::Semaphore;

/// Why there is no client.
#[derive(Debug, Error)]
pub enum ConnectError {
    /// The file cannot be used.
    #[error("kubeconfig {path}")]
    Kubeconfig {
        /// The file.
        path: String,
        /// Why.
        #[source]
        source: kube::config::KubeconfigError,
    },
    /// Neither a kubeconfig nor a pod's account was found.
    #[error("no kubeconfig and no service account")]
    Infer(#[source] kube::config::InferConfigError),
    /// What it says cannot be used.
    #[error("the client cannot be made")]
    Client(#[source] kube::Error),
}

/// Connects as the settings say.
pub async fn connect(settings: &Settings) -> Result<Client, ConnectError> {
    let mut config = match &settings.kubeconfig {
        Some(path) => {
            let bad =
                |source| ConnectError::Kubeconfig { path: path.display().to_string(), source };
            let file = Kubeconfig::read_from(path).map_err(bad)?;
            Config::from_custom_kubeconfig(file, &KubeConfigOptions::default())
                .await
                .map_err(bad)?
        }
        None => Config::infer().await.map_err(ConnectError::Infer)?,
    };
    // An unknown outcome is read back by us, never repeated behind our back.
    config.default_retry = false;
    config.connect_timeout = Some(settings.timeout);
    Client::try_from(config).map_err(ConnectError::Client)
}

/// What an error says about whether something happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It did not happen, and why; the code is HTTP's.
    No(u16, String),
    /// It may have happened, or may yet.
    Unknown(String),
}

/// Reads an error. Only what the API server says about the request itself is a
/// no: time-outs, overload and broken connections are unknown.
pub fn verdict(error: &kube::Error) -> Verdict {
    match error {
        kube::Error::Api(status) => match status.code {
            code @ 400..=499 if !matches!(code, 408 | 429) => {
                Verdict::No(code, status.message.clone())
            }
            code => Verdict::Unknown(format!("{code} {}", status.message)),
        },
        kube::Error::BuildRequest(_) | kube::Error::HttpError(_) => {
            Verdict::No(0, error.to_string())
        }
        other => Verdict::Unknown(other.to_string()),
    }
}

/// Waits for an answer at most so long.
pub async fn within<T>(
    limit: Duration,
    request: impl Future<Output = Result<T, kube::Error>>,
) -> Result<T, Verdict> {
    match tokio::time::timeout(limit, request).await {
        Ok(answer) => answer.map_err(|e| verdict(&e)),
        Err(_) => Err(Verdict::Unknown(format!("no answer within {} ms", limit.as_millis()))),
    }
}

/// Bounds requests: so many a second with a burst, so many under way.
#[derive(Debug)]
pub struct Throttle {
    interval: Duration,
    burst: Duration,
    /// When the next request would come if they came evenly.
    next: Mutex<Option<Instant>>,
    under_way: Semaphore,
}

impl Throttle {
    /// Bounds as the settings say.
    pub fn new(settings: &Settings) -> Self {
        let interval = Duration::from_secs_f64(1.0 / settings.qps.max(0.001));
        Self {
            interval,
            burst: interval * settings.burst,
            next: Mutex::new(None),
            under_way: Semaphore::new(settings.in_flight.max(1)),
        }
    }

    /// Waits for a turn; it lasts until what is returned is dropped.
    pub async fn turn(&self) -> tokio::sync::SemaphorePermit<'_> {
        let permit = self.under_way.acquire().await.expect("it is never closed");
        let now = Instant::now();
        let at = {
            let mut next = self.next.lock().expect("nothing panics with it");
            let even = next.map_or(now, |n| n.max(now));
            *next = Some(even + self.interval);
            even.checked_sub(self.burst).unwrap_or(now)
        };
        if at > now {
            tokio::time::sleep_until(at.into()).await;
        }
        permit
    }
}
