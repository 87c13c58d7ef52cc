"""What one task of a fused block hands to the driver, as frozen data that pickles.

Everything is a count or a time, so that the records of many tasks add up (see
:mod:`eddyline.reports.merging`). Counts are of rows that were *run*: a task that
Spark ran twice, because of a failure or of speculation, counts twice.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from statistics import median

from eddyline.engine.policies.adaptive_window import ChangedQuantity

Order = tuple[int, ...]
"""An order of predicates: their positions in the block, from 0, first visited first.

In a join block an order begins with the SteM of the input that the tuple is a row of, and goes
on with the predicates and the other inputs' SteMs, whose positions follow the predicates'.
"""

OTHER_ORDERS: Order = ()
"""Stands for all the orders that were too rare to be kept apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PredicateRecord:
    """What happened at one conjunct of a block, or at one disjunct of an OR inside it.

    ``rows_in`` rows were evaluated; ``passed`` were TRUE, ``rejected`` FALSE,
    ``null`` NULL, and ``errors_held`` raised. Of those errors ``errors_dropped``
    never counted, because another predicate decided the row. ``seconds`` is the
    time spent evaluating. ``nested`` are the disjuncts of an OR; of their errors
    none is counted as dropped, since the OR as a whole holds or drops them.
    Of the seconds ``first_seconds`` are those of the first visit of each task, with ``first_rows``
    in all, which may have waited for a model to load.
    ``text`` may be empty where the predicate is not known as the user wrote it.
    """

    text: str
    rows_in: int = 0
    passed: int = 0
    rejected: int = 0
    null: int = 0
    errors_held: int = 0
    errors_dropped: int = 0
    seconds: float = 0.0
    nested: tuple[PredicateRecord, ...] = ()
    first_rows: int = 0
    first_seconds: float = 0.0

    @property
    def selectivity(self) -> float | None:
        """Share of the rows that passed, 0 to 1; None if no row was evaluated."""
        return self.passed / self.rows_in if self.rows_in else None

    @property
    def seconds_per_row(self) -> float | None:
        """Mean cost of a row in seconds; None if no row was evaluated."""
        return self.seconds / self.rows_in if self.rows_in else None


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionRecord:
    """How often one user function was called, of how often plain Spark would have called it.

    ``calls`` counts rows handed to the function, ``calls_possible`` the rows
    that a fixed plan hands to it: every row, for every distinct call. ``remembered`` rows had
    arguments that it had been called for before, and were answered without a call;
    ``shared`` rows got from the driver what a concurrent function was called for once, for all
    rows of the action with these arguments; ``distinct`` tuples of arguments, in
    ``memory_bytes``, are what the process held at the end of a task that held the most.
    ``seconds`` are those in the function and beside it, of which ``lookup_seconds`` went into
    remembering.

    In a join block, a function over one input is called there once for every row of that
    input, below the joins, since that is where Spark puts its filter. A row that goes to
    several cells or worker processes may be asked for in each: then ``calls`` can be the
    larger one. For a function over several inputs Spark makes a call for every joined row
    of these inputs. How many there are is not known without joining them: the tasks count only the
    calls made as possible, the least that any plan makes which calls it that late, and
    :mod:`eddyline.reports.plain_spark` estimates the rest. ``joined_calls`` of the possible calls
    are of that kind, from ``joined_places`` places of the query; ``estimated`` tells whether it
    has.
    """

    name: str
    calls: int = 0
    calls_possible: int = 0
    seconds: float = 0.0
    remembered: int = 0
    shared: int = 0
    distinct: int = 0
    memory_bytes: int = 0
    lookup_seconds: float = 0.0
    joined_calls: int = 0
    joined_places: int = 0
    estimated: bool = False

    @property
    def avoided(self) -> int:
        """Calls that the routing and remembering made unnecessary; never below 0."""
        return max(self.calls_possible - self.calls, 0)

    @property
    def seconds_spared(self) -> float:
        """Estimate of the time the avoided calls would have taken, at the mean cost measured.

        Less what remembering took. 0.0 if the function was never called, since its cost is then
        unknown.
        """
        if not self.calls:
            return 0.0
        in_calls = max(self.seconds - self.lookup_seconds, 0.0)
        return max(in_calls / self.calls * self.avoided - self.lookup_seconds, 0.0)


@dataclass(frozen=True, slots=True)
class OrderSlice:
    """Which orders the rows of one stretch of time were routed in.

    ``start`` and ``end`` are seconds since the epoch, ``rows`` the rows that
    entered the block, ``shares`` the rows of each order; they add up to ``rows``.
    """

    start: float
    end: float
    rows: int
    shares: tuple[tuple[Order, int], ...]


@dataclass(frozen=True, slots=True)
class Change:
    """A change that the statistics noticed: ``quantity`` of ``predicate`` went from old to new.

    ``when`` is in seconds since the epoch, ``predicate`` a position in the block.
    """

    when: float
    predicate: int
    quantity: ChangedQuantity
    old: float
    new: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldApartRecord:
    """Rows that were told apart by what is in a column, each class to be routed its own way.

    ``classes`` are the most there were at a time; ``column`` is named as the user knows it.
    """

    column: str
    classes: int
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SteMRecord:
    """What one State Module did, in all tasks together.

    ``rows`` and ``bytes`` are those of the task that held the most; a SteM of a broadcast
    input is held once a worker process, and its ``builds`` count in the task that made it.
    ``builds``, ``probes``, ``matches``, ``bounced`` and ``killed`` are tuples in all,
    ``seconds`` the time in it.
    """

    relation: str
    rows: int = 0
    bytes: int = 0
    builds: int = 0
    probes: int = 0
    matches: int = 0
    bounced: int = 0
    killed: int = 0
    seconds: float = 0.0

    @property
    def fanout(self) -> float | None:
        """Matches for a probing tuple; None if none has probed."""
        return self.matches / self.probes if self.probes else None


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinRecord:
    """What the tasks of a join block did beside the predicates.

    ``stems`` stand in the order of the inputs. ``read`` are the rows of each input but those
    with a NULL key, every row counted once; ``came`` are those that reached a task that joins:
    without what a predicate has dropped before, and with a row again for each cell or worker
    process that it was copied to. ``cells`` has the rows that came to each task, largest
    first: they tell the skew. Where small inputs are broadcast these are rows of the other
    input only. ``spilled_bytes`` were written to disk, in ``spilled_files`` files. ``late`` are
    the predicates over several inputs, by position: no plan asks them below the joins.
    """

    stems: tuple[SteMRecord, ...]
    read: tuple[int, ...] = ()
    came: tuple[int, ...] = ()
    cells: tuple[int, ...] = ()
    spilled_bytes: int = 0
    spilled_files: int = 0
    late: tuple[int, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the inputs."""
        return tuple(stem.relation for stem in self.stems)

    @property
    def skew(self) -> float | None:
        """Rows of the largest task over those of the median one.

        None for a single task, and where half of the tasks have no rows.
        """
        if len(self.cells) <= 1:
            return None
        middle = median(self.cells)
        return self.cells[0] / middle if middle else None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRecord:
    """What one task of one block did, or many tasks together after merging.

    ``seconds`` is all the time inside the block: ``work_seconds`` inside modules,
    ``routing_seconds`` for deciding and moving, ``output_seconds`` for putting results together,
    ``core_seconds`` of waiting for a core that others had (where the system tells),
    ``answer_seconds`` of waiting for answers beyond what these cost, and :attr:`other_seconds`, as
    of taking batches apart. ``decisions`` counts how often the policy was asked. ``predicates`` and
    ``functions`` stand in the order of the block; ``orders`` and ``changes`` in order of time.

    Two fields belong to merging: ``slice_seconds`` is the width of the grid of
    time that ``orders`` lie on, 0.0 as long as no slices had to be joined, and
    ``changes_dropped`` counts changes that were noticed but not kept.
    ``explored`` tuples were sent another way than was planned for them, to learn of it.
    In ``policy_failures`` tasks the policy failed and the written order went on, after
    ``policy_error``, or one of several, with its place.
    ``told_apart`` are the rows whose way depended on what is in a column, by column.
    ``worker`` names the process that ran the task, None where there were several.
    ``action`` is the number that Spark gave to the action the task belongs to, the greatest one
    after merging, -1 where it has none.
    ``join`` is there for join blocks: their orders count on after the predicates with the
    SteMs, in the order of the inputs. Their ``rows_in`` are the rows of all inputs together, and
    their predicates' ``rows_in`` are tuples: a row that was joined may come several times.
    """

    block: str
    tasks: int = 1
    rows_in: int = 0
    rows_out: int = 0
    seconds: float = 0.0
    work_seconds: float = 0.0
    routing_seconds: float = 0.0
    decisions: int = 0
    predicates: tuple[PredicateRecord, ...] = ()
    functions: tuple[FunctionRecord, ...] = ()
    orders: tuple[OrderSlice, ...] = ()
    changes: tuple[Change, ...] = ()
    changes_dropped: int = 0
    slice_seconds: float = 0.0
    worker: str | None = None
    action: int = -1
    output_seconds: float = 0.0
    core_seconds: float = 0.0
    answer_seconds: float = 0.0
    join: JoinRecord | None = None
    explored: int = 0
    policy_failures: int = 0
    policy_error: str = ""
    told_apart: tuple[ToldApartRecord, ...] = ()

    @property
    def other_seconds(self) -> float:
        """The time inside the block that nothing else accounts for."""
        known = self.work_seconds + self.routing_seconds + self.output_seconds
        return max(self.seconds - known - self.core_seconds - self.answer_seconds, 0.0)

    @property
    def calls(self) -> int:
        """Calls made, of all functions."""
        return sum(function.calls for function in self.functions)

    @property
    def calls_possible(self) -> int:
        """Calls that a fixed plan would have made, of all functions."""
        return sum(function.calls_possible for function in self.functions)

    @property
    def calls_avoided(self) -> int:
        """Calls that the routing made unnecessary, of all functions."""
        return sum(function.avoided for function in self.functions)

    @property
    def seconds_spared(self) -> float:
        """Estimate of the time the avoided calls would have taken."""
        return sum(function.seconds_spared for function in self.functions)

    @property
    def order_rows(self) -> tuple[tuple[Order, int], ...]:
        """Rows of every order over the whole run, most rows first, :data:`OTHER_ORDERS` last."""
        rows: Counter[Order] = Counter()
        for piece in self.orders:
            for order, number in piece.shares:
                rows[order] += number
        return tuple(
            sorted(rows.items(), key=lambda item: (item[0] == OTHER_ORDERS, -item[1], item[0]))
        )
