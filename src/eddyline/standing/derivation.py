"""Derived columns: which there are, and how they are read from the plans of queries.

What Eddyline does not evaluate exactly as Spark does, such as a regular expression or a path in a
JSON text, Spark computes as a further column of the stream
(``docs/decisions/0078-spark-computes-what-eddyline-cannot.md``).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Protocol
from weakref import WeakKeyDictionary, WeakValueDictionary

import pyarrow as pa
from pyspark.sql.types import DataType, StructType

from eddyline import catalyst
from eddyline.blocks.column_types import arrow_type, can_travel
from eddyline.blocks.decline import not_understood
from eddyline.catalyst import CatalystExpression, Plan
from eddyline.expressions import Argument, Expression, Failure, catalyst_class
from eddyline.expressions.catalyst_classes import NotTranslatedError
from eddyline.expressions.vector import ErrorCondition
from eddyline.planner.read.chains import ExpressionId, Tree
from eddyline.planner.read.definitions import Definitions
from eddyline.planner.read.throwing import TreeOperator, may_throw, top_may_throw
from eddyline.standing.computed_parameters import ComputedSource
from eddyline.standing.derived_column import DerivedColumn
from eddyline.standing.described_outputs import canonical, shown_name, unsaid
from eddyline.standing.engine.failing_event import unless_failed
from eddyline.standing.engine.join_conditions import MOST_COLUMNS
from eddyline.standing.existences import Existence, TableSide
from eddyline.standing.markers import PARAMETER
from eddyline.standing.query_template import QueryTemplate
from eddyline.standing.shown_parameters import attributes_in

_IDENTITY: Final = re.compile(r"#\d+L?")
"""What Spark's text of an expression says of identities, which differ from reading to reading."""

_CONDITIONS: Final = {
    "ElementAt": ErrorCondition.INVALID_ARRAY_INDEX_IN_ELEMENT_AT,
    "Elt": ErrorCondition.INVALID_ARRAY_INDEX,
    "GetArrayItem": ErrorCondition.INVALID_ARRAY_INDEX,
    "MakeDate": ErrorCondition.DATETIME_FIELD_OUT_OF_BOUNDS,
    "MakeTimestamp": ErrorCondition.DATETIME_FIELD_OUT_OF_BOUNDS,
}
"""Spark's names for the errors of expressions that Spark alone evaluates."""


class DerivedPart(StrEnum):
    """What a derived column has of an expression."""

    VALUE = "value"  # of one that cannot raise
    TRIED = "tried"  # its value, NULL where it raises
    EVENT = "event"  # a text of the columns that it is about where it raises, and NULL elsewhere


@dataclass(frozen=True)
class DerivedSource:
    """How a derived column is computed: in the JVM, over attributes of its stream.

    ``columns`` are these attributes with the numbers of the stream's columns that they are; ``key``
    is the expression's own.
    """

    expression: CatalystExpression
    columns: tuple[tuple[CatalystExpression, int], ...]
    part: DerivedPart
    key: str
    existence: Existence | None = None
    """What it tells of rows of tables; then ``expression`` is the condition alone."""


class DerivedColumns:
    """The derived columns of a state directory; the holder of it sees that one thread asks.

    An expression that no query asks for any more is forgotten; its number is not given again.
    """

    def __init__(self, schemas: Mapping[str, StructType]) -> None:
        """Take the columns of each stream: the further ones are numbered from there on."""
        self._schemas = schemas
        self._next: dict[str, int] = {}
        self._known: WeakValueDictionary[tuple[str, str], DerivedColumn] = WeakValueDictionary()
        # Templates that were read from a log have columns of their own, equal to the known ones:
        # one is known for as long as any template that asks for it is there.
        self._asking: WeakKeyDictionary[QueryTemplate, list[DerivedColumn]] = WeakKeyDictionary()
        self.sources: WeakKeyDictionary[DerivedColumn, DerivedSource] = WeakKeyDictionary()
        """How those are computed that were read in this session."""

    def take(self, templates: Iterable[QueryTemplate], following: Mapping[str, int]) -> None:
        """Take what a state directory has; ``following`` are the numbers after all ever given."""
        for name, number in following.items():
            self._next[name] = max(self._next.get(name, 0), number)
        for template in templates:
            self._asking[template] = [
                self._known.setdefault((column.stream, column.key), column)
                for column in template.derived
            ]

    def column(
        self, stream: str, key: str, kind: str, text: str, source: DerivedSource
    ) -> DerivedColumn:
        """Return the column of an expression, a new one where nobody has asked for it yet."""
        column = self._known.get((stream, key))
        if column is None:
            number = self._next.get(stream, len(self._schemas[stream].fields))
            if number >= MOST_COLUMNS:
                raise not_understood(
                    f"{text}: more than {MOST_COLUMNS:,} expressions over {stream} that Spark "
                    "computes have come; begin with another state directory"
                )
            self._next[stream] = number + 1
            column = self._known[stream, key] = DerivedColumn(
                stream, number, key, kind, text, is_event=source.part is DerivedPart.EVENT
            )
        self.sources.setdefault(column, source)
        return column


class PlacedColumns(Protocol):
    """What is known of the columns of a plan that is read."""

    inputs: list[str]
    places: dict[ExpressionId, tuple[int, int]]
    definitions: Definitions
    tables: frozenset[str]
    parameters: Mapping[str, DataType]


@dataclass
class Derivation:
    """The derived columns of one query as it is read."""

    columns: DerivedColumns
    plan: PlacedColumns
    time_zone: str
    refusals: list[str] = field(default_factory=list)
    """Why expressions have none, the inner ones first."""
    inside: set[str] = field(default_factory=set)
    """The parameters in expressions that have none."""
    computed: dict[str, ComputedSource] = field(default_factory=dict)
    """What Spark computes of parameters alone, by what it says."""
    _read: dict[tuple[str, int], DerivedColumn] = field(default_factory=dict)

    def derived(self, tree: Tree, text: str = "") -> Expression | None:
        """Return what stands for an expression over columns of one stream; None where it cannot.

        ``text`` is how people know it, Spark's own where it is empty.

        It cannot for one that calls a Python function or takes a parameter, for one over columns
        of several streams or of tables, and for one whose values do not travel.
        """
        if tree.name in {"AttributeReference", "Literal", "Alias"}:
            return None
        names = self._functions_in(tree)
        if any(not name.startswith(PARAMETER) for name in names):
            return None  # it is another reason that matters
        if names:
            computed = self._computed(tree)
            if computed is not None:
                return computed
            self.refusals.append(_with_parameter(tree, names[0]))
            self.inside |= {name.removeprefix(PARAMETER) for name in names}
            return None
        try:
            return self._derived(self.plan.definitions.tree_over_base(tree), text)
        except NotTranslatedError as refusal:
            self.refusals.append(str(refusal))
            return None

    def _computed(self, tree: Tree) -> Expression | None:
        """Return the parameter that Spark computes of others; None where there is more in it."""
        definitions = self.plan.definitions
        base = definitions.tree_over_base(tree)
        attributes = {attribute.identity: attribute for attribute in attributes_in(base)}
        kind = catalyst.data_type(base.handle)
        if not attributes.keys() <= definitions.results.keys() or not can_travel(kind):
            return None
        if not catalyst.is_deterministic(base.handle):
            return None
        functions = {i: definitions.results[i].function.node.fields["name"] for i in attributes}
        named = {i: str(name).removeprefix(PARAMETER) for i, name in functions.items()}
        texts = {identity[0]: f":{name}" for identity, name in named.items()}
        said = f"{canonical(base.node, texts)} {unsaid(base)}"
        handles = tuple((attributes[i].handle, name) for i, name in named.items())
        self.computed.setdefault(said, ComputedSource(base.handle, kind, handles))
        place = len(self.plan.parameters) + list(self.computed).index(said)
        return Argument(-1 - place, arrow_type(kind, self.time_zone))

    def existence(
        self, rows: Plan, condition: Tree, table_of: Callable[[Plan], str | None]
    ) -> Expression:
        """Return what stands for whether a row of tables fits; DeclinedError where nothing can.

        ``condition`` is about attributes of ``rows`` and of the plan that is read.
        """
        side = TableSide(table_of)
        said = side.text(rows)
        own = frozenset(catalyst.output_numbers(rows))
        definitions, shown = self.plan.definitions, shown_name(catalyst.pretty(condition.handle))
        where = f"what says which row of {side.leaves[0][1]} is meant, {shown},"
        functions = {*side.functions, *self._functions_in(condition)}
        if functions:
            refusal = f"{where} calls a Python function or has a :marker"
            if all(name.startswith(PARAMETER) for name in functions):
                self.refusals.append(refusal)
                self.inside |= {name.removeprefix(PARAMETER) for name in functions}
            raise not_understood(f"{refusal}: put it outside of EXISTS or IN")
        base = definitions.tree_over_base(condition)
        outside = {a.identity: a for a in attributes_in(base) if a.identity[0] not in own}
        if not outside or not outside.keys() <= self.plan.places.keys():
            raise not_understood(f"{where} is about no column of a stream")
        placed = {identity: self.plan.places[identity] for identity in outside}
        inputs = {number for number, _ in placed.values()}
        number = min(inputs)
        stream = self.plan.inputs[number]
        if len(inputs) > 1 or stream in self.plan.tables:
            raise not_understood(
                f"{where} is about several streams, or a table: take columns of one stream, or "
                "give tables that belong together in tables= as one"
            )
        columns = {identity[0]: f"e.{column}" for identity, (_, column) in placed.items()}
        side.names |= columns
        key = _digest(f"exists {said} WHERE {side.said(base)}")
        of_stream = tuple((outside[i].handle, column) for i, (_, column) in placed.items())
        existence = Existence(rows, base.handle, tuple(side.leaves))
        source = DerivedSource(base.handle, of_stream, DerivedPart.VALUE, key, existence)
        text = f"exists in {side.leaves[0][1]} with {shown}"
        column = self.columns.column(stream, key, '"boolean"', text, source)
        self._read[stream, column.number] = column
        return Argument(number * MOST_COLUMNS + column.number, pa.bool_())

    def among(self, used: Iterable[tuple[int, int]]) -> tuple[DerivedColumn, ...]:
        """Return the derived columns among columns of inputs, in the order of their numbers."""
        asked = {(self.plan.inputs[number], column) for number, column in used}
        return tuple(column for place, column in sorted(self._read.items()) if place in asked)

    def _functions_in(self, tree: Tree) -> list[str]:
        definitions = self.plan.definitions
        results = map(definitions.results.__getitem__, definitions.results_in(tree))
        return [str(result.function.node.fields["name"]) for result in results]

    def _derived(self, base: Tree, text: str = "") -> Expression:
        attributes = {attribute.identity: attribute for attribute in attributes_in(base)}
        handle, shown = base.handle, text or shown_name(catalyst.pretty(base.handle))
        if not attributes or not attributes.keys() <= self.plan.places.keys():
            raise NotTranslatedError(f"{shown} is about no column of a stream")
        placed = {identity: self.plan.places[identity] for identity in attributes}
        number = min(number for number, _ in placed.values())
        stream, kind = self.plan.inputs[number], catalyst.data_type(handle)
        if number != max(number for number, _ in placed.values()):
            raise NotTranslatedError(f"{shown} is about several streams, before they are joined")
        if stream in self.plan.tables:
            raise NotTranslatedError(f"{shown} is about a table: make it a column of {stream}")
        if not can_travel(kind):
            raise NotTranslatedError(f"{shown} of type {kind.strip(chr(34))}")
        if not catalyst.is_deterministic(handle):
            raise NotTranslatedError(f"{shown} is not the same for the same event")
        of_stream = tuple((attributes[i].handle, column) for i, (_, column) in placed.items())
        columns = {identity[0]: str(column) for identity, (_, column) in placed.items()}
        about = ", ".join(str(attribute.node.fields["name"]) for attribute in attributes.values())
        whole = _IDENTITY.sub("", catalyst.whole_text(handle))
        key = _digest(f"{canonical(base.node, columns)} {unsaid(base)} {whole}")

        def argument(part: DerivedPart, kind: str) -> Argument:
            source = DerivedSource(handle, of_stream, part, key)
            own_key = _digest(f"{part} {kind} {key}")
            told = about if part is DerivedPart.EVENT else shown
            column = self.columns.column(stream, own_key, kind, told, source)
            self._read[stream, column.number] = column
            index = number * MOST_COLUMNS + column.number
            return Argument(index, arrow_type(kind, self.time_zone))

        if not may_throw(base):
            return argument(DerivedPart.VALUE, kind)
        # It is computed for every event, and only later it is known whether a query wants it.
        value, event = argument(DerivedPart.TRIED, kind), argument(DerivedPart.EVENT, '"string"')
        conditions = {*_conditions(base)}
        condition = conditions.pop() if len(conditions) == 1 else ErrorCondition.NO_RESULT
        return unless_failed(event, value, Failure(condition, shown, value.type))


def _with_parameter(tree: Tree, function: str) -> str:
    return (
        f"Spark computes {tree.name} once for all queries, and so not with "
        f"{shown_name(f'{function}()')} in it"
    )


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _conditions(tree: Tree) -> Iterator[ErrorCondition]:
    """Yield what can go wrong as Spark calls it."""
    for child in tree.children:
        yield from _conditions(child)
    if top_may_throw(tree):
        condition = catalyst_class(tree.name).condition
        if condition is not None:
            yield condition(TreeOperator(tree))
        else:
            yield _CONDITIONS.get(tree.name, ErrorCondition.NO_RESULT)
