"""What queries put out, in one DataFrame: whose row it is, then the columns of all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final, NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql.types import DataType

from eddyline import catalyst
from eddyline.blocks.column_types import spark_type
from eddyline.catalyst import CatalystExpression, Plan
from eddyline.errors import NotShareableError
from eddyline.planner.read.chains import Tree
from eddyline.planner.read.throwing import may_throw
from eddyline.quirks.classic_frames import ClassicDataFrame
from eddyline.standing.analysis import Analysis
from eddyline.standing.failing_outputs import FailingOutputs, RaisingLayout, named_columns
from eddyline.standing.log.engine_inputs import Layout, Source, layout_of, layouts_in
from eddyline.standing.log.live_queries import StandingQuery
from eddyline.standing.query_reading import ReadQuery
from eddyline.standing.query_template import OutputColumn, QueryTemplate
from eddyline.standing.tasks.counts import Counts
from eddyline.standing.tasks.failed_queries import QueryFailure

QUERY: Final = "query"
"""The column that says whose row it is."""

SAMPLE: Final = "sample"
"""The column that says what sample of the events a row is of, where events may be dropped."""


class OutputColumns:
    """The columns of all queries' results: a name has one type, whichever query puts it out."""

    def __init__(self, reserved: Iterable[str] = (QUERY,)) -> None:
        """Some names are not for queries to give."""
        self._reserved = frozenset(reserved)
        self._types: dict[str, tuple[str, str]] = {}

    def take(self, template: QueryTemplate) -> None:
        """Take the columns of further queries; NotShareableError where they do not fit."""
        seen: set[str] = set()
        for column in template.outputs:
            name = column.name.casefold()
            if name in self._reserved:
                says = "whose row it is" if name == QUERY else "what sample a row is of"
                raise NotShareableError(
                    f"{name} is the column that says {says}; give yours another name: "
                    f"{template.sql}"
                )
            if name in seen:
                raise NotShareableError(f"two columns are called {column.name}: {template.sql}")
            seen.add(name)
            known = self._types.get(name)
            if known is not None and known[0] != column.type:
                raise NotShareableError(
                    f"column {column.name} is {column.type.strip(chr(34))} here and "
                    f"{known[0].strip(chr(34))} in {known[1]}; cast it, or give it another name: "
                    f"{template.sql}"
                )
        for column in template.outputs:
            self._types.setdefault(column.name.casefold(), (column.type, template.sql))


class Readings:
    """The outputs of the queries of a batch in the JVM, read again where they are not known."""

    def __init__(self, analysis: Analysis) -> None:
        self._analysis = analysis
        self.by_layout: dict[Layout, ReadQuery] = {}
        self._kept: Sequence[StandingQuery] | None = None

    def keep(self, streams: tuple[str, ...], queries: Sequence[StandingQuery]) -> None:
        """Take the layouts of these queries, in the order of their numbers, and no others.

        Nothing is done for the list that was given last: of 100,000 queries it takes 0.1 s.
        """
        if queries is self._kept:
            return
        self._kept = queries
        templates = {
            layout_of(streams, template): template
            for template in {id(query.template): query.template for query in queries}.values()
        }
        known, self.by_layout = self.by_layout, {}
        of_steps: dict[tuple[str, tuple[OutputColumn, ...]], ReadQuery] = {}
        for layout in layouts_in(streams, queries):
            step = layout.further, layout.outputs
            reading = known.get(layout)
            if reading is None and step in of_steps:  # another part of it was read just now
                reading = of_steps[step].parts[layout.part]
            reading = reading or self._analysis.read_again(templates[layout])
            self.by_layout[layout] = reading
            if reading.parts:
                of_steps[step] = reading


def shown_columns(templates: Iterable[QueryTemplate]) -> dict[str, DataType]:
    """Return the columns that values of shown parameters and of calls travel in, with types."""
    shown: dict[str, str] = {}
    for template in templates:
        shown |= {parameter.column: parameter.type for parameter in template.shown}
        shown |= {called.column: called.type for called in template.called}
    return {column: spark_type(kind) for column, kind in sorted(shown.items())}


@dataclass
class StepResults:
    """What queries that go on above windows came to in a micro-batch, by their names.

    ``left_out`` are results beyond ``max_results``; ``failures`` say which raise, and so have none.
    """

    counts: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    failures: dict[str, QueryFailure] = field(default_factory=dict)
    held: list[DataFrame] = field(default_factory=list)

    def hold(self, frame: DataFrame) -> DataFrame:
        """Have rows computed once, however often they are looked at, until they are released."""
        self.held.append(frame.persist())
        return self.held[-1]

    def release(self) -> None:
        """Let go of all rows."""
        while self.held:
            self.held.pop().unpersist()


class BatchResults(NamedTuple):
    """The results of a micro-batch, and its rows on which SELECT lists raise, if any may.

    ``steps`` are those of queries that go on above windows, if there are such.
    """

    rows: ClassicDataFrame
    failing: FailingOutputs | None = None
    steps: StepResults | None = None

    def tell(self, counts: Counts, queries: Sequence[StandingQuery]) -> None:
        """Add to the counts of a micro-batch what was found here, after a sink had the rows."""
        failed = {}
        if self.failing is not None and self.failing.rows:
            failed = self.failing.by_query()
        if not failed and self.steps is None:
            return
        numbers = {query.name: query.number for query in queries}
        for name, failure in failed.items():
            counts.errors.setdefault(numbers[name], failure)
            counts.results[numbers[name]] -= failure.rows
        if self.steps is not None:
            counts.results.update({numbers[name]: n for name, n in self.steps.counts.items()})
            counts.left_out.update({numbers[name]: n for name, n in self.steps.left_out.items()})
            for name, failure in self.steps.failures.items():
                counts.errors.setdefault(numbers[name], failure)

    def release(self) -> None:
        """Let go of what was held."""
        if self.steps is not None:
            self.steps.release()


def results(
    rows: ClassicDataFrame,
    names: Mapping[tuple[Source, int], str],
    readings: Mapping[Layout, ReadQuery],
    time_zone: str,
) -> BatchResults:
    """Return the results of queries over rows that have a column for each column of their sources.

    ``names`` are those of these columns, by source and number; besides there are
    ``eddyline_query`` and ``eddyline_layout``, the number of one of ``readings``, which say what
    is put out, the columns of :func:`shown_columns`, and, where rows may be dropped,
    ``eddyline_sample``, which comes out as ``sample``. A row on which an output raises an error is
    no result; where none may, nothing is added to the plan. Nor is one of which a condition that
    Spark decides is not true; one that raises counts where no other is false.
    """
    plan = catalyst.analyzed_plan(rows)
    attributes = dict(zip(rows.columns, catalyst.outputs(plan), strict=True))
    aliases = columns_as_read(attributes, names, readings)
    others = [catalyst.named(attributes["eddyline_query"], QUERY)]
    if "eddyline_sample" in attributes:
        others.append(catalyst.named(attributes["eddyline_sample"], SAMPLE))
    told = [catalyst.attribute_of(other) for other in others]
    selector = attributes["eddyline_layout"]
    columns = _columns(readings)
    tries = {
        key: catalyst.named(_tried([c for c in choices if c.raises], selector), "tried")
        for key, (_, choices) in columns.items()
        if any(choice.raises for choice in choices)
    }
    below = catalyst.projected([*aliases, *others, selector], plan)
    below, checked = _decided(below, readings, selector)
    failing = None
    if tries or checked:
        read = [catalyst.attribute_of(alias) for alias in aliases]
        layouts = partial(_raising, names, readings)
        failing = FailingOutputs(rows.sparkSession, layouts, read, time_zone)
        below = failing.kept(list(tries.values()), told[0], selector, below, checked)
    items = []
    for key, (name, choices) in columns.items():
        values = [_unnamed(choice) for choice in choices if key not in tries or not choice.raises]
        if key in tries:
            value = catalyst.struct_field(catalyst.attribute_of(tries[key]), 0)
            values.append(
                (value, [n for choice in choices if choice.raises for n in choice.places])
            )
        items.append(_one_of(name, values, selector, len(readings)))
    above = catalyst.projected([*told, *items], below)
    return BatchResults(catalyst.dataframe_over(rows.sparkSession, above), failing)


def _decided(
    rows: Plan, readings: Mapping[Layout, ReadQuery], selector: CatalystExpression
) -> tuple[Plan, list[CatalystExpression]]:
    """Return the rows of which no condition of their queries is false, with what was tried.

    These are columns that are NULL where a condition raises an error.
    """
    most = max((len(reading.native) for reading in readings.values()), default=0)
    columns, passing, tried = [], [], []
    for place in range(most):
        chosen = [
            (number, reading.native[place])
            for number, reading in enumerate(readings.values())
            if len(reading.native) > place
        ]
        choices = [(catalyst.aliased(condition), [number]) for number, condition in chosen]
        value = catalyst.chosen(selector, choices, catalyst.literal_true())
        raises = any(may_throw(Tree.of(condition)) for _, condition in chosen)
        if raises:
            value = _not_taken_apart(Tree.of(value))
            value = catalyst.in_any_row(catalyst.tried(catalyst.in_struct(value)))
        columns.append(catalyst.named(value, f"eddyline_condition_{place}"))
        attribute = catalyst.attribute_of(columns[-1])
        if raises:
            tried.append(attribute)
            failed, held = catalyst.is_null(attribute), catalyst.struct_field(attribute, 0)
            attribute = catalyst.disjunction([failed, held])
        passing.append(attribute)
    if not columns:
        return rows, []
    rows = catalyst.projected([*catalyst.outputs(rows), *columns], rows)
    return catalyst.filtered(catalyst.conjunction(passing), rows), tried


def columns_as_read(
    attributes: Mapping[str, CatalystExpression],
    names: Mapping[tuple[Source, int], str],
    readings: Mapping[Layout, ReadQuery],
) -> list[CatalystExpression]:
    """Return the columns of rows as those that outputs are made of."""
    aliases: dict[tuple[int, str], CatalystExpression] = {}
    for layout, reading in readings.items():
        for source, columns in zip(layout.sources, reading.columns, strict=True):
            for position, column in enumerate(columns):
                name = names.get((source, position))
                identity = catalyst.identity_number(column)
                if name is not None:
                    aliases.setdefault(
                        (identity, name), catalyst.attribute_like(column, attributes[name])
                    )
        for attribute, name in reading.shown:
            identity = catalyst.identity_number(attribute)
            aliases[identity, name] = catalyst.attribute_like(attribute, attributes[name])
    return list(aliases.values())


def _columns(readings: Mapping[Layout, ReadQuery]) -> dict[str, tuple[str, list[_Choice]]]:
    """Return the columns of results: for each its name, and what it is in which layouts."""
    columns: dict[str, tuple[str, list[_Choice]]] = {}
    meanings: dict[tuple[str, str, tuple[Source, ...]], list[int]] = {}
    for number, (layout, reading) in enumerate(readings.items()):
        for put_out, output, raises in zip(
            layout.outputs, reading.outputs, reading.raising, strict=True
        ):
            key = put_out.name.casefold()
            places = meanings.get((key, put_out.meaning, layout.sources))
            if places is None:
                places = meanings[key, put_out.meaning, layout.sources] = []
                _, choices = columns.setdefault(key, (put_out.name, []))
                choices.append(_Choice(output, places, raises=raises))
            places.append(number)
    return columns


class _Choice(NamedTuple):
    """A named expression that is a column of results, for layouts with these numbers."""

    output: CatalystExpression
    places: list[int]
    raises: bool


def _unnamed(choice: _Choice) -> tuple[CatalystExpression, list[int]]:
    return catalyst.aliased(choice.output), choice.places


def _tried(choices: Sequence[_Choice], layout: CatalystExpression) -> CatalystExpression:
    """Return a struct of a column's value, which is NULL where computing it raises.

    In a condition that is not deterministic: else Spark takes what occurs twice within, such as
    the quotient of ``a / b AS x, a / b + 1 AS y``, out of all that would catch its error.
    """
    unnamed = map(_unnamed, choices)
    values = [(_not_taken_apart(Tree.of(value)), places) for value, places in unnamed]
    value = catalyst.chosen(layout, values)
    return catalyst.in_any_row(catalyst.tried(catalyst.in_struct(value)))


def _not_taken_apart(tree: Tree) -> CatalystExpression:
    """Return an expression that Spark computes where it stands.

    ``items[0].sku`` it would compute below all that catches the error of an empty array: where
    columns are pruned to the fields that are asked for, it goes by the extractions alone.
    """
    if not tree.children:
        return tree.handle
    children = [_not_taken_apart(child) for child in tree.children]
    if tree.name in _EXTRACTIONS and tree.children[0].name in _EXTRACTIONS:
        children[0] = catalyst.known_nullable(children[0])
    elif all(new is old.handle for new, old in zip(children, tree.children, strict=True)):
        return tree.handle
    return catalyst.with_operands(tree.handle, children)


_EXTRACTIONS: Final = frozenset(
    {"GetStructField", "GetArrayStructFields", "GetArrayItem", "GetMapValue"}
)


def _raising(
    names: Mapping[tuple[Source, int], str], readings: Mapping[Layout, ReadQuery]
) -> dict[int, RaisingLayout]:
    """Return the layouts with outputs that may raise, by number."""
    layouts = {}
    for number, (layout, reading) in enumerate(readings.items()):
        outputs = [condition for condition in reading.native if may_throw(Tree.of(condition))]
        outputs += [o for o, raises in zip(reading.outputs, reading.raising, strict=True) if raises]
        if outputs:
            template = reading.template
            read = [
                (template.inputs[at] if len(layout.sources) > 1 else "", column)
                for at, (source, columns) in enumerate(
                    zip(layout.sources, reading.columns, strict=True)
                )
                for position, column in enumerate(columns)
                if (source, position) in names
                and (
                    template.aggregated is not None
                    or (at, position) in template.used
                    or position in template.selected[at]
                )
            ]
            layouts[number] = RaisingLayout(outputs, named_columns(read))
    return layouts


def _one_of(
    name: str,
    choices: Sequence[tuple[CatalystExpression, Sequence[int]]],
    layout: CatalystExpression,
    layouts: int,
) -> CatalystExpression:
    """Return a column that is one of several expressions, as the layout of the row says."""
    if len(choices) == 1 and len(choices[0][1]) == layouts:
        return catalyst.named(choices[0][0], name)
    return catalyst.named(catalyst.chosen(layout, choices), name)


def quoted(name: str) -> str:
    """Return a column's name as one that is no expression.

    >>> quoted("a.b")
    '`a.b`'
    """
    return f"`{name.replace('`', '``')}`"
