"""Adapt everything that a session runs, with nothing changed in its queries."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from types import TracebackType
from typing import Final, Self

from pyspark.sql import SparkSession

from eddyline import catalyst
from eddyline.host.classic import chosen_session, classic_session
from eddyline.planner.adapt import Chosen, chosen_options, rewritten
from eddyline.planner.block_registry import registry_of
from eddyline.planner.claim.session_settings import task_memory
from eddyline.planner.read.chains import fused_commands
from eddyline.planner.rewrite.block_walk import Joins
from eddyline.planner.session_rules import change_rules, told_limits


class Enabled(contextlib.AbstractContextManager["Enabled"]):
    """A session whose queries are adapted; as a context manager, until the block ends."""

    def __init__(self, spark: SparkSession, rule: catalyst.OptimizerRule) -> None:
        """Take a session and the rule that was begun for it."""
        self.spark: Final = spark
        self._rule: Final = rule
        self._entered = 0

    def __enter__(self) -> Self:
        """Return this; where it has ended it begins again."""
        own = self._rule
        change_rules(self.spark, lambda rules: rules if own in rules else [*rules, own])
        self._entered += 1
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End this, unless it was entered before and not left.

        What was begun before or since, and has not ended, stays.
        """
        self._entered = max(0, self._entered - 1)
        if self._entered:
            return
        if catalyst.is_stopped(self.spark):
            return
        own = self._rule
        change_rules(self.spark, lambda rules: [each for each in rules if each is not own])

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
        change_rules(self._spark, lambda since: [*rules, *since])

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
    change_rules(found, lambda rules: [*rules, rule])
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
    return Disabled(found, change_rules(found, lambda _: []))


def _adapted(
    spark: SparkSession, plan: catalyst.Plan, chosen: Chosen, memory: int, run: int
) -> catalyst.Plan | None:
    """Return an optimized plan with eddies in it; None to leave it to Spark."""
    if next(fused_commands(plan, within_cached=False), None) is not None:
        told = told_limits(spark, plan)  # it was adapted by hand
        return None if told is plan else told
    streaming = catalyst.is_streaming(plan)
    rewriting = rewritten(spark, plan, chosen, memory, run, streaming=streaming, final=True)
    return told_limits(spark, rewriting.plan) if rewriting.changed else None
