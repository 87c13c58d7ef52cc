"""How the inputs of queries are those of one engine.

A stream that a query joins with itself is in the engine once for each time that it reads it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple, TypeAlias
from weakref import WeakKeyDictionary

from eddyline.engine.join_graph import Place
from eddyline.expressions import Argument, Call, Expression, with_arguments, with_children
from eddyline.standing.engine.aggregation.grouping import Aggregation
from eddyline.standing.engine.join_conditions import MOST_COLUMNS, JoinCondition
from eddyline.standing.engine.shared_query import SharedQuery
from eddyline.standing.log.live_queries import StandingQuery
from eddyline.standing.query_template import (
    AggregatedRows,
    OutputColumn,
    QueryGroup,
    QueryTemplate,
    argument_number,
    place_of,
)


@dataclass(frozen=True, slots=True)
class EngineInputs:
    """The inputs of an engine: all streams of a job, ``times`` times."""

    streams: tuple[str, ...]
    times: int

    @classmethod
    def of(cls, streams: tuple[str, ...], templates: Iterable[QueryTemplate]) -> EngineInputs:
        """Return the inputs that these templates need."""
        times = [max(Counter(template.inputs).values()) for template in templates]
        return cls(streams, max(times, default=1))

    def __len__(self) -> int:
        """Return how many they are."""
        return len(self.streams) * self.times

    def of_stream(self, stream: int) -> range:
        """Return the inputs that have the rows of a stream."""
        return range(stream, len(self), len(self.streams))

    def numbers(self, template: QueryTemplate) -> tuple[int, ...]:
        """Return for each input of a template which of the engine's it is."""
        return numbers_of(self.streams, template)


def numbers_of(streams: Sequence[str], template: QueryTemplate) -> tuple[int, ...]:
    """Return for each input of a template the engine's, which does not depend on other queries."""
    seen: Counter[str] = Counter()
    numbers = []
    for name in template.inputs:
        numbers.append(seen[name] * len(streams) + streams.index(name))
        seen[name] += 1
    return tuple(numbers)


Source: TypeAlias = "int | Aggregation"
"""Whose columns results are made of: an input of the engine, or aggregates."""


class Layout(NamedTuple):
    """What queries put out: whose columns they are made of, and columns over these.

    ``native`` are the conditions on rows that Spark decides, ``further`` what it makes of the
    groups of windows, and of others: they are the ``part`` of a number of what it is made of.
    """

    sources: tuple[Source, ...]
    outputs: tuple[OutputColumn, ...]
    native: tuple[str, ...] = ()
    further: str = ""
    part: int = 0


def layout_of(streams: tuple[str, ...], template: QueryTemplate) -> Layout:
    """Return the layout of a template's results."""
    aggregation = aggregation_of(streams, template)
    if aggregation is not None:
        further, part = template.further, template.part
        return Layout((aggregation,), template.outputs, template.native, further, part)
    return Layout(numbers_of(streams, template), template.outputs, template.native)


_ByStreams: TypeAlias = "dict[tuple[str, ...], Aggregation]"

_AGGREGATIONS: Final[WeakKeyDictionary[QueryTemplate, _ByStreams]] = WeakKeyDictionary()
"""What each template aggregates, by the inputs of the engine, while somebody has the template."""


def aggregation_of(streams: tuple[str, ...], template: QueryTemplate) -> Aggregation | None:
    """Return what a template aggregates, over the inputs of an engine; None where it does not."""
    if template.aggregated is None:
        return None
    by_streams = _AGGREGATIONS.setdefault(template, {})
    aggregation = by_streams.get(streams)
    if aggregation is None:
        aggregation = by_streams[streams] = _aggregation(streams, template, template.aggregated)
    return aggregation


def _aggregation(
    streams: tuple[str, ...], template: QueryTemplate, aggregated: AggregatedRows
) -> Aggregation:
    numbers = numbers_of(streams, template)

    def here(expression: Expression) -> Expression:
        return with_arguments(expression, lambda argument: _in_engine(argument, numbers))

    aggregation = aggregated.aggregation
    grouping = aggregation.grouping
    time = grouping.time._replace(relation=numbers[grouping.time.relation])
    keys = tuple(map(here, grouping.keys))
    aggregates = [
        aggregate
        if aggregate.argument is None
        else replace(aggregate, argument=here(aggregate.argument))
        for aggregate in aggregation.aggregates
    ]
    return Aggregation(replace(grouping, time=time, keys=keys), tuple(aggregates))


def _in_engine(argument: Argument, numbers: Sequence[int]) -> Argument:
    place = place_of(argument.index)
    return replace(
        argument, index=argument_number(place._replace(relation=numbers[place.relation]))
    )


def aggregations_in(
    streams: tuple[str, ...], queries: Iterable[StandingQuery]
) -> dict[Aggregation, int]:
    """Return what queries aggregate, numbered so that driver and workers agree."""
    numbers: dict[Aggregation, int] = {}
    known: set[int] = set()
    for query in sorted(queries, key=lambda member: member.number):
        if id(query.template) not in known:
            known.add(id(query.template))
            aggregation = aggregation_of(streams, query.template)
            if aggregation is not None:
                numbers.setdefault(aggregation, len(numbers))
    return numbers


def aggregated_column(number: int, position: int) -> str:
    """Return the name of a column of aggregates on its way to the driver."""
    return f"aggregate_{number}_{position}"


def layouts_in(streams: tuple[str, ...], queries: Iterable[StandingQuery]) -> dict[Layout, int]:
    """Return the layouts of queries, numbered so that driver and workers agree.

    Those of which Spark makes something further come after all others.
    """
    first: dict[int, int] = {}
    groups: dict[int, QueryGroup] = {}
    for query in queries:
        key = id(query.group)
        if query.number < first.setdefault(key, query.number):
            first[key] = query.number
        groups[key] = query.group
    in_order = [groups[key].template for key in sorted(first, key=first.__getitem__)]
    templates = {id(template): template for template in in_order}
    numbers: dict[Layout, int] = {}
    for template in sorted(templates.values(), key=lambda one: bool(one.further)):
        numbers.setdefault(layout_of(streams, template), len(numbers))
    return numbers


def renumbered(
    query: SharedQuery, numbers: Sequence[int], functions: Sequence[int] = ()
) -> SharedQuery:
    """Return a query over other inputs, and with other numbers of functions."""
    return SharedQuery(
        {
            numbers[number]: _calling(selection, functions)
            if isinstance(selection, Expression)
            else selection
            for number, selection in query.selections.items()
        },
        frozenset(
            frozenset(Place(numbers[place.relation], place.column) for place in edge)
            for edge in query.edges
        ),
        tuple(
            replace(bound, early=numbers[bound.early], late=numbers[bound.late])
            for bound in query.bounds
        ),
        _conditions(query.conditions, numbers, functions),
        None
        if query.absence is None
        else replace(
            query.absence,
            stream=numbers[query.absence.stream],
            anchor=numbers[query.absence.anchor],
            conditions=_conditions(query.absence.conditions, numbers, functions),
        ),
    )


def _conditions(
    conditions: Sequence[Expression | JoinCondition],
    numbers: Sequence[int],
    functions: Sequence[int],
) -> tuple[Expression, ...]:
    return tuple(
        with_arguments(_calling(condition, functions), lambda argument: _moved(argument, numbers))
        for condition in conditions
        if isinstance(condition, Expression)
    )


def _moved(argument: Argument, numbers: Sequence[int]) -> Argument:
    """Return a column of another input; a constant as it is."""
    if argument.index < 0:
        return argument
    number, column = divmod(argument.index, MOST_COLUMNS)
    return replace(argument, index=numbers[number] * MOST_COLUMNS + column)


def _calling(expression: Expression, functions: Sequence[int]) -> Expression:
    if not any(isinstance(node, Call) for node in expression.walk()):
        return expression
    inner = with_children(expression, lambda child: _calling(child, functions))
    return replace(inner, function=functions[inner.function]) if isinstance(inner, Call) else inner


def columns_needed(
    streams: Sequence[str], times: Sequence[int | None], templates: Iterable[QueryTemplate]
) -> tuple[tuple[int, ...], ...]:
    """Return for each stream the columns that some query selects, joins or puts out.

    ``times`` are the columns that say when events happened, which are always needed.
    """
    needed: list[set[int]] = [set() if time is None else {time} for time in times]
    for template in templates:
        places = [*template.used, *(place for edge in template.query.edges for place in edge)]
        for number, column in places:
            needed[streams.index(template.inputs[number])].add(column)
        for number, columns in enumerate(template.selected):
            needed[streams.index(template.inputs[number])] |= columns
    return tuple(tuple(sorted(columns)) for columns in needed)


def columns_put_out(
    streams: Sequence[str], templates: Iterable[QueryTemplate]
) -> tuple[tuple[int, int], ...]:
    """Return the columns that joined results are made of: the engine's input, and the column."""
    places = set()
    for template in templates:
        if template.aggregated is not None:
            continue
        numbers = numbers_of(streams, template)
        places |= {(numbers[number], column) for number, column in template.used}
    return tuple(sorted(places))
