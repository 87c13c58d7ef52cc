"""SELECT lists that raise errors: their rows are kept apart from results, and explained.

See ``docs/decisions/0077-a-bad-rule-stops-itself.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from eddyline import catalyst
from eddyline.catalyst import CatalystExpression, Plan
from eddyline.host.classic import classic
from eddyline.planner.read.chains import Tree
from eddyline.standing.tasks.failed_queries import QueryFailure, shown_event

EXPLAINED: Final = 100
"""Queries whose error and event are looked up after a micro-batch, some calls into the JVM each: of
others only the number of rows is told."""


class ReadColumn(NamedTuple):
    """A column that outputs are made of: its name to people, and the attribute it is."""

    name: str
    attribute: CatalystExpression


def named_columns(read: Iterable[tuple[str, CatalystExpression]]) -> list[ReadColumn]:
    """Return attributes with names that people know: of a source, where there are several."""
    columns: dict[str, ReadColumn] = {}
    for source, attribute in read:
        own = str(Tree.of(attribute).node.fields["name"])
        name = f"{source}.{own}" if source else own
        if name in columns:
            name = f"{name} ({len(columns)})"
        columns[name] = ReadColumn(name, attribute)
    return list(columns.values())


class RaisingLayout(NamedTuple):
    """Outputs and conditions of a layout that may raise, and the columns that its queries read."""

    outputs: Sequence[CatalystExpression]
    columns: Sequence[ReadColumn]


class FailingOutputs:
    """The rows of a micro-batch on which SELECT lists raise errors.

    Each output that may is computed in a struct that is NULL where it raises. A row with such a
    struct is counted and left out, before a sink sees it, however often the sink looks.
    """

    def __init__(
        self,
        spark: SparkSession,
        fetch_layouts: Callable[[], Mapping[int, RaisingLayout]],
        attributes: Sequence[CatalystExpression],
        time_zone: str,
    ) -> None:
        """Take the session, and what gives the layouts with such outputs by number.

        ``attributes`` are those of all columns below the outputs.
        """
        self._spark = spark
        self._counter = catalyst.RowCounter(self._spark)
        self._fetch_layouts = fetch_layouts
        self._attributes = attributes
        self._time_zone = time_zone
        self._failed: Plan | None = None

    def kept(
        self,
        tries: Sequence[CatalystExpression],
        query: CatalystExpression,
        layout: CatalystExpression,
        rows: Plan,
        before: Sequence[CatalystExpression] = (),
    ) -> Plan:
        """Return rows with these tries, without those on which one fails, which are counted.

        ``before`` are columns of the rows that are tries as well.
        """
        rows = catalyst.projected([*catalyst.outputs(rows), *tries], rows)
        tried = [*map(catalyst.attribute_of, tries), *before]
        failed = catalyst.disjunction([catalyst.is_null(value) for value in tried])
        columns = [
            catalyst.named(column, f"column {n}") for n, column in enumerate(self._attributes)
        ]
        told = [catalyst.named(query, "query"), catalyst.named(layout, "layout"), *columns]
        self._failed = catalyst.projected(told, catalyst.filtered(failed, rows))
        return catalyst.filtered(self._counter.counted(failed), rows)

    @property
    def rows(self) -> int:
        """How many such rows actions have met; those met twice are counted twice."""
        return self._counter.rows

    def by_query(self) -> dict[str, QueryFailure]:
        """Return what went wrong by the name of the query.

        The micro-batch is computed again for that, up to its results: this is rare.
        """
        if self._failed is None:
            return {}
        frame = catalyst.dataframe_over(self._spark, self._failed)
        columns = [F.col(f"`column {n}`") for n in range(len(self._attributes))]
        first = frame.groupBy("query").agg(
            F.first("layout").alias("layout"),
            F.count(F.lit(1)).alias("rows"),
            F.first(F.struct(*columns)).alias("row"),
        )
        collected = catalyst.collected_rows(classic(first), self._attributes)
        layouts = self._fetch_layouts()
        failures = {}
        for turn, (name, layout, rows, row) in enumerate(sorted(collected, key=lambda one: one[0])):
            if turn >= EXPLAINED:
                failures[name] = QueryFailure("an output raises an error", "", rows)
                continue
            outputs, read = layouts[layout]
            errors = [error for output in outputs if (error := row.error(output)) is not None]
            error = errors[0] if errors else "an output raises an error"
            values = {column.name: row.text(column.attribute, self._time_zone) for column in read}
            failures[name] = QueryFailure(error, shown_event(values), rows)
        return failures
