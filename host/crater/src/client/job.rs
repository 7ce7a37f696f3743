//! `crater job`.

mod describe;
mod end;
mod event;
mod list;
mod logs;
pub mod metrics;
mod room;
mod submit;
mod wait;
mod watch;

use super::args::{JobCommand, Output};
use super::http::{Api, path};
use super::print;
use crater_api::JobView;
use crater_api::jobs::JobChange;
use ureq::http::Method;

/// Runs the command.
pub fn run(api: &Api, output: Output, command: &JobCommand) -> anyhow::Result<()> {
    match command {
        JobCommand::Submit(args) => submit::run(api, output, args),
        JobCommand::List(args) if args.watch => watch::run(api, output, args),
        JobCommand::List(args) => list::run(api, output, args),
        JobCommand::Describe(job) => {
            let job: JobView = api.get(&path(&["jobs", &job.id]))?;
            print::answer(output, &job, |_| describe::text(&job))
        }
        JobCommand::Cancel(args) => end::cancel(api, output, &args.ids, &args.reason),
        JobCommand::Evict(args) => end::evict(api, output, args),
        JobCommand::Checkpoint(of) => {
            let body = serde_json::json!({});
            let job: JobView = api.post(&path(&["jobs", &of.id, "checkpoint"]), &body)?;
            print::answer(output, &job, |_| {
                format!("{} {}: its progress is saved", job.id, print::clean(&job.name))
            })
        }
        JobCommand::Update(args) => {
            let change = JobChange {
                priority: args.changes.priority.as_deref().map(Into::into),
                preemptible: args.changes.preemptible,
                disk_io: args.changes.disk_io,
            };
            let job: JobView = api.change(&Method::PATCH, &path(&["jobs", &args.id]), &change)?;
            print::answer(output, &job, |_| {
                let may = if job.preemptible { "may" } else { "may not" };
                format!("{} {}: priority {}, {may} be preempted", job.id, job.name, job.priority)
            })
        }
        JobCommand::Retry(old) => {
            let body = serde_json::json!({});
            let job: JobView = api.post(&path(&["jobs", &old.id, "retry"]), &body)?;
            print::answer(output, &job, |_| submit::said(&job))
        }
        JobCommand::Metrics(args) => metrics::run(api, output, args),
        JobCommand::Logs(args) => logs::run(api, args),
        JobCommand::Wait(args) => {
            let job = wait::until(api, &args.id, args.goal, args.timeout)?;
            wait::end(output, &job, args.goal)
        }
    }
}

/// Whether a job is over.
fn over(job: &JobView) -> bool {
    ["Succeeded", "Failed", "Cancelled", "Evicted"].contains(&job.status.as_str())
}
