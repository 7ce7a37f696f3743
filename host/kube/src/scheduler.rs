//! The process: watches and the election on a runtime, one thread that keeps
//! the books and decides.

use crate::api::{Throttle, connect};
use crate::bind::Binder;
use crate::cache::{Cache, Sight};
use crate::claims::{Claims, ClaimsSeen};
use crate::leader::{Done, Hands, Leader};
use crate::lease::{self, Election, Tenure};
use crate::machine::{InventorySeen, NodeSeen};
use crate::objects::{NodeClaims, NodeInventory};
use crate::pod::PodSeen;
use crate::say;
use crate::settings::Settings;
use crate::stats::Stats;
use crate::watch::{Feed, Keep, follow};
use crater_engine::Refusal;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Client;
use kube::api::Api;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;
use thiserror::Error;
use tokio::runtime::{Handle, Runtime};
use tokio::sync::watch;

/// Why a scheduler ended.
#[derive(Debug, Error)]
pub enum ServeError {
    /// There is no runtime.
    #[error("threads cannot be started")]
    Runtime(#[source] std::io::Error),
    /// There is no client.
    #[error("the cluster cannot be reached")]
    Connect(#[from] crate::api::ConnectError),
    /// The books refused what they must take: a queue, or a defect.
    #[error("the books cannot be kept")]
    Books(#[from] Refusal),
}

/// What reaches the thread of the books.
#[derive(Debug)]
enum News {
    Sight(Sight),
    Election(Election),
    Done(u64, Done),
    Trouble(&'static str, String),
    Stop,
}

/// Ends a scheduler from elsewhere.
#[derive(Clone, Debug)]
pub struct Stopper(Sender<News>);

impl Stopper {
    /// Lets it give its lease back and end.
    pub fn stop(&self) {
        // It may have ended by itself.
        let _ = self.0.send(News::Stop);
    }
}

/// A scheduler that was made and does not run yet.
#[derive(Debug)]
pub struct Scheduler {
    settings: Arc<Settings>,
    /// Its counts.
    pub stats: Arc<Stats>,
    sender: Sender<News>,
    receiver: Receiver<News>,
}

/// Requests for lists, by kind: pods, nodes, inventories, claims.
type Wanted = [watch::Sender<u64>; 4];

impl Scheduler {
    /// One as the settings say.
    pub fn new(settings: Settings) -> Self {
        let (sender, receiver) = channel();
        Self { settings: Arc::new(settings), stats: Arc::default(), sender, receiver }
    }

    /// What ends it.
    pub fn stopper(&self) -> Stopper {
        Stopper(self.sender.clone())
    }

    /// Runs until it is stopped.
    pub fn run(self) -> Result<(), ServeError> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("crater-kube")
            .enable_all()
            .build()
            .map_err(ServeError::Runtime)?;
        let client = runtime.block_on(connect(&self.settings))?;
        let wanted: Wanted = std::array::from_fn(|_| watch::channel(0).0);
        self.follow_all(&runtime, &client, &wanted);
        let hands = self.hands(&runtime, &client);
        if self.settings.stop_on_signals {
            runtime.spawn(stop_on_signals(self.stopper()));
        }
        self.contend(&runtime, client.clone());
        let mut books = Books {
            settings: self.settings.clone(),
            stats: self.stats.clone(),
            hands,
            cache: Cache::default(),
            wanted,
            part: Part::Stands,
        };
        let ended = books.keep(&self.receiver);
        if matches!(books.part, Part::Leads(_)) {
            books.step_down();
            runtime.block_on(lease::release(&client, &self.settings));
        }
        runtime.shutdown_background();
        ended
    }

    fn follow_all(&self, runtime: &Runtime, client: &Client, wanted: &Wanted) {
        let keep = |what, which: usize| Keep {
            what,
            wanted: wanted[which].subscribe(),
            resync: self.settings.resync,
            timeout: self.settings.timeout,
        };
        let defaults = self.settings.defaults();
        let pod = move |p: &Pod| Arc::new(PodSeen::new(p, &defaults));
        let (api, tell, trouble) =
            (Api::<Pod>::all(client.clone()), self.tell(Sight::Pods), self.trouble());
        runtime.spawn(follow(api, keep("pods", 0), pod, tell, trouble));
        let (api, tell, trouble) =
            (Api::<Node>::all(client.clone()), self.tell(Sight::Nodes), self.trouble());
        runtime.spawn(follow(api, keep("nodes", 1), NodeSeen::new, tell, trouble));
        let (api, tell, trouble) = (
            Api::<NodeInventory>::all(client.clone()),
            self.tell(Sight::Inventories),
            self.trouble(),
        );
        runtime.spawn(follow(api, keep("nodeinventories", 2), InventorySeen::new, tell, trouble));
        let (api, tell, trouble) =
            (Api::<NodeClaims>::all(client.clone()), self.tell(Sight::Claims), self.trouble());
        runtime.spawn(follow(api, keep("nodeclaims", 3), ClaimsSeen::new, tell, trouble));
    }

    fn tell<T: Send + 'static>(
        &self,
        sight: fn(Feed<T>) -> Sight,
    ) -> impl FnMut(Feed<T>) -> bool + Send + 'static {
        let (sender, stats) = (self.sender.clone(), self.stats.clone());
        move |feed| {
            stats.lists.fetch_add(u64::from(matches!(feed, Feed::All(..))), Ordering::Relaxed);
            sender.send(News::Sight(sight(feed))).is_ok()
        }
    }

    fn trouble(&self) -> impl FnMut(&'static str, String) + Send + 'static {
        let (sender, stats) = (self.sender.clone(), self.stats.clone());
        move |what, text| {
            stats.watch_errors.fetch_add(1, Ordering::Relaxed);
            // Nobody listens any more at the end.
            let _ = sender.send(News::Trouble(what, text));
        }
    }

    fn contend(&self, runtime: &Runtime, client: Client) {
        let (sender, settings) = (self.sender.clone(), self.settings.clone());
        let tell = move |election| sender.send(News::Election(election)).is_ok();
        runtime.spawn(lease::contend(client, settings, tell, self.trouble()));
    }

    fn hands(&self, runtime: &Runtime, client: &Client) -> Hands {
        let settings = &self.settings;
        let throttle = Arc::new(Throttle::new(settings));
        let (words, heard) = tokio::sync::mpsc::channel(20_000);
        runtime.spawn(say::tell(
            client.clone(),
            throttle.clone(),
            settings.scheduler_name.clone(),
            settings.timeout,
            self.stats.clone(),
            heard,
        ));
        let sender = self.sender.clone();
        let handle: Handle = runtime.handle().clone();
        Hands {
            runtime: handle,
            claims: Claims {
                client: client.clone(),
                throttle: throttle.clone(),
                timeout: settings.timeout,
                defaults: Arc::new(settings.defaults()),
            },
            binder: Binder {
                client: client.clone(),
                throttle,
                timeout: settings.timeout,
                stats: self.stats.clone(),
            },
            words,
            done: Arc::new(move |epoch, done| {
                // Nobody listens any more at the end.
                let _ = sender.send(News::Done(epoch, done));
            }),
        }
    }
}

async fn stop_on_signals(stopper: Stopper) {
    use tokio::signal::unix::{SignalKind, signal};
    // Where no handler can be set, the default ends the process.
    let Ok(mut terminate) = signal(SignalKind::terminate()) else { return };
    tokio::select! {
        _ = terminate.recv() => {}
        _ = tokio::signal::ctrl_c() => {}
    }
    stopper.stop();
}

/// What this process does at present.
enum Part {
    /// It stands by.
    Stands,
    /// It leads once everything has been listed since: claims first, then the
    /// rest. A promise that is taken out between the two was of a pod that the
    /// second list shows bound.
    Lists { tenure: Arc<Tenure>, claims: u64, rest: Option<[u64; 3]> },
    /// It leads.
    Leads(Box<Leader>),
}

struct Books {
    settings: Arc<Settings>,
    stats: Arc<Stats>,
    hands: Hands,
    cache: Cache,
    wanted: Wanted,
    part: Part,
}

impl Books {
    fn keep(&mut self, news: &Receiver<News>) -> Result<(), ServeError> {
        loop {
            let mut next = match news.recv_timeout(Duration::from_millis(250)) {
                Ok(news) => Some(news),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            };
            // All that came meanwhile, within bounds, before deciding once.
            for _ in 0..4096 {
                let Some(one) = next.take() else { break };
                if matches!(one, News::Stop) {
                    return Ok(());
                }
                self.hear(one);
                next = news.try_recv().ok();
            }
            self.advance()?;
            if let Some(news) = next {
                self.hear(news);
            }
        }
    }

    fn hear(&mut self, news: News) {
        match news {
            News::Sight(sight) => {
                let changes = self.cache.see(sight);
                // Who leads no more learns no more: its books are made anew
                // before they count again, and beside promises that nobody
                // carries out a successor's bindings look like too many.
                if let Part::Leads(leader) = &mut self.part
                    && leader.tenure.lasts()
                {
                    for change in changes {
                        leader.change(change);
                    }
                }
            }
            News::Election(Election::Leads(tenure)) => {
                (self.settings.log)(&format!("leads with epoch {}", tenure.epoch));
                self.stats.epoch.store(tenure.epoch, Ordering::Relaxed);
                let claims = self.list(3);
                self.part = Part::Lists { tenure, claims, rest: None };
            }
            News::Election(Election::Follows) => self.step_down(),
            News::Done(epoch, done) => {
                if let Part::Leads(leader) = &mut self.part
                    && leader.tenure.epoch == epoch
                {
                    leader.done(done);
                }
            }
            News::Trouble(what, text) => (self.settings.log)(&format!("{what}: {text}")),
            News::Stop => {}
        }
    }

    fn step_down(&mut self) {
        if let Part::Leads(leader) = &self.part {
            leader.tenure.end();
            leader.count();
            if let Some(take) = &self.settings.books {
                take(&leader.mirror.figures());
            }
        }
        (self.settings.log)("stands by");
        self.part = Part::Stands;
    }

    /// Asks for a list; the number by which it is known.
    fn list(&self, which: usize) -> u64 {
        let mut number = 0;
        self.wanted[which].send_modify(|n| {
            *n += 1;
            number = *n;
        });
        number
    }

    fn advance(&mut self) -> Result<(), ServeError> {
        match &mut self.part {
            Part::Stands => Ok(()),
            Part::Lists { claims, rest: None, .. } => {
                let claims = *claims;
                if self.cache.listed[3].is_some_and(|l| l >= claims) {
                    let asked = [self.list(0), self.list(1), self.list(2)];
                    if let Part::Lists { rest, .. } = &mut self.part {
                        *rest = Some(asked);
                    }
                }
                Ok(())
            }
            Part::Lists { tenure, claims, rest: Some([pods, nodes, inventories]) } => {
                if !self.cache.has_listed([*pods, *nodes, *inventories, *claims]) {
                    return Ok(());
                }
                let tenure = tenure.clone();
                let (settings, stats) = (self.settings.clone(), self.stats.clone());
                let hands = self.hands.clone();
                let leader = Leader::new(settings, stats, hands, tenure, &self.cache)?;
                let (pods, nodes) = (self.cache.pods.len(), self.cache.nodes.len());
                (self.settings.log)(&format!("decides: {nodes} nodes, {pods} pods"));
                self.part = Part::Leads(Box::new(leader));
                self.advance()
            }
            Part::Leads(leader) => {
                leader.round()?;
                leader.count();
                Ok(())
            }
        }
    }
}
