"""Adapt everything that a session runs, with nothing changed in its queries."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Mapping
from types import TracebackType
from typing import Final, Self

from pyspark.sql import SparkSession

from eddyline.spark.adapt import Chosen, chosen_options, rewritten
from eddyline.spark.claiming.session_settings import task_memory
from eddyline.spark.classic import chosen_session, classic_session
from eddyline.spark.host import catalyst
from eddyline.spark.plan.chains import fused_commands
from eddyline.spark.registry import registry_of
from eddyline.spark.rewriting.rewrite_plan import Joins

_rules: Final[dict[str, list[catalyst.OptimizerRule]]] = {}
"""What was begun and not ended for a session, by its identity; the last is at work."""

_changing: Final = threading.Lock()


class Enabled(contextlib.AbstractContextManager["Enabled"]):
    """A session whose queries are adapted; as a context manager, until the block ends."""

    def __init__(self, spark: SparkSession, rule: catalyst.OptimizerRule) -> None:
        """Take a session and the rule that was begun for it."""
        self.spark: Final = spark
        self._rule: Final = rule

    def __enter__(self) -> Self:
        """Return this; where it has ended it begins again."""
        with _changing:
            rules = _rules.get(catalyst.identity_of(self.spark), [])
            if self._rule not in rules:
                _put(self.spark, [*rules, self._rule])
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End this; what was begun before or since, and has not ended, stays."""
        if catalyst.is_stopped(self.spark):
            return
        with _changing:
            rules = _rules.get(catalyst.identity_of(self.spark), [])
            _put(self.spark, [each for each in rules if each is not self._rule])

    def __repr__(self) -> str:
        return "Eddyline adapts what this session runs; eddyline.disable() ends it."


class Disabled(contextlib.AbstractContextManager["Disabled"]):
    """A session that is left to Spark; as a context manager, until the block ends."""

    def __init__(self, spark: SparkSession, rules: list[catalyst.OptimizerRule]) -> None:
        """Take a session and what was at work in it."""
        self._spark: Final = spark
        self._rules = rules

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Have at work what was so before, unless something else has begun since."""
        rules, self._rules = self._rules, []
        if not rules or catalyst.is_stopped(self._spark):
            return
        with _changing:
            since = _rules.get(catalyst.identity_of(self._spark), [])
            _put(self._spark, [*rules, *since])

    def __repr__(self) -> str:
        return "What this session runs is left to Spark; eddyline.enable() changes that."


def enable(
    spark: SparkSession | None = None,
    *,
    policy: str = "adaptive",
    seed: int = 0,
    joins: str = "auto",
    memory: int | str | None = None,
    worth: Mapping[str, float] | None = None,
    remember: bool = True,
) -> Enabled:
    """Have everything that a session runs adapted, as :func:`adapt` does it for one DataFrame.

    From now on queries of this session are adapted when Spark has optimized them: whatever
    runs them, as ``collect``, ``count``, a write, SQL that inserts, or a stream, whose
    micro-batches are adapted one by one. The rest of a program stays as it is, and what is cached
    is found as before. Plans that call no Python function are only looked at, in the JVM. What
    :func:`adapt` has put into eddies keeps the choices it was given there; a DataFrame that it
    returned as it was is adapted like any other.

    :func:`explain` and :func:`report` work on any DataFrame of the session; a report is of the
    last query that ran the same blocks, or of all since then.

    ``spark`` is the active session by default; other sessions are left alone, except those that
    Spark clones from this one. The other arguments are those of :func:`adapt`. A second call
    takes the place of the first. As a context manager it ends with the block, and what was begun
    before it, and has not ended, is at work again; else :func:`disable` ends all of it. A stream
    keeps to what was chosen when it started.

    A query that cannot be adapted runs as Spark planned it, and the logger ``eddyline`` says why.

    Raises as :func:`adapt` does, and ``RuntimeError`` where there is no session or it was stopped.
    """
    found = chosen_session(spark)
    chosen = chosen_options(policy, seed, joins, worth, remember)
    budget = task_memory(found, memory)
    run = registry_of(found.sparkContext).next_run()  # one for all: equal blocks report together
    rule = catalyst.OptimizerRule(
        lambda session, plan: _adapted(session, plan, chosen, budget, run),
        every=chosen.joins is Joins.ALWAYS,
    )
    with _changing:
        _put(found, [*_rules.get(catalyst.identity_of(found), []), rule])
    return Enabled(found, rule)


def disable(spark: SparkSession | None = None) -> Disabled:
    """Leave what a session runs to Spark again; nothing happens where it was left to it.

    As a context manager for a block alone, as for one query: what was at work before it is so
    again after it.

    DataFrames that have run once keep the plan that they have. Raises ``RuntimeError`` where
    there is no session; one that was stopped has nothing to end.
    """
    if spark is not None and catalyst.is_stopped(classic_session(spark)):
        return Disabled(spark, [])
    found = chosen_session(spark)
    with _changing:
        before = _rules.get(catalyst.identity_of(found), [])
        _put(found, [])
    return Disabled(found, before)


def _put(spark: SparkSession, rules: list[catalyst.OptimizerRule]) -> None:
    """Let a session have these rules, of which the last one is at work."""
    name = catalyst.identity_of(spark)
    before = _rules.pop(name, [])
    if before[-1:] != rules[-1:]:
        if before:
            before[-1].stop(spark)
        if rules:
            rules[-1].start(spark)
    if rules:
        _rules[name] = rules


def _adapted(
    spark: SparkSession, plan: catalyst.Plan, chosen: Chosen, memory: int, run: int
) -> catalyst.Plan | None:
    """Return an optimized plan with eddies in it; None to leave it to Spark."""
    if next(fused_commands(plan, within_cached=False), None) is not None:
        return None  # it was adapted by hand
    streaming = catalyst.is_streaming(plan)
    rewriting = rewritten(spark, plan, chosen, memory, run, streaming=streaming)
    return rewriting.plan if rewriting.changed else None
