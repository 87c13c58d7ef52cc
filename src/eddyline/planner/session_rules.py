"""What is at work in the optimizers of sessions: at most one rule of ours in each.

``enable`` begins one that adapts what a session runs, and may be called again before that ends.
Where there is none, one is at work that tells blocks of adapted DataFrames of the limits that
actions put above them, from the first ``adapt`` on that could profit from it.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Final

from pyspark import SparkContext
from pyspark.sql import SparkSession

from eddyline import catalyst
from eddyline.blocks.filter_block import FUSED_NAME, FilterBlock
from eddyline.blocks.join_block import Block
from eddyline.catalyst import OptimizerRule, Plan
from eddyline.host.per_context import PerContext
from eddyline.latest import Latest
from eddyline.planner.block_registry import Registry, registry_of
from eddyline.planner.operating import operating_of
from eddyline.planner.rewrite.told_limits import with_limits_told

_rules: Final = PerContext[dict[str, list[OptimizerRule]]](lambda _: {})
"""What was begun and not ended for a session, by its identity; the last is at work."""

_changing: Final = threading.RLock()

_SESSIONS: Final = 1_000
"""Sessions that are remembered as ones where blocks are told of limits."""

_log: Final = logging.getLogger("eddyline")


def change_rules(
    spark: SparkSession, changed: Callable[[list[OptimizerRule]], list[OptimizerRule]]
) -> list[OptimizerRule]:
    """Let a session have other rules, the last of which is at work; return the former ones."""
    with _changing:
        name, of_sessions = catalyst.identity_of(spark), _rules.of(spark.sparkContext)
        before = of_sessions.pop(name, [])
        rules = changed(list(before))
        if before[-1:] != rules[-1:]:
            if before:
                before[-1].stop(spark)
            if rules:
                rules[-1].start(spark)
            else:
                _telling.of(spark.sparkContext).begin_again(spark)
        if rules:
            of_sessions[name] = rules
        operating_of(spark.sparkContext).enabled(any_session=bool(of_sessions))
        return before


def tell_limits(spark: SparkSession) -> None:
    """From now on tell blocks of adapted DataFrames of the limits above them, in a session.

    Does nothing where optimizers cannot have rules (see :class:`OptimizerRule`).
    """
    with _changing:
        at_work = bool(_rules.of(spark.sparkContext).get(_name(spark)))
        _telling.of(spark.sparkContext).begin(spark, at_work=at_work)


def told_limits(spark: SparkSession, plan: Plan) -> Plan:
    """Return an optimized plan whose blocks know of the limits above them."""
    return with_limits_told(plan, partial(_with_limit, registry_of(spark.sparkContext)))


class _Telling:
    """The rule that tells of limits, the same for all sessions of a context."""

    def __init__(self, _: SparkContext) -> None:
        self._rule: OptimizerRule | None = None
        self._fails = False
        self._sessions = Latest[str, bool](_SESSIONS)

    def begin(self, spark: SparkSession, *, at_work: bool) -> None:
        """Begin in a session, unless it was begun there; another rule may be ``at_work``."""
        name = _name(spark)
        if self._fails or self._sessions.get(name):
            return
        if self._rule is None:
            try:
                self._rule = OptimizerRule(_told, every=False, limited=FUSED_NAME)
            except RuntimeError as error:
                self._fails = True
                _log.info("Limits of actions are not seen by adapted DataFrames: %s", error)
                return
        self._sessions.put(name, True)  # noqa: FBT003 - a value
        if not at_work:
            self._rule.start(spark)

    def begin_again(self, spark: SparkSession) -> None:
        """Begin where it was begun before, and another rule has ended."""
        if self._rule is not None and self._sessions.get(_name(spark)):
            self._rule.start(spark)


_telling: Final = PerContext(_Telling)


def _name(spark: SparkSession) -> str:
    return catalyst.identity_of(spark)


def _told(spark: SparkSession, plan: Plan) -> catalyst.RewrittenPlan:
    told = None if catalyst.is_streaming(plan) else told_limits(spark, plan)
    return catalyst.RewrittenPlan(None if told is plan else told)


def _with_limit(
    registry: Registry, command: bytes, limit: int, takes_the_first: Callable[[Block], bool]
) -> bytes:
    """Return the function of a block that knows of a limit; the same where it heeds none."""
    made = registry.made(command)
    if made is None or not _heeds_limits(block := made[0]):
        return command
    stops = takes_the_first(block)
    if block.stops and not (stops and limit < block.limit):
        return command  # what it knows says more
    return registry.made_again(command, replace(block, limit=limit, stops=stops)) or command


def _heeds_limits(block: Block) -> bool:
    """Whether somebody is asked for a block's rows, and a limit may take the first of them."""
    return block.server is not None and not (
        isinstance(block, FilterBlock) and block.hands_on_errors
    )
