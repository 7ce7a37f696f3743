//! Delivers what is in the outbox.
//!
//! Redirects are not followed and no proxy is used, so a request goes where
//! the configuration says. Addresses of the own network are allowed: only who
//! writes the configuration names receivers, and most stand there.

use super::{Hook, Hooks};
use crate::books::{Books, now};
use crate::metrics::Metrics;
use crate::system::System;
use crater_store::{Letter, Reader};
use ring::hmac;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

/// Longest that a receiver may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often a delivery is tried: over about an hour and a half.
const TRIES: u32 = 16;
/// Longest pause between two tries.
const LONGEST: Duration = Duration::from_mins(10);
/// Notifications read at once.
const PAGE: u32 = 32;
/// The configuration is looked at this often.
const LOOK: Duration = Duration::from_secs(1);

/// Keeps a sending thread for each webhook that is configured.
pub fn start(system: &Arc<System>) -> std::io::Result<()> {
    let hooks = system.hooks.clone();
    let system = Arc::downgrade(system);
    std::thread::Builder::new().name("webhooks".into()).spawn(move || {
        let mut threads: BTreeMap<String, JoinHandle<()>> = BTreeMap::new();
        let mut heard = 0;
        loop {
            threads.retain(|_, thread| !thread.is_finished());
            for hook in hooks.all().iter() {
                if threads.contains_key(&hook.url) {
                    continue;
                }
                let (url, system) = (hook.url.clone(), system.clone());
                let name = format!("webhook {}", threads.len());
                let thread = std::thread::Builder::new().name(name);
                match thread.spawn(move || send(&system, &url)) {
                    Ok(thread) => drop(threads.insert(hook.url.clone(), thread)),
                    Err(error) => tracing::error!(%error, "a webhook has no thread"),
                }
            }
            heard = hooks.wait(heard, LOOK);
            if system.strong_count() == 0 {
                return;
            }
        }
    })?;
    Ok(())
}

/// Sends until the webhook is not configured any more or the server stops.
fn send(system: &Weak<System>, url: &str) {
    let agent = agent();
    let mut reader: Option<Reader> = None;
    let mut heard = 0;
    loop {
        let Some(system) = system.upgrade() else { return };
        let all = system.hooks.all();
        let Some(hook) = all.iter().find(|hook| hook.url == url) else { return };
        let letters = match &reader {
            Some(reader) => reader.letters(url, PAGE).map_err(|error| error.to_string()),
            None => match system.reader() {
                Ok(new) => {
                    let letters = new.letters(url, PAGE).map_err(|error| error.to_string());
                    reader = Some(new);
                    letters
                }
                Err(error) => Err(error.to_string()),
            },
        };
        let letters = letters.unwrap_or_else(|error| {
            tracing::warn!(%error, "the outbox cannot be read");
            vec![]
        });
        let mut sent = false;
        for letter in letters.iter().filter(|letter| letter.due <= now()) {
            sent = true;
            if !deliver(&system.books, &system.metrics, &agent, hook, letter) {
                return;
            }
        }
        let pause = letters.first().map_or(LOOK, |letter| (letter.due - now()).min(LOOK));
        let hooks: Arc<Hooks> = system.hooks.clone();
        drop(system);
        if !sent {
            heard = hooks.wait(heard, pause.max(Duration::from_millis(10)));
        }
    }
}

/// Tries once and notes how it went; `false` once the server stops.
fn deliver(
    books: &Books,
    metrics: &Metrics,
    agent: &ureq::Agent,
    hook: &Hook,
    letter: &Letter,
) -> bool {
    let outcome = attempt(agent, hook, letter);
    let count = |result: &str| {
        metrics.webhooks.get_or_create(&[("result", result.to_owned())]).inc();
    };
    let letter = letter.clone();
    let noted = match outcome {
        Ok(()) => {
            count("delivered");
            books.change_blocking(move |writer| {
                let now = writer.now;
                writer.store().delivered(&letter, now)
            })
        }
        Err((error, lasting)) => {
            let tries = letter.attempts + 1;
            let given_up = lasting || tries >= TRIES;
            count(if given_up { "given-up" } else { "failed" });
            tracing::warn!(webhook = %shown(&hook.url), delivery = letter.id, tries, given_up, %error,
                "a notification was not delivered");
            books.change_blocking(move |writer| {
                let now = writer.now;
                let again = (!given_up).then(|| now + pause(tries));
                writer.store().undelivered(&letter, &error, now, again)
            })
        }
    };
    match noted {
        Ok(Ok(())) => true,
        Ok(Err(error)) => {
            tracing::error!(%error, "a delivery is not noted");
            true
        }
        Err(_) => false,
    }
}

/// How long to wait after so many tries: a second, doubling.
fn pause(tries: u32) -> Duration {
    let doubled = 1_u64.checked_shl(tries.saturating_sub(1)).unwrap_or(u64::MAX);
    Duration::from_secs(doubled).min(LONGEST)
}

fn agent() -> ureq::Agent {
    ureq::Agent::config_builder()
        .http_status_as_error(false)
        .max_redirects(0)
        .proxy(None)
        .timeout_global(Some(PATIENCE))
        .user_agent(concat!("crater/", env!("CARGO_PKG_VERSION")))
        .build()
        .new_agent()
}

/// Sends one; or why it did not arrive, and whether it never will.
fn attempt(agent: &ureq::Agent, hook: &Hook, letter: &Letter) -> Result<(), (String, bool)> {
    let time = now().secs().to_string();
    let mut request = agent
        .post(&hook.url)
        .header("content-type", "application/json")
        .header("x-crater-event", &letter.event)
        .header("x-crater-delivery", letter.id.to_string())
        .header("x-crater-timestamp", &time);
    if let Some(secret) = &hook.secret {
        let signed = signature(secret, &time, &letter.body);
        request = request.header("x-crater-signature", format!("sha256={signed}"));
    }
    match request.send(&letter.body) {
        Ok(answer) if answer.status().is_success() => Ok(()),
        // The receiver says that it is gone for good.
        Ok(answer) => Err((format!("it answered {}", answer.status()), answer.status() == 410)),
        Err(error) => Err((error.to_string().chars().take(300).collect(), false)),
    }
}

/// HMAC-SHA256 of `TIMESTAMP.BODY` in hexadecimal digits. The time is signed,
/// too, so that a receiver can refuse what somebody sends again later.
pub fn signature(secret: &str, time: &str, body: &str) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    let tag = hmac::sign(&key, format!("{time}.{body}").as_bytes());
    tag.as_ref().iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// An address without what may be secret in it: its path and query.
fn shown(url: &str) -> &str {
    let host = url.find("://").map_or(0, |at| at + 3);
    url[host..].find('/').map_or(url, |at| &url[..host + at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_what_other_libraries_compute() {
        // python3: hmac.new(b"secret", b'1700000000.{"event":"end"}', hashlib.sha256)
        assert_eq!(
            signature("secret", "1700000000", r#"{"event":"end"}"#),
            "5efc2e6bd816a38ea4fdae088c7a004b37db7fb94f14598fd64674a1b539df7d"
        );
    }

    #[test]
    fn pauses_double_up_to_ten_minutes() {
        assert_eq!([1, 2, 5, 16, 99].map(|n| pause(n).as_secs()), [1, 2, 16, 600, 600]);
        assert_eq!(shown("https://h.example/a?token=x"), "https://h.example");
        assert_eq!(shown("https://h.example"), "https://h.example");
    }
}
