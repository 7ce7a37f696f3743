//! A guest that behaves is asked and answers.

use crate::guest::{Guest, KEEP, SUM};
use crate::world::{configured, metered, one, runtime, table};
use crater_engine::policy::Policy;

#[test]
fn answers_come_back_one_a_row() {
    let guest = Guest::default().with("filter", KEEP).with("score", SUM);
    for runtime in [runtime(), metered()] {
        let policy = configured(&runtime, &guest);
        for rows in [0, 1, 7, 2000] {
            let nodes = table(rows, 3);
            let sums: Vec<i32> = (0..i32::try_from(rows).unwrap()).map(|i| 3000 + 3 * i).collect();
            let scores = policy.score(&one(1, 0), &one(100, 1), &nodes).unwrap();
            assert_eq!((scores.scores, scores.cards), (sums, vec![]));
            let codes = policy.filter(&one(1, 0), &one(100, 1), &nodes).unwrap();
            assert_eq!(codes, vec![0; rows as usize]);
        }
        assert_eq!(policy.counters().calls, 8);
        assert_eq!(policy.counters().faults(), 0);
        assert_eq!(policy.counters().instances_made, 1);
    }
}
