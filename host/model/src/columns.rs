//! Every id of the policy contract, and what is known of it.
//!
//! Written by `cargo xtask contract` from wit/columns.toml; change that file.

#![allow(clippy::doc_markdown)]

/// How values belong to rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Shape {
    /// One a row.
    Value,
    /// Many, of the one thing that the call is about.
    List,
    /// Rows + 1 positions: where the values of each row begin.
    Offsets,
    /// Many a row, end to end, over the offsets column of the family.
    Ragged,
    /// n × n a row, row by row, over the offsets column of the family.
    Pair,
}

/// What a value depends on, and so which answers may be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Depends {
    /// On what the call is about: time, chance, groups, units, facts.
    Call,
    /// On the job alone.
    Job,
    /// On the node alone.
    Node,
    /// On the job and the node: a relation.
    Both,
}

/// The table that a column belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TableKind {
    /// The call itself. An answer depends on time or chance only if the policy wants these.
    Context,
    /// What was submitted. One row a job in `rank`; elsewhere the one job that is decided on. Amounts are of one member.
    Job,
    /// The nodes that could take the job, one row each.
    Node,
    /// The cards of each row of the node table, in the node's order; their position is the bit of the card mask. Ragged over `card-offsets`, which comes whenever one of them is wanted.
    Card,
    /// Pairs of cards of each row: for n cards n × n values, row by row, over `link-offsets`.
    Link,
    /// Groups of nodes, one row each, for `score-groups`. The option `group-by` says which kinds.
    Group,
    /// What could be evicted, one row each, for `preempt`: a whole job, or an elastic job's members above its minimum.
    Unit,
    /// Slow knowledge for `prepare`. The mix columns run in step, one value a job shape; so do the class columns, one value a sort of node.
    Fact,
}

/// What is known of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnInfo {
    /// Its id.
    pub id: u32,
    /// Its name, kebab-case.
    pub name: &'static str,
    /// Its table.
    pub table: TableKind,
    /// How its values belong to rows.
    pub shape: Shape,
    /// What its values depend on.
    pub depends: Depends,
    /// `admit` may fill it in.
    pub settable: bool,
    /// The offsets column that it lies over, for `Ragged` and `Pair`.
    pub offsets: Option<u32>,
    /// What its integers count.
    pub unit: &'static str,
}

/// An option of the manifest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptionInfo {
    /// Its id.
    pub id: u32,
    /// Its name, kebab-case.
    pub name: &'static str,
}

/// What is known of a column; nothing of an id that this version lacks.
pub fn info(id: u32) -> Option<&'static ColumnInfo> {
    let at = COLUMNS.binary_search_by_key(&id, |c| c.id).ok()?;
    COLUMNS.get(at)
}

/// What is known of an option.
pub fn option(id: u32) -> Option<&'static OptionInfo> {
    OPTIONS.iter().find(|o| o.id == id)
}

/// The time, rounded down to the policy's time step.
///
/// Unit: minutes since 1970-01-01 UTC; one a row. Table `context`.
pub const NOW: u32 = 1;

/// The time of day, rounded down to the policy's time step.
///
/// Unit: minutes, 0–1439 UTC; one a row. Table `context`.
pub const MINUTE_OF_DAY: u32 = 2;

/// The day of the week.
///
/// Unit: 0 Monday – 6 Sunday, UTC; one a row. Table `context`.
pub const WEEKDAY: u32 = 3;

/// The decision's random seed: low and high 32 bits. Derive all chance from it, so that a decision can be replayed.
///
/// Unit: two values; a list. Table `context`.
pub const SEED: u32 = 4;

/// This job.
///
/// Unit: opaque; one a row. Table `job`.
pub const JOB_ID: u32 = 100;

/// The department that owns it.
///
/// Unit: opaque; one a row. Table `job`.
pub const JOB_DEPARTMENT: u32 = 101;

/// The project that owns it; the department where there is none.
///
/// Unit: opaque; one a row. Table `job`.
pub const JOB_PROJECT: u32 = 102;

/// The person that submitted it; the project where there is none.
///
/// Unit: opaque; one a row. Table `job`.
pub const JOB_USER: u32 = 103;

/// Its kind.
///
/// Unit: 1 inference, 2 training, 3 offline; one a row. Table `job`.
pub const JOB_KIND: u32 = 104;

/// Its priority: low 10, medium 50, high 100.
///
/// Unit: 0–1000; one a row. Table `job`.
pub const JOB_PRIORITY: u32 = 105;

/// Equal members that make up the job.
///
/// Unit: members; one a row. Table `job`.
pub const JOB_MEMBERS: u32 = 106;

/// Members that must start together.
///
/// Unit: members; one a row. Table `job`.
pub const JOB_MIN_MEMBERS: u32 = 107;

/// Members placed so far, tentative ones included.
///
/// Unit: members; one a row. Table `job`.
pub const JOB_PLACED: u32 = 108;

/// Time spent waiting, rounded down to the policy's time step.
///
/// Unit: seconds; one a row. Table `job`.
pub const JOB_WAITED: u32 = 109;

/// Starts so far, this one not included.
///
/// Unit: attempts; one a row. Table `job`.
pub const JOB_ATTEMPTS: u32 = 110;

/// How often it was preempted.
///
/// Unit: times; one a row. Table `job`.
pub const JOB_PREEMPTIONS: u32 = 111;

/// Its owner allows preemption.
///
/// Unit: 0 or 1; one a row. Table `job`.
pub const JOB_PREEMPTIBLE: u32 = 112;

/// Its run limit.
///
/// Unit: seconds, 0 none; one a row. Table `job`.
pub const JOB_RUN_LIMIT: u32 = 113;

/// Its place in order of submission, from 0, among the rows of `rank`.
///
/// Unit: position; one a row. Table `job`.
pub const JOB_ORDER: u32 = 114;

/// Distinct cards a member uses; 0 for work without a GPU.
///
/// Unit: cards; one a row. Table `job`.
pub const JOB_CARDS: u32 = 120;

/// Asked of each of those cards, 1–1000; 0 where memory decides and the share follows from the card's size.
///
/// Unit: milli-cards; one a row. Table `job`.
pub const JOB_CARD_MILLI: u32 = 121;

/// Memory asked of each card; 0 means in proportion to the share.
///
/// Unit: MiB; one a row. Table `job`.
pub const JOB_CARD_MIB: u32 = 122;

/// It takes whole cards and shares none of them.
///
/// Unit: 0 or 1; one a row. Table `job`.
pub const JOB_WHOLE_CARDS: u32 = 123;

/// CPU.
///
/// Unit: milli-cores; one a row. Table `job`.
pub const JOB_CPU: u32 = 124;

/// Memory.
///
/// Unit: MiB; one a row. Table `job`.
pub const JOB_MEMORY: u32 = 125;

/// Disk IO weight.
///
/// Unit: 1–10000; one a row. Table `job`.
pub const JOB_DISK_WEIGHT: u32 = 126;

/// Reserved disk bandwidth.
///
/// Unit: MB/s; one a row. Table `job`.
pub const JOB_DISK_MBPS: u32 = 127;

/// Card models it may use; empty means any. Not in `rank`, where a list has no place.
///
/// Unit: string; a list. Table `job`.
pub const JOB_MODELS: u32 = 128;

/// The MIG profile it asks for.
///
/// Unit: string, 0 none; one a row. Table `job`.
pub const JOB_MIG_PROFILE: u32 = 129;

/// Its need of NVLink between its cards.
///
/// Unit: 0 none, 1 preferred, 2 required; one a row. Table `job`.
pub const JOB_NVLINK: u32 = 130;

/// Its need of a single NUMA node.
///
/// Unit: 0 none, 1 preferred, 2 required; one a row. Table `job`.
pub const JOB_NUMA: u32 = 131;

/// This node. Wanting it keeps equal nodes from sharing one cached answer.
///
/// Unit: opaque; one a row. Table `node`.
pub const NODE_ID: u32 = 200;

/// CPU of the node.
///
/// Unit: milli-cores; one a row. Table `node`.
pub const NODE_CPU_TOTAL: u32 = 201;

/// CPU not promised.
///
/// Unit: milli-cores; one a row. Table `node`.
pub const NODE_CPU_FREE: u32 = 202;

/// Memory of the node.
///
/// Unit: MiB; one a row. Table `node`.
pub const NODE_MEMORY_TOTAL: u32 = 203;

/// Memory not promised.
///
/// Unit: MiB; one a row. Table `node`.
pub const NODE_MEMORY_FREE: u32 = 204;

/// Healthy cards.
///
/// Unit: cards; one a row. Table `node`.
pub const NODE_CARDS: u32 = 205;

/// Healthy cards of which nothing is promised.
///
/// Unit: cards; one a row. Table `node`.
pub const NODE_CARDS_IDLE: u32 = 206;

/// Free share over all healthy cards.
///
/// Unit: milli-cards; one a row. Table `node`.
pub const NODE_GPU_FREE: u32 = 207;

/// 1000 for each healthy card.
///
/// Unit: milli-cards; one a row. Table `node`.
pub const NODE_GPU_TOTAL: u32 = 208;

/// Free memory over all healthy cards.
///
/// Unit: MiB; one a row. Table `node`.
pub const NODE_GPU_MEMORY_FREE: u32 = 209;

/// Memory of all healthy cards.
///
/// Unit: MiB; one a row. Table `node`.
pub const NODE_GPU_MEMORY_TOTAL: u32 = 210;

/// Disk bandwidth not reserved.
///
/// Unit: MB/s; one a row. Table `node`.
pub const NODE_DISK_FREE: u32 = 211;

/// Disk bandwidth of the node.
///
/// Unit: MB/s; one a row. Table `node`.
pub const NODE_DISK_TOTAL: u32 = 212;

/// Model of the node's first card.
///
/// Unit: string, 0 none; one a row. Table `node`.
pub const NODE_MODEL: u32 = 213;

/// Interconnect domain.
///
/// Unit: string, 0 none; one a row. Table `node`.
pub const NODE_DOMAIN: u32 = 214;

/// Zone.
///
/// Unit: string, 0 none; one a row. Table `node`.
pub const NODE_ZONE: u32 = 215;

/// Members on the node, tentative ones included.
///
/// Unit: members; one a row. Table `node`.
pub const NODE_MEMBERS: u32 = 216;

/// Which sizes of GPU work are on the node: bit 0 shares of a card, bit n members with n whole cards (30 and more: bit 30).
///
/// Unit: bits; one a row. Table `node`.
pub const NODE_GPU_CLASSES: u32 = 217;

/// Members of this job on the node, tentative ones included.
///
/// Unit: members; one a row. Table `node`.
pub const NODE_SAME_JOB: u32 = 220;

/// Members of this job's project on the node.
///
/// Unit: members; one a row. Table `node`.
pub const NODE_SAME_PROJECT: u32 = 221;

/// Members of this job's user on the node.
///
/// Unit: members; one a row. Table `node`.
pub const NODE_SAME_USER: u32 = 222;

/// Members of this job's queue on the node.
///
/// Unit: members; one a row. Table `node`.
pub const NODE_SAME_QUEUE: u32 = 223;

/// Members of this job's department on the node.
///
/// Unit: members; one a row. Table `node`.
pub const NODE_SAME_DEPARTMENT: u32 = 224;

/// Where each row's cards begin.
///
/// Unit: position; rows + 1 values. Table `card`.
pub const CARD_OFFSETS: u32 = 300;

/// Free share, 0 on a card that is sick or cut into MIG instances.
///
/// Unit: milli-cards; several a row. Table `card`.
pub const CARD_FREE: u32 = 301;

/// Free memory, 0 on a card that is sick or cut into MIG instances.
///
/// Unit: MiB; several a row. Table `card`.
pub const CARD_MEMORY_FREE: u32 = 302;

/// Memory.
///
/// Unit: MiB; several a row. Table `card`.
pub const CARD_MEMORY_TOTAL: u32 = 303;

/// Model.
///
/// Unit: string; several a row. Table `card`.
pub const CARD_MODEL: u32 = 304;

/// The NUMA node it hangs on.
///
/// Unit: NUMA node, -1 unknown; several a row. Table `card`.
pub const CARD_NUMA: u32 = 305;

/// Whether it may be used.
///
/// Unit: 0 or 1; several a row. Table `card`.
pub const CARD_HEALTHY: u32 = 306;

/// Claims on it.
///
/// Unit: claims; several a row. Table `card`.
pub const CARD_SHARES: u32 = 307;

/// It is cut into MIG instances.
///
/// Unit: 0 or 1; several a row. Table `card`.
pub const CARD_MIG: u32 = 308;

/// Cards with the same number reach each other by NVLink, directly or through a switch; alone in its group without.
///
/// Unit: group; several a row. Table `card`.
pub const CARD_LINK_GROUP: u32 = 309;

/// Where each row's pairs begin.
///
/// Unit: position; rows + 1 values. Table `link`.
pub const LINK_OFFSETS: u32 = 400;

/// Bandwidth between two cards: NVLink where there is one, else PCIe; 0 where unknown and on the diagonal.
///
/// Unit: GB/s, one direction; n × n a row. Table `link`.
pub const LINK_BANDWIDTH: u32 = 401;

/// What its nodes have in common.
///
/// Unit: 1 card model, 2 domain, 4 zone; one a row. Table `group`.
pub const GROUP_KIND: u32 = 500;

/// The model's, domain's or zone's name.
///
/// Unit: string; one a row. Table `group`.
pub const GROUP_NAME: u32 = 501;

/// Nodes in it.
///
/// Unit: nodes; one a row. Table `group`.
pub const GROUP_NODES: u32 = 502;

/// Healthy cards.
///
/// Unit: cards; one a row. Table `group`.
pub const GROUP_CARDS: u32 = 503;

/// Healthy cards of which nothing is promised.
///
/// Unit: cards; one a row. Table `group`.
pub const GROUP_CARDS_IDLE: u32 = 504;

/// Free share over all its cards.
///
/// Unit: milli-cards; one a row. Table `group`.
pub const GROUP_GPU_FREE: u32 = 505;

/// CPU not promised.
///
/// Unit: milli-cores; one a row. Table `group`.
pub const GROUP_CPU_FREE: u32 = 506;

/// Members of this job in the group, tentative ones included.
///
/// Unit: members; one a row. Table `group`.
pub const GROUP_SAME_JOB: u32 = 507;

/// The job.
///
/// Unit: opaque; one a row. Table `unit`.
pub const UNIT_JOB: u32 = 600;

/// What the unit would take.
///
/// Unit: 0 whole job, 1 shrink to its minimum; one a row. Table `unit`.
pub const UNIT_SHRINK: u32 = 601;

/// The job's kind.
///
/// Unit: 1 inference, 2 training, 3 offline; one a row. Table `unit`.
pub const UNIT_KIND: u32 = 602;

/// The job's priority.
///
/// Unit: 0–1000; one a row. Table `unit`.
pub const UNIT_PRIORITY: u32 = 603;

/// Members that would go.
///
/// Unit: members; one a row. Table `unit`.
pub const UNIT_MEMBERS: u32 = 604;

/// GPU share that would be freed.
///
/// Unit: milli-cards; one a row. Table `unit`.
pub const UNIT_MILLI: u32 = 605;

/// How long the job has run.
///
/// Unit: seconds; one a row. Table `unit`.
pub const UNIT_RUNNING: u32 = 606;

/// Work that would be lost.
///
/// Unit: seconds, -1 never; one a row. Table `unit`.
pub const UNIT_SINCE_CHECKPOINT: u32 = 607;

/// How often the job was preempted.
///
/// Unit: times; one a row. Table `unit`.
pub const UNIT_PREEMPTIONS: u32 = 608;

/// How much of it is borrowed.
///
/// Unit: milli-cards; one a row. Table `unit`.
pub const UNIT_BORROWED: u32 = 609;

/// The person that submitted it.
///
/// Unit: opaque; one a row. Table `unit`.
pub const UNIT_USER: u32 = 610;

/// How often the shape was asked for.
///
/// Unit: jobs seen; a list. Table `fact`.
pub const MIX_WEIGHT: u32 = 700;

/// The shape's CPU.
///
/// Unit: milli-cores; a list. Table `fact`.
pub const MIX_CPU: u32 = 701;

/// The shape's memory.
///
/// Unit: MiB; a list. Table `fact`.
pub const MIX_MEMORY: u32 = 702;

/// The shape's cards.
///
/// Unit: cards; a list. Table `fact`.
pub const MIX_CARDS: u32 = 703;

/// Asked of each card.
///
/// Unit: milli-cards; a list. Table `fact`.
pub const MIX_CARD_MILLI: u32 = 704;

/// Memory asked of each card; 0 in proportion to the share.
///
/// Unit: MiB; a list. Table `fact`.
pub const MIX_CARD_MIB: u32 = 705;

/// Where each shape's card models begin in `mix-models`; none means any.
///
/// Unit: position; rows + 1 values. Table `fact`.
pub const MIX_MODELS_OFFSETS: u32 = 706;

/// The card models that a shape may use.
///
/// Unit: string; several a row. Table `fact`.
pub const MIX_MODELS: u32 = 707;

/// Nodes of this sort.
///
/// Unit: nodes; a list. Table `fact`.
pub const CLASS_NODES: u32 = 710;

/// CPU of such a node.
///
/// Unit: milli-cores; a list. Table `fact`.
pub const CLASS_CPU: u32 = 711;

/// Memory of such a node.
///
/// Unit: MiB; a list. Table `fact`.
pub const CLASS_MEMORY: u32 = 712;

/// Cards of such a node.
///
/// Unit: cards; a list. Table `fact`.
pub const CLASS_CARDS: u32 = 713;

/// Their model.
///
/// Unit: string, 0 none; a list. Table `fact`.
pub const CLASS_MODEL: u32 = 714;

/// Memory of such a card.
///
/// Unit: MiB; a list. Table `fact`.
pub const CLASS_CARD_MIB: u32 = 715;

/// The first label column of the node table: label i of the manifest is this plus i.
pub const FIRST_LABEL: u32 = 10000;

/// Option of the manifest. 0 (default): an answer for a row depends on that row alone, so the host may cache rows and ask for them in parts. 1: answers depend on the rows together; the host always asks for all of them in one call.
pub const OPTION_SCOPE: u32 = 1;

/// Option of the manifest. Seconds to which `now`, `minute-of-day` and `job-waited` are rounded down; default 60. A longer step keeps answers cached for longer.
pub const OPTION_TIME_STEP: u32 = 2;

/// Option of the manifest. 1: the host maps the scores of the rows that are left to 0–100, lowest to highest, rounding down, before adding those of groups.
pub const OPTION_NORMALISE: u32 = 3;

/// Option of the manifest. Which groups `score-groups` wants: 1 card model, 2 domain, 4 zone, or a sum of them.
pub const OPTION_GROUP_BY: u32 = 4;

/// Option of the manifest. Seconds after which an order is asked for again even when no job came or left; default 60.
pub const OPTION_RANK_STEP: u32 = 5;

/// Every column and fact, ascending by id.
#[rustfmt::skip]
pub static COLUMNS: &[ColumnInfo] = &[
    ColumnInfo { id: 1, name: "now", table: TableKind::Context, shape: Shape::Value, depends: Depends::Call, settable: false, offsets: None, unit: "minutes since 1970-01-01 UTC" },
    ColumnInfo { id: 2, name: "minute-of-day", table: TableKind::Context, shape: Shape::Value, depends: Depends::Call, settable: false, offsets: None, unit: "minutes, 0–1439 UTC" },
    ColumnInfo { id: 3, name: "weekday", table: TableKind::Context, shape: Shape::Value, depends: Depends::Call, settable: false, offsets: None, unit: "0 Monday – 6 Sunday, UTC" },
    ColumnInfo { id: 4, name: "seed", table: TableKind::Context, shape: Shape::List, depends: Depends::Call, settable: false, offsets: None, unit: "two values" },
    ColumnInfo { id: 100, name: "job-id", table: TableKind::Job, shape: Shape::Value, depends: Depends::Job, settable: false, offsets: None, unit: "opaque" },
    ColumnInfo { id: 101, name: "job-department", table: TableKind::Job, shape: Shape::Value, depends: Depends::Job, settable: false, offsets: None, unit: "opaque" },
    ColumnInfo { id: 102, name: "job-project", table: TableKind::Job, shape: Shape::Value, depends: Depends::Job, settable: false, offsets: None, unit: "opaque" },
    ColumnInfo { id: 103, name: "job-user", table: TableKind::Job, shape: Shape::Value, depends: Depends::Job, settable: false, offsets: None, unit: "opaque" },
    ColumnInfo { id: 104, name: "job-kind", table: TableKind::Job, shape: Shape::Value, depends: Depends::Job, settable: false, offsets: None, unit: "1 inference, 2 training, 3 offline" },
    ColumnInfo { id: 105, name: "job-priority", table: TableKind::Job, shape: Shape::Value, depends: Depends::Job, settable: true, offsets: None, unit: "0–1000" },
    ColumnInfo { id: 106, name: "job-members", table: TableKind::Job, shape: Shape::Value, depends: Depends::Job, settable: false, offsets: None, unit: "members" },
    ColumnInfo { id: 107, name: "job-min-members", table: TableKind::Job, shape: Shape::Value, depends: Depends::Job, settable: false, offsets: None, unit: "members" },
    ColumnInfo { id: 108, name: "job-placed", table: TableKind::Job, shape: Shape::Value, depends: Depends::Job, settable: false, offsets: None, unit: "members" },
    ColumnInfo { id: 109, name: "job-waited", table: TableKind::Job, shape: Shape::Value, depends: Depends::Job, settable: false, offsets: None, unit: "seconds" },
    ColumnInfo { id: 110, name: "job-attempts", table: TableKind::Job, shape: Shape::Value, depends: Depends::Job, settable: false, offsets: None, unit: "attempts" },
    ColumnInfo { id: 111, name: "job-preemptions", table: TableKind::Job, shape: Shape::Value, depends: Depends::Job, settable: false, offsets: None, unit: "times" },
    ColumnInfo { id: 112, name: "job-preemptible", table: TableKind::Job, shape: Shape::Value, depends: Depends::Job, settable: false, offsets: None, unit: "0 or 1" },
    ColumnInfo { id: 113, name: "job-run-limit", table: TableKind::Job, shape: Shape::Value, depends: Depends::Job, settable: true, offsets: None, unit: "seconds, 0 none" },
    ColumnInfo { id: 114, name: "job-order", table: TableKind::Job, shape: Shape::Value, depends: Depends::Job, settable: false, offsets: None, unit: "position" },
    ColumnInfo { id: 120, name: "job-cards", table: TableKind::Job, shape: Shape::Value, depends: Depends::Job, settable: false, offsets: None, unit: "cards" },
    ColumnInfo { id: 121, name: "job-card-milli", table: TableKind::Job, shape: Shape::Value, depends: Depends::Job, settable: false, offsets: None, unit: "milli-cards" },
    ColumnInfo { id: 122, name: "job-card-mib", table: TableKind::Job, shape: Shape::Value, depends: Depends::Job, settable: false, offsets: None, unit: "MiB" },
    ColumnInfo { id: 123, name: "job-whole-cards", table: TableKind::Job, shape: Shape::Value, depends: Depends::Job, settable: false, offsets: None, unit: "0 or 1" },
    ColumnInfo { id: 124, name: "job-cpu", table: TableKind::Job, shape: Shape::Value, depends: Depends::Job, settable: false, offsets: None, unit: "milli-cores" },
    ColumnInfo { id: 125, name: "job-memory", table: TableKind::Job, shape: Shape::Value, depends: Depends::Job, settable: false, offsets: None, unit: "MiB" },
    ColumnInfo { id: 126, name: "job-disk-weight", table: TableKind::Job, shape: Shape::Value, depends: Depends::Job, settable: true, offsets: None, unit: "1–10000" },
    ColumnInfo { id: 127, name: "job-disk-mbps", table: TableKind::Job, shape: Shape::Value, depends: Depends::Job, settable: false, offsets: None, unit: "MB/s" },
    ColumnInfo { id: 128, name: "job-models", table: TableKind::Job, shape: Shape::List, depends: Depends::Job, settable: false, offsets: None, unit: "string" },
    ColumnInfo { id: 129, name: "job-mig-profile", table: TableKind::Job, shape: Shape::Value, depends: Depends::Job, settable: false, offsets: None, unit: "string, 0 none" },
    ColumnInfo { id: 130, name: "job-nvlink", table: TableKind::Job, shape: Shape::Value, depends: Depends::Job, settable: true, offsets: None, unit: "0 none, 1 preferred, 2 required" },
    ColumnInfo { id: 131, name: "job-numa", table: TableKind::Job, shape: Shape::Value, depends: Depends::Job, settable: true, offsets: None, unit: "0 none, 1 preferred, 2 required" },
    ColumnInfo { id: 200, name: "node-id", table: TableKind::Node, shape: Shape::Value, depends: Depends::Node, settable: false, offsets: None, unit: "opaque" },
    ColumnInfo { id: 201, name: "node-cpu-total", table: TableKind::Node, shape: Shape::Value, depends: Depends::Node, settable: false, offsets: None, unit: "milli-cores" },
    ColumnInfo { id: 202, name: "node-cpu-free", table: TableKind::Node, shape: Shape::Value, depends: Depends::Node, settable: false, offsets: None, unit: "milli-cores" },
    ColumnInfo { id: 203, name: "node-memory-total", table: TableKind::Node, shape: Shape::Value, depends: Depends::Node, settable: false, offsets: None, unit: "MiB" },
    ColumnInfo { id: 204, name: "node-memory-free", table: TableKind::Node, shape: Shape::Value, depends: Depends::Node, settable: false, offsets: None, unit: "MiB" },
    ColumnInfo { id: 205, name: "node-cards", table: TableKind::Node, shape: Shape::Value, depends: Depends::Node, settable: false, offsets: None, unit: "cards" },
    ColumnInfo { id: 206, name: "node-cards-idle", table: TableKind::Node, shape: Shape::Value, depends: Depends::Node, settable: false, offsets: None, unit: "cards" },
    ColumnInfo { id: 207, name: "node-gpu-free", table: TableKind::Node, shape: Shape::Value, depends: Depends::Node, settable: false, offsets: None, unit: "milli-cards" },
    ColumnInfo { id: 208, name: "node-gpu-total", table: TableKind::Node, shape: Shape::Value, depends: Depends::Node, settable: false, offsets: None, unit: "milli-cards" },
    ColumnInfo { id: 209, name: "node-gpu-memory-free", table: TableKind::Node, shape: Shape::Value, depends: Depends::Node, settable: false, offsets: None, unit: "MiB" },
    ColumnInfo { id: 210, name: "node-gpu-memory-total", table: TableKind::Node, shape: Shape::Value, depends: Depends::Node, settable: false, offsets: None, unit: "MiB" },
    ColumnInfo { id: 211, name: "node-disk-free", table: TableKind::Node, shape: Shape::Value, depends: Depends::Node, settable: false, offsets: None, unit: "MB/s" },
    ColumnInfo { id: 212, name: "node-disk-total", table: TableKind::Node, shape: Shape::Value, depends: Depends::Node, settable: false, offsets: None, unit: "MB/s" },
    ColumnInfo { id: 213, name: "node-model", table: TableKind::Node, shape: Shape::Value, depends: Depends::Node, settable: false, offsets: None, unit: "string, 0 none" },
    ColumnInfo { id: 214, name: "node-domain", table: TableKind::Node, shape: Shape::Value, depends: Depends::Node, settable: false, offsets: None, unit: "string, 0 none" },
    ColumnInfo { id: 215, name: "node-zone", table: TableKind::Node, shape: Shape::Value, depends: Depends::Node, settable: false, offsets: None, unit: "string, 0 none" },
    ColumnInfo { id: 216, name: "node-members", table: TableKind::Node, shape: Shape::Value, depends: Depends::Node, settable: false, offsets: None, unit: "members" },
    ColumnInfo { id: 217, name: "node-gpu-classes", table: TableKind::Node, shape: Shape::Value, depends: Depends::Node, settable: false, offsets: None, unit: "bits" },
    ColumnInfo { id: 220, name: "node-same-job", table: TableKind::Node, shape: Shape::Value, depends: Depends::Both, settable: false, offsets: None, unit: "members" },
    ColumnInfo { id: 221, name: "node-same-project", table: TableKind::Node, shape: Shape::Value, depends: Depends::Both, settable: false, offsets: None, unit: "members" },
    ColumnInfo { id: 222, name: "node-same-user", table: TableKind::Node, shape: Shape::Value, depends: Depends::Both, settable: false, offsets: None, unit: "members" },
    ColumnInfo { id: 223, name: "node-same-queue", table: TableKind::Node, shape: Shape::Value, depends: Depends::Both, settable: false, offsets: None, unit: "members" },
    ColumnInfo { id: 224, name: "node-same-department", table: TableKind::Node, shape: Shape::Value, depends: Depends::Both, settable: false, offsets: None, unit: "members" },
    ColumnInfo { id: 300, name: "card-offsets", table: TableKind::Card, shape: Shape::Offsets, depends: Depends::Node, settable: false, offsets: None, unit: "position" },
    ColumnInfo { id: 301, name: "card-free", table: TableKind::Card, shape: Shape::Ragged, depends: Depends::Node, settable: false, offsets: Some(300), unit: "milli-cards" },
    ColumnInfo { id: 302, name: "card-memory-free", table: TableKind::Card, shape: Shape::Ragged, depends: Depends::Node, settable: false, offsets: Some(300), unit: "MiB" },
    ColumnInfo { id: 303, name: "card-memory-total", table: TableKind::Card, shape: Shape::Ragged, depends: Depends::Node, settable: false, offsets: Some(300), unit: "MiB" },
    ColumnInfo { id: 304, name: "card-model", table: TableKind::Card, shape: Shape::Ragged, depends: Depends::Node, settable: false, offsets: Some(300), unit: "string" },
    ColumnInfo { id: 305, name: "card-numa", table: TableKind::Card, shape: Shape::Ragged, depends: Depends::Node, settable: false, offsets: Some(300), unit: "NUMA node, -1 unknown" },
    ColumnInfo { id: 306, name: "card-healthy", table: TableKind::Card, shape: Shape::Ragged, depends: Depends::Node, settable: false, offsets: Some(300), unit: "0 or 1" },
    ColumnInfo { id: 307, name: "card-shares", table: TableKind::Card, shape: Shape::Ragged, depends: Depends::Node, settable: false, offsets: Some(300), unit: "claims" },
    ColumnInfo { id: 308, name: "card-mig", table: TableKind::Card, shape: Shape::Ragged, depends: Depends::Node, settable: false, offsets: Some(300), unit: "0 or 1" },
    ColumnInfo { id: 309, name: "card-link-group", table: TableKind::Card, shape: Shape::Ragged, depends: Depends::Node, settable: false, offsets: Some(300), unit: "group" },
    ColumnInfo { id: 400, name: "link-offsets", table: TableKind::Link, shape: Shape::Offsets, depends: Depends::Node, settable: false, offsets: None, unit: "position" },
    ColumnInfo { id: 401, name: "link-bandwidth", table: TableKind::Link, shape: Shape::Pair, depends: Depends::Node, settable: false, offsets: Some(400), unit: "GB/s, one direction" },
    ColumnInfo { id: 500, name: "group-kind", table: TableKind::Group, shape: Shape::Value, depends: Depends::Call, settable: false, offsets: None, unit: "1 card model, 2 domain, 4 zone" },
    ColumnInfo { id: 501, name: "group-name", table: TableKind::Group, shape: Shape::Value, depends: Depends::Call, settable: false, offsets: None, unit: "string" },
    ColumnInfo { id: 502, name: "group-nodes", table: TableKind::Group, shape: Shape::Value, depends: Depends::Call, settable: false, offsets: None, unit: "nodes" },
    ColumnInfo { id: 503, name: "group-cards", table: TableKind::Group, shape: Shape::Value, depends: Depends::Call, settable: false, offsets: None, unit: "cards" },
    ColumnInfo { id: 504, name: "group-cards-idle", table: TableKind::Group, shape: Shape::Value, depends: Depends::Call, settable: false, offsets: None, unit: "cards" },
    ColumnInfo { id: 505, name: "group-gpu-free", table: TableKind::Group, shape: Shape::Value, depends: Depends::Call, settable: false, offsets: None, unit: "milli-cards" },
    ColumnInfo { id: 506, name: "group-cpu-free", table: TableKind::Group, shape: Shape::Value, depends: Depends::Call, settable: false, offsets: None, unit: "milli-cores" },
    ColumnInfo { id: 507, name: "group-same-job", table: TableKind::Group, shape: Shape::Value, depends: Depends::Call, settable: false, offsets: None, unit: "members" },
    ColumnInfo { id: 600, name: "unit-job", table: TableKind::Unit, shape: Shape::Value, depends: Depends::Call, settable: false, offsets: None, unit: "opaque" },
    ColumnInfo { id: 601, name: "unit-shrink", table: TableKind::Unit, shape: Shape::Value, depends: Depends::Call, settable: false, offsets: None, unit: "0 whole job, 1 shrink to its minimum" },
    ColumnInfo { id: 602, name: "unit-kind", table: TableKind::Unit, shape: Shape::Value, depends: Depends::Call, settable: false, offsets: None, unit: "1 inference, 2 training, 3 offline" },
    ColumnInfo { id: 603, name: "unit-priority", table: TableKind::Unit, shape: Shape::Value, depends: Depends::Call, settable: false, offsets: None, unit: "0–1000" },
    ColumnInfo { id: 604, name: "unit-members", table: TableKind::Unit, shape: Shape::Value, depends: Depends::Call, settable: false, offsets: None, unit: "members" },
    ColumnInfo { id: 605, name: "unit-milli", table: TableKind::Unit, shape: Shape::Value, depends: Depends::Call, settable: false, offsets: None, unit: "milli-cards" },
    ColumnInfo { id: 606, name: "unit-running", table: TableKind::Unit, shape: Shape::Value, depends: Depends::Call, settable: false, offsets: None, unit: "seconds" },
    ColumnInfo { id: 607, name: "unit-since-checkpoint", table: TableKind::Unit, shape: Shape::Value, depends: Depends::Call, settable: false, offsets: None, unit: "seconds, -1 never" },
    ColumnInfo { id: 608, name: "unit-preemptions", table: TableKind::Unit, shape: Shape::Value, depends: Depends::Call, settable: false, offsets: None, unit: "times" },
    ColumnInfo { id: 609, name: "unit-borrowed", table: TableKind::Unit, shape: Shape::Value, depends: Depends::Call, settable: false, offsets: None, unit: "milli-cards" },
    ColumnInfo { id: 610, name: "unit-user", table: TableKind::Unit, shape: Shape::Value, depends: Depends::Call, settable: false, offsets: None, unit: "opaque" },
    ColumnInfo { id: 700, name: "mix-weight", table: TableKind::Fact, shape: Shape::List, depends: Depends::Call, settable: false, offsets: None, unit: "jobs seen" },
    ColumnInfo { id: 701, name: "mix-cpu", table: TableKind::Fact, shape: Shape::List, depends: Depends::Call, settable: false, offsets: None, unit: "milli-cores" },
    ColumnInfo { id: 702, name: "mix-memory", table: TableKind::Fact, shape: Shape::List, depends: Depends::Call, settable: false, offsets: None, unit: "MiB" },
    ColumnInfo { id: 703, name: "mix-cards", table: TableKind::Fact, shape: Shape::List, depends: Depends::Call, settable: false, offsets: None, unit: "cards" },
    ColumnInfo { id: 704, name: "mix-card-milli", table: TableKind::Fact, shape: Shape::List, depends: Depends::Call, settable: false, offsets: None, unit: "milli-cards" },
    ColumnInfo { id: 705, name: "mix-card-mib", table: TableKind::Fact, shape: Shape::List, depends: Depends::Call, settable: false, offsets: None, unit: "MiB" },
    ColumnInfo { id: 706, name: "mix-models-offsets", table: TableKind::Fact, shape: Shape::Offsets, depends: Depends::Call, settable: false, offsets: None, unit: "position" },
    ColumnInfo { id: 707, name: "mix-models", table: TableKind::Fact, shape: Shape::Ragged, depends: Depends::Call, settable: false, offsets: Some(706), unit: "string" },
    ColumnInfo { id: 710, name: "class-nodes", table: TableKind::Fact, shape: Shape::List, depends: Depends::Call, settable: false, offsets: None, unit: "nodes" },
    ColumnInfo { id: 711, name: "class-cpu", table: TableKind::Fact, shape: Shape::List, depends: Depends::Call, settable: false, offsets: None, unit: "milli-cores" },
    ColumnInfo { id: 712, name: "class-memory", table: TableKind::Fact, shape: Shape::List, depends: Depends::Call, settable: false, offsets: None, unit: "MiB" },
    ColumnInfo { id: 713, name: "class-cards", table: TableKind::Fact, shape: Shape::List, depends: Depends::Call, settable: false, offsets: None, unit: "cards" },
    ColumnInfo { id: 714, name: "class-model", table: TableKind::Fact, shape: Shape::List, depends: Depends::Call, settable: false, offsets: None, unit: "string, 0 none" },
    ColumnInfo { id: 715, name: "class-card-mib", table: TableKind::Fact, shape: Shape::List, depends: Depends::Call, settable: false, offsets: None, unit: "MiB" },
];

/// Every option, ascending by id.
#[rustfmt::skip]
pub static OPTIONS: &[OptionInfo] = &[
    OptionInfo { id: 1, name: "scope" },
    OptionInfo { id: 2, name: "time-step" },
    OptionInfo { id: 3, name: "normalise" },
    OptionInfo { id: 4, name: "group-by" },
    OptionInfo { id: 5, name: "rank-step" },
];
