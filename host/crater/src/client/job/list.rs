//! `crater job list`.

use crate::client::args::{List, Output};
use crate::client::http::{Api, path, with_query};
use crate::client::table::Table;
use crate::client::{print, spell};
use crater_api::JobView;
use crater_api::jobs::Jobs;

/// Jobs of a page.
const PAGE: u32 = 500;
/// Statuses of jobs that are not over.
pub const ALIVE: [&str; 4] = ["pending", "starting", "running", "preempting"];
/// Columns for everyone.
pub const HEAD: [&str; 6] = ["ID", "NAME", "STATUS", "GPU", "MEMORY", "NODE"];
/// More columns.
pub const WIDE: [&str; 5] = ["QUEUE", "TENANT", "PRIORITY", "AGE", "REASON"];

/// Runs the command.
pub fn run(api: &Api, output: Output, args: &List) -> anyhow::Result<()> {
    let jobs = all(api, args)?;
    if jobs.is_empty() && args.status.is_empty() && !args.all {
        print::note("no job of these waits or runs; --all lists those that are over, too");
    }
    print::answer(output, &jobs, |wide| table(&jobs, wide).text(print::colours()))
}

/// All jobs that are asked for, newest first, page after page.
pub fn all(api: &Api, args: &List) -> anyhow::Result<Vec<JobView>> {
    let mut status = args.status.join(",");
    if status.is_empty() && !args.all {
        status = ALIVE.join(",");
    }
    let mut query = vec![];
    let mut add = |name, value: Option<String>| query.extend(value.map(|value| (name, value)));
    add("status", Some(status).filter(|status| !status.is_empty()));
    add("queue", args.queue.clone());
    add("tenant", args.tenant.clone());
    add("name", args.name.clone());
    add("since", args.since.map(|since| format!("{}s", since.as_secs())));
    let mut jobs: Vec<JobView> = vec![];
    let mut cursor = None;
    loop {
        let missing = args.limit.map_or(PAGE, |limit| (limit - jobs.len() as u32).min(PAGE));
        let mut query = query.clone();
        query.push(("limit", missing.to_string()));
        query.extend(cursor.take().map(|cursor| ("cursor", cursor)));
        let page: Jobs = api.get(&with_query(&path(&["jobs"]), &query))?;
        jobs.extend(page.jobs);
        let enough = args.limit.is_some_and(|limit| jobs.len() >= limit as usize);
        match page.next {
            Some(next) if !enough => cursor = Some(next),
            _ => return Ok(jobs),
        }
    }
}

/// Jobs as a table.
pub fn table<'a>(jobs: impl IntoIterator<Item = &'a JobView>, wide: bool) -> Table {
    let head: Vec<&str> = HEAD.iter().chain(WIDE.iter().filter(|_| wide)).copied().collect();
    let mut table = Table::new(&head);
    for job in jobs {
        table.row(row(job, wide));
    }
    table
}

/// A job's cells.
pub fn row(job: &JobView, wide: bool) -> Vec<String> {
    let nodes = match &job.nodes[..] {
        [first, second, rest @ ..] if !wide && !rest.is_empty() => {
            format!("{first},{second},+{}", rest.len())
        }
        nodes => nodes.join(","),
    };
    let mut row = vec![
        job.id.clone(),
        job.name.clone(),
        super::room::status(job),
        spell::gpu(job.gpu_milli),
        spell::memory(job.gpu_memory_mib),
        nodes,
    ];
    if wide {
        row.extend([
            job.queue.clone(),
            job.tenant.clone(),
            job.priority.to_string(),
            spell::age(&job.submitted),
            job.reason.clone(),
        ]);
    }
    row
}
