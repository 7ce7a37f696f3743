//! The ledger thread: the one writer of the books.
//!
//! Commands are functions that the thread runs in the order they came. It runs
//! as many as wait, makes them durable with one synced commit, publishes the
//! books and only then answers. Nothing is acknowledged or executed that is
//! not on the disk, and a commit costs the same for one command as for many.

use crate::chronicle::Chronicle;
use crate::metrics::Metrics;
use crate::view::{Board, View};
use arc_swap::ArcSwap;
use crater_engine::ledger::JournalError;
use crater_engine::{Journal, Ledger, State};
use crater_model::event::Entry;
use crater_model::{JobUid, Time};
use crater_store::{Store, StoreError};
use std::sync::{Arc, Condvar, Mutex, PoisonError, mpsc as std_mpsc};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use thiserror::Error;
use tokio::sync::{mpsc, oneshot, watch};

/// Most commands of one durable step: bounds what an answer waits for.
const BATCH: usize = 1024;
/// Commands that may wait before senders do.
const WAITING: usize = 16_384;

/// The ledger thread is gone, or too much waits for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Unavailable {
    /// It ended: the server is stopping.
    #[error("the server is stopping")]
    Stopping,
    /// More commands wait than may.
    #[error("too many changes wait to be written; try again")]
    Busy,
}

/// The journal as the ledger writes it: into the store, and noted for those who
/// follow.
#[derive(Debug)]
pub struct Noted {
    store: Store,
    chronicle: Chronicle,
    batch: Vec<Entry>,
}

impl Journal for Noted {
    fn append(&mut self, entries: &[Entry]) -> Result<(), JournalError> {
        self.store.append(entries)?;
        self.batch.extend_from_slice(entries);
        Ok(())
    }

    fn applied(&mut self, state: &State, entry: &Entry, jobs: &[JobUid]) {
        self.store.applied(state, entry, jobs);
        if let Err(error) = self.chronicle.note(&mut self.store, state, entry, jobs) {
            // The store takes nothing more after that: the next sync fails, too.
            tracing::error!(%error, "the store failed");
        }
    }
}

impl Noted {
    /// Makes all of it durable.
    fn sync(&mut self) -> Result<(), StoreError> {
        self.chronicle.sync(&mut self.store)?;
        self.store.sync()
    }
}

/// What a command works on.
pub struct Writer<'a> {
    /// Now.
    pub now: Time,
    /// The books.
    pub ledger: &'a mut Ledger<Noted>,
}

impl Writer<'_> {
    /// The store, for what belongs into the same durable step.
    pub fn store(&mut self) -> &mut Store {
        &mut self.ledger.journal_mut().store
    }

    /// The books as they stand.
    pub fn state(&self) -> &State {
        self.ledger.state()
    }

    /// Counts what tenants hold up to now.
    pub fn mark_usage(&mut self) -> Result<(), StoreError> {
        let state = self.ledger.state().clone();
        let Noted { store, chronicle, .. } = self.ledger.journal_mut();
        chronicle.mark(store, &state, self.now)
    }
}

/// Answers once the command is durable.
type Answer = Box<dyn FnOnce() + Send>;
type Command = Box<dyn FnOnce(&mut Writer<'_>) -> Answer + Send>;

/// What happened in one durable step, in order.
pub type Batch = Arc<Vec<Entry>>;

/// Sends commands to the ledger thread and reads what it published. Cheap to
/// clone.
#[derive(Clone)]
pub struct Books {
    commands: mpsc::Sender<Command>,
    view: Arc<ArcSwap<View>>,
    changed: watch::Receiver<u64>,
    followers: Arc<Mutex<Vec<std_mpsc::Sender<Batch>>>>,
    bell: Arc<Bell>,
    board: Arc<Board>,
}

/// Wakes threads that wait for a publication.
#[derive(Default)]
struct Bell {
    seq: Mutex<u64>,
    rung: Condvar,
}

/// The wall clock as a value.
pub fn now() -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    Time(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

impl Books {
    /// Starts the thread on recovered books.
    pub fn start(
        store: Store,
        state: State,
        chronicle: Chronicle,
        metrics: Arc<Metrics>,
    ) -> std::io::Result<Self> {
        let (commands, waiting) = mpsc::channel(WAITING);
        let view = Arc::new(ArcSwap::from_pointee(View::new(state.clone())));
        let (tell, changed) = watch::channel(state.seq);
        let followers = Arc::default();
        let books = Self {
            commands,
            view: Arc::clone(&view),
            changed,
            followers: Arc::clone(&followers),
            bell: Arc::default(),
            board: Arc::default(),
        };
        let bell = books.bell.clone();
        let ledger = Ledger::resume(Noted { store, chronicle, batch: vec![] }, state);
        let thread = Thread { ledger, waiting, view, tell, followers, bell, metrics };
        std::thread::Builder::new().name("ledger".into()).spawn(move || thread.run())?;
        Ok(books)
    }

    /// What was published last.
    pub fn view(&self) -> Arc<View> {
        self.view.load_full()
    }

    /// Why each waiting job waits, as last decided.
    pub fn board(&self) -> &Arc<Board> {
        &self.board
    }

    /// Tells of each publication: the sequence of the books.
    pub fn changed(&self) -> watch::Receiver<u64> {
        self.changed.clone()
    }

    /// Blocks until books later than `seq` are published, or `most` has passed.
    pub fn wait(&self, seq: u64, most: Duration) {
        let last = self.bell.seq.lock().unwrap_or_else(PoisonError::into_inner);
        // Nothing was published yet: the sequence is that of the start.
        drop(self.bell.rung.wait_timeout_while(last, most, |last| *last <= seq));
    }

    /// All that happens from here on, in order and without gaps. The books that
    /// it follows on come with it.
    pub fn follow(&self) -> (Arc<View>, std_mpsc::Receiver<Batch>) {
        let (send, receive) = std_mpsc::channel();
        // The thread publishes while it holds this lock, so no batch falls
        // between the view and the first one received.
        let mut followers = self.followers.lock().unwrap_or_else(PoisonError::into_inner);
        followers.push(send);
        (self.view(), receive)
    }

    /// Runs a command; the answer comes when it is durable.
    pub async fn change<R: Send + 'static>(
        &self,
        command: impl FnOnce(&mut Writer<'_>) -> R + Send + 'static,
    ) -> Result<R, Unavailable> {
        let (command, answer) = packed(command);
        self.commands.try_send(command).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => Unavailable::Busy,
            mpsc::error::TrySendError::Closed(_) => Unavailable::Stopping,
        })?;
        answer.await.map_err(|_| Unavailable::Stopping)
    }

    /// The same for a thread that may wait.
    pub fn change_blocking<R: Send + 'static>(
        &self,
        command: impl FnOnce(&mut Writer<'_>) -> R + Send + 'static,
    ) -> Result<R, Unavailable> {
        let (command, answer) = packed(command);
        self.commands.blocking_send(command).map_err(|_| Unavailable::Stopping)?;
        answer.blocking_recv().map_err(|_| Unavailable::Stopping)
    }
}

fn packed<R: Send + 'static>(
    command: impl FnOnce(&mut Writer<'_>) -> R + Send + 'static,
) -> (Command, oneshot::Receiver<R>) {
    let (tell, answer) = oneshot::channel();
    let command: Command = Box::new(move |writer| {
        let result = command(writer);
        // Whoever asked may have gone; the change stands all the same.
        Box::new(move || drop(tell.send(result)))
    });
    (command, answer)
}

struct Thread {
    ledger: Ledger<Noted>,
    waiting: mpsc::Receiver<Command>,
    view: Arc<ArcSwap<View>>,
    tell: watch::Sender<u64>,
    followers: Arc<Mutex<Vec<std_mpsc::Sender<Batch>>>>,
    bell: Arc<Bell>,
    metrics: Arc<Metrics>,
}

/// Ends the process if the thread panics: the books in memory may be half
/// changed, those on the disk are whole.
struct Fatal;

impl Drop for Fatal {
    fn drop(&mut self) {
        if std::thread::panicking() {
            tracing::error!("the ledger thread failed; the server ends and recovers on restart");
            std::process::exit(70);
        }
    }
}

impl Thread {
    fn run(mut self) {
        let _fatal = Fatal;
        while let Some(first) = self.waiting.blocking_recv() {
            let begin = Instant::now();
            let mut answers = Vec::new();
            let mut next = Some(first);
            while let Some(command) = next {
                let mut writer = Writer { now: now(), ledger: &mut self.ledger };
                answers.push(command(&mut writer));
                next = if answers.len() < BATCH { self.waiting.try_recv().ok() } else { None };
            }
            if let Err(error) = self.ledger.journal_mut().sync() {
                tracing::error!(%error, "the journal cannot be written; the server ends");
                std::process::exit(74);
            }
            self.metrics.batch.observe(answers.len() as f64);
            self.metrics.commit.observe(begin.elapsed().as_secs_f64());
            self.publish();
            self.ledger.journal_mut().chronicle.published();
            for answer in answers {
                answer();
            }
        }
    }

    fn publish(&mut self) {
        let batch = std::mem::take(&mut self.ledger.journal_mut().batch);
        if batch.is_empty() {
            return;
        }
        let mut followers = self.followers.lock().unwrap_or_else(PoisonError::into_inner);
        self.view.store(Arc::new(View::new(self.ledger.state().clone())));
        let seq = self.ledger.state().seq;
        self.tell.send_replace(seq);
        *self.bell.seq.lock().unwrap_or_else(PoisonError::into_inner) = seq;
        self.bell.rung.notify_all();
        let batch = Arc::new(batch);
        followers.retain(|follower| follower.send(batch.clone()).is_ok());
    }
}
