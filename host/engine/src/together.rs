//! Members that want to be near each other: which groups of nodes could take
//! them, the tightest first.

use crate::fit::count;
use crate::overlay::Overlay;
use crate::state::Job;
use crater_model::{Request, Within};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Most groups in which a job is tried.
const TRIES: usize = 16;

/// Groups of nodes at one topology level, with how many members fit in each.
pub struct Groups {
    room: BTreeMap<Arc<str>, u64>,
    min: u64,
    all: u64,
}

impl Groups {
    /// Counts what fits in each group now. Nodes without a place at the level
    /// are in none.
    pub fn of(overlay: &Overlay<'_>, job: &Job, level: &str) -> Self {
        let (members, request) = (job.spec.members, &job.spec.request);
        let mut room: BTreeMap<Arc<str>, u64> = BTreeMap::new();
        for slot in 0..overlay.base().node_slots() as u32 {
            let Some(node) = overlay.get(slot) else { continue };
            let Some(place) = node.spec.place(level) else { continue };
            let fits = u64::from(count(node, request, members));
            match room.get_mut(place) {
                Some(sum) => *sum += fits,
                None => drop(room.insert(place.into(), fits)),
            }
        }
        Self { room, min: u64::from(job.spec.min_members), all: u64::from(members) }
    }

    /// Those that can take the job: for all its members before fewer, then with
    /// the least room, so that larger groups stay whole; then by name.
    pub fn fitting(&self) -> Vec<&Arc<str>> {
        let mut fitting: Vec<_> = self.room.iter().filter(|(_, room)| **room >= self.min).collect();
        fitting.sort_by_key(|(_, room)| (**room < self.all, **room));
        fitting.into_iter().take(TRIES).map(|(value, _)| value).collect()
    }

    /// Why there is none.
    pub fn told(&self, job: &Job, level: &str) -> String {
        let min = job.spec.min_members;
        match self.room.iter().max_by_key(|(_, room)| **room) {
            None => format!("no node has a {level}, in which its members are to be together"),
            Some((best, room)) => format!(
                "no {level} has room for {min} members together (most: {best} with room for {room})"
            ),
        }
    }
}

/// The job, on nodes of one group only.
pub fn within(job: &Job, level: &Arc<str>, value: &Arc<str>) -> Job {
    let mut narrowed = job.clone();
    let within = Some(Within { level: level.clone(), value: value.clone() });
    let request = Request { within, ..Request::clone(&job.spec.request) };
    Arc::make_mut(&mut narrowed.spec).request = Arc::new(request);
    narrowed
}
