"""The queries of a job in a worker, kept up with the log from task to task."""

from __future__ import annotations

import gc
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import numpy as np
import pyarrow as pa

from eddyline.standing.engine.shared_query import SharedQuery
from eddyline.standing.log.change_log import ChangeLog
from eddyline.standing.log.engine_inputs import layout_of, layouts_in, renumbered
from eddyline.standing.log.jobs import Job, job_of
from eddyline.standing.log.live_queries import Difference, LiveQueries, StandingQuery
from eddyline.standing.log.query_constants import queries_of
from eddyline.standing.query_template import QueryTemplate
from eddyline.standing.tasks.shown_values import shown_values

FROZEN_CHANGES: Final = 100
"""Changes after which garbage is looked for among what was to stay."""


_changes = itertools.count(1)
"""Of all queries of this process: garbage is not one object's."""


def _keep_out_of_collections() -> None:
    """Let what is here now stay out of garbage collections.

    Spark's worker collects garbage after each task, which takes 0.1 s where it looks at all
    modules and queries, and a join has eight tasks a batch. Now and then, what has become garbage
    since it was set aside is looked for; that takes as long as a collection did, so not the first
    time: in tests of standing queries, whose workers each see a change or two, it took a quarter
    of all time.
    """
    if next(_changes) % FROZEN_CHANGES == 0:
        gc.unfreeze()
        gc.collect()
    gc.freeze()


class KeptUpQueries:
    """The running queries of one job at some version."""

    def __init__(self, log: str, job: Job) -> None:
        self._log = ChangeLog.labelled(log)
        self._job = job
        self._live = LiveQueries()
        self.queries: dict[int, StandingQuery] = {}
        self._names: list[str] = []
        self._described: tuple[pa.Array, pa.Array] | None = None
        self._shown: dict[str, pa.Array] | None = None

    @property
    def version(self) -> int:
        """The version that they are of."""
        return self._live.version

    @property
    def next_number(self) -> int:
        """The number of the first query that has not come yet, be it of this job or another."""
        return self._live.next_number

    @property
    def templates(self) -> list[QueryTemplate]:
        """The templates of the queries, each once."""
        return list({id(q.template): q.template for q in self.queries.values()}.values())

    def go_to(self, version: int) -> Difference:
        """Take on the changes up to a version, and return those of this job's queries."""
        every = self._live.go_to(version, self._log)
        templates = {id(query.template): query.template for query in every.came}
        own = {key for key, template in templates.items() if job_of(template) == self._job}
        came = tuple(query for query in every.came if id(query.template) in own)
        went = tuple(number for number in every.went if number in self.queries)
        for number in went:
            del self.queries[number]
        self.queries |= {query.number: query for query in came}
        self._names += [""] * (self._live.next_number - len(self._names))
        for query in came:
            self._names[query.number] = query.name
        if came or went:
            self._described = self._shown = None
            _keep_out_of_collections()
        return Difference(came, went)

    def described(self) -> tuple[pa.Array, pa.Array]:
        """Return the names of queries, and the numbers of their layouts, by the query's number."""
        if self._described is None:
            streams = self._job.inputs
            layouts = layouts_in(streams, self.queries.values())
            groups = {id(query.group): query.group for query in self.queries.values()}
            of_group = {
                key: layouts[layout_of(streams, group.template)] for key, group in groups.items()
            }
            numbers = np.full(len(self._names), -1, np.int32)
            numbers[list(self.queries)] = [of_group[id(q.group)] for q in self.queries.values()]
            self._described = pa.array(self._names, pa.string()), pa.array(numbers)
        return self._described

    def shown(self, numbers: pa.Array) -> dict[str, pa.Array]:
        """Return the parameters that queries of these numbers show, by column."""
        if self._shown is None:
            self._shown = shown_values(self.queries.values(), len(self._names))
        return {column: values.take(numbers) for column, values in self._shown.items()}


def compiled(
    queries: Sequence[StandingQuery],
    inputs: Callable[[QueryTemplate], Sequence[int]],
    functions: Callable[[QueryTemplate], Sequence[int]],
) -> dict[int, SharedQuery]:
    """Return queries as an eddy takes them, by number; those of a group at once.

    ``inputs`` and ``functions`` give what a template's are in the eddy.
    """
    groups: dict[int, list[StandingQuery]] = {}
    for query in queries:
        groups.setdefault(id(query.group), []).append(query)
    with uncollected():
        return _compiled(groups.values(), inputs, functions)


@contextmanager
def uncollected() -> Iterator[None]:
    """Make many things that stay without looking for garbage among them again and again.

    100,000 queries of a template take 2.8 s so, and 3.2 otherwise. What was made is not looked
    through afterwards either.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def _compiled(
    groups: Iterable[Sequence[StandingQuery]],
    inputs: Callable[[QueryTemplate], Sequence[int]],
    functions: Callable[[QueryTemplate], Sequence[int]],
) -> dict[int, SharedQuery]:
    queries: dict[int, SharedQuery] = {}
    for members in groups:
        group = members[0].group
        template = group.template
        whole = renumbered(template.query, inputs(template), functions(template))
        shared = queries_of(group, whole, [member.position for member in members])
        queries |= {member.number: one for member, one in zip(members, shared, strict=True)}
    return queries
