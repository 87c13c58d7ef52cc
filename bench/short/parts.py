"""Where the time of one run goes: milliseconds of each part of the way from the text to the rows.

The functions at the borders of Eddyline's rooms are wrapped while a run is measured, and are what
they were before afterwards. Time counts for the innermost part that is entered, in whatever thread,
so that the parts of a run add up to it. Three things are told by Spark's own account of a query
(``QueryExecution.tracker``, in whole milliseconds): optimizing, which includes the wait for Python
where a session is enabled, and physical planning; the rest of the time is counted as running.

What these figures do not say:

- Calls into the JVM are put off until somebody asks for a value, so that what one part asks for may
  be paid in the next: nodes that rewriting makes are mostly made as they are optimized again.
- Handing a plan from the JVM's thread to Python's and back is counted as Spark's own.
- Reporting is what the driver does with the records of tasks, while the last tasks of a stage wait.
  What tasks do to make them, and reading them from the socket, is part of running.
- Some plans of joins are chosen after jobs over samples, which count as claiming or rewriting.
"""

from __future__ import annotations

import functools
import itertools
import statistics
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, TypeAlias
from unittest import mock

from pyspark.sql import DataFrame, SparkSession

import eddyline
from eddyline.catalyst import optimizer_rules
from eddyline.catalyst.dataframes import dataframe_like, optimized_plan
from eddyline.catalyst.dropped import whole_plan
from eddyline.catalyst.gateway import execution_of
from eddyline.catalyst.plan_data import read_outputs, read_plan, read_sequence
from eddyline.catalyst.rules_at_work import any_rules
from eddyline.chance import looks_non_deterministic
from eddyline.planner.claim.filter_claim import judge, left_to_chance, with_filters_below
from eddyline.planner.claim.join_choice import pays
from eddyline.planner.claim.join_judgement import claim_matches, claim_region
from eddyline.planner.claim.native_choice import choose_joiner
from eddyline.planner.read.chains import read_chain, read_link
from eddyline.planner.read.needed_results import NeededResults
from eddyline.planner.read.regions import read_one_sided, read_region
from eddyline.planner.read.twins import twins_of
from eddyline.quirks.classic_frames import ClassicDataFrame
from eddyline.tasks.task_records import RecordsParam


class Part(StrEnum):
    """A part of a run, in the order in which they come."""

    SPARK = "Spark's own"  # parsing, analyzing and optimizing, without what is in other parts
    READ = "read"  # from Spark's plan to data of Python's
    CLAIM = "claim"  # what runs in eddies
    REWRITE = "rewrite"  # all else that Python does about a plan
    AGAIN = "optimize again"  # Spark's optimizer, over what was rewritten
    PLAN = "plan"  # physical planning
    RUN = "run"  # the jobs, and taking the rows to Python: the rest
    REPORT = "report"  # merging the records of tasks in the driver


OF_EDDYLINE: Final = (Part.READ, Part.CLAIM, Part.REWRITE, Part.AGAIN)
"""What happens while a plan is adapted."""

Parts: TypeAlias = Mapping[Part, float]
"""Milliseconds of each part of a run."""

Clock: TypeAlias = Callable[[], float]

_FUNCTIONS: Final[Mapping[Part, Sequence[Callable[..., Any]]]] = {
    Part.SPARK: (optimized_plan,),
    Part.READ: (
        *(read_plan, read_sequence, read_outputs, whole_plan),
        *(read_chain, read_link, read_region, read_one_sided, twins_of),
    ),
    Part.CLAIM: (
        *(judge, left_to_chance, with_filters_below, looks_non_deterministic),
        *(claim_region, claim_matches, choose_joiner, pays),
    ),
    Part.AGAIN: (dataframe_like,),
}
"""Functions that are timed under whatever name a module of Eddyline knows them."""

_PLACES: Final[Sequence[tuple[Part, object, str]]] = (
    (Part.REWRITE, optimizer_rules._Asked, "apply"),  # noqa: SLF001 - where a plan comes in
    (Part.AGAIN, optimizer_rules, "fetched"),  # here alone: the optimized plan, and no other value
    (Part.READ, NeededResults, "__init__"),
    (Part.READ, NeededResults, "of"),
    (Part.READ, NeededResults, "any"),
    (Part.REPORT, RecordsParam, "addInPlace"),
)
"""Methods, and one name in one module, that are timed."""


class _Way(threading.local):
    """The parts that a thread is in, innermost last, and since when it is in the last one."""

    def __init__(self) -> None:
        self.parts: list[Part] = []
        self.since = 0.0


@dataclass
class Ledger:
    """Adds up seconds by part; only the innermost part that a thread is in counts."""

    clock: Clock = time.perf_counter
    seconds: defaultdict[Part, float] = field(default_factory=lambda: defaultdict(float))
    _way: _Way = field(default_factory=_Way)
    _adding: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def within(self, part: Part) -> Iterator[None]:
        """Count the time of a block for a part."""
        way = self._way
        self._count(way)
        way.parts.append(part)
        try:
            yield
        finally:
            self._count(way)
            way.parts.pop()

    def timed(self, part: Part, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function whose time counts for a part."""

        @functools.wraps(function)
        def counted(*arguments: Any, **named: Any) -> Any:  # noqa: ANN401 - those of any function
            with self.within(part):
                return function(*arguments, **named)

        return counted

    def milliseconds(self) -> dict[Part, float]:
        """Return what has been counted since the last call, part by part, and begin anew."""
        with self._adding:
            counted = {part: 1000 * self.seconds[part] for part in Part}
            self.seconds.clear()
        return counted

    def _count(self, way: _Way) -> None:
        """Count the time since the last border for the part that a thread is in."""
        now = self.clock()
        if way.parts:
            with self._adding:
                self.seconds[way.parts[-1]] += now - way.since
        way.since = now


@contextmanager
def borders_timed(ledger: Ledger) -> Iterator[None]:
    """Have the functions at the borders of the rooms timed, until the block ends."""
    with ExitStack() as stack:
        for part, owner, name in _timed_places():
            counted = ledger.timed(part, getattr(owner, name))
            stack.enter_context(mock.patch.object(owner, name, counted))
        yield


def _timed_places() -> list[tuple[Part, object, str]]:
    modules = [module for name, module in sys.modules.items() if name.startswith("eddyline")]
    return [
        *_PLACES,
        *(
            (part, module, name)
            for part, functions in _FUNCTIONS.items()
            for module in modules
            for name, value in vars(module).items()
            if any(value is function for function in functions)
        ),
    ]


def phase(frame: DataFrame, name: str) -> float:
    """Return the milliseconds of a phase of Spark's in a DataFrame that has run."""
    if not isinstance(frame, ClassicDataFrame):
        raise TypeError("only a classic DataFrame has its plans at hand")
    known = execution_of(frame).tracker().phases().get(name)
    return float(known.get().durationMs()) if known.isDefined() else 0.0


def as_spark(spark: SparkSession, text: str, ledger: Ledger) -> Parts:
    """Run a query in a session as it is, enabled or not; return the parts of the run."""
    ledger.milliseconds()
    began = ledger.clock()
    with ledger.within(Part.SPARK):
        frame = spark.sql(text)
    frame.collect()
    whole = 1000 * (ledger.clock() - began)
    parts = ledger.milliseconds()
    inside = sum(parts[part] for part in OF_EDDYLINE)
    parts[Part.SPARK] += max(phase(frame, "optimization") - inside, 0)
    parts[Part.PLAN] = phase(frame, "planning")
    return _with_rest(parts, whole)


_numbers: Final = itertools.count()


def make_plans_new(spark: SparkSession) -> None:
    """Change a setting of a session, so that it knows no plan that equals the next one."""
    spark.conf.set("spark.eddyline.bench.turn", str(next(_numbers)))


def as_rewritten(spark: SparkSession, text: str, ledger: Ledger) -> Parts:
    """Run a query in an enabled session to which its plan is not known; return the parts."""
    make_plans_new(spark)
    return as_spark(spark, text, ledger)


def as_adapted(spark: SparkSession, text: str, ledger: Ledger) -> Parts:
    """Run a query as ``adapt`` returns it; return the parts of the run."""
    ledger.milliseconds()
    began = ledger.clock()
    with ledger.within(Part.SPARK):
        given = spark.sql(text)
    with ledger.within(Part.REWRITE):
        frame = eddyline.adapt(given)
    frame.collect()
    whole = 1000 * (ledger.clock() - began)
    parts = ledger.milliseconds()
    parts[Part.SPARK if frame is given else Part.AGAIN] += _after_adapting(frame, given)
    parts[Part.PLAN] = phase(frame, "planning")
    return _with_rest(parts, whole)


def _after_adapting(frame: DataFrame, given: DataFrame) -> float:
    """Return the milliseconds of optimizing that were not yet counted as they were asked for."""
    if frame is given and not any_rules():
        return 0.0  # its plan was asked for once
    return phase(frame, "optimization")


def _with_rest(parts: dict[Part, float], whole: float) -> Parts:
    return {**parts, Part.RUN: max(whole - sum(parts.values()), 0.0)}


def medians(runs: Iterable[Parts]) -> dict[Part, float]:
    """Return the median of each part over some runs."""
    taken = list(runs)
    return {part: statistics.median(run[part] for run in taken) for part in Part}
