//! Every id of the contract.
//!
//! Written by `cargo xtask contract` from wit/columns.toml; change that file.

#![allow(clippy::doc_markdown)]

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
