//! `spread`: the least used place first, so that what runs disturbs its
//! neighbours least and a lost machine costs little.
//!
//! | `by` | best is the node with | then |
//! |---|---|---|
//! | `cards` (default) | the emptiest cards for the job | the most free |
//! | `nodes` | the most free | |
//! | `tenant` | the fewest members of the job's project | the most free |
//!
//! *The most free* is GPU share, in thousandths of what the node has; CPU for
//! jobs without a GPU. Cards: those with the most free share that fit, the
//! lowest-numbered among equals.

use crater_sdk::prelude::*;

#[derive(Clone, Copy, Debug)]
enum By {
    Cards,
    Nodes,
    Tenant,
}

/// What is spread over.
#[derive(Clone, Copy, Debug)]
pub struct Spread(By);

/// Thousandths that are free; none of nothing.
fn part(free: i32, total: i32) -> i32 {
    (i64::from(free.max(0)) * 1000 / i64::from(total.max(1))).min(1000) as i32
}

impl Policy for Spread {
    fn configure(config: &str, _: &[u8]) -> Result<Self, String> {
        let mut settings = Settings::read(config)?;
        let by = settings.choice("by", &["cards", "nodes", "tenant"], 0)?;
        settings.end()?;
        Ok(Self([By::Cards, By::Nodes, By::Tenant][by]))
    }

    fn score(&self, _: &Context, job: &Job, node: &Node) -> Score {
        let ask = Ask::of(job);
        let free = if ask.cards == 0 {
            part(node.get(NODE_CPU_FREE), node.get(NODE_CPU_TOTAL))
        } else {
            part(node.get(NODE_GPU_FREE), node.get(NODE_GPU_TOTAL))
        };
        let cards = node.loosest(&ask);
        let first = match self.0 {
            By::Cards => node.chosen(cards).map(|card| card.get(CARD_FREE)).min().unwrap_or(0),
            By::Nodes => 0,
            By::Tenant => -node.get(NODE_SAME_PROJECT).min(1_000_000),
        };
        Score::on(first * 1001 + free, cards)
    }
}

crater_sdk::export!(Spread {
    name: "spread",
    exports: [score],
    wants: [
        JOB_CARDS,
        JOB_CARD_MILLI,
        JOB_CARD_MIB,
        JOB_WHOLE_CARDS,
        JOB_MODELS,
        JOB_MIG_PROFILE,
        JOB_NVLINK,
        JOB_NUMA,
        NODE_CPU_TOTAL,
        NODE_CPU_FREE,
        NODE_GPU_TOTAL,
        NODE_GPU_FREE,
        NODE_SAME_PROJECT,
        CARD_FREE,
        CARD_MEMORY_FREE,
        CARD_MEMORY_TOTAL,
        CARD_MODEL
    ],
    schema: include_str!("../schema.json"),
});

#[cfg(test)]
mod tests {
    use super::*;
    use crater_sdk::testing::{NodeSpec, Tester, job, node};

    fn spread(by: &str) -> Tester {
        Tester::new(&native(), &format!(r#"{{"by": "{by}"}}"#)).unwrap()
    }

    fn nodes() -> [NodeSpec; 3] {
        [
            // An idle card, but little free over all.
            node().cards([1000, 0, 0, 100]).set(NODE_SAME_PROJECT, 0),
            // No idle card, but more free over all.
            node().cards([800, 700, 700, 500]).set(NODE_SAME_PROJECT, 2),
            node().cards([500, 600, 0, 0]).set(NODE_SAME_PROJECT, 0),
        ]
    }

    #[test]
    fn each_way_has_its_own_best() {
        let job = job().share(300);
        assert_eq!(spread("cards").best(&job, &nodes()), Some(0));
        assert_eq!(spread("nodes").best(&job, &nodes()), Some(1));
        // Nodes 0 and 2 are equally without the project and equally free.
        assert_eq!(spread("tenant").scores(&job, &nodes()), [275, -1327, 275]);
        assert_eq!(spread("cards").masks(&job, &nodes()), [0b0001, 0b0001, 0b0010]);
    }

    #[test]
    fn work_without_a_gpu_spreads_over_cpu() {
        let nodes = [node().cpu(64_000, 8_000), node().cpu(16_000, 12_000)];
        assert_eq!(spread("cards").best(&job().cpu(1_000), &nodes), Some(1));
    }

    #[test]
    fn an_unknown_way_is_refused_with_those_there_are() {
        let error = native().configure(r#"{"by": "racks"}"#, &[]).map(|_| ()).unwrap_err();
        assert_eq!(error, "by: expected one of cards, nodes, tenant");
    }
}
