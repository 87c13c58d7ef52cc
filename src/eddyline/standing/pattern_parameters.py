"""Patterns that are parameters: which of them Eddyline does not decide exactly as Spark does."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import NamedTuple

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from eddyline import catalyst
from eddyline.errors import NotShareableError
from eddyline.expressions import Argument, Expression, VariableMatch, evaluate
from eddyline.expressions.strings import PatternKind, TextTest
from eddyline.expressions.vector import Columns
from eddyline.standing.query_template import QueryTemplate


class LeftPattern(NamedTuple):
    """A pattern of a query that Spark has to decide: the ``parameters`` that it is made of."""

    parameters: frozenset[str]
    told: str
    """The query, the pattern and what is in the way, for people."""


class PatternParameters:
    """Finds the patterns among rows of parameters that are not evaluated here."""

    def __init__(
        self,
        spark: SparkSession,
        complete: Callable[[QueryTemplate], pa.Table],
        names: Sequence[str],
    ) -> None:
        """Take what gives the parameters of a template, computed ones too.

        With a row for each of the queries that ``names`` names.
        """
        self._spark = spark
        self._complete = complete
        self.names = names

    def left(self, template: QueryTemplate, rows: Collection[int]) -> dict[int, LeftPattern]:
        """Return those of a template, for some rows, by row.

        Takes 0.1 ms for each distinct pattern. Raises NotShareableError, in Spark's words, for a
        pattern that Spark does not take either.
        """
        left: dict[int, LeftPattern] = {}
        matches = _matches(template)
        if not matches:
            return left
        names = [{name} for name, _ in template.parameters] + [*map(set, template.computed)]
        table = self._complete(template)
        columns = dict(enumerate(table.itercolumns()))
        scope = Columns({n: c.combine_chunks() for n, c in columns.items()}, len(table))
        for match, number in matches.items():
            constant = template.constants[number]
            arguments = [node.index for node in constant.walk() if isinstance(node, Argument)]
            parameters = frozenset(name for index in arguments for name in names[index])
            patterns = evaluate(constant, scope).values.to_pylist()
            faults = {pattern: _fault(match, pattern) for pattern in set(patterns)}
            for row in rows:
                fault = faults[patterns[row]]
                if fault is None:
                    continue
                self._require_valid(match, patterns[row], self.names[row])
                told = f"the query {self.names[row]!r} has {fault}, {patterns[row]!r}"
                before = left.get(row, LeftPattern(frozenset(), told))
                left[row] = before._replace(parameters=before.parameters | parameters)
        return left

    def _require_valid(self, match: VariableMatch, pattern: str, name: str) -> None:
        if match.kind is PatternKind.RLIKE and catalyst.groups_in(pattern) is not None:
            return
        quote = "'" if match.escape == '"' else '"'
        escape = "" if match.escape == "\\" else f" ESCAPE {quote}{match.escape}{quote}"
        written = f"CAST(unhex('{pattern.encode().hex()}') AS STRING)"
        try:
            self._spark.sql(f"SELECT '' {match.kind} {written}{escape}").collect()
        except PySparkException as error:
            raise NotShareableError(f"the query {name!r}: {error}") from error


def _matches(template: QueryTemplate) -> dict[VariableMatch, int]:
    """Return the matches with a pattern that is a parameter, and the number of its constant."""
    return {
        node: -1 - node.pattern.index
        for predicate in _predicates(template)
        for node in predicate.walk()
        if isinstance(node, VariableMatch) and isinstance(node.pattern, Argument)
    }


def _predicates(template: QueryTemplate) -> Iterator[Expression]:
    query, aggregated = template.query, template.aggregated
    absence = () if query.absence is None else query.absence.conditions
    having = () if aggregated is None else (aggregated.having,)
    for predicate in (*query.selections.values(), *query.conditions, *absence, *having):
        if isinstance(predicate, Expression):
            yield predicate


def _fault(match: VariableMatch, pattern: str | None) -> str | None:
    test = match.against(pattern)
    return test.fault((pa.string(),)) if isinstance(test, TextTest) else None
