"""Adapt everything that a session runs, with nothing changed in its queries."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Mapping
from types import TracebackType
from typing import Final

from pyspark.sql import SparkSession

from eddyline.spark.adapt import Chosen, chosen_options, rewritten
from eddyline.spark.claiming.session_settings import task_memory
from eddyline.spark.classic import chosen_session
from eddyline.spark.host import catalyst
from eddyline.spark.plan.chains import fused_commands
from eddyline.spark.registry import registry_of
from eddyline.spark.rewriting.rewrite_plan import Joins

_rules: Final[dict[str, catalyst.OptimizerRule]] = {}  # by the session's identity
_changing: Final = threading.Lock()


class Enabled(contextlib.AbstractContextManager["Enabled"]):
    """A session whose queries are adapted; as a context manager, until the block ends."""

    def __init__(
        self,
        spark: SparkSession,
        rule: catalyst.OptimizerRule,
        before: catalyst.OptimizerRule | None,
    ) -> None:
        """Take a session, the rule that was begun, and the one in whose place it came."""
        self.spark: Final = spark
        self._rule: Final = rule
        self._before: Final = before

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Have it be as before, unless somebody has changed it since."""
        with _changing:
            if _rules.get(catalyst.identity_of(self.spark)) is self._rule:
                _put(self.spark, self._before)

    def __repr__(self) -> str:
        return "Eddyline adapts what this session runs; eddyline.disable() ends it."


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
    takes the place of the first. As a context manager it ends with the block, and what was before
    is again; else :func:`disable` ends it. A stream keeps to what was chosen when it started.

    A query that cannot be adapted runs as Spark planned it, and the logger ``eddyline`` says why.

    Raises as :func:`adapt` does, and ``RuntimeError`` where there is no session.
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
        before = _rules.get(catalyst.identity_of(found))
        _put(found, rule)
    return Enabled(found, rule, before)


def disable(spark: SparkSession | None = None) -> None:
    """Leave what a session runs to Spark again; nothing happens where it was left to it.

    DataFrames that have run once keep the plan that they have. Raises ``RuntimeError`` where
    there is no session.
    """
    found = chosen_session(spark)
    with _changing:
        _put(found, None)


def _put(spark: SparkSession, rule: catalyst.OptimizerRule | None) -> None:
    """Let a session have this rule, or none."""
    name = catalyst.identity_of(spark)
    before = _rules.pop(name, None)
    if before is not None:
        before.stop(spark)
    if rule is not None:
        rule.start(spark)
        _rules[name] = rule


def _adapted(
    spark: SparkSession, plan: catalyst.Plan, chosen: Chosen, memory: int, run: int
) -> catalyst.Plan | None:
    """Return an optimized plan with eddies in it; None to leave it to Spark."""
    if next(fused_commands(plan, within_cached=False), None) is not None:
        return None  # it was adapted by hand
    streaming = catalyst.is_streaming(plan)
    rewriting = rewritten(spark, plan, chosen, memory, run, streaming=streaming)
    return rewriting.plan if rewriting.changed else None
