"""Parameters inside of what Spark computes: their values are written into the query.

Spark computes a derived column once for all queries that say the same, so a ``:marker`` in it makes
as many columns as it has values: ``split(message, :separator)[0] = 'a'`` is a query for each
separator. A pattern is a parameter like others, unless Spark has to decide it.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from typing import NamedTuple

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql.types import DataType

from eddyline.errors import NotShareableError
from eddyline.standing.markers import with_markers
from eddyline.standing.pattern_parameters import PatternParameters
from eddyline.standing.query_template import QueryTemplate


class ParameterInsideError(NotShareableError):
    """A parameter is inside of what Spark computes."""

    def __init__(self, message: str, parameters: frozenset[str]) -> None:
        """Say so, and which it is."""
        super().__init__(message)
        self.parameters = parameters


class WrittenTemplates(NamedTuple):
    """The templates of a query's branches, and the rows of parameters whose queries they have."""

    branches: tuple[QueryTemplate, ...]
    rows: tuple[int, ...]


def written_templates(
    sql: str,
    read: Callable[[str], tuple[QueryTemplate, ...]],
    table: pa.Table,
    kinds: Mapping[str, DataType],
    rows: Collection[int],
    patterns: PatternParameters,
) -> Iterator[WrittenTemplates]:
    """Yield the templates of a query for rows of parameters: for all, unless values are written.

    ``read`` analyzes a query, which takes 10 ms for each combination of such values. Values have to
    be written, too, where ``patterns`` has some that Spark has to decide. Raises NotShareableError
    as both do, and for a value that cannot be written or makes no query, with the query's name.
    """

    def written(
        inside: ParameterInsideError, parameters: Collection[str], some: Iterable[int]
    ) -> Iterator[WrittenTemplates]:
        names = sorted(parameters)
        by_values: dict[tuple[str, ...], list[int]] = {}
        for row in some:
            values = tuple(_literal(table[n][row].as_py(), kinds[n], inside) for n in names)
            by_values.setdefault(values, []).append(row)
        for values, own in by_values.items():
            texts = dict(zip(names, values, strict=True))
            text = with_markers(sql, lambda name, texts=texts: texts.get(name, f":{name}"))  # type: ignore[misc]
            try:
                templates = list(written_templates(text, read, table, kinds, own, patterns))
            except PySparkException as error:
                told = str(error).strip().split("\n", 1)[0]
                raise NotShareableError(
                    f"the parameters of {patterns.names[own[0]]} make no query: {told}: {sql}"
                ) from error
            for branches, few in templates:
                again = [replace(b, sql=sql, written=b.written or text) for b in branches]
                yield WrittenTemplates(tuple(again), few)

    try:
        branches = read(sql)
    except ParameterInsideError as inside:
        yield from written(inside, inside.parameters, rows)
        return
    left = {row: p for branch in branches for row, p in patterns.left(branch, rows).items()}
    if len(left) < len(rows):
        yield WrittenTemplates(branches, tuple(row for row in rows if row not in left))
    for row, pattern in left.items():
        refusal = ParameterInsideError(pattern.told, pattern.parameters)
        try:
            yield from written(refusal, pattern.parameters, [row])
        except NotShareableError as error:
            raise NotShareableError(f"{pattern.told}: {error}") from error


def _literal(value: object, kind: DataType, inside: ParameterInsideError) -> str:
    """Return a value as SQL, which says the same whatever the session's settings of texts are."""
    name = kind.simpleString()
    if value is None:
        return f"CAST(NULL AS {name})"
    if not isinstance(value, str | bool | int | float | Decimal | dt.date) or isinstance(
        value, dt.datetime
    ):
        raise inside
    text = value if isinstance(value, str) else str(value)
    return f"CAST(CAST(unhex('{text.encode().hex()}') AS STRING) AS {name})"
