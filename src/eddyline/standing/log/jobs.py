"""Which job runs which queries: one for each set of streams and partitioning key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from weakref import WeakKeyDictionary

from eddyline.engine.join_graph import Place
from eddyline.expressions import Argument
from eddyline.expressions.value_types import is_joinable
from eddyline.standing.query_template import QueryTemplate, place_of


@dataclass(frozen=True, slots=True)
class Job:
    """A job: the streams that it reads, and whether its queries join them, or aggregate one.

    If they join them, ``columns`` has for each stream the column that its rows are dealt out
    by; none where no column of every stream must be equal, so that all rows meet in one place.
    ``tables`` are joined as well; the rows of each are dealt out by one of ``table_columns``,
    or all rows are everywhere where that is None. Where it aggregates in ``sessions``, all rows of
    one have to meet: ``columns`` has the column that they are dealt out by, if there is one.
    """

    streams: tuple[str, ...]
    joins: bool = False
    columns: tuple[int, ...] = ()
    tables: tuple[str, ...] = ()
    table_columns: tuple[int | None, ...] = ()
    aggregates: bool = False
    sessions: bool = False

    @property
    def inputs(self) -> tuple[str, ...]:
        """The streams, then the tables."""
        return (*self.streams, *self.tables)

    @property
    def keeps_state(self) -> bool:
        """Whether it has cells, which keep rows or aggregates from batch to batch."""
        return self.joins or self.aggregates

    @property
    def name(self) -> str:
        """A name, which is one of a directory as well."""
        if self.sessions:
            return f"sessions {'.'.join(map(str, (self.streams[0], *self.columns)))}"
        if self.aggregates:
            return f"aggregate {self.streams[0]}"
        if not self.joins:
            return f"select {self.streams[0]}"
        if not self.columns:
            return f"join {' '.join(self.inputs)}"
        pairs = zip(self.inputs, (*self.columns, *self.table_columns), strict=True)
        return "join " + " ".join(
            name if column is None else f"{name}.{column}" for name, column in pairs
        )


_JOBS: Final[WeakKeyDictionary[QueryTemplate, Job]] = WeakKeyDictionary()
"""The job of each template, for as long as somebody has the template."""


def job_of(template: QueryTemplate) -> Job:
    """Return the job that runs the queries of a template."""
    job = _JOBS.get(template)
    if job is None:
        job = _JOBS[template] = _job_of(template)
    return job


def _job_of(template: QueryTemplate) -> Job:
    sessions = keys_of_sessions(template)
    if len(template.inputs) == 1:
        if sessions is None:
            return Job(template.inputs, aggregates=template.aggregated is not None)
        columns = tuple(sorted(place.column for place in sessions)[:1])
        return Job(template.inputs, columns=columns, aggregates=True, sessions=True)
    tables = tuple(sorted(template.tables))
    streams = tuple(sorted(set(template.inputs) - template.tables))
    of_streams = {n for n, name in enumerate(template.inputs) if name in streams}
    for together in sorted(template.query.shape.classes, key=sorted):
        if not of_streams <= {place.relation for place in together}:
            continue
        if sessions is not None and not sessions & together:
            continue  # the rows of a session would be in many places
        by_name: dict[str, set[int]] = {}
        for place in together:
            by_name.setdefault(template.inputs[place.relation], set()).add(place.column)
        # A row is dealt out once, whichever of its stream's inputs it is for.
        if all(len(by_name[stream]) == 1 for stream in streams):
            return Job(
                streams,
                joins=True,
                columns=tuple(min(by_name[stream]) for stream in streams),
                tables=tables,
                table_columns=tuple(_only(template, name, by_name) for name in tables),
            )
    return Job(streams, joins=True, tables=tables, table_columns=(None,) * len(tables))


def keys_of_sessions(template: QueryTemplate) -> frozenset[Place] | None:
    """Return the columns that rows are grouped by in sessions, but for such that are computed.

    None where there are no sessions. Rows of one session agree in each of these columns.
    """
    if template.aggregated is None or not template.aggregated.in_sessions:
        return None
    keys = template.aggregated.aggregation.grouping.keys
    plain = (key for key in keys if isinstance(key, Argument) and is_joinable(key.type))
    return frozenset(place_of(key.index) for key in plain)


def _only(template: QueryTemplate, table: str, by_name: dict[str, set[int]]) -> int | None:
    """Return the column by which a table's rows can be dealt out; it must be in all its inputs."""
    columns = by_name.get(table, set())
    if len(columns) != 1:
        return None
    (column,) = columns
    classes = template.query.shape.classes
    together = next(
        places
        for places in classes
        if any(template.inputs[p.relation] == table and p.column == column for p in places)
    )
    inputs = {n for n, name in enumerate(template.inputs) if name == table}
    return column if inputs <= {place.relation for place in together} else None
