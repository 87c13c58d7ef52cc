"""The inputs of a standing query, as its plan has them: streams, tables, and their columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from pyspark.errors import PySparkException
from pyspark.sql import types

from eddyline import catalyst
from eddyline.blocks.column_types import arrow_type
from eddyline.blocks.decline import not_understood
from eddyline.blocks.filter_block import SessionSettings
from eddyline.catalyst import Analyst, CatalystExpression, Plan
from eddyline.expressions import Argument
from eddyline.planner.read.chains import ExpressionId, Tree
from eddyline.standing.engine.join_conditions import MOST_COLUMNS
from eddyline.standing.existences import ONE_SIDED
from eddyline.standing.exploded_streams import ExplodedStreams
from eddyline.standing.time_bounds import event_time


class InputLeaf(NamedTuple):
    """A leaf of a plan: its table or stream, the numbers of its columns, and these in the JVM."""

    table: str
    numbers: tuple[int, ...]
    fetch_columns: Callable[[], tuple[CatalystExpression, ...]]


@dataclass(slots=True, kw_only=True)
class QueryInputs:
    """The streams and tables that a plan reads, numbered, and where attributes are columns."""

    analyst: Analyst
    schemas: Mapping[str, types.StructType]
    settings: SessionSettings
    tables: frozenset[str]
    exploded: ExplodedStreams
    inputs: list[str] = field(default_factory=list)
    leaves: list[InputLeaf] = field(default_factory=list)
    places: dict[ExpressionId, tuple[int, int]] = field(default_factory=dict)
    arguments: dict[ExpressionId, Argument] = field(default_factory=dict)

    def take_inputs(self, plan: Plan) -> None:
        """Number the inputs, those of one table in the order of their identities.

        Where a query reads a table several times, one of them has the identities that the table
        has in every query, and the lowest; the optimizer may put it anywhere. It is the first here,
        so that what has these identities is the same input for all queries.
        """
        for leaf in sorted(self._leaves(plan), key=lambda leaf: leaf.numbers[0]):
            self._input(leaf)

    def _leaves(self, plan: Plan) -> Iterator[InputLeaf]:
        table = self.analyst.table_of(plan)
        if table is not None:
            yield InputLeaf(table, catalyst.output_numbers(plan), lambda: catalyst.outputs(plan))
            return
        if catalyst.class_name(plan).endswith(".Generate"):
            yield self._exploded(plan)
            return
        for child in catalyst.children(plan)[: 1 if self._is_about_tables(plan) else None]:
            yield from self._leaves(child)

    def _exploded(self, plan: Plan) -> InputLeaf:
        name, rows = self.exploded.read(plan, self.analyst.table_of)
        if self.exploded.streams[name].stream in self.tables:
            raise not_understood("explode of a table: give its exploded rows in tables=")
        added = catalyst.generated(plan)
        numbers = (*catalyst.output_numbers(rows), *map(catalyst.identity_number, added))
        return InputLeaf(name, numbers, lambda: (*catalyst.outputs(rows), *added))

    def _schema(self, name: str) -> types.StructType:
        return self.exploded.schemas.get(name) or self.schemas[name]

    def _is_about_tables(self, plan: Plan) -> bool:
        """Tell whether a node joins rows with those of tables only to know whether one fits."""
        if catalyst.class_name(plan).rpartition(".")[2] != "Join":
            return False
        if catalyst.join_type(plan) not in ONE_SIDED:
            return False
        inside = {leaf.table for leaf in self._leaves(catalyst.children(plan)[1])}
        return bool(inside) and inside <= self.tables

    def _input(self, leaf: InputLeaf) -> None:
        number = len(self.inputs)
        self.inputs.append(leaf.table)
        self.leaves.append(leaf)
        for position, (numbered, column) in enumerate(
            zip(leaf.numbers, self._schema(leaf.table).fields, strict=True)
        ):
            identity = identity_of(numbered)
            kind = column.dataType.json()
            self.places[identity] = number, position
            index = number * MOST_COLUMNS + position
            try:
                self.arguments[identity] = Argument(
                    index, arrow_type(kind, self.settings.time_zone)
                )
            except (PySparkException, TypeError, ValueError):
                continue  # of a type that cannot travel: no predicate can be about it

    def place(self, tree: Tree) -> tuple[int, int] | None:
        """Return input and column of an attribute; None for what is none."""
        known = self.arguments.get(tree.identity) if tree.name == "AttributeReference" else None
        return None if known is None else divmod(known.index, MOST_COLUMNS)

    def is_event_time(self, number: int, column: int) -> bool:
        """Tell whether a column of an input has its event times."""
        return event_time(self._schema(self.inputs[number])) == column

    def _columns(self) -> tuple[tuple[CatalystExpression, ...], ...]:
        """Return for each input the attributes of its columns."""
        return tuple(leaf.fetch_columns() for leaf in self.leaves)


def identity_of(number: int) -> ExpressionId:
    """Return the identity of an attribute of this JVM."""
    return number, catalyst.session_identity()
