# exports: policy, score
"""The members of one project go to different nodes."""

import crater_sdk
from crater_columns import NODE_SAME_PROJECT


class Policy(crater_sdk.Policy):
    name = "spread-tenant-py"
    wants = [NODE_SAME_PROJECT]


class Score(crater_sdk.Score):
    def node(self, context, job, node):
        return -node.get(NODE_SAME_PROJECT)
