"""Every id of the contract.

Written by `cargo xtask contract` from wit/columns.toml; change that file.
"""

# context: The call itself. An answer depends on time or chance only if the policy wants these.

#: The time, rounded down to the policy's time step. Unit: minutes since 1970-01-01 UTC; one a row.
NOW = 1

#: The time of day, rounded down to the policy's time step. Unit: minutes, 0–1439 UTC; one a row.
MINUTE_OF_DAY = 2

#: The day of the week. Unit: 0 Monday – 6 Sunday, UTC; one a row.
WEEKDAY = 3

#: The decision's random seed: low and high 32 bits. Derive all chance from it, so that a decision can be replayed. Unit: two values; a list.
SEED = 4

# job: What was submitted. One row a job in `rank`; elsewhere the one job that is decided on. Amounts are of one member.

#: This job. Unit: opaque; one a row.
JOB_ID = 100

#: The department that owns it. Unit: opaque; one a row.
JOB_DEPARTMENT = 101

#: The project that owns it; the department where there is none. Unit: opaque; one a row.
JOB_PROJECT = 102

#: The person that submitted it; the project where there is none. Unit: opaque; one a row.
JOB_USER = 103

#: Its kind. Unit: 1 inference, 2 training, 3 offline; one a row.
JOB_KIND = 104

#: Its priority: low 10, medium 50, high 100. Unit: 0–1000; one a row.
JOB_PRIORITY = 105

#: Equal members that make up the job. Unit: members; one a row.
JOB_MEMBERS = 106

#: Members that must start together. Unit: members; one a row.
JOB_MIN_MEMBERS = 107

#: Members placed so far, tentative ones included. Unit: members; one a row.
JOB_PLACED = 108

#: Time spent waiting, rounded down to the policy's time step. Unit: seconds; one a row.
JOB_WAITED = 109

#: Starts so far, this one not included. Unit: attempts; one a row.
JOB_ATTEMPTS = 110

#: How often it was preempted. Unit: times; one a row.
JOB_PREEMPTIONS = 111

#: Its owner allows preemption. Unit: 0 or 1; one a row.
JOB_PREEMPTIBLE = 112

#: Its run limit. Unit: seconds, 0 none; one a row.
JOB_RUN_LIMIT = 113

#: Its place in order of submission, from 0, among the rows of `rank`. Unit: position; one a row.
JOB_ORDER = 114

#: Distinct cards a member uses; 0 for work without a GPU. Unit: cards; one a row.
JOB_CARDS = 120

#: Asked of each of those cards, 1–1000; 0 where memory decides and the share follows from the card's size. Unit: milli-cards; one a row.
JOB_CARD_MILLI = 121

#: Memory asked of each card; 0 means in proportion to the share. Unit: MiB; one a row.
JOB_CARD_MIB = 122

#: It takes whole cards and shares none of them. Unit: 0 or 1; one a row.
JOB_WHOLE_CARDS = 123

#: CPU. Unit: milli-cores; one a row.
JOB_CPU = 124

#: Memory. Unit: MiB; one a row.
JOB_MEMORY = 125

#: Disk IO weight. Unit: 1–10000; one a row.
JOB_DISK_WEIGHT = 126

#: Reserved disk bandwidth. Unit: MB/s; one a row.
JOB_DISK_MBPS = 127

#: Card models it may use; empty means any. Not in `rank`, where a list has no place. Unit: string; a list.
JOB_MODELS = 128

#: The MIG profile it asks for. Unit: string, 0 none; one a row.
JOB_MIG_PROFILE = 129

#: Its need of NVLink between its cards. Unit: 0 none, 1 preferred, 2 required; one a row.
JOB_NVLINK = 130

#: Its need of a single NUMA node. Unit: 0 none, 1 preferred, 2 required; one a row.
JOB_NUMA = 131

# node: The nodes that could take the job, one row each.

#: This node. Wanting it keeps equal nodes from sharing one cached answer. Unit: opaque; one a row.
NODE_ID = 200

#: CPU of the node. Unit: milli-cores; one a row.
NODE_CPU_TOTAL = 201

#: CPU not promised. Unit: milli-cores; one a row.
NODE_CPU_FREE = 202

#: Memory of the node. Unit: MiB; one a row.
NODE_MEMORY_TOTAL = 203

#: Memory not promised. Unit: MiB; one a row.
NODE_MEMORY_FREE = 204

#: Healthy cards. Unit: cards; one a row.
NODE_CARDS = 205

#: Healthy cards of which nothing is promised. Unit: cards; one a row.
NODE_CARDS_IDLE = 206

#: Free share over all healthy cards. Unit: milli-cards; one a row.
NODE_GPU_FREE = 207

#: 1000 for each healthy card. Unit: milli-cards; one a row.
NODE_GPU_TOTAL = 208

#: Free memory over all healthy cards. Unit: MiB; one a row.
NODE_GPU_MEMORY_FREE = 209

#: Memory of all healthy cards. Unit: MiB; one a row.
NODE_GPU_MEMORY_TOTAL = 210

#: Disk bandwidth not reserved. Unit: MB/s; one a row.
NODE_DISK_FREE = 211

#: Disk bandwidth of the node. Unit: MB/s; one a row.
NODE_DISK_TOTAL = 212

#: Model of the node's first card. Unit: string, 0 none; one a row.
NODE_MODEL = 213

#: Interconnect domain. Unit: string, 0 none; one a row.
NODE_DOMAIN = 214

#: Zone. Unit: string, 0 none; one a row.
NODE_ZONE = 215

#: Members on the node, tentative ones included. Unit: members; one a row.
NODE_MEMBERS = 216

#: Which sizes of GPU work are on the node: bit 0 shares of a card, bit n members with n whole cards (30 and more: bit 30). Unit: bits; one a row.
NODE_GPU_CLASSES = 217

#: Members of this job on the node, tentative ones included. Unit: members; one a row.
NODE_SAME_JOB = 220

#: Members of this job's project on the node. Unit: members; one a row.
NODE_SAME_PROJECT = 221

#: Members of this job's user on the node. Unit: members; one a row.
NODE_SAME_USER = 222

#: Members of this job's queue on the node. Unit: members; one a row.
NODE_SAME_QUEUE = 223

#: Members of this job's department on the node. Unit: members; one a row.
NODE_SAME_DEPARTMENT = 224

# card: The cards of each row of the node table, in the node's order; their position is the bit of the card mask. Ragged over `card-offsets`, which comes whenever one of them is wanted.

#: Where each row's cards begin. Unit: position; rows + 1 values.
CARD_OFFSETS = 300

#: Free share, 0 on a card that is sick or cut into MIG instances. Unit: milli-cards; several a row.
CARD_FREE = 301

#: Free memory, 0 on a card that is sick or cut into MIG instances. Unit: MiB; several a row.
CARD_MEMORY_FREE = 302

#: Memory. Unit: MiB; several a row.
CARD_MEMORY_TOTAL = 303

#: Model. Unit: string; several a row.
CARD_MODEL = 304

#: The NUMA node it hangs on. Unit: NUMA node, -1 unknown; several a row.
CARD_NUMA = 305

#: Whether it may be used. Unit: 0 or 1; several a row.
CARD_HEALTHY = 306

#: Claims on it. Unit: claims; several a row.
CARD_SHARES = 307

#: It is cut into MIG instances. Unit: 0 or 1; several a row.
CARD_MIG = 308

#: Cards with the same number reach each other by NVLink, directly or through a switch; alone in its group without. Unit: group; several a row.
CARD_LINK_GROUP = 309

# link: Pairs of cards of each row: for n cards n × n values, row by row, over `link-offsets`.

#: Where each row's pairs begin. Unit: position; rows + 1 values.
LINK_OFFSETS = 400

#: Bandwidth between two cards: NVLink where there is one, else PCIe; 0 where unknown and on the diagonal. Unit: GB/s, one direction; n × n a row.
LINK_BANDWIDTH = 401

# group: Groups of nodes, one row each, for `score-groups`. The option `group-by` says which kinds.

#: What its nodes have in common. Unit: 1 card model, 2 domain, 4 zone; one a row.
GROUP_KIND = 500

#: The model's, domain's or zone's name. Unit: string; one a row.
GROUP_NAME = 501

#: Nodes in it. Unit: nodes; one a row.
GROUP_NODES = 502

#: Healthy cards. Unit: cards; one a row.
GROUP_CARDS = 503

#: Healthy cards of which nothing is promised. Unit: cards; one a row.
GROUP_CARDS_IDLE = 504

#: Free share over all its cards. Unit: milli-cards; one a row.
GROUP_GPU_FREE = 505

#: CPU not promised. Unit: milli-cores; one a row.
GROUP_CPU_FREE = 506

#: Members of this job in the group, tentative ones included. Unit: members; one a row.
GROUP_SAME_JOB = 507

# unit: What could be evicted, one row each, for `preempt`: a whole job, or an elastic job's members above its minimum.

#: The job. Unit: opaque; one a row.
UNIT_JOB = 600

#: What the unit would take. Unit: 0 whole job, 1 shrink to its minimum; one a row.
UNIT_SHRINK = 601

#: The job's kind. Unit: 1 inference, 2 training, 3 offline; one a row.
UNIT_KIND = 602

#: The job's priority. Unit: 0–1000; one a row.
UNIT_PRIORITY = 603

#: Members that would go. Unit: members; one a row.
UNIT_MEMBERS = 604

#: GPU share that would be freed. Unit: milli-cards; one a row.
UNIT_MILLI = 605

#: How long the job has run. Unit: seconds; one a row.
UNIT_RUNNING = 606

#: Work that would be lost. Unit: seconds, -1 never; one a row.
UNIT_SINCE_CHECKPOINT = 607

#: How often the job was preempted. Unit: times; one a row.
UNIT_PREEMPTIONS = 608

#: How much of it is borrowed. Unit: milli-cards; one a row.
UNIT_BORROWED = 609

#: The person that submitted it. Unit: opaque; one a row.
UNIT_USER = 610

# fact: Slow knowledge for `prepare`. The mix columns run in step, one value a job shape; so do the class columns, one value a sort of node.

#: How often the shape was asked for. Unit: jobs seen; a list.
MIX_WEIGHT = 700

#: The shape's CPU. Unit: milli-cores; a list.
MIX_CPU = 701

#: The shape's memory. Unit: MiB; a list.
MIX_MEMORY = 702

#: The shape's cards. Unit: cards; a list.
MIX_CARDS = 703

#: Asked of each card. Unit: milli-cards; a list.
MIX_CARD_MILLI = 704

#: Memory asked of each card; 0 in proportion to the share. Unit: MiB; a list.
MIX_CARD_MIB = 705

#: Where each shape's card models begin in `mix-models`; none means any. Unit: position; rows + 1 values.
MIX_MODELS_OFFSETS = 706

#: The card models that a shape may use. Unit: string; several a row.
MIX_MODELS = 707

#: Nodes of this sort. Unit: nodes; a list.
CLASS_NODES = 710

#: CPU of such a node. Unit: milli-cores; a list.
CLASS_CPU = 711

#: Memory of such a node. Unit: MiB; a list.
CLASS_MEMORY = 712

#: Cards of such a node. Unit: cards; a list.
CLASS_CARDS = 713

#: Their model. Unit: string, 0 none; a list.
CLASS_MODEL = 714

#: Memory of such a card. Unit: MiB; a list.
CLASS_CARD_MIB = 715

#: The first label column of the node table: label i of the manifest is this plus i.
FIRST_LABEL = 10000

# Options of the manifest.

#: 0 (default): an answer for a row depends on that row alone, so the host may cache rows and ask for them in parts. 1: answers depend on the rows together; the host always asks for all of them in one call.
OPTION_SCOPE = 1

#: Seconds to which `now`, `minute-of-day` and `job-waited` are rounded down; default 60. A longer step keeps answers cached for longer.
OPTION_TIME_STEP = 2

#: 1: the host maps the scores of the rows that are left to 0–100, lowest to highest, rounding down, before adding those of groups.
OPTION_NORMALISE = 3

#: Which groups `score-groups` wants: 1 card model, 2 domain, 4 zone, or a sum of them.
OPTION_GROUP_BY = 4

#: Seconds after which an order is asked for again even when no job came or left; default 60.
OPTION_RANK_STEP = 5
