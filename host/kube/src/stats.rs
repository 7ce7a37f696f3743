//! Counts that whoever runs a scheduler may read at any time.

use serde::Serialize;
use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! stats {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Counts since the process began.
        #[derive(Debug, Default)]
        pub struct Stats { $($(#[$doc])* pub $name: AtomicU64,)* }

        /// The counts at one moment.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
        pub struct Counts { $($(#[$doc])* pub $name: u64,)* }

        impl Stats {
            /// What they are now.
            pub fn counts(&self) -> Counts {
                Counts { $($name: self.$name.load(Ordering::Relaxed),)* }
            }
        }
    };
}

stats! {
    /// The epoch of this process when it last led; 0: never.
    epoch,
    /// Rounds decided.
    rounds,
    /// Nanoseconds spent deciding and committing.
    deciding_ns,
    /// Pods bound.
    bound,
    /// Writes of claims objects.
    claim_writes,
    /// Claims objects found written by another leader.
    claims_of_others,
    /// Promises of earlier leaders that were honoured.
    honoured,
    /// Bindings that the API server refused.
    refused,
    /// Bindings whose outcome was unknown and had to be read.
    unknown,
    /// Bindings that met another change of the pod.
    conflicts,
    /// Errors of lists and watches.
    watch_errors,
    /// Full lists.
    lists,
    /// Conditions written.
    conditions,
    /// Pods found on cards that were full already.
    overpromised,
    /// Pods whose annotation of assigned cards was not taken as it is.
    doubted,
    /// Jobs in the books of this leader, those not yet forgotten included.
    jobs,
    /// Commands that the ledger should not have refused.
    defects,
}
