"""Standing queries as plain data: what is kept of them, and what travels to the workers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa

from eddyline.blocks.filter_block import SessionSettings, UserFunction
from eddyline.engine.join_graph import Place
from eddyline.expressions import Argument, Expression
from eddyline.standing.derived_column import DerivedColumn
from eddyline.standing.engine.aggregation.grouping import Aggregation
from eddyline.standing.engine.aggregation.time_window import SessionWindow
from eddyline.standing.engine.join_conditions import MOST_COLUMNS
from eddyline.standing.engine.shared_query import SharedQuery


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

    The expressions of ``aggregation`` are over all inputs of the query. For each window, or
    session, and group there are the window, the keys and the aggregates, of Spark's ``types`` as
    JSON in this order: the rows that outputs are made of. ``having`` says which of them are
    results; in it argument 0 is the window's start and 1 its end, then come keys and aggregates,
    and -1 is the template's first constant. ``names`` has for each aggregate the columns of results
    that it is, or its own text where it is only a part of some.
    """

    aggregation: Aggregation
    having: Expression | None
    types: tuple[str, ...]
    names: tuple[tuple[str, ...], ...] = ()

    @property
    def in_sessions(self) -> bool:
        """Whether its windows are sessions."""
        return isinstance(self.aggregation.grouping.window, SessionWindow)

    @property
    def used(self) -> frozenset[Place]:
        """The columns of inputs that times, keys and aggregates are made of."""
        grouping = self.aggregation.grouping
        values = [
            *grouping.keys,
            *(aggregate.argument for aggregate in self.aggregation.aggregates),
        ]
        return frozenset(
            [
                grouping.time,
                *(
                    place_of(node.index)
                    for value in values
                    if value is not None
                    for node in value.walk()
                    if isinstance(node, Argument)
                ),
            ]
        )


@dataclass(frozen=True, slots=True)
class ShownParameter:
    """A parameter in the SELECT list of a template, whose value comes back with each result.

    ``parameter`` is its place among the template's, ``type`` Spark's as JSON, ``number`` its own
    among those of the type.
    """

    parameter: int
    type: str
    number: int

    @property
    def column(self) -> str:
        """The column that its values travel in, which queries of any template share."""
        return f"eddyline_{self.number}_{self.type}"


@dataclass(frozen=True, slots=True)
class CalledOutput:
    """A call of a Python function in the SELECT list, whose value comes with each result.

    ``expression`` is over the inputs' columns, numbered as in conditions on several streams, and
    constants; ``type`` is Spark's as JSON, ``number`` its own among those of the type.
    """

    expression: Expression
    type: str
    number: int

    @property
    def column(self) -> str:
        """The column that its values travel in, which queries of any template share."""
        return f"eddyline_called_{self.number}_{self.type}"


@dataclass(frozen=True)
class ExplodedStream:
    """A stream with a row for each that a generator of Spark's makes of a row of ``stream``.

    ``text`` is the generator as people know it, ``generated_schema`` the columns that it adds, as
    JSON of a struct.
    """

    name: str
    stream: str
    text: str
    generated_schema: str


@dataclass(frozen=True, eq=False)
class QueryTemplate:
    """What queries that differ in constants only have in common; a single query has one, too.

    ``inputs`` are the names of the streams that it reads, one for each time that it does; the
    inputs of ``query`` are these, by position; ``tables`` are those among them that are tables.
    In its predicates an argument with a number from 0 on is a column of the stream, in conditions
    on several streams one as :func:`~eddyline.standing.engine.join_conditions.column_of` gives it;
    number -1 stands for the first of ``constants``, -2 for the second: expressions over the
    template's ``parameters``, which have names and Spark's types as JSON. Calls are of
    ``functions``, which see values under ``settings``.
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
    shown: tuple[ShownParameter, ...] = ()
    """Parameters that the outputs are made of."""
    called: tuple[CalledOutput, ...] = ()
    """What Python functions return that the outputs are made of."""
    keep: int | None = None
    """How far apart its rows' times may be, beside its windows, in microseconds: see `add`."""
    derived: tuple[DerivedColumn, ...] = ()
    """Columns that Spark computes beside those of the streams: they have numbers beyond these."""
    native: tuple[str, ...] = ()
    """What Spark decides of its results, which are none where one of these conditions is not true:
    each as a text like the ``meaning`` of an output."""
    written: str = ""
    """The query with values in place of some markers, where it could be read only so."""
    branch: int = 0
    """Which of the query's branches it is: see :mod:`eddyline.standing.branches`."""
    further: str = ""
    """What Spark makes of the groups of each window that closes, which the outputs are made of: a
    text that says all of it, and where there is one, of the groups' own outputs."""
    part: int = 0
    """Which of the aggregates it is that ``further`` is made of, where it joins several: all have
    the same text, and are branches of one query, one after the other."""

    computed: tuple[tuple[str, ...], ...] = ()
    """For each parameter that Spark computes of others, the names of these; such come after them
    in tables of parameters."""
    exploded: tuple[ExplodedStream, ...] = ()
    """The inputs that are exploded streams."""

    @property
    def selected(self) -> tuple[frozenset[int], ...]:
        """For each input the columns that its selection, conditions and calls are about."""
        columns_by_input = []
        absence = self.query.absence
        compared = {
            divmod(index, MOST_COLUMNS)
            for condition in (*self.query.conditions, *(absence.conditions if absence else ()))
            if isinstance(condition, Expression)
            for index in _columns(condition)
        }
        compared |= {
            divmod(index, MOST_COLUMNS)
            for output in self.called
            for index in _columns(output.expression)
        }
        for number in range(len(self.inputs)):
            selection = self.query.selections[number]
            columns = _columns(selection) if isinstance(selection, Expression) else set()
            columns |= {column for stream, column in compared if stream == number}
            columns_by_input.append(frozenset(columns))
        return tuple(columns_by_input)


def streams_of(template: QueryTemplate) -> frozenset[int]:
    """Return the inputs of a template that are streams, and no tables."""
    inputs = enumerate(template.inputs)
    return frozenset(number for number, name in inputs if name not in template.tables)


def names_that_stand_alone(templates: Iterable[QueryTemplate]) -> frozenset[str]:
    """Return the streams of which a row may be a result because it meets none of another.

    So also where its key is NULL.
    """
    absences = ((template, template.query.absence) for template in templates)
    return frozenset(template.inputs[a.anchor] for template, a in absences if a is not None)


def _columns(expression: Expression) -> set[int]:
    nodes = (node for node in expression.walk() if isinstance(node, Argument))
    return {node.index for node in nodes if node.index >= 0}


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
