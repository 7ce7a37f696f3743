//! Random worlds: books that were written and read back are the same books, and
//! history agrees with a plain fold of the journal.
#![allow(missing_docs)]

use crater_engine::ledger::concerned;
use crater_engine::{
    Decider, Job, Journal as _, Ledger, MemoryJournal, Policies, Round, Snapshot, SnapshotError,
    State,
};
use crater_model::event::Entry;
use crater_model::{Event, JobState, JobUid, MilliCards, Time};
use crater_sim::random::{Spice, check, world};
use crater_sim::world::Nobody;
use crater_store::{Cursor, Filter, JobRow, Page, Reader, Store};
use std::collections::BTreeMap;
use std::env;
use std::sync::Arc;

fn setting(name: &str, default: u64) -> u64 {
    env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// The journals of some random worlds.
fn journals(count: u64) -> impl Iterator<Item = (u64, Vec<Entry>)> {
    let first = setting("CRATER_SEED", 0);
    (first..first + count).map(|seed| {
        let lines = world(seed, Spice { counted_faults: false });
        (seed, check(&lines, &mut Nobody).unwrap().0.journal)
    })
}

fn fold(entries: &[Entry]) -> State {
    let mut state = State::new(Arc::default());
    entries.iter().try_for_each(|entry| state.apply(entry)).unwrap();
    state
}

fn through_text(state: &State) -> Snapshot {
    let snapshot = state.snapshot();
    let text = serde_json::to_string(&snapshot).unwrap();
    let back: Snapshot = serde_json::from_str(&text).unwrap();
    assert_eq!(back, snapshot);
    back
}

/// Nodes in a form that does not depend on the order in which claims came.
fn nodes(state: &State) -> Vec<crater_engine::node::NodeState> {
    let mut nodes: Vec<_> = state.nodes().map(|n| (**n).clone()).collect();
    for node in &mut nodes {
        node.residents.sort_by_key(|r| (r.job, r.class));
        for card in &mut node.cards {
            card.instances.sort_by(|a, b| (a.start, &a.profile).cmp(&(b.start, &b.profile)));
        }
    }
    nodes
}

fn assert_same(a: &State, b: &State) {
    assert_eq!(a.snapshot(), b.snapshot());
    assert_eq!(a.queues(), b.queues());
    assert_eq!(a.jobs().collect::<Vec<_>>(), b.jobs().collect::<Vec<_>>());
    assert_eq!(a.claims().collect::<Vec<_>>(), b.claims().collect::<Vec<_>>());
    assert_eq!(nodes(a), nodes(b));
    let next = |s: &State| (s.next_node(), s.next_job(), s.next_claim());
    assert_eq!((next(a), a.changes().end()), (next(b), b.changes().end()));
    let round = Round::new(a.at, 11);
    let plan = |s: &State| Decider::default().decide(s, &Policies::new(), round);
    assert_eq!(plan(a), plan(b));
}

#[test]
fn books_read_back_are_the_same_and_go_on_alike() {
    for (seed, entries) in journals(setting("CRATER_SEEDS", 150)) {
        println!("seed {seed}");
        // Three places to stop at, and the end.
        for part in 1..=4 {
            let (before, after) = entries.split_at(entries.len() * part / 4);
            let mut whole = fold(before);
            let mut back = State::restore(through_text(&whole), Arc::default()).unwrap();
            assert_same(&whole, &back);
            let mut remembers = Decider::default();
            remembers.decide(&whole, &Policies::new(), Round::new(whole.at, 3));
            for entry in after {
                whole.apply(entry).unwrap();
                back.apply(entry).unwrap();
            }
            assert_same(&whole, &back);
            // What remembers the books as they were may go on with those read back.
            let round = Round::new(whole.at, 4);
            assert_eq!(
                remembers.decide(&back, &Policies::new(), round),
                Decider::default().decide(&whole, &Policies::new(), round)
            );
        }
    }
}

#[test]
fn forgotten_jobs_leave_nothing_but_their_numbers() {
    let mut forgotten = 0;
    for (_, entries) in journals(100) {
        let state = fold(&entries);
        let (next, over) = (state.next_job(), state.at);
        let old = |j: &&Arc<Job>| j.state.ended() && j.claims.is_empty() && j.since < over;
        let expected: Vec<_> = state.jobs().filter(old).map(|j| j.uid).collect();
        let journal = MemoryJournal { keep: true, ..MemoryJournal::default() };
        let mut ledger = Ledger::resume(journal, state);
        assert_eq!(ledger.forget(over, over).unwrap(), expected.len());
        assert_eq!(ledger.forget(over, over).unwrap(), 0);
        let state = ledger.state();
        state.audit().unwrap();
        assert!(expected.iter().all(|job| state.job(*job).is_none()));
        assert_eq!(state.next_job(), next);
        let back = State::restore(through_text(state), Arc::default()).unwrap();
        assert_same(state, &back);
        // The journal says the same.
        let mut all = entries;
        all.extend(ledger.journal().entries.clone());
        assert_same(&fold(&all), &back);
        forgotten += expected.len();
    }
    assert!(forgotten > 100, "the worlds are too dull");
}

#[test]
fn what_lives_is_not_forgotten() {
    for (_, entries) in journals(30) {
        let state = fold(&entries);
        for job in state.jobs().filter(|j| !j.may_be_forgotten()) {
            let event = Event::JobsForgotten { jobs: vec![job.uid] };
            let entry = Entry { seq: state.seq + 1, at: state.at, event };
            let mut other = state.clone();
            assert!(other.apply(&entry).is_err());
            assert_same(&state, &other);
        }
    }
}

#[test]
fn a_snapshot_that_does_not_add_up_is_refused() {
    let mut tried = 0;
    for (_, entries) in journals(40) {
        let good = fold(&entries[..entries.len() / 2]).snapshot();
        let refused = |change: &dyn Fn(&mut Snapshot)| {
            let mut bad = good.clone();
            change(&mut bad);
            State::restore(bad, Arc::default()).unwrap_err()
        };
        let Some(claim) = good.claims.first() else { continue };
        tried += 1;
        refused(&|s| s.claims.push(claim.clone()));
        refused(&|s| s.next_claim = claim.uid.0);
        refused(&|s| s.next_job = 1);
        refused(&|s| s.jobs.retain(|j| j.uid != claim.job));
        refused(&|s| s.nodes.retain(|n| n.uid != claim.node));
        refused(&|s| s.queues.clear());
        refused(&|s| s.claims.clear());
        refused(&|s| s.jobs.iter_mut().for_each(|j| j.state = JobState::Pending));
        if let Some(card) = claim.held.cards.first() {
            let beyond = refused(&|s| {
                let mut other = (**claim).clone();
                other.held.cards[0].card = 200;
                s.claims[0] = Arc::new(other);
            });
            assert!(matches!(beyond, SnapshotError::Card { card: 200, .. }), "{beyond}");
            if card.instance.is_none() {
                refused(&|s| {
                    let mut other = (**claim).clone();
                    other.held.cards[0].milli = MilliCards(1001);
                    s.claims[0] = Arc::new(other);
                });
            }
        }
        if let [first, ..] = &good.strings[..] {
            let taken: Arc<crater_engine::Strings> = Arc::default();
            taken.id("something else");
            let error = State::restore(good.clone(), taken).unwrap_err();
            assert!(matches!(&error, SnapshotError::Text { text, .. } if text == first), "{error}");
        }
    }
    assert!(tried > 10, "the worlds are too dull");
}

/// What history should say, kept the plain way: after every entry, every job.
#[derive(Default)]
struct Model {
    rows: BTreeMap<JobUid, JobRow>,
    events: BTreeMap<JobUid, Vec<u64>>,
}

impl Model {
    fn note(&mut self, state: &State, jobs: &[JobUid], entry: &Entry) {
        for job in jobs {
            self.events.entry(*job).or_default().push(entry.seq);
        }
        for job in state.jobs() {
            let row = self.rows.entry(job.uid).or_insert_with(|| JobRow {
                uid: job.uid,
                state: job.state,
                submitted: entry.at,
                placed: None,
                started: None,
                ended: None,
                attempts: 0,
                preemptions: 0,
                reason: "".into(),
                gpu: None,
                nodes: vec![],
                spec: (*job.spec).clone(),
            });
            let moved = row.state != job.state;
            if moved && job.state == JobState::Starting {
                (row.placed, row.started) = (Some(entry.at), None);
            }
            if moved && job.state == JobState::Running {
                row.started = Some(entry.at);
            }
            if moved && job.state.ended() {
                row.ended = Some(entry.at);
            }
            if let Event::PlanCommitted { claims } = &entry.event
                && claims.iter().any(|c| c.job == job.uid)
            {
                let claims: Vec<_> = state.claims().filter(|c| c.job == job.uid).collect();
                let mut names: Vec<_> =
                    claims.iter().map(|c| state.node(c.node).unwrap().spec.name.clone()).collect();
                names.sort();
                names.dedup();
                row.nodes = names;
                row.gpu = Some(claims.iter().map(|c| c.held.milli()).sum());
            }
            row.state = job.state;
            (row.attempts, row.preemptions) = (job.attempts, job.preemptions);
            row.reason = job.reason.clone();
            row.spec = (*job.spec).clone();
        }
    }
}

fn all_rows(reader: &Reader) -> BTreeMap<JobUid, JobRow> {
    let mut rows = BTreeMap::new();
    let mut after: Option<Cursor> = None;
    loop {
        let page = reader.jobs(&Filter::default(), Page { limit: 7, after }).unwrap();
        for row in page.rows {
            assert!(rows.insert(row.uid, row).is_none(), "a job is listed twice");
        }
        match page.next {
            None => return rows,
            next => after = next,
        }
    }
}

#[test]
fn history_agrees_with_a_fold_of_the_journal() {
    let mut jobs = 0;
    for (seed, entries) in journals(setting("CRATER_SEEDS", 40)) {
        println!("seed {seed}");
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().join("data");
        let (mut store, recovered) = Store::open(&dir).unwrap();
        let mut state = recovered.books(Arc::default()).unwrap();
        let mut model = Model::default();
        for (i, entry) in entries.iter().enumerate() {
            let jobs = concerned(&state, &entry.event);
            store.append(std::slice::from_ref(entry)).unwrap();
            state.apply(entry).unwrap();
            store.applied(&state, entry, &jobs);
            model.note(&state, &jobs, entry);
            // Batches and restarts at places that differ from world to world.
            let chance = crater_engine::mix(seed * 1000 + i as u64);
            if chance.is_multiple_of(5) {
                store.sync().unwrap();
            }
            if chance.is_multiple_of(37) {
                store.snapshot(&state.snapshot()).unwrap();
            }
            if chance.is_multiple_of(41) {
                store.sync().unwrap();
                drop(store);
                let (again, recovered) = Store::open(&dir).unwrap();
                store = again;
                let back = recovered.books(Arc::default()).unwrap();
                assert_same(&state, &back);
                state = back;
            }
        }
        store.sync().unwrap();
        let reader = store.reader().unwrap();
        let mut rows = all_rows(&reader);
        for (uid, row) in &mut rows {
            // Before a job is placed, what it asks for is as good.
            if model.rows[uid].gpu.is_none() {
                row.gpu = None;
            }
            assert_eq!(reader.job(*uid).unwrap().map(|r| r.state), Some(row.state));
            let events = reader.events(*uid).unwrap();
            let seqs: Vec<_> = events.iter().map(|e| e.seq).collect();
            assert_eq!(seqs, model.events[uid]);
            for event in events {
                let full = &entries[event.seq as usize - 1];
                match (&event.event, &full.event) {
                    (Event::PlanCommitted { claims }, Event::PlanCommitted { claims: all }) => {
                        assert!(claims.iter().all(|c| c.job == *uid));
                        assert_eq!(claims.len(), all.iter().filter(|c| c.job == *uid).count());
                    }
                    // Who else goes, and for whom, is not told.
                    (
                        Event::RoomMade { evictions, hold },
                        Event::RoomMade { evictions: all, hold: whose },
                    ) => {
                        let own = all.iter().filter(|e| e.job == *uid);
                        assert!(evictions.iter().eq(own));
                        assert_eq!(hold.as_ref(), whose.as_ref().filter(|h| h.job == *uid));
                    }
                    (own, full) => assert_eq!(own, full),
                }
            }
        }
        assert_eq!(rows, model.rows);
        jobs += rows.len();
        assert!(rows.values().all(|r| r.submitted >= Time(0)));
    }
    assert!(jobs > 200, "the worlds are too dull");
}
