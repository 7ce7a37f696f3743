// exports: policy, filter
//
// Offline work starts only at night; by day every node is deferred until then.

import { JOB_KIND, MINUTE_OF_DAY, OPTION_TIME_STEP } from "../../sdk/js/columns.mjs";
import { definePolicy, filterNodes, integer, settings } from "../../sdk/js/crater-sdk.mjs";

const DAY = 24 * 60;
const OFFLINE = 3;
const modulo = (a, b) => ((a % b) + b) % b;

export const policy = definePolicy({
  name: "night-only-js",
  wants: [MINUTE_OF_DAY, JOB_KIND],
  options: { [OPTION_TIME_STEP]: 300 },
  settings: {
    "from-hour": integer(22, 0, 23, "Local hour in which the night begins"),
    "to-hour": integer(7, 0, 23, "Local hour in which it is over"),
    "utc-offset-minutes": integer(0, -840, 840, "Local time less UTC"),
  },
});

export const filter = filterNodes((context, job, _node) => {
  const [start, end] = [settings["from-hour"] * 60, settings["to-hour"] * 60];
  const local = context.get(MINUTE_OF_DAY) + settings["utc-offset-minutes"];
  const intoNight = modulo(local - start, DAY);
  if (job.get(JOB_KIND) !== OFFLINE || intoNight < modulo(end - start, DAY)) return 0;
  return -(DAY - intoNight) * 60;
});
