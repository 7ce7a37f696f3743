# exports: policy, filter
"""Offline work starts only at night; by day every node is deferred until then."""

import crater_sdk
from crater_columns import JOB_KIND, MINUTE_OF_DAY, OPTION_TIME_STEP
from crater_sdk import Integer, settings

DAY = 24 * 60
OFFLINE = 3


class Policy(crater_sdk.Policy):
    name = "night-only-py"
    wants = [MINUTE_OF_DAY, JOB_KIND]
    options = {OPTION_TIME_STEP: 300}
    settings = {
        "from-hour": Integer(22, 0, 23, "Local hour in which the night begins"),
        "to-hour": Integer(7, 0, 23, "Local hour in which it is over"),
        "utc-offset-minutes": Integer(0, -840, 840, "Local time less UTC"),
    }


class Filter(crater_sdk.Filter):
    def node(self, context, job, node):
        start, end = settings["from-hour"] * 60, settings["to-hour"] * 60
        local = context.get(MINUTE_OF_DAY) + settings["utc-offset-minutes"]
        into_night = (local - start) % DAY
        if job.get(JOB_KIND) != OFFLINE or into_night < (end - start) % DAY:
            return 0
        return -(DAY - into_night) * 60
