# exports: policy, score
"""Work goes to the node that it leaves the least free CPU on.

Each job and each node is another sum here, so that little of what Python answered
can be used again: `crater-bench serve` measures with it that nobody but its own
queue waits for it.
"""

import crater_sdk
from crater_columns import JOB_CPU, NODE_CPU_FREE


class Policy(crater_sdk.Policy):
    name = "tight-cpu-py"
    wants = [JOB_CPU, NODE_CPU_FREE]


class Score(crater_sdk.Score):
    def node(self, context, job, node):
        return job.get(JOB_CPU) - node.get(NODE_CPU_FREE)
