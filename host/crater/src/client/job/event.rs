//! What happened to a job, in words.

use crater_api::EventView;
use crater_model::event::Event;
use crater_model::{ClaimState, JobState};

/// One event in a few words.
pub fn words(event: &EventView) -> String {
    let Ok(event) = serde_json::from_value::<Event>(event.event.clone()) else {
        // Of a later version: as it came.
        return event.event.to_string();
    };
    match event {
        Event::JobSubmitted { spec, .. } => {
            format!("submitted to {} with priority {}", spec.queue, spec.priority.0)
        }
        Event::JobUpdated { changes, .. } => {
            let parts = [
                changes.priority.map(|priority| format!("priority {}", priority.0)),
                changes.preemptible.map(|may| {
                    if may { "preemptible".into() } else { "not preemptible".to_owned() }
                }),
                changes.disk_weight.map(|weight| format!("disk-io {weight}")),
            ];
            format!("changed: {}", parts.into_iter().flatten().collect::<Vec<_>>().join(", "))
        }
        Event::PlanCommitted { claims } => {
            let members: Vec<String> =
                claims.iter().map(|claim| claim.member.to_string()).collect();
            match &members[..] {
                [only] => format!("placed: member {only}"),
                few @ ([] | [_, _] | [_, _, _]) => format!("placed: members {}", few.join(", ")),
                [first, .., last] => {
                    format!("placed: {} members, {first} to {last}", members.len())
                }
            }
        }
        Event::ClaimMoved { claim, state } => match state {
            ClaimState::Reserved => format!("{claim} is reserved"),
            ClaimState::Starting => format!("{claim} starts"),
            ClaimState::Held => format!("{claim} runs"),
            ClaimState::Releasing => format!("{claim} is being ended"),
            ClaimState::Gone => format!("{claim} is gone"),
        },
        Event::MemberEnded { claim, success, how } => {
            let well = if success { "ended well" } else { "ended badly" };
            let how = how.as_deref().map(|how| format!(": {how}")).unwrap_or_default();
            format!("{claim} {well}{how}")
        }
        Event::JobEnded { state, reason, .. } => {
            let state = match state {
                JobState::Cancelled => "cancelled",
                JobState::Evicted => "evicted",
                JobState::Succeeded => "succeeded",
                JobState::Failed => "failed",
                _ => "ended",
            };
            if reason.is_empty() { state.to_owned() } else { format!("{state}: {reason}") }
        }
        Event::RoomMade { evictions, hold } => match (&evictions[..], hold) {
            ([eviction, ..], _) if eviction.whole => match &eviction.reason {
                None => eviction.cause.to_string(),
                Some(reason) => format!("{}: {reason}", eviction.cause),
            },
            ([eviction, ..], _) => {
                format!("gives up {} members: {}", eviction.claims.len(), eviction.cause)
            }
            ([], Some(hold)) => format!("room is kept for its {} members", hold.members.len()),
            ([], None) => "room was made".to_owned(),
        },
        Event::RoomGivenUp { reason, .. } => format!("room is no longer kept: {reason}"),
        Event::StartRefused { reason, .. } => format!("its start was refused: {reason}"),
        Event::Checkpointed { .. } => "saved its progress".to_owned(),
        other => serde_json::to_value(&other)
            .ok()
            .and_then(|value| Some(value.get("event")?.as_str()?.replace('-', " ")))
            .unwrap_or_default(),
    }
}
