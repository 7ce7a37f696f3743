//! The card choice as it stands in a Binding's annotations and in claims: by
//! uuid, since an index may mean another card after a repair.

use crate::objects::MigInstance;
use crater_model::mig::Instance;
use crater_model::{CardShare, Mib, MilliCards};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What a pod holds on one card.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Assigned {
    /// The driver's uuid.
    pub uuid: Arc<str>,
    /// Place on the node at the time, for people.
    pub index: u8,
    /// Share, thousandths.
    pub milli: u64,
    /// Memory, MiB.
    #[serde(rename = "memoryMiB")]
    pub memory_mib: u64,
    /// The MIG instance, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<MigInstance>,
}

/// The shares as they are written; `uuids` are the node's cards.
pub fn write(shares: &[CardShare], uuids: &[Arc<str>]) -> Vec<Assigned> {
    let written = |share: &CardShare| Assigned {
        uuid: uuids.get(usize::from(share.card)).cloned().unwrap_or_default(),
        index: share.card,
        milli: share.milli.0,
        memory_mib: share.memory.0,
        instance: share
            .instance
            .as_ref()
            .map(|i| MigInstance { profile: i.profile.to_string(), start: i.start }),
    };
    shares.iter().map(written).collect()
}

/// The shares on cards that the node has now, in ascending order, and the
/// number of those on cards that are gone: nothing can be promised on a card
/// that is not there, so they need no place in the books.
pub fn read(assigned: &[Assigned], uuids: &[Arc<str>]) -> (Vec<CardShare>, usize) {
    let mut shares: Vec<CardShare> = assigned
        .iter()
        .filter_map(|a| {
            let card = uuids.iter().position(|uuid| *uuid == a.uuid)?;
            let instance = a.instance.as_ref();
            Some(CardShare {
                card: card as u8,
                milli: MilliCards(a.milli),
                memory: Mib(a.memory_mib),
                instance: instance
                    .map(|i| Instance { profile: i.profile.as_str().into(), start: i.start }),
            })
        })
        .collect();
    shares.sort_by_key(|s| s.card);
    let lost = assigned.len() - shares.len();
    (shares, lost)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_card_is_found_again_by_its_uuid() {
        let uuids: Vec<Arc<str>> = vec!["GPU-a".into(), "GPU-b".into()];
        let share =
            |card| CardShare { card, milli: MilliCards(500), memory: Mib(40_960), instance: None };
        let written = write(&[share(0), share(1)], &uuids);
        let turned: Vec<Arc<str>> = vec!["GPU-b".into(), "GPU-c".into()];
        assert_eq!(read(&written, &uuids), (vec![share(0), share(1)], 0));
        assert_eq!(read(&written, &turned), (vec![share(0)], 1));
    }
}
