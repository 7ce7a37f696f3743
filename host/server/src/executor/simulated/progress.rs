//! How far a job had come when it last saved its progress.
//!
//! Nothing here is kept beside the journal: what a job has done is what the
//! journal says it ran before its checkpoints, so a server that was killed
//! knows it again.

use crater_model::event::Entry;
use crater_model::{ClaimState, ClaimUid, Event, Time};
use std::collections::BTreeSet;
use std::time::Duration;

/// Saved progress.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// What it went on from when its present run began.
    pub base: Duration,
    /// What it would go on from now.
    pub saved: Duration,
}

impl Progress {
    /// By a job's own entries, oldest first.
    pub fn of(entries: &[Entry]) -> Self {
        let mut progress = Self::default();
        let mut claims: BTreeSet<ClaimUid> = BTreeSet::new();
        let mut from: Option<Time> = None;
        for entry in entries {
            let gone = match &entry.event {
                Event::PlanCommitted { claims: new } => {
                    if claims.is_empty() {
                        progress.base = progress.saved;
                    }
                    claims.extend(new.iter().map(|claim| claim.uid));
                    continue;
                }
                Event::ClaimMoved { state: ClaimState::Held, .. } => {
                    from = from.or(Some(entry.at));
                    continue;
                }
                Event::Checkpointed { .. } => {
                    progress.saved += from.map_or(Duration::ZERO, |from| entry.at - from);
                    from = from.map(|_| entry.at);
                    continue;
                }
                Event::ClaimMoved { claim, state: ClaimState::Gone }
                | Event::MemberEnded { claim, .. }
                | Event::StartRefused { claim, .. } => *claim,
                _ => continue,
            };
            claims.remove(&gone);
            if claims.is_empty() {
                from = None;
            }
        }
        progress
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crater_model::{Claim, Held, JobUid, NodeUid};

    fn entries(events: Vec<(u64, Event)>) -> Vec<Entry> {
        let entry = |(i, (secs, event)): (usize, (u64, Event))| Entry {
            seq: i as u64 + 1,
            at: Time(secs * 1000),
            event,
        };
        events.into_iter().enumerate().map(entry).collect()
    }

    fn placed(claim: u64) -> Event {
        let (uid, job, node) = (ClaimUid(claim), JobUid(1), NodeUid(0));
        let (held, state) = (Held::default(), ClaimState::Reserved);
        let claim = Claim { uid, job, member: 0, node, held, state, loans: vec![] };
        Event::PlanCommitted { claims: vec![claim] }
    }

    fn moved(claim: u64, state: ClaimState) -> Event {
        Event::ClaimMoved { claim: ClaimUid(claim), state }
    }

    #[test]
    fn what_ran_before_a_checkpoint_counts_and_waiting_does_not() {
        let saved = || Event::Checkpointed { job: JobUid(1) };
        let all = entries(vec![
            (0, placed(1)),
            (1, moved(1, ClaimState::Held)),
            (11, saved()),
            // Lost: not saved again before it went.
            (14, moved(1, ClaimState::Gone)),
            (100, placed(2)),
            (101, moved(2, ClaimState::Held)),
            (104, saved()),
        ]);
        let seconds = Duration::from_secs;
        assert_eq!(Progress::of(&all[..3]), Progress { base: seconds(0), saved: seconds(10) });
        assert_eq!(Progress::of(&all), Progress { base: seconds(10), saved: seconds(13) });
    }
}
