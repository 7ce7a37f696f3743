//! `binpack`: fills the most used cards and nodes first, so that whole cards
//! and whole nodes stay free for work that needs them.
//!
//! A node's score is the weighted sum of four figures in thousandths, each of
//! them as it would be with the job in place:
//!
//! | figure | weight |
//! |---|---|
//! | how full the chosen cards are | `card`, 8 |
//! | used GPU share of the node | `gpu`, 4 |
//! | used memory of the node | `memory`, 2 |
//! | used CPU of the node | `cpu`, 1 |
//!
//! Cards: the least free that fit, the lowest-numbered among equals. A node
//! without cards counts as full of GPU work, so jobs without a GPU go there and
//! leave the CPU beside the cards alone.

use crater_sdk::prelude::*;

/// The configuration: a weight for each figure, 0–1000.
#[derive(Clone, Debug)]
pub struct BinPack {
    card: i32,
    gpu: i32,
    memory: i32,
    cpu: i32,
}

/// What is used of a total, in thousandths; all of it where there is none.
fn used(total: i32, free: i32, ask: i32) -> i32 {
    if total <= 0 {
        return 1000;
    }
    let used = i64::from(total) - i64::from(free) + i64::from(ask);
    (used * 1000 / i64::from(total)).clamp(0, 1000) as i32
}

impl Policy for BinPack {
    fn configure(config: &str, _: &[u8]) -> Result<Self, String> {
        let mut settings = Settings::read(config)?;
        let mut weight = |name, default| settings.int(name, 0..=1000, default);
        let it = Self {
            card: weight("card", 8)?,
            gpu: weight("gpu", 4)?,
            memory: weight("memory", 2)?,
            cpu: weight("cpu", 1)?,
        };
        settings.end()?;
        Ok(it)
    }

    fn score(&self, _: &Context, job: &Job, node: &Node) -> Score {
        let ask = Ask::of(job);
        let cards = node.tightest(&ask);
        let mut left = 0;
        for card in node.chosen(cards) {
            left += card.get(CARD_FREE) - ask.milli_on(card.get(CARD_MEMORY_TOTAL));
        }
        let full = 1000 - left / ask.cards.clamp(1, 1000) as i32;
        let gpu = used(node.get(NODE_GPU_TOTAL), node.get(NODE_GPU_FREE), node.milli(&ask));
        let memory =
            used(node.get(NODE_MEMORY_TOTAL), node.get(NODE_MEMORY_FREE), job.get(JOB_MEMORY));
        let cpu = used(node.get(NODE_CPU_TOTAL), node.get(NODE_CPU_FREE), job.get(JOB_CPU));
        Score::on(self.card * full + self.gpu * gpu + self.memory * memory + self.cpu * cpu, cards)
    }
}

crater_sdk::export!(BinPack {
    name: "binpack",
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
        JOB_CPU,
        JOB_MEMORY,
        NODE_CPU_TOTAL,
        NODE_CPU_FREE,
        NODE_MEMORY_TOTAL,
        NODE_MEMORY_FREE,
        NODE_GPU_TOTAL,
        NODE_GPU_FREE,
        NODE_GPU_MEMORY_TOTAL,
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

    fn binpack(config: &str) -> Tester {
        Tester::new(&native(), config).unwrap()
    }

    fn server() -> NodeSpec {
        node().cpu(64_000, 64_000).memory(512_000, 512_000)
    }

    #[test]
    fn a_share_goes_to_the_fullest_card_that_takes_it() {
        let nodes = [
            server().cards([1000, 1000]),
            server().cards([1000, 600]),
            server().cards([400, 1000]),
        ];
        let half = job().share(500);
        assert_eq!(binpack("{}").best(&half, &nodes), Some(1));
        assert_eq!(binpack("{}").masks(&half, &nodes), [0b01, 0b10, 0b10]);
    }

    #[test]
    fn whole_cards_fill_a_begun_node() {
        let nodes = [server().cards([1000; 4]), server().cards([0, 1000, 0, 1000])];
        assert_eq!(binpack("{}").best(&job().whole(2), &nodes), Some(1));
        assert_eq!(binpack("{}").masks(&job().whole(2), &nodes), [0b0011, 0b1010]);
    }

    #[test]
    fn work_without_a_gpu_leaves_the_cards_cpu_alone() {
        let nodes = [server().cards([1000]), server()];
        assert_eq!(binpack("{}").best(&job().cpu(8_000), &nodes), Some(1));
    }

    #[test]
    fn weights_turn_the_choice() {
        let nodes =
            [server().cards([600]).cpu(64_000, 64_000), server().cards([1000]).cpu(64_000, 9_000)];
        assert_eq!(binpack("{}").best(&job().share(500).cpu(8_000), &nodes), Some(0));
        let by_cpu = binpack(r#"{"card": 0, "gpu": 0, "cpu": 10}"#);
        assert_eq!(by_cpu.best(&job().share(500).cpu(8_000), &nodes), Some(1));
    }

    #[test]
    fn a_bad_weight_is_refused_by_its_name() {
        let error = native().configure(r#"{"gpu": -1}"#, &[]).map(|_| ()).unwrap_err();
        assert_eq!(error, "gpu: expected a whole number from 0 to 1000");
    }
}
