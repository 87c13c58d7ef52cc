"""How a session fares that is adapted as a whole, and what the driver keeps for it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pyspark import SparkContext

from eddyline import catalyst
from eddyline.monitor.looking import looking_of
from eddyline.planner.block_registry import registry_of
from eddyline.planner.declare.lookup_tables import lookup_tables_of


@dataclass(frozen=True, slots=True)
class Kept:
    """What the driver keeps of queries that have run.

    ``blocks`` are known with their functions, which take ``bytes``; of ``reports`` there are
    records; ``answers`` are keys and arguments whose answers are kept for the jobs that asked;
    of so many predicates and functions something was ``learned``; ``plans`` need not be rewritten
    when an equal one comes. Each has a bound: see "What a driver keeps" in the documentation.
    """

    blocks: int = 0
    bytes: int = 0
    reports: int = 0
    answers: int = 0
    learned: int = 0
    plans: int = 0

    def __str__(self) -> str:
        """Return it in words, for people."""
        return (
            f"keeps {self.blocks:,} blocks ({self.bytes / 1024:,.0f} kB), "
            f"{self.reports:,} reports, {self.answers:,} answers, "
            f"{self.learned:,} predicates and functions learned, {self.plans:,} plans"
        )


@dataclass(frozen=True, slots=True)
class Status:
    """How many plans Spark has asked Python about, in all sessions since the JVM is there.

    ``unanswered`` are those about which there was no answer in time, ``not_asked`` those for which
    nobody was asked for a while, after several of these; all of them ran as Spark had planned
    them. ``why`` says what was the matter last, empty where nothing was. ``kept`` is what is kept
    now. ``reused`` are plans beside these: what had become of an equal one was used again.
    """

    answered: int
    unanswered: int
    not_asked: int
    why: str
    kept: Kept
    reused: int = 0

    def __str__(self) -> str:
        """Return it in words, for people."""
        text = f"{self.answered:,} plans looked at"
        if self.reused:
            text += f", {self.reused:,} equal to one of before"
        left = self.unanswered + self.not_asked
        if left:
            text += f", {left:,} left to Spark without an answer (last: {self.why})"
        return f"{text}; {self.kept}"


def status() -> Status:
    """Return how many plans were adapted under :func:`~eddyline.enable`, and what the driver keeps.

    A plan about which Python gives no answer within ``spark.eddyline.rewriteTimeout`` (30 s by
    default) runs as Spark planned it, with a line in Spark's log. After three such plans in a row
    Python is not asked for a second, then for twice as long each time, up to five minutes. ``kept``
    in the result counts what the driver keeps of queries that have run. Works at any time, without
    a session too.
    """
    context = SparkContext._active_spark_context  # noqa: SLF001 - nothing public says whether there is one
    kept = Kept() if context is None else _kept(context)
    answers = catalyst.answers()
    if answers is None:
        return Status(0, 0, 0, "", kept)
    return Status(
        *(answers.answered, answers.failed, answers.passed_over, answers.why),
        replace(kept, plans=answers.kept),
        answers.reused,
    )


def forget() -> None:
    """Release everything that is kept of queries that have run.

    That is blocks, reports, rewritten plans, what was :func:`~eddyline.learned`, answers to lookups
    and calls for jobs that have ended, and past queries on the page of :func:`~eddyline.live`.
    Queries run as before, and DataFrames returned by :func:`~eddyline.adapt` can still be
    explained; their reports begin anew. Lookup tables and concurrent functions stay known. Does
    nothing where Spark does not run.
    """
    context = SparkContext._active_spark_context  # noqa: SLF001 - likewise
    if context is None:
        return
    catalyst.forget_rewritings()
    registry_of(context).forget()
    lookup_tables_of(context).forget()
    looking_of(context).book.forget()


def _kept(context: SparkContext) -> Kept:
    registry = registry_of(context)
    blocks, size, reports = registry.kept
    answers = lookup_tables_of(context).answers
    return Kept(blocks, size, reports, answers, len(registry.learned))
