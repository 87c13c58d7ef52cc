"""Standing queries as plain data: what is kept of them, and what travels to the workers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from eddyline.query.expressions import Argument, Expression
from eddyline.query.join_graph import Place
from eddyline.sharing.aggregation.grouping import Aggregation
from eddyline.sharing.shared_query import SharedQuery
from eddyline.spark.blocks.filter_block import SessionSettings, UserFunction

MOST_COLUMNS: Final = 1 << 20
"""Columns of one input: arguments over several are numbered input by input, this far apart."""


def argument_number(place: Place) -> int:
    """Return the number of the argument that a column of an input is."""
    return place.relation * MOST_COLUMNS + place.column


def place_of(argument: int) -> Place:
    """Return the column of an input that an argument stands for."""
    return Place(*divmod(argument, MOST_COLUMNS))


@dataclass(frozen=True, slots=True)
class OutputColumn:
    """A column of a query's results: its name, Spark's type as JSON, and what it is.

    ``meaning`` is the same text for the same expression over the same columns.
    """

    name: str
    type: str
    meaning: str


@dataclass(frozen=True)
class AggregatedRows:
    """What a query aggregates, and what it makes of it.

    The expressions of ``aggregation`` are over all inputs of the query. Of each window and group
    there are the window, the keys and the aggregates, of Spark's ``types`` as JSON in this order:
    the rows that outputs are made of. ``having`` says which of them are results; in it argument 0
    is the window's start and 1 its end, then come keys and aggregates, and -1 is the template's
    first constant.
    """

    aggregation: Aggregation
    having: Expression | None
    types: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class QueryTemplate:
    """What queries have in common that differ in constants only; a single query is of one, too.

    ``inputs`` are the names of the streams that it reads, one for each time that it does; the
    inputs of ``query`` are these, by position; ``tables`` are those among them that are tables.
    In its predicates an argument with a number from 0 on is a column of the stream; number -1
    stands for the first of ``constants``, -2 for the second: expressions over the template's
    ``parameters``, which have names and Spark's types as JSON. Calls are of ``functions``, which
    see values under ``settings``.
    """

    sql: str
    inputs: tuple[str, ...]
    query: SharedQuery
    constants: tuple[Expression, ...]
    parameters: tuple[tuple[str, str], ...]
    outputs: tuple[OutputColumn, ...]
    tables: frozenset[str]
    functions: tuple[UserFunction, ...]
    settings: SessionSettings
    used: frozenset[tuple[int, int]]
    """Columns that the outputs are made of, or what they aggregate: input and number."""
    aggregated: AggregatedRows | None = None
    """The aggregates that the outputs are made of; None where they are made of joined rows."""

    @property
    def selected(self) -> tuple[frozenset[int], ...]:
        """For each input the columns that its selection and windows are about."""
        found = []
        for number in range(len(self.inputs)):
            selection = self.query.selections[number]
            nodes = selection.walk() if isinstance(selection, Expression) else ()
            columns = {each.index for each in nodes if isinstance(each, Argument)}
            found.append(frozenset(column for column in columns if column >= 0))
        return tuple(found)


@dataclass(frozen=True)
class QueryGroup:
    """Queries of one template: ``names`` by number from ``first`` on.

    ``parameters`` has a column for each parameter of the template and a row for each query.
    """

    first: int
    names: tuple[str, ...]
    template: QueryTemplate
    parameters: pa.Table
    look_back: int | None = None
