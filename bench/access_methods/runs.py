"""Runs a query over SteMs, or over index join modules, and keeps what came when."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from bench.access_methods.index_join import IndexJoin
from bench.access_methods.sources import Column, Index, arrivals
from bench.access_methods.world import World
from eddyline.engine.batch import TupleBatch
from eddyline.engine.clock import Clock
from eddyline.engine.eddy import Eddy
from eddyline.engine.join.join_eddy import JoinEddy
from eddyline.engine.join.reading_order import Goal
from eddyline.engine.join_query import JoinQuery
from eddyline.engine.modules.scan_access import HeldScan, ScanAccess
from eddyline.engine.policies.policy import Policy
from eddyline.engine.routes import Routes
from eddyline.engine.signature import Signature
from eddyline.simulation.fixed_quantum import FixedQuantum

Row = tuple[int, ...]
Scans = Mapping[int, tuple[Sequence[Column], float]]
"""By relation: its columns, and the seconds between two rows."""


@dataclass(slots=True)
class Run:
    """What came of a run: rows and when, partial rows by the relations they span, and its end."""

    rows: list[tuple[float, Row]] = field(default_factory=list)
    partial: dict[int, list[tuple[float, int]]] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def times(self) -> list[float]:
        """When each row came, ascending."""
        return [at for at, _ in self.rows]

    @property
    def last(self) -> float:
        """When the last row came."""
        return self.times[-1]

    def by(self, time: float) -> int:
        """Return the rows that had come by a time."""
        return bisect_right(self.times, time)

    def area(self, until: float) -> float:
        """Return the area under the rows over time: tuple seconds until some time."""
        return sum(max(until - at, 0.0) for at in self.times)

    def partial_between(self, spanned: int, since: float, until: float) -> int:
        """Return the partial rows over some relations that came between two times."""
        return sum(n for at, n in self.partial.get(spanned, ()) if since < at <= until)


@dataclass(slots=True)
class PartialRows:
    """An instrument that counts tuples of several relations where they go on for the first time."""

    clock: Clock
    counted: Mapping[int, int]  # by relations spanned: the module that they visit next
    run: Run

    def visited(
        self,
        signature: Signature,
        module: int,
        tuples_in: int,
        tuples_out: int,  # noqa: ARG002 - the protocol's arguments
        seconds: float,  # noqa: ARG002
    ) -> None:
        """Count tuples that have been joined, and are sent on."""
        if not signature.probed and self.counted.get(signature.spanned) == module:
            found = self.run.partial.setdefault(signature.spanned, [])
            found.append((self.clock.now(), tuples_in))


def over_stems(
    world: World,
    query: JoinQuery,
    scans: Scans,
    lookups: Mapping[tuple[int, int], Index],
    policy: Callable[[], Policy],
    *,
    partial: Mapping[int, int] | None = None,
    begin: Callable[[JoinEddy], None] = lambda _: None,
    seed: int = 0,
) -> Run:
    """Run a query over SteMs.

    ``partial`` are relations whose partial rows are counted, with the relation to whose SteM
    they go next. ``begin`` is told of the eddy before it starts.
    """
    run = Run()
    instrument = PartialRows(world.clock, {}, run)
    eddy = JoinEddy(
        query,
        (),
        policy,
        world.clock,
        np.random.default_rng(seed),
        lookups={place: index.source(world) for place, index in lookups.items()},
        quantum=FixedQuantum(1),
        instrument=instrument,
    )
    instrument.counted = {mask: eddy.routes.stem(r) for mask, r in (partial or {}).items()}
    eddy.reading.goal = Goal.INTERACTIVE
    begin(eddy)
    inputs: list[ScanAccess] = [
        world.scan(arrivals(scans[r][0]), scans[r][1]) if r in scans else HeldScan(())
        for r in range(len(query.relations))
    ]

    def wait() -> None:
        world.agenda.wait()

    for result in eddy.run(inputs, wait):
        columns = [column.to_pylist() for column in result.outputs]
        now = world.clock.now()
        run.rows += [(now, row) for row in zip(*columns, strict=True)]
    run.seconds = world.clock.now()
    world.close()
    return run


def over_index_joins(
    world: World,
    scanned: tuple[Sequence[Column], float],
    joins: Sequence[IndexJoin],
    routes: Routes,
    policy: Policy,
    *,
    relations: int,
    partial: Mapping[int, int] | None = None,
    seed: int = 0,
) -> Run:
    """Run a query over index joins, relation 0 by scan; rows of it are numbered as they come."""
    run = Run()
    eddy = Eddy(
        joins,
        policy,
        world.clock,
        np.random.default_rng(seed),
        routes=routes,
        quantum=FixedQuantum(1),
        instrument=PartialRows(world.clock, partial or {}, run),
    )
    columns, every = scanned
    scan = world.scan(arrivals(columns), every)

    def finished() -> Iterator[list[TupleBatch]]:
        came = 0
        while not scan.ended:
            if (arrival := scan.poll()) is not None:
                numbers = range(came, came + arrival.rows)
                came += arrival.rows
                rest = (None,) * (relations - 1)
                yield eddy.feed(TupleBatch(Signature(1), (numbers, *rest)))
            elif eddy.away:
                yield eddy.advance()
            else:
                world.agenda.wait()
        while eddy.away:
            yield eddy.advance()

    for batches in finished():
        now = world.clock.now()
        for batch in batches:
            if batch.signature.spanned == (1 << relations) - 1 and len(batch):
                numbers = [np.asarray(rows).tolist() for rows in batch.rows]
                run.rows += [(now, row) for row in zip(*numbers, strict=True)]
    run.seconds = world.clock.now()
    world.close()
    return run
