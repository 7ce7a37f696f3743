use super::*;
use crate::settings::LeaseTimes;
use crater_model::{Kind, QueueSpec};

const HOUR: i64 = 3600;

fn settings(identity: &str) -> Settings {
    let secs = Duration::from_secs;
    let queue = QueueSpec::new("training", Kind::Training);
    Settings {
        lease: LeaseTimes { lasts: secs(15), renew: secs(10), retry: secs(2) },
        ..Settings::new(identity.into(), vec![queue])
    }
}

/// A moment so many seconds after `began`, with a wall clock that is off.
fn moment(began: Moment, after: u64, off: i64) -> Moment {
    let wall = began.wall.as_second() + i64::try_from(after).unwrap() + off;
    Moment {
        steady: began.steady + Duration::from_secs(after),
        wall: Timestamp::from_second(wall).unwrap(),
    }
}

fn lease(version: u32, spec: Option<LeaseSpec>) -> Lease {
    let resource_version = Some(version.to_string());
    Lease { metadata: ObjectMeta { resource_version, ..ObjectMeta::default() }, spec }
}

#[test]
fn a_tenure_that_ran_out_is_not_revived() {
    let tenure = Tenure::new(1, Instant::now(), true);
    assert!(!tenure.lasts());
    tenure.extend(Instant::now() + Duration::from_mins(1));
    assert!(!tenure.lasts());
    let heedless = Tenure::new(1, Instant::now(), false);
    assert!(heedless.lasts());
    heedless.end();
    assert!(!heedless.lasts());
}

#[test]
fn who_stands_by_counts_from_what_it_saw_change_whatever_the_clocks_say() {
    // C09. The holder's clock is hours off either way, and ours jumps between
    // every two looks.
    let (ours, theirs) = (settings("ours"), settings("theirs"));
    for off in [-3 * HOUR, 0, 3 * HOUR] {
        let began = Moment::now();
        let mut seen = Observed::default();
        let held = |version, after| {
            lease(version, Some(mine(&theirs, moment(began, after, off), 4, None)))
        };
        let first = held(1, 0);
        assert!(seen.judge(&first, &ours, moment(began, 0, 0)).is_none());
        assert!(seen.judge(&first, &ours, moment(began, 14, HOUR)).is_none(), "{off}");
        // Renewed: from here on anew.
        let second = held(2, 14);
        assert!(seen.judge(&second, &ours, moment(began, 16, -HOUR)).is_none());
        assert!(seen.judge(&second, &ours, moment(began, 30, HOUR)).is_none(), "{off}");
        let taken = seen.judge(&second, &ours, moment(began, 31, -HOUR)).unwrap();
        assert_eq!(taken.holder_identity.as_deref(), Some("ours"));
        assert_eq!(taken.lease_transitions, Some(5));
    }
}

#[test]
fn who_leads_goes_on_for_as_long_as_it_renews_though_its_clock_jumps() {
    let ours = settings("ours");
    let began = Moment::now();
    let until = |m: Moment| m.steady + ours.lease.renew;
    let tenure = Tenure::new(1, until(began), true);
    let mut seen = Observed::default();
    let mut found = lease(1, Some(mine(&ours, began, 0, None)));
    for (version, off) in (2..).zip([0, HOUR, -HOUR, 0]) {
        let now = moment(began, u64::from(version) * 2, off);
        assert!(tenure.lasts_at(now.steady));
        let renewed = seen.judge(&found, &ours, now).expect("it is ours");
        assert_eq!(renewed.lease_transitions, Some(0), "renewed, not taken");
        tenure.extend(until(now));
        found = lease(version, Some(renewed));
    }
    // The last renewal was at 10 s: ten more, by the steady clock alone.
    assert!(tenure.lasts_at(moment(began, 19, HOUR).steady));
    assert!(!tenure.lasts_at(moment(began, 21, -HOUR).steady));
}

#[test]
fn a_lease_that_was_given_back_is_free_at_once() {
    let began = Moment::now();
    let mut given = mine(&settings("theirs"), began, 7, None);
    given.holder_identity = Some(String::new());
    let taken = Observed::default().judge(&lease(1, Some(given)), &settings("ours"), began);
    assert_eq!(taken.unwrap().lease_transitions, Some(8));
    let bare = Observed::default().judge(&lease(1, None), &settings("ours"), began);
    assert_eq!(bare.unwrap().lease_transitions, Some(1));
}
