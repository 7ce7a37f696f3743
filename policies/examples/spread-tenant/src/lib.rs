//! `spread-tenant`: the members of one project go to different nodes, so that
//! a lost node costs each project as little as can be.
//!
//! The fewer members of the job's project a node has, the better. Which project
//! it is the policy never learns: the host counts.

use crater_sdk::prelude::*;

/// It takes no configuration.
#[derive(Debug)]
pub struct SpreadTenant;

impl Policy for SpreadTenant {
    fn configure(config: &str, _: &[u8]) -> Result<Self, String> {
        Settings::none(config).map(|()| Self)
    }

    fn score(&self, _: &Context, _: &Job, node: &Node) -> Score {
        Score::from(-node.get(NODE_SAME_PROJECT))
    }
}

crater_sdk::export!(SpreadTenant {
    name: "spread-tenant",
    exports: [score],
    wants: [NODE_SAME_PROJECT],
});

#[cfg(test)]
mod tests {
    use super::*;
    use crater_sdk::testing::{Tester, job, node};

    #[test]
    fn the_node_with_the_fewest_of_the_project_wins() {
        let with = |members| node().set(NODE_SAME_PROJECT, members);
        let tester = Tester::new(&native(), "{}").unwrap();
        assert_eq!(tester.best(&job(), &[with(2), with(0), with(1)]), Some(1));
    }
}
