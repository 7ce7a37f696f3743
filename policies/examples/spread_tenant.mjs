// exports: policy, score
//
// The members of one project go to different nodes.

import { NODE_SAME_PROJECT } from "../../sdk/js/columns.mjs";
import { definePolicy, scoreNodes } from "../../sdk/js/crater-sdk.mjs";

export const policy = definePolicy({
  name: "spread-tenant-js",
  wants: [NODE_SAME_PROJECT],
});

export const score = scoreNodes((_context, _job, node) => -node.get(NODE_SAME_PROJECT));
