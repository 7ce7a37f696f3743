//! `crater queue`.

use super::args::{Output, QueueCommand, QueueSet};
use super::http::{Api, path};
use super::table::{Table, pairs};
use super::{print, spell};
use crate::exit::input;
use anyhow::anyhow;
use crater_api::queues::{PolicyView, QueueChange, QueueView};
use std::fmt::Write as _;
use ureq::http::Method;

/// Runs the command.
pub fn run(api: &Api, output: Output, command: &QueueCommand) -> anyhow::Result<()> {
    match command {
        QueueCommand::List => {
            let queues: Vec<QueueView> = api.get(&path(&["queues"]))?;
            print::answer(output, &queues, |wide| list(&queues, wide))
        }
        QueueCommand::Describe(queue) => {
            let queue: QueueView = api.get(&path(&["queues", &queue.name]))?;
            print::answer(output, &queue, |_| describe(&queue))
        }
        QueueCommand::Set(set) => {
            let queue = change(api, &set.name, &asked(api, set)?)?;
            print::answer(output, &queue, |_| describe(&queue))
        }
        QueueCommand::Pause(queue) => {
            let queue = paused(api, &queue.name, true)?;
            print::answer(output, &queue, |_| {
                format!("{} is paused: nothing of it starts", queue.name)
            })
        }
        QueueCommand::Resume(queue) => {
            let queue = paused(api, &queue.name, false)?;
            print::answer(output, &queue, |_| {
                format!("{} starts jobs again: {} wait", queue.name, queue.waiting)
            })
        }
        QueueCommand::Drain(queue) => {
            let queue = paused(api, &queue.name, true)?;
            print::answer(output, &queue, |_| drained(&queue))
        }
    }
}

fn change(api: &Api, name: &str, change: &QueueChange) -> anyhow::Result<QueueView> {
    api.change(&Method::PATCH, &path(&["queues", name]), change)
}

fn paused(api: &Api, name: &str, paused: bool) -> anyhow::Result<QueueView> {
    change(api, name, &QueueChange { paused: Some(paused), ..QueueChange::default() })
}

fn asked(api: &Api, set: &QueueSet) -> anyhow::Result<QueueChange> {
    let config = set.config.as_deref().map(serde_json::from_str).transpose();
    let config = config.map_err(|error| {
        input(anyhow!("--config: {error}: expected a JSON object such as {{\"by\":\"nodes\"}}"))
    })?;
    let change = QueueChange {
        policy: set.policy.as_deref().map(|policy| whole(api, policy)),
        config,
        fallback: set.fallback.clone(),
        priority: set.priority,
        paused: None,
    };
    if change == QueueChange::default() {
        return Err(input(anyhow!(
            "nothing to set: give --policy, --config, --fallback or --priority"
        )));
    }
    Ok(change)
}

/// A policy's file as the server finds it: where it is this machine, a path
/// from here may be meant.
fn whole(api: &Api, policy: &str) -> String {
    let file = std::path::Path::new(policy);
    let here = super::settings::loopback(api.server()) && file.is_relative() && file.is_file();
    let whole = std::path::absolute(file).ok().filter(|_| here);
    whole.map_or_else(|| policy.to_owned(), |whole| whole.display().to_string())
}

fn drained(queue: &QueueView) -> String {
    let QueueView { name, running, waiting, .. } = queue;
    format!(
        "{name} is paused: nothing of it starts and nothing was cancelled\n\
         {running} of its jobs run on to their end: `crater job list --queue {name} --status running`\n\
         {waiting} wait until `crater queue resume {name}`"
    )
}

/// What decides a queue, in short.
fn policy(queue: &QueueView) -> String {
    queue.policy.as_ref().map(|policy| policy.source.clone()).unwrap_or_default()
}

/// Preemptions in the last hour against what there may be.
fn budget(queue: &QueueView) -> String {
    let most = match queue.room.preemptions_per_hour {
        0 => "any".to_owned(),
        most => most.to_string(),
    };
    format!("{}/{most}", queue.room.preemptions_last_hour)
}

/// How its jobs make room, and have it kept.
fn room(queue: &QueueView) -> [(&'static str, String); 4] {
    let room = &queue.room;
    let per_job = match room.preemptions_per_job {
        0 => "any number".to_owned(),
        most => format!("at most {most}"),
    };
    let reserve = match room.reserve_after {
        0 => "never".to_owned(),
        after => format!("for its first job after {}", spell::seconds(after.into())),
    };
    [
        ("minimum-run", spell::seconds(room.minimum_run.into())),
        ("preemptions", format!("{} in the last hour", budget(queue))),
        ("preemptions of a job", per_job),
        ("keeps room", reserve),
    ]
}

fn list(queues: &[QueueView], wide: bool) -> String {
    let mut head = vec!["NAME", "KIND", "PRIORITY", "POLICY", "STATUS", "WAITING", "RUNNING"];
    if wide {
        head.extend(["FALLBACK", "TENANT", "PREEMPTED/H"]);
    }
    let mut table = Table::new(&head);
    for queue in queues {
        let status = if queue.paused { "paused" } else { "live" };
        let mut row = vec![
            queue.name.clone(),
            queue.kind.clone(),
            queue.priority.to_string(),
            policy(queue),
            status.into(),
            queue.waiting.to_string(),
            queue.running.to_string(),
        ];
        if wide {
            let tenant = queue.tenant.clone().unwrap_or_default();
            row.extend([queue.fallback.clone(), tenant, budget(queue)]);
        }
        table.row(row);
    }
    table.text(print::colours())
}

fn describe(queue: &QueueView) -> String {
    let status = if queue.paused { "paused: nothing of it starts" } else { "live" };
    let mut lines = vec![
        ("queue", queue.name.clone()),
        ("kind", queue.kind.clone()),
        ("priority", queue.priority.to_string()),
        ("status", status.into()),
        ("tenant", queue.tenant.clone().unwrap_or_else(|| "the platform".into())),
        ("waiting", queue.waiting.to_string()),
        ("running", queue.running.to_string()),
        ("fallback", queue.fallback.clone()),
        (
            "policy",
            queue
                .policy
                .as_ref()
                .map_or_else(|| "none: the fallback decides".into(), |p| p.source.clone()),
        ),
    ];
    lines.extend(room(queue));
    let Some(policy) = &queue.policy else { return pairs(lines) };
    lines.push(("config", policy.config.to_string()));
    if let Some(live) = &policy.live {
        lines.extend([
            ("live", format!("{} {}", live.name, live.version)),
            ("digest", live.digest.clone()),
            ("since", spell::moment(&live.since)),
            ("calls", live.calls.to_string()),
            ("faults", live.faults.to_string()),
        ]);
    }
    lines.push(("swaps", policy.swaps.to_string()));
    lines.push(("refusals", policy.refusals.to_string()));
    let mut text = pairs(lines) + &refusal(&queue.name, policy);
    if let Some(live) = policy.live.as_ref().filter(|live| !live.log.is_empty()) {
        text.push_str("\nIts last words\n");
        for line in &live.log {
            let _ = writeln!(text, "  {}", print::clean(line));
        }
    }
    text
}

/// The last refusal of a queue's policy in full, after an empty line.
pub fn refusal(queue: &str, policy: &PolicyView) -> String {
    let Some(refused) = &policy.refused else { return String::new() };
    let stays = match &policy.live {
        Some(live) => format!("{} {} stays live", live.name, live.version),
        None => "the fallback decides".into(),
    };
    let (at, stage) = (spell::moment(&refused.at), &refused.stage);
    let head = format!("{queue}: a replacement was refused at {at} in {stage}; {stays}:");
    refused.reason.lines().fold(format!("\n{}\n", print::clean(&head)), |mut text, line| {
        let _ = writeln!(text, "  {}", print::clean(line));
        text
    })
}
