//! `crater job describe`.

use super::event::words;
use super::over;
use crate::client::table::{Table, pairs};
use crate::client::{print, spell};
use crater_api::{DecisionView, JobDetail, JobView};
use crater_model::{JobSpec, Need, Request, Share};
use std::fmt::Write as _;

/// Everything about a job.
pub fn text(job: &JobView) -> String {
    let mut text = print::clean(&format!("{} {}", job.id, job.name)) + "\n\n" + &pairs(head(job));
    let Some(detail) = &job.detail else { return text };
    if let Ok(spec) = serde_json::from_value::<JobSpec>(detail.spec.clone()) {
        section(&mut text, "Asked for, by each member", &pairs(asked(&spec.request)));
        section(&mut text, "Runs", &pairs(task(&spec)));
    }
    section(&mut text, "In the Pool", &pairs(super::room::lines(job, &detail.room)));
    section(&mut text, "Scheduling Constraints", &constraints(job, detail));
    if let Some(decision) = &detail.decision {
        section(&mut text, "Last Decision", &pairs(decided(decision)));
    }
    section(&mut text, "Claims", &claims(detail));
    let mut events = Table::new(&["AT", "EVENT"]);
    for event in &detail.events {
        events.row([spell::moment(&event.at), words(event)]);
    }
    section(&mut text, "Events", &events.text(false));
    text
}

fn section(text: &mut String, title: &str, body: &str) {
    if body.is_empty() {
        return;
    }
    let _ = writeln!(text, "\n{title}");
    for line in body.lines() {
        let _ = writeln!(text, "  {line}");
    }
}

fn head(job: &JobView) -> Vec<(&'static str, String)> {
    let mut lines = vec![
        ("status", format!("{} for {}", super::room::status(job), spell::age(&job.since))),
        ("queue", job.queue.clone()),
        ("tenant", job.tenant.clone()),
        ("kind", job.kind.clone()),
        ("priority", job.priority.to_string()),
        ("preemptible", if job.preemptible { "yes" } else { "no" }.into()),
        (
            "submitted",
            format!("{} ({} ago)", spell::moment(&job.submitted), spell::age(&job.submitted)),
        ),
        ("starts", job.attempts.to_string()),
    ];
    if over(job) {
        lines[0].1 = format!("{} since {}", job.status, spell::moment(&job.since));
    }
    if !job.reason.is_empty() {
        lines.insert(1, ("reason", job.reason.clone()));
    }
    if job.members > 1 {
        lines.push(("members", format!("{}, {} suffice to start", job.members, job.min)));
    }
    if !job.nodes.is_empty() {
        lines.push(("nodes", job.nodes.join(", ")));
    }
    lines
}

fn asked(request: &Request) -> Vec<(&'static str, String)> {
    let mut lines = vec![];
    if let Some(gpu) = &request.gpu {
        let (cards, each) = match gpu.cards {
            1 => ("1 card".to_owned(), "1 card".to_owned()),
            n => (format!("{n} cards"), format!("each of {n} cards")),
        };
        let said = match &gpu.share {
            Share::Whole => format!("{cards}, whole"),
            Share::Part { milli, memory: None } => {
                format!("{milli} of {each}, memory in proportion")
            }
            Share::Part { milli, memory: Some(memory) } => {
                format!("{milli} of {each}, {memory} of its memory")
            }
            Share::Memory { memory } => format!("{memory} of memory on {each}"),
            Share::Mig { profile } => format!("a {profile} instance on {each}"),
        };
        lines.push(("gpu", said));
    }
    lines.push(("cpu", request.cpu.to_string()));
    lines.push(("memory", request.memory.to_string()));
    lines.push(("disk-io", format!("weight {}", request.disk.weight)));
    if !request.disk.bandwidth.is_zero() {
        lines.push(("disk-bandwidth", request.disk.bandwidth.to_string()));
    }
    if !request.disk.iops.is_zero() {
        lines.push(("disk-iops", request.disk.iops.to_string()));
    }
    if !request.models.is_empty() {
        let models: Vec<&str> = request.models.iter().map(|model| &**model).collect();
        lines.push(("card-model", models.join(" or ")));
    }
    for (name, need) in [("nvlink", request.nvlink), ("numa", request.numa)] {
        match need {
            Need::None => {}
            Need::Preferred => lines.push((name, "preferred".into())),
            Need::Required => lines.push((name, "required".into())),
        }
    }
    for condition in request.selectors.iter().flat_map(|selector| &selector.all) {
        let values: Vec<&str> = condition.values.iter().map(|value| &**value).collect();
        let operator = format!("{:?}", condition.operator).to_lowercase();
        lines.push((
            "node label",
            format!("{} {operator} {}", condition.key, values.join(", ")).trim_end().to_owned(),
        ));
    }
    lines
}

fn task(spec: &JobSpec) -> Vec<(&'static str, String)> {
    let task = &spec.task;
    let said = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
    let env: Vec<&str> = task.env.keys().map(String::as_str).collect();
    let ports: Vec<String> = task.ports.iter().map(ToString::to_string).collect();
    let lines = [
        ("image", said(&task.image)),
        ("command", said(&task.command)),
        ("workdir", said(&task.workdir)),
        // Values may be secret; -o json has them.
        ("env", said(&env.join(", "))),
        ("volumes", said(&task.volumes.join(", "))),
        ("ports", said(&ports.join(", "))),
        ("run-limit", Some(spec.run_limit).filter(|n| *n > 0).map(|n| spell::seconds(n.into()))),
        ("disk-bandwidth-limit", task.disk_bandwidth_limit.map(|most| most.to_string())),
        ("disk-iops-limit", task.disk_iops_limit.map(|most| most.to_string())),
        ("grace", task.grace.map(|n| spell::seconds(n.into()))),
    ];
    lines.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

fn constraints(job: &JobView, detail: &JobDetail) -> String {
    if job.status != "Pending" {
        return format!("none: the job does not wait, it is {}\n", job.status);
    }
    if detail.constraints.is_empty() {
        return print::clean(&job.reason) + "\n";
    }
    detail.constraints.iter().fold(String::new(), |text, line| text + &print::clean(line) + "\n")
}

fn decided(decision: &DecisionView) -> Vec<(&'static str, String)> {
    let mut lines = vec![
        ("at", spell::moment(&decision.at)),
        ("by", decision.by.clone()),
        ("candidates", format!("{} nodes could take it", decision.candidates)),
        ("score", decision.score.to_string()),
    ];
    lines
        .extend(decision.policy.iter().map(|digest| ("policy", digest.chars().take(12).collect())));
    lines.extend(decision.fault.iter().map(|fault| ("fault", fault.clone())));
    lines
}

fn claims(detail: &JobDetail) -> String {
    if detail.claims.is_empty() {
        return String::new();
    }
    let mut table = Table::new(&["MEMBER", "STATE", "NODE", "ISOLATION", "CARDS"]);
    for claim in &detail.claims {
        let cards = claim.cards.iter().map(|card| {
            let mig = card.mig.as_ref().map(|mig| format!(" {mig}")).unwrap_or_default();
            format!(
                "{}: {} and {}{mig}",
                card.card,
                spell::gpu(card.milli),
                spell::memory(card.memory_mib)
            )
        });
        table.row([
            claim.member.to_string(),
            claim.state.clone(),
            claim.node.clone(),
            claim.isolation.clone(),
            cards.collect::<Vec<_>>().join(", "),
        ]);
    }
    let mut text = table.text(false);
    if detail.claims.iter().any(|claim| claim.isolation.contains("soft")) {
        text.push_str("soft: neighbours on the card can use more than they asked for; ask for need / 0.8, or --gpu-exclusive true\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(status: &str, constraints: &[&str]) -> JobView {
        let value = serde_json::json!({
            "id": "job-002", "name": "ocr-batch", "status": status, "queue": "offline",
            "tenant": "team-nlp", "kind": "offline", "priority": 10, "gpu-milli": 500,
            "gpu-memory-mib": 8192, "cpu-milli": 1000, "memory-mib": 1024, "members": 1,
            "min": 1, "nodes": [], "preemptible": false, "submitted": "2026-12-01T10:00:00Z",
            "since": "2026-12-01T10:00:00Z", "attempts": 0, "preemptions": 0, "reason": "",
            "detail": {"spec": null, "claims": [], "constraints": constraints, "events": []},
        });
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn a_waiting_job_says_why_below_the_heading() {
        let text = text(&job("Pending", &["8 of 8 nodes: too little \x1b[2J memory"]));
        assert!(
            text.contains("\nScheduling Constraints\n  8 of 8 nodes: too little  [2J memory\n"),
            "{text}"
        );
    }

    #[test]
    fn one_that_does_not_wait_says_so() {
        let text = text(&job("Running", &[]));
        assert!(
            text.contains(
                "\nScheduling Constraints\n  none: the job does not wait, it is Running\n"
            ),
            "{text}"
        );
    }
}
