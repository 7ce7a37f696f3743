// A policy as functions of one node over named columns.
//
// The component's file exports `policy` and an object for each decision it
// makes; its first lines name them: `// exports: policy, filter`. Columns are
// named in columns.mjs.

/** A setting: a whole number in a range. */
export const integer = (fallback, low, high, about = "") => ({
  fallback,
  schema: { type: "integer", minimum: low, maximum: high, default: fallback, description: about },
  read(name, value) {
    if (!Number.isInteger(value) || value < low || value > high) {
      throw `${name}: expected a whole number from ${low} to ${high}`;
    }
    return value;
  },
});

/** What the queue set, by name, once configured; else the defaults. */
export const settings = {};

/**
 * The `policy` export. `wants` are columns and facts, `options` and `reasons`
 * objects by id and by code, `settings` an object of kinds such as `integer`.
 */
export function definePolicy(about) {
  const kinds = Object.entries(about.settings ?? {});
  const pairs = (object) => Object.entries(object ?? {}).map(([id, value]) => [Number(id), value]);
  const schema = {
    type: "object",
    additionalProperties: false,
    properties: Object.fromEntries(kinds.map(([name, kind]) => [name, kind.schema])),
  };
  return {
    describe: () => ({
      name: about.name,
      version: about.version ?? "0.1.0",
      wants: [...new Set(about.wants)].sort((a, b) => a - b),
      labels: about.labels ?? [],
      options: pairs(about.options),
      reasons: pairs(about.reasons),
      schema: JSON.stringify(schema),
    }),
    configure(config, _prepared) {
      let given;
      try {
        given = JSON.parse(config || "{}");
      } catch (error) {
        throw `configuration: ${error.message}`;
      }
      if (given === null || typeof given !== "object" || Array.isArray(given)) {
        throw "configuration: expected an object";
      }
      for (const name of Object.keys(given)) {
        if (!kinds.some(([known]) => known === name)) throw `${name}: no such setting`;
      }
      for (const [name, kind] of kinds) {
        settings[name] = name in given ? kind.read(name, given[name]) : kind.fallback;
      }
    },
  };
}

/** One thing's columns: a job's or a call's. */
function values(columns) {
  const map = new Map(columns);
  return {
    get: (column, absent = 0) => map.get(column)?.[0] ?? absent,
    list: (column) => map.get(column) ?? [],
  };
}

/** A row of a table that is moved from row to row. */
class Row {
  constructor(columns) {
    this.columns = new Map(columns);
    this.row = 0;
  }

  /** A value by its column's id. */
  get(column, absent = 0) {
    return this.columns.get(column)?.[this.row] ?? absent;
  }

  /** Its part of a ragged column, such as the cards over `CARD_OFFSETS`. */
  part(column, offsets) {
    const [ends, all] = [this.columns.get(offsets), this.columns.get(column)];
    return ends && all ? all.slice(ends[this.row], ends[this.row + 1]) : [];
  }
}

/** A function's answers for each row of a table. */
function each(table, decide) {
  const row = new Row(table.columns);
  const answers = new Array(table.rows);
  for (; row.row < table.rows; row.row++) answers[row.row] = decide(row);
  return answers;
}

/**
 * The `filter` export from `(context, job, node) => code`: 0 keeps, a positive
 * code is a reason's, -n defers for n seconds.
 */
export const filterNodes = (decide) => ({
  filter(context, job, nodes) {
    [context, job] = [values(context), values(job)];
    return each(nodes, (node) => decide(context, job, node));
  },
});

/** The `score` export from `(context, job, node) => score`, greater is better. */
export const scoreNodes = (decide) => ({
  score(context, job, nodes) {
    [context, job] = [values(context), values(job)];
    return { scores: each(nodes, (node) => decide(context, job, node)), cards: [] };
  },
});

/** The `rank` export from `(context, job) => [tier, class, weight]`. */
export const rankJobs = (decide) => ({
  rank(context, jobs) {
    context = values(context);
    return each(jobs, (job) => decide(context, job));
  },
});
