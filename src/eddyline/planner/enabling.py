"""Adapt everything that a session runs, with nothing changed in its queries."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Final

from pyspark.sql import SparkSession

from eddyline import catalyst
from eddyline.at_work import AtWork, NothingAtWork
from eddyline.checked_values import Joins
from eddyline.engine.policies.policy import Policy
from eddyline.host.classic import chosen_session, classic_session
from eddyline.keeping.keep import Keep, keep_in
from eddyline.learning.learned_file import keep_learned
from eddyline.planner.adapt import Chosen, adapt, chosen_options, rewritten
from eddyline.planner.block_registry import registry_of
from eddyline.planner.claim.session_settings import task_memory
from eddyline.planner.declare.kept_folders import files_in
from eddyline.planner.declare.lookup_tables import lookup_tables_of
from eddyline.planner.operating import operating_of
from eddyline.planner.read.chains import fused_commands
from eddyline.planner.self_check import check_once
from eddyline.planner.session_rules import change_rules, told_limits
from eddyline.plugin_switch import PluginSwitch


class Enabled(AtWork[catalyst.OptimizerRule]):
    """A session whose queries are adapted; as a context manager, until the block ends."""

    def __init__(
        self, spark: SparkSession, rule: catalyst.OptimizerRule, keep: Keep | None = None
    ) -> None:
        """Begin a rule in a session, and say where answers are kept meanwhile."""
        self.spark: Final = spark
        self._keep: Final = keep
        self._keep_before = lookup_tables_of(spark.sparkContext).keep
        super().__init__(partial(change_rules, spark), rule)

    def _begin(self) -> None:
        super()._begin()
        if self._keep is not None:
            lookup_tables_of(self.spark.sparkContext).keep = self._keep

    def _end(self) -> None:
        if catalyst.is_stopped(self.spark):
            return
        super()._end()
        tables = lookup_tables_of(self.spark.sparkContext)
        if self._keep is not None and tables.keep is self._keep:
            tables.keep = self._keep_before
        registry_of(self.spark.sparkContext).learned.save()


class Disabled(NothingAtWork[catalyst.OptimizerRule]):
    """A session that is left to Spark; as a context manager, until the block ends."""

    def __init__(self, spark: SparkSession) -> None:
        """End what is at work in a session, unless the session was stopped."""

        def change(
            changed: Callable[[list[catalyst.OptimizerRule]], list[catalyst.OptimizerRule]],
        ) -> list[catalyst.OptimizerRule]:
            return [] if catalyst.is_stopped(spark) else change_rules(spark, changed)

        super().__init__(change)
        self._spark: Final = spark
        self._plugin: Final = PluginSwitch(spark)
        if not catalyst.is_stopped(spark):
            self._plugin.turn_off()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Have at work what was so before, unless something else has begun since."""
        if not catalyst.is_stopped(self._spark):
            self._plugin.turn_back()
        super().__exit__(kind, error, trace)


def enable(
    spark: SparkSession | None = None,
    *,
    policy: str | Policy = "adaptive",
    seed: int = 0,
    joins: str = "auto",
    memory: int | str | None = None,
    worth: Mapping[str, float] | None = None,
    remember: bool = True,
    learned: str | PathLike[str] | None = None,
    keep: str | PathLike[str] | None = None,
) -> Enabled:
    """Adapt everything that a session runs, as :func:`adapt` does it for one DataFrame.

    From now on queries of this session are adapted after Spark has optimized them, whatever runs
    them: ``collect``, ``count``, a write, SQL that inserts, or a stream, whose micro-batches are
    adapted one by one. The rest of a program stays as it is, and cached data are found as before.
    Plans that call no Python function are only inspected, in the JVM. A DataFrame returned by
    :func:`adapt` with blocks in it keeps the choices made there; one that it returned unchanged is
    adapted like any other. Plans with a common table expression that Spark keeps apart are left to
    Spark.

    :func:`explain` and :func:`report` work on any DataFrame of the session; a report covers the
    last query that ran the same blocks, or all queries since then.

    ``spark`` is the active session by default. Other sessions are left alone, except those that
    Spark clones from this one. The other arguments are those of :func:`adapt`. A second call
    replaces the first. As a context manager the result ends with its block, and whatever was
    enabled before it, and has not ended, is in force again; otherwise :func:`disable` ends all of
    it. A stream keeps what was chosen when it started.

    ``learned`` names a file that keeps what is :func:`~eddyline.learned` from one application to
    the next: what stands there is where this one begins, and what it learns is written there, while
    queries run every half minute at the most, with :func:`disable`, and when Python or Spark ends.
    Where it cannot be read or written, the logger ``eddyline`` says so once. It holds texts of
    predicates, with their constants. A context has one such file, the last one that was named.

    ``keep`` names the folder in which answers are kept (:func:`~eddyline.ledger`) of all concurrent
    functions that name none, and of lookup tables that are registered from now on; it may have a
    URL, as "s3a://bucket/answers". A context has one such folder, the last one that was named,
    until its block ends or :func:`disable` is called.

    A query that cannot be adapted runs as Spark planned it, and the logger ``eddyline`` says why.
    Queries that only Eddyline can run, such as those with concurrent functions, raise as
    :func:`adapt` does.

    Raises as :func:`adapt` does, ``TypeError`` for a ``learned`` that is no path, and
    ``LedgerError`` for a ``keep`` on a file system that Spark does not have, and ``RuntimeError``
    where there is no session or it was stopped, with
    ``PYSPARK_PIN_THREAD=false``, and where Spark has no Janino.
    """
    active = chosen_session(spark)
    chosen = chosen_options(policy, seed, joins, worth, remember)
    check_once(active, lambda query, claimed: adapt(query, joins=claimed))
    budget = task_memory(active, memory)
    if learned is not None:
        keep_learned(registry_of(active.sparkContext).learned, Path(learned))
    if (kept := keep_in(keep, None, None)) is not None:
        files_in(kept.folder)  # raises now what no query should
    run = registry_of(active.sparkContext).next_run()  # one for all: equal blocks report together
    rule = catalyst.OptimizerRule(
        lambda session, plan: adapted_plan(session, plan, chosen, budget, run),
        every=chosen.joins is Joins.ALWAYS,
    )
    operating_of(active.sparkContext).begin()
    return Enabled(active, rule, kept)


def disable(spark: SparkSession | None = None) -> Disabled:
    """Leave the queries of a session to Spark again; does nothing where nothing was enabled.

    A plug-in of the driver leaves them alone, too: ``spark.eddyline.enabled`` is "program" in the
    session from now on, until somebody sets it to "true". The result is a context manager, which
    limits this to a block, for example to one query, in all threads; afterwards whatever was
    enabled before is in force again.

    DataFrames that have run once keep their plans. Raises ``RuntimeError`` where there is no
    session; a session that was stopped needs no call.
    """
    if spark is not None and catalyst.is_stopped(classic_session(spark)):
        return Disabled(spark)
    active = chosen_session(spark)
    disabled = Disabled(active)
    registry_of(active.sparkContext).learned.save()
    lookup_tables_of(active.sparkContext).keep = None
    return disabled


def adapted_plan(
    spark: SparkSession, plan: catalyst.Plan, chosen: Chosen, memory: int, run: int
) -> catalyst.RewrittenPlan:
    """Return what becomes of an optimized plan: one with eddies in it, or the same for Spark."""
    if next(fused_commands(plan, within_cached=False), None) is not None:
        told = told_limits(spark, plan)  # it was adapted by hand
        return catalyst.RewrittenPlan(None if told is plan else told)
    streaming = catalyst.is_streaming(plan)
    rewriting = rewritten(spark, plan, chosen, memory, run, streaming=streaming, final=True)
    adapted = rewriting.plan if rewriting.changed else None
    if adapted is not None and not rewriting.lasts:  # somebody may be asked for each row
        adapted = told_limits(spark, adapted)
    return catalyst.RewrittenPlan(adapted, rewriting.lasts)
