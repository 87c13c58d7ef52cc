"""What Python functions of SELECT lists return, for the results of queries.

They are called for results alone, by the functions that conditions call, too: what these remember
counts here, and what they may take.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eddyline.blocks.column_types import returned_type, spark_type
from eddyline.engine.relation import called, require_answers
from eddyline.expressions import Call, evaluate
from eddyline.expressions.value_types import relabelled
from eddyline.expressions.vector import Function, Vector
from eddyline.standing.engine.failing_event import FailingEvent, failing_event
from eddyline.standing.log.live_queries import StandingQuery
from eddyline.standing.query_template import QueryTemplate
from eddyline.standing.tasks.counts import Counts
from eddyline.standing.tasks.kept_up import KeptUpQueries
from eddyline.standing.tasks.row_constants import RowConstants
from eddyline.standing.tasks.rule_functions import EngineFunctions

Integers: TypeAlias = "npt.NDArray[np.int64]"

ColumnOf: TypeAlias = "Callable[[QueryTemplate, int], pa.Array]"
"""Gives the values of a template's argument for all results."""


class FailedCall(NamedTuple):
    """A result whose call has failed, by its position."""

    position: int
    query: int
    error: Exception
    event: FailingEvent


def without_failed(failed: Sequence[FailedCall], results: int, counts: Counts) -> Integers:
    """Return the positions of those that are results after all, of so many; count them as such."""
    lost = {call.position: call.query for call in failed}
    for query in lost.values():
        counts.results[query] -= 1
    return np.setdiff1d(np.arange(results), np.fromiter(lost, np.int64))


class CalledValues:
    """The calls of all queries of a job, made for their results."""

    def __init__(self, live: KeptUpQueries, functions: EngineFunctions) -> None:
        """``functions`` have those of all queries."""
        self._live = live
        self._functions = functions
        self._version = -1
        self._by_template: list[list[StandingQuery]] = []
        self._template_of = np.empty(0, np.int32)
        self._constants = RowConstants()

    def of(
        self, queries: Integers, column: ColumnOf
    ) -> tuple[dict[str, pa.Array], list[FailedCall]]:
        """Return the columns of values for results of these queries, and those that failed.

        A column is NULL for results of queries that call nothing in it. Without queries that call
        anything it takes no time.
        """
        self._keep_up()
        parts: dict[str, list[pa.Array]] = {}
        places: dict[str, Integers] = {}
        failed: list[FailedCall] = []
        templates = self._template_of[queries] if len(self._by_template) else queries[:0]
        for number, members in enumerate(self._by_template):
            own = np.flatnonzero(templates == number)
            for output in members[0].template.called:
                kind = returned_type(spark_type(output.type))
                parts.setdefault(output.column, [pa.nulls(0, kind)])
                places.setdefault(output.column, np.full(len(queries), -1, np.int64))
            if not len(own):  # what the others join may lack the columns
                continue
            scope = self._scope(members, queries[own], own, column)
            for output in members[0].template.called:
                vector = evaluate(output.expression, scope)
                before, place = parts[output.column], places[output.column]
                place[own] = sum(map(len, before)) + np.arange(len(own))
                before.append(relabelled(vector.values, before[0].type))
                for row, error in vector.errors.items():
                    event = failing_event([output.expression], scope, row)
                    failed.append(FailedCall(int(own[row]), int(queries[own[row]]), error, event))
        columns = {
            name: pa.concat_arrays(before).take(pa.array(places[name], mask=places[name] < 0))
            for name, before in parts.items()
        }
        return columns, failed

    def _scope(
        self, members: Sequence[StandingQuery], queries: Integers, own: Integers, column: ColumnOf
    ) -> ResultScope:
        template = members[0].template
        return ResultScope(
            lambda index: column(template, index),
            self._constants.of(members, queries),
            own,
            self._functions.of(template),
        )

    def _keep_up(self) -> None:
        if self._version == self._live.version:
            return
        self._version = self._live.version
        of_templates: dict[int, list[StandingQuery]] = defaultdict(list)
        for query in self._live.queries.values():
            if query.template.called:
                of_templates[id(query.template)].append(query)
        self._by_template = list(of_templates.values())
        self._constants.keep_only([query for some in self._by_template for query in some])
        self._template_of = np.full(self._live.next_number, -1, np.int32)
        for number, members in enumerate(self._by_template):
            self._template_of[[query.number for query in members]] = number


class ResultScope:
    """The columns of some results of a template, and calls of its functions.

    Arguments are numbered as in conditions on several streams, constants below 0.
    """

    __slots__ = ("_calls", "_column", "_constants", "_functions", "_values", "positions")

    def __init__(
        self,
        column: Callable[[int], pa.Array],
        constants: Mapping[int, pa.Array],
        positions: Integers,
        functions: Sequence[Function],
    ) -> None:
        """Take what gives the values of an argument for all results, and which of these it is."""
        self._column = column
        self._constants = constants
        self.positions = positions
        self._functions = functions
        self._values: dict[int, pa.Array] = {}
        self._calls: dict[Call, Vector] = {}

    def __len__(self) -> int:
        """Return the number of results."""
        return len(self.positions)

    def argument(self, index: int) -> pa.Array:
        """Return the values of a column, or of a constant."""
        if index < 0:
            return self._constants[index]
        values = self._values.get(index)
        if values is None:
            values = self._values[index] = self._column(index).take(pa.array(self.positions))
        return values

    def call(self, call: Call) -> Vector:
        """Return what a function gives."""
        known = self._calls.get(call)
        if known is None:
            known = self._calls[call] = called(call, self, self._function(call))
        return known

    def narrow(self, positions: Integers) -> ResultScope:
        """Return the scope of the results at ``positions`` among these."""
        chosen = pa.array(positions)
        constants = {number: values.take(chosen) for number, values in self._constants.items()}
        return ResultScope(self._column, constants, self.positions[positions], self._functions)

    def _function(self, call: Call) -> Callable[[Sequence[pa.Array], int], Vector]:
        function = self._functions[call.function]

        def answers(columns: Sequence[pa.Array], rows: int) -> Vector:
            result = function(columns, rows)
            require_answers(call, result, rows)
            return result

        return answers
