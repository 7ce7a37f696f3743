//! A list and what follows it, for one kind of object.
//!
//! Every list is a consistent read (no version given), so a list that is asked
//! for after something happened shows it. A watch that ends is taken up where
//! it was; one whose history is gone (410) begins with a list, and what the
//! list does not hold any more is gone. Errors are told, never swallowed.

use crate::api::{Verdict, within};
use futures_util::{StreamExt, pin_mut};
use kube::api::{Api, ListParams, WatchEvent, WatchParams};
use serde::de::DeserializeOwned;
use std::fmt::Debug;
use std::time::Duration;
use tokio::sync::watch::Receiver;
use tokio::time::Instant;

/// What is seen of objects of one kind.
#[derive(Debug)]
pub enum Feed<T> {
    /// All that there are; whatever is not among them is gone. The number is
    /// that of the last request for a list when this one began.
    All(Vec<T>, u64),
    /// One appeared or changed.
    One(T),
    /// One is gone.
    Gone(T),
}

/// How a watch is kept.
#[derive(Clone, Debug)]
pub struct Keep {
    /// The kind, for messages.
    pub what: &'static str,
    /// A greater number asks for a list at once.
    pub wanted: Receiver<u64>,
    /// How often to list anyway.
    pub resync: Duration,
    /// How long an answer may take.
    pub timeout: Duration,
}

/// Objects in one answer of a list.
const PAGE: u32 = 500;

/// Lists and watches for ever. `tell` gets what is seen in order; `trouble`
/// what went wrong. Ends when `tell` says that nobody listens.
pub async fn follow<K, T>(
    api: Api<K>,
    keep: Keep,
    convert: impl Fn(&K) -> T,
    mut tell: impl FnMut(Feed<T>) -> bool,
    mut trouble: impl FnMut(&'static str, String),
) where
    K: Clone + DeserializeOwned + Debug + kube::Resource,
{
    let mut wanted = keep.wanted.clone();
    let mut pause = Backoff::default();
    loop {
        let asked = *wanted.borrow_and_update();
        let (all, version) = match list(&api, &keep, &convert).await {
            Ok(found) => found,
            Err(verdict) => {
                trouble(keep.what, format!("list: {verdict:?}"));
                tokio::time::sleep(pause.grow()).await;
                continue;
            }
        };
        pause = Backoff::default();
        if !tell(Feed::All(all, asked)) {
            return;
        }
        let mut version = version;
        let resync = Instant::now() + keep.resync;
        // From here on a reason to list again ends the loop.
        loop {
            let params = WatchParams { bookmarks: true, ..WatchParams::default() }.timeout(280);
            let stream = tokio::select! {
                stream = within(keep.timeout, api.watch(&params, &version)) => stream,
                _ = wanted.changed() => break,
            };
            let stream = match stream {
                Ok(stream) => stream,
                Err(Verdict::No(410, _)) => break,
                Err(verdict) => {
                    trouble(keep.what, format!("watch: {verdict:?}"));
                    tokio::time::sleep(pause.grow()).await;
                    continue;
                }
            };
            pin_mut!(stream);
            let end = loop {
                let event = tokio::select! {
                    event = stream.next() => event,
                    _ = wanted.changed() => break End::List,
                    () = tokio::time::sleep_until(resync) => break End::List,
                };
                let (object, gone) = match event {
                    Some(Ok(WatchEvent::Added(o) | WatchEvent::Modified(o))) => (o, false),
                    Some(Ok(WatchEvent::Deleted(o))) => (o, true),
                    Some(Ok(WatchEvent::Bookmark(b))) => {
                        version = b.metadata.resource_version;
                        continue;
                    }
                    Some(Ok(WatchEvent::Error(status))) => {
                        if status.code != 410 {
                            trouble(
                                keep.what,
                                format!("watch: {} {}", status.code, status.message),
                            );
                        }
                        // Also without a version to go on from: the list has one.
                        break End::List;
                    }
                    Some(Err(error)) => {
                        trouble(keep.what, format!("watch: {error}"));
                        break End::Again;
                    }
                    None => break End::Again,
                };
                pause = Backoff::default();
                if let Some(new) = &object.meta().resource_version {
                    version.clone_from(new);
                }
                let seen = convert(&object);
                if !tell(if gone { Feed::Gone(seen) } else { Feed::One(seen) }) {
                    return;
                }
            };
            if end == End::List {
                break;
            }
            tokio::time::sleep(pause.grow()).await;
        }
    }
}

#[derive(PartialEq, Eq)]
enum End {
    List,
    Again,
}

/// All objects, page by page of one moment, and that moment's version.
async fn list<K, T>(
    api: &Api<K>,
    keep: &Keep,
    convert: &impl Fn(&K) -> T,
) -> Result<(Vec<T>, String), Verdict>
where
    K: Clone + DeserializeOwned + Debug,
{
    let mut all = vec![];
    let mut token: Option<String> = None;
    loop {
        let params =
            ListParams { limit: Some(PAGE), continue_token: token, ..ListParams::default() };
        let page = within(keep.timeout, api.list(&params)).await?;
        all.extend(page.items.iter().map(convert));
        token = page.metadata.continue_.filter(|t| !t.is_empty());
        if token.is_none() {
            return Ok((all, page.metadata.resource_version.unwrap_or_default()));
        }
    }
}

/// Waits that grow to some seconds.
#[derive(Debug)]
pub struct Backoff(Duration);

impl Default for Backoff {
    fn default() -> Self {
        Self(Duration::from_millis(20))
    }
}

impl Backoff {
    /// The next wait.
    pub fn grow(&mut self) -> Duration {
        let wait = self.0;
        self.0 = (wait * 2).min(Duration::from_secs(5));
        wait
    }
}
