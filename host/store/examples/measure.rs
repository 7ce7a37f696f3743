//! How many entries a second are durable, by the number in one sync, and how
//! long it takes to open a store with a history.

use crater_engine::Ledger;
use crater_model::{GpuAsk, JobSpec, JobState, Kind, MilliCards, QueueSpec, Request, TenantPath};
use crater_model::{Mib, MilliCores, Time};
use crater_store::{Filter, Page, Store};
use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

fn main() -> Result<(), Box<dyn Error>> {
    let temp = tempfile::tempdir_in(std::env::args().nth(1).as_deref().unwrap_or("."))?;
    let dir = temp.path().join("data");
    let (store, recovered) = Store::open(&dir)?;
    let mut ledger = Ledger::resume(store, recovered.books(Arc::default())?);
    ledger.set_queue(Time(0), QueueSpec::new("training", Kind::Training))?;
    let gpu = GpuAsk::new(Some(MilliCards(500)), None, false)?;
    let request = Request { gpu, cpu: MilliCores(4000), memory: Mib(16384), ..Request::default() };
    let tenant = TenantPath::parse("tenant", "ai/nlp/mei")?;
    let spec = JobSpec::new("llm-inference-7b", "training", tenant, request);
    let mut now = Time::from_secs(1_700_000_000);
    for (batch, count) in [(1, 2_000), (10, 20_000), (100, 50_000), (1000, 100_000)] {
        let start = Instant::now();
        let mut slowest = Duration::ZERO;
        for _ in 0..count / batch {
            let began = Instant::now();
            for _ in 0..batch / 2 {
                now.0 += 1;
                let job = ledger.submit(now, spec.clone())?;
                ledger.end_job(now, job, JobState::Cancelled, "")?;
            }
            if batch == 1 {
                now.0 += 1;
                ledger.submit(now, spec.clone())?;
            }
            ledger.journal_mut().sync()?;
            slowest = slowest.max(began.elapsed());
        }
        let rate = f64::from(count) / start.elapsed().as_secs_f64();
        println!("{batch:5} entries a sync: {rate:8.0} a second, slowest batch {slowest:.1?}");
        ledger.forget(now, now)?;
    }
    while ledger.state().next_job().0 < 100_000 {
        now.0 += 1;
        let job = ledger.submit(now, spec.clone())?;
        ledger.end_job(now, job, JobState::Cancelled, "")?;
    }
    ledger.forget(now, now + Duration::from_secs(1))?;
    ledger.journal_mut().sync()?;
    let books = ledger.state().snapshot();
    let start = Instant::now();
    ledger.journal_mut().snapshot(&books)?;
    println!("snapshot of {} live jobs: {:.1?}", books.jobs.len(), start.elapsed());
    let count = ledger.state().next_job().0;
    drop(ledger);
    let start = Instant::now();
    let (store, recovered) = Store::open(&dir)?;
    let state = recovered.books(Arc::default())?;
    println!(
        "open with {count} jobs in history, {} live: {:.1?}",
        state.jobs().count(),
        start.elapsed()
    );
    let reader = store.reader()?;
    let start = Instant::now();
    let page = reader.jobs(&Filter::default(), Page::default())?;
    println!("a page of {} jobs: {:.1?}", page.rows.len(), start.elapsed());
    let start = Instant::now();
    reader.backup(&temp.path().join("backup"))?;
    let size = std::fs::metadata(temp.path().join("backup"))?.len() >> 20;
    println!("backup of {size} MiB: {:.1?}", start.elapsed());
    Ok(())
}
