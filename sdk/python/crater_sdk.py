"""A policy as functions of one node over named columns.

The component's file defines a class `Policy(crater_sdk.Policy)` and a class for
each decision it makes, such as `Filter(crater_sdk.Filter)`; its first lines name
them: `# exports: policy, filter`. Columns are named in `crater_columns`.
"""

import json

from componentize_py_types import Err
from wit_world.imports import types

#: What the queue set, by name, once configured; else the defaults.
settings = {}


class Integer:
    """A setting: a whole number in a range."""

    def __init__(self, default, low, high, about=""):
        self.default, self.low, self.high, self.about = default, low, high, about

    def schema(self):
        """Its JSON Schema."""
        return {
            "type": "integer",
            "minimum": self.low,
            "maximum": self.high,
            "default": self.default,
            "description": self.about,
        }

    def read(self, name, value):
        """The value, or an error that names the setting."""
        if type(value) is not int or not self.low <= value <= self.high:
            raise Err(f"{name}: expected a whole number from {self.low} to {self.high}")
        return value


class Policy:
    """What a policy says of itself, as class attributes."""

    name = ""
    version = "0.1.0"
    #: Columns and facts that it wants; others read as absent.
    wants = []
    #: Node labels that it wants: `node.get(FIRST_LABEL + i)`.
    labels = []
    #: Option id to value.
    options = {}
    #: Filter code to text.
    reasons = {}
    #: Setting name to its kind, such as `Integer`; no others are accepted.
    settings = {}

    def describe(self):
        """The manifest."""
        schema = {
            "type": "object",
            "additionalProperties": False,
            "properties": {name: kind.schema() for name, kind in self.settings.items()},
        }
        return types.Manifest(
            self.name,
            self.version,
            sorted(set(self.wants)),
            list(self.labels),
            list(self.options.items()),
            list(self.reasons.items()),
            json.dumps(schema),
        )

    def configure(self, config, prepared):
        """Fills `settings`."""
        try:
            given = json.loads(config or "{}")
        except ValueError as error:
            raise Err(f"configuration: {error}") from None
        if not isinstance(given, dict):
            raise Err("configuration: expected an object")
        for name in given:
            if name not in self.settings:
                raise Err(f"{name}: no such setting")
        for name, kind in self.settings.items():
            settings[name] = kind.read(name, given[name]) if name in given else kind.default


class Values:
    """One thing's columns: a job's or a call's."""

    def __init__(self, columns):
        self._columns = dict(columns)

    def get(self, column, absent=0):
        """A value by its column's id."""
        values = self._columns.get(column)
        return values[0] if values else absent

    def list(self, column):
        """A list by its column's id."""
        return self._columns.get(column, [])


class Row:
    """One row of a table."""

    def __init__(self, columns):
        self._columns = columns
        self.row = 0

    def get(self, column, absent=0):
        """A value by its column's id."""
        values = self._columns.get(column)
        return values[self.row] if values else absent

    def part(self, column, offsets):
        """Its part of a ragged column, such as the cards over `CARD_OFFSETS`."""
        ends = self._columns.get(offsets)
        values = self._columns.get(column)
        return values[ends[self.row] : ends[self.row + 1]] if ends and values else []


def each(table, decide):
    """A function's answers for each row of a table."""
    row = Row(dict(table.columns))
    answers = []
    for row.row in range(table.rows):
        answers.append(decide(row))
    return answers


class Filter:
    """Which nodes may take the job: override `node`."""

    def node(self, context, job, node):
        """0 keeps, a positive code is a reason's, -n defers for n seconds."""
        return 0

    def filter(self, context, job, nodes):
        """The contract's call."""
        context, job = Values(context), Values(job)
        return each(nodes, lambda node: self.node(context, job, node))


class Score:
    """Which node is best: override `node`."""

    def node(self, context, job, node):
        """Greater is better."""
        return 0

    def score(self, context, job, nodes):
        """The contract's call."""
        context, job = Values(context), Values(job)
        return types.Scores(each(nodes, lambda node: self.node(context, job, node)), [])


class Rank:
    """The order of the waiting jobs: override `job`."""

    def job(self, context, job):
        """(tier, class, weight): lower tiers, then greater weights go first."""
        return (0, 0, 0)

    def rank(self, context, jobs):
        """The contract's call."""
        context = Values(context)
        return each(jobs, lambda job: self.job(context, job))
