//! `gang-domain`: a gang goes into one interconnect domain, the smallest that
//! takes all of it.
//!
//! Domains are scored as groups, so a node's own row stays cached while the
//! domains' sums change with every placement:
//!
//! 1. the domain in which the gang has begun,
//! 2. else the one that takes all members still to place and keeps the fewest
//!    idle cards,
//! 3. else the one with the most idle cards, so that few domains are touched.
//!
//! Within a domain the fullest node comes first.

use crater_sdk::prelude::*;

/// It takes no configuration.
#[derive(Debug)]
pub struct GangDomain;

/// Apart by more than a node's own score, which is at most 1000.
const STEP: i32 = 1001;
/// More idle cards than this count as this many.
const MOST: i32 = 100_000;

impl Policy for GangDomain {
    fn configure(config: &str, _: &[u8]) -> Result<Self, String> {
        Settings::none(config).map(|()| Self)
    }

    fn score(&self, _: &Context, _: &Job, node: &Node) -> Score {
        let (free, total) = (node.get(NODE_GPU_FREE), node.get(NODE_GPU_TOTAL).max(1));
        Score::from(1000 - (i64::from(free) * 1000 / i64::from(total)).clamp(0, 1000) as i32)
    }

    fn score_group(&self, _: &Context, job: &Job, domain: &Group) -> i32 {
        let left = (job.get(JOB_MEMBERS) - job.get(JOB_PLACED)).max(1);
        let need = left.saturating_mul(job.get(JOB_CARDS));
        let idle = domain.get(GROUP_CARDS_IDLE);
        let place = if domain.get(GROUP_SAME_JOB) > 0 {
            3 * MOST
        } else if idle >= need {
            2 * MOST - (idle - need).min(MOST)
        } else {
            idle.min(MOST)
        };
        place * STEP
    }
}

crater_sdk::export!(GangDomain {
    name: "gang-domain",
    exports: [score, score_groups],
    wants: [
        JOB_MEMBERS,
        JOB_PLACED,
        JOB_CARDS,
        NODE_GPU_FREE,
        NODE_GPU_TOTAL,
        GROUP_CARDS_IDLE,
        GROUP_SAME_JOB
    ],
    group_by: crater_sdk::Manifest::BY_DOMAIN,
});

#[cfg(test)]
mod tests {
    use super::*;
    use crater_sdk::testing::{JobSpec, RowSpec, Tester, group, job, node};

    fn gang(members: i32, placed: i32) -> JobSpec {
        job().whole(8).set(JOB_MEMBERS, members).set(JOB_PLACED, placed)
    }

    fn domains(of: &[(i32, i32)]) -> Vec<RowSpec> {
        let domain = |(idle, same): &(i32, i32)| {
            group("d").set(GROUP_CARDS_IDLE, *idle).set(GROUP_SAME_JOB, *same)
        };
        of.iter().map(domain).collect()
    }

    /// The best domain.
    fn best(job: &JobSpec, of: &[(i32, i32)]) -> usize {
        let scores = Tester::new(&native(), "{}").unwrap().group_scores(job, &domains(of));
        (0..scores.len()).max_by_key(|i| scores[*i]).unwrap()
    }

    #[test]
    fn the_smallest_domain_that_takes_all() {
        assert_eq!(best(&gang(4, 0), &[(64, 0), (40, 0), (24, 0)]), 1);
        // Two of four are placed: 16 cards are still needed.
        assert_eq!(best(&gang(4, 2), &[(64, 0), (40, 0), (24, 0)]), 2);
    }

    #[test]
    fn a_begun_domain_is_filled_and_none_that_fits_means_the_largest() {
        assert_eq!(best(&gang(4, 1), &[(24, 0), (8, 1)]), 1);
        assert_eq!(best(&gang(16, 0), &[(24, 0), (64, 0), (40, 0)]), 1);
    }

    #[test]
    fn a_nodes_own_score_never_outweighs_its_domain() {
        let tester = Tester::new(&native(), "{}").unwrap();
        let rows = tester.scores(&gang(4, 0), &[node().cards([1000; 8]), node().cards([0; 8])]);
        let groups = tester.group_scores(&gang(4, 0), &domains(&[(40, 0), (41, 0)]));
        assert_eq!(rows, [0, 1000]);
        assert!(groups[0] + rows[0] > groups[1] + rows[1]);
    }
}
