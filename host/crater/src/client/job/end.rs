//! `crater job cancel` and `crater job evict`.

use crate::client::args::{Evict, List, Output};
use crate::client::error::Refused;
use crate::client::http::{Api, path};
use crate::client::print;
use crate::exit::input;
use anyhow::anyhow;
use crater_api::JobView;
use crater_api::jobs::{Eviction, Why};
use crater_model::Priority;
use serde::Serialize;
use std::fmt::Write as _;

/// Cancels jobs.
pub fn cancel(api: &Api, output: Output, ids: &[String], reason: &str) -> anyhow::Result<()> {
    let done =
        each(api, ids.iter().map(String::as_str), "cancel", &Why { reason: reason.to_owned() });
    let text = done.ended.iter().fold(String::new(), |text, job| text + &ended(job));
    print::answer(output, &done.ended, |_| text)?;
    done.result(ids.len())
}

/// Evicts jobs.
pub fn evict(api: &Api, output: Output, args: &Evict) -> anyhow::Result<()> {
    let how = Eviction { reason: args.reason.clone(), requeue: args.requeue };
    let Some(tenant) = &args.tenant else {
        let done = each(api, args.ids.iter().map(String::as_str), "evict", &how);
        let text = done.ended.iter().fold(String::new(), |text, job| text + &ended(job));
        print::answer(output, &done.ended, |_| text)?;
        return done.result(args.ids.len());
    };
    let priority = args.priority.as_deref().map(|text| Priority::parse("--priority", text));
    let priority = priority.transpose().map_err(input)?;
    let which = List {
        queue: None,
        status: vec!["starting".into(), "running".into()],
        tenant: Some(tenant.clone()),
        name: None,
        since: None,
        all: false,
        limit: None,
        watch: false,
    };
    let mut jobs = super::list::all(api, &which)?;
    jobs.retain(|job| priority.is_none_or(|priority| job.priority == priority.0));
    let mut done = each(api, jobs.iter().map(|job| job.id.as_str()), "evict", &how);
    // Nobody named these: one that has ended since it was listed is as wished.
    let over =
        |error: &anyhow::Error| error.downcast_ref::<Refused>().is_some_and(|r| r.0.status == 409);
    let errors = done.errors.len();
    done.errors.retain(|error| !over(error));
    let over = errors - done.errors.len();
    print::answer(output, &done.ended, |_| {
        let mut text = done.ended.iter().fold(String::new(), |text, job| text + &ended(job));
        let of = match &args.priority {
            Some(priority) => format!("{tenant} of priority {priority}"),
            None => tenant.clone(),
        };
        let _ =
            writeln!(text, "evicted {} of {} running jobs of {of}", done.ended.len(), jobs.len());
        if over > 0 {
            let _ = writeln!(text, "{over} had ended by then");
        }
        print_safe(&text)
    })?;
    done.result(jobs.len())
}

/// Line by line without anything that moves the cursor.
fn print_safe(text: &str) -> String {
    text.lines().fold(String::new(), |all, line| all + &print::clean(line) + "\n")
}

fn ended(job: &JobView) -> String {
    let why = if job.reason.is_empty() { String::new() } else { format!(": {}", job.reason) };
    print::clean(&format!("{} {} {}{why}", job.id, job.name, super::room::status(job))) + "\n"
}

/// What became of each.
struct Done {
    ended: Vec<JobView>,
    errors: Vec<anyhow::Error>,
}

/// Ends each; one that cannot be ended does not keep the rest.
fn each<'a>(
    api: &Api,
    ids: impl Iterator<Item = &'a str>,
    how: &str,
    why: &impl Serialize,
) -> Done {
    let mut done = Done { ended: vec![], errors: vec![] };
    for id in ids {
        match api.post::<JobView>(&path(&["jobs", id, how]), why) {
            Ok(job) => done.ended.push(job),
            Err(error) => {
                let stop = !error.is::<Refused>();
                done.errors.push(error);
                if stop {
                    break;
                }
            }
        }
    }
    done
}

impl Done {
    /// An error where one could not be ended.
    fn result(mut self, all: usize) -> anyhow::Result<()> {
        match self.errors.len() {
            0 => Ok(()),
            1 => Err(self.errors.remove(0)),
            n => {
                let last = self.errors.pop().unwrap_or_else(|| anyhow!("it failed"));
                for error in &self.errors {
                    print::note(&format!("{error:#}"));
                }
                Err(last
                    .context(format!("{n} of {all} jobs could not be ended, the last one since")))
            }
        }
    }
}
