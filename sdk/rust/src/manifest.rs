//! What a policy says of itself.

use crate::columns::{
    OPTION_GROUP_BY, OPTION_NORMALISE, OPTION_RANK_STEP, OPTION_SCOPE, OPTION_TIME_STEP,
};

/// An optional interface of the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Interface {
    /// Heavy work off the round.
    Prepare,
    /// Which nodes may take a job.
    Filter,
    /// Which is best.
    Score,
    /// What groups of nodes add.
    ScoreGroups,
    /// Prices of evictions.
    Preempt,
    /// Order of the waiting jobs.
    Rank,
    /// A word at submission.
    Admit,
}

const OPTIONS: usize = 8;

/// Built by [`export!`](crate::export): each setting there is a method here.
#[derive(Clone, Copy, Debug)]
pub struct Manifest {
    /// Lower-case letters, digits and dashes.
    pub name: &'static str,
    /// The author's version; the package's unless said otherwise.
    pub version: &'static str,
    /// Ids of the columns and facts that it wants.
    pub wants: &'static [u32],
    /// Node labels that it wants; see [`Node::label`](crate::Node::label).
    pub labels: &'static [&'static str],
    /// Texts of its filter codes.
    pub reasons: &'static [(i32, &'static str)],
    /// JSON Schema of its configuration.
    pub schema: &'static str,
    /// The optional interfaces that it exports.
    pub exports: &'static [Interface],
    options: [(u32, i32); OPTIONS],
    used: usize,
}

impl Manifest {
    /// A manifest that wants and says nothing yet.
    pub const fn new(version: &'static str, exports: &'static [Interface]) -> Self {
        Self {
            name: "",
            version,
            wants: &[],
            labels: &[],
            reasons: &[],
            schema: r#"{"type":"object","additionalProperties":false}"#,
            exports,
            options: [(0, 0); OPTIONS],
            used: 0,
        }
    }

    /// Its name: lower-case letters, digits and dashes, at most 63.
    #[must_use]
    pub const fn name(mut self, name: &'static str) -> Self {
        let bytes = name.as_bytes();
        assert!(!bytes.is_empty() && bytes.len() <= 63, "a name has 1 to 63 characters");
        let mut i = 0;
        while i < bytes.len() {
            let fine = matches!(bytes[i], b'a'..=b'z' | b'0'..=b'9' | b'-');
            assert!(fine, "a name has lower-case letters, digits and dashes");
            i += 1;
        }
        self.name = name;
        self
    }

    /// Its version, in place of the package's.
    #[must_use]
    pub const fn version(mut self, version: &'static str) -> Self {
        self.version = version;
        self
    }

    /// Columns and facts that it wants.
    #[must_use]
    pub const fn wants(mut self, wants: &'static [u32]) -> Self {
        self.wants = wants;
        self
    }

    /// Node labels that it wants.
    #[must_use]
    pub const fn labels(mut self, labels: &'static [&'static str]) -> Self {
        self.labels = labels;
        self
    }

    /// Texts of its filter codes, short and without figures of one node.
    #[must_use]
    pub const fn reasons(mut self, reasons: &'static [(i32, &'static str)]) -> Self {
        let mut i = 0;
        while i < reasons.len() {
            assert!(reasons[i].0 > 0, "a reason's code is 1 or more");
            i += 1;
        }
        self.reasons = reasons;
        self
    }

    /// JSON Schema of its configuration; none allowed unless given.
    #[must_use]
    pub const fn schema(mut self, schema: &'static str) -> Self {
        self.schema = schema;
        self
    }

    /// Any option by its id, also one that this crate does not name.
    #[must_use]
    pub const fn option(mut self, id: u32, value: i32) -> Self {
        assert!(self.used < OPTIONS, "too many options");
        self.options[self.used] = (id, value);
        self.used += 1;
        self
    }

    /// Whether answers depend on the rows together, so that the host always
    /// asks for all of them in one call.
    #[must_use]
    pub const fn whole_table(self, whole: bool) -> Self {
        self.option(OPTION_SCOPE, whole as i32)
    }

    /// Seconds to which times are rounded down; answers stay cached as long.
    #[must_use]
    pub const fn time_step(self, seconds: i32) -> Self {
        assert!(seconds > 0, "a time step is positive");
        self.option(OPTION_TIME_STEP, seconds)
    }

    /// Whether the host maps scores to 0–100, lowest to highest.
    #[must_use]
    pub const fn normalise(self, normalise: bool) -> Self {
        self.option(OPTION_NORMALISE, normalise as i32)
    }

    /// Which groups `score_groups` wants: a sum of [`BY_MODEL`](Self::BY_MODEL),
    /// [`BY_DOMAIN`](Self::BY_DOMAIN) and [`BY_ZONE`](Self::BY_ZONE).
    #[must_use]
    pub const fn group_by(self, kinds: i32) -> Self {
        self.option(OPTION_GROUP_BY, kinds)
    }

    /// Seconds after which an order is asked for again without a change.
    #[must_use]
    pub const fn rank_step(self, seconds: i32) -> Self {
        assert!(seconds > 0, "a rank step is positive");
        self.option(OPTION_RANK_STEP, seconds)
    }

    /// Groups by card model.
    pub const BY_MODEL: i32 = 1;
    /// Groups by interconnect domain.
    pub const BY_DOMAIN: i32 = 2;
    /// Groups by zone.
    pub const BY_ZONE: i32 = 4;

    /// Option ids and values.
    pub fn options(&self) -> &[(u32, i32)] {
        self.options.get(..self.used).unwrap_or(&[])
    }

    /// Whether it makes this decision.
    pub fn exports(&self, interface: Interface) -> bool {
        self.exports.contains(&interface)
    }
}
