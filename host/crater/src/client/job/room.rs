//! What a job has to do with the one pool, for `crater job describe`.

use crate::client::spell;
use crater_api::room::RoomView;
use crater_api::{JobView, room};

/// The status of a job, and of one that waits because it had to go the reason.
pub fn status(job: &JobView) -> String {
    let word = match (job.status.as_str(), job.cause.as_deref()) {
        ("Pending", Some("preempt")) => "preempted",
        ("Pending", Some("reclaim")) => "reclaimed",
        ("Pending", Some("lost-node")) => "lost node",
        ("Pending", Some(_)) => "evicted",
        _ => return job.status.clone(),
    };
    format!("{} ({word})", job.status)
}

/// Lines about it; none where there is nothing to say.
pub fn lines(job: &JobView, room: &RoomView) -> Vec<(&'static str, String)> {
    let mut lines = vec![];
    if let Some(last) = &room.evicted {
        let what = match last.members {
            None => String::new(),
            Some(members) => format!("gave up {members} members: "),
        };
        let words = last.reason.as_ref().map(|text| format!(": {text}")).unwrap_or_default();
        let text = format!("{what}{}{words}, at {}", last.why, moment(&last.at));
        lines.push(("last eviction", text));
    }
    if job.preemptions > 0 {
        lines.push(("had to go", times(job.preemptions)));
    }
    match &room.checkpoint {
        Some(at) => {
            lines.push(("checkpoint", format!("{} ({} ago)", moment(at), spell::age(at))));
        }
        None if job.preemptible && !super::over(job) => {
            lines.push(("checkpoint", "none: it would start over".into()));
        }
        None => {}
    }
    for (tenant, amounts) in &room.borrowed {
        let amounts: Vec<String> = amounts.iter().map(|(what, n)| format!("{what} {n}")).collect();
        lines.push(("borrowed", format!("{} above hard of {tenant}", amounts.join(", "))));
    }
    lines.extend(room.kept.as_ref().map(|kept| ("room kept", place(kept))));
    if let Some(refused) = &room.refused {
        lines.push(("start refused", format!("{}: {}", times(refused.times), refused.words)));
        lines.extend(refused.next.as_ref().map(|at| ("next try", moment(at))));
    }
    if let Some(elastic) = &room.elastic {
        let text = format!("{} now, {} to {}", elastic.now, elastic.min, elastic.max);
        lines.push(("elastic members", text));
    }
    if !room.environment.is_empty() {
        let pairs = room.environment.iter().map(|(name, value)| format!("{name}={value}"));
        lines.push(("environment", pairs.collect::<Vec<_>>().join(" ")));
    }
    lines
}

fn place(kept: &room::KeptView) -> String {
    let until = match kept.until.as_deref() {
        None => "until those who are there have gone".to_owned(),
        Some("unknown") => "until it starts; when others end is not known".to_owned(),
        Some(at) => format!("it is planned to start at {}", moment(at)),
    };
    format!("{} members on {}; {until}", kept.members, kept.nodes.join(", "))
}

fn moment(text: &str) -> String {
    spell::moment(text)
}

fn times(n: u32) -> String {
    if n == 1 { "once".into() } else { format!("{n} times") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_concern_a_job_is_not_said() {
        let job = serde_json::json!({
            "id": "job-002", "name": "a", "status": "Pending", "queue": "training",
            "tenant": "ai", "kind": "training", "priority": 50, "gpu-milli": 1000,
            "gpu-memory-mib": 0, "cpu-milli": 1000, "memory-mib": 1024, "members": 1, "min": 1,
            "nodes": [], "preemptible": false, "submitted": "2026-12-01T10:00:00Z",
            "since": "2026-12-01T10:00:00Z", "attempts": 1, "preemptions": 1, "reason": "",
            "cause": "reclaim",
        });
        let job: JobView = serde_json::from_value(job).unwrap();
        assert_eq!(status(&job), "Pending (reclaimed)");
        assert_eq!(lines(&job, &RoomView::default()), [("had to go", "once".to_owned())]);
    }
}
