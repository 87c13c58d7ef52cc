"""What sessions choose by Spark's settings, as arguments of ``enable`` do elsewhere."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, TypeVar

from pyspark import SparkContext
from pyspark.sql import SparkSession

from eddyline import catalyst
from eddyline.blocks.chosen_policy import chosen_policy
from eddyline.checked_values import joins_named
from eddyline.errors import EddylineError
from eddyline.keeping.keep import keep_in
from eddyline.latest import Latest
from eddyline.learning.learned_file import keep_learned
from eddyline.planner.adapt import Chosen, chosen_options
from eddyline.planner.block_registry import registry_of
from eddyline.planner.claim.session_settings import task_memory
from eddyline.planner.declare.kept_folders import files_in
from eddyline.planner.declare.lookup_tables import lookup_tables_of

POLICY: Final = "spark.eddyline.policy"
JOINS: Final = "spark.eddyline.joins"
MEMORY: Final = "spark.eddyline.memory"
REMEMBER: Final = "spark.eddyline.remember"

KEYS: Final = (POLICY, JOINS, MEMORY, REMEMBER)
"""Settings that each session may set."""

LEARNED: Final = "spark.eddyline.learned"
KEEP: Final = "spark.eddyline.keep"

_SETS: Final = 100
"""Sets of choices that are kept, the latest ones."""

Found = TypeVar("Found")

_log: Final = logging.getLogger("eddyline")


@dataclass(frozen=True, slots=True)
class SessionChoice:
    """What a session has chosen; reports tell these choices from others by ``run``."""

    chosen: Chosen
    memory: int
    run: int


class SessionChoices:
    """The choices of an application's sessions."""

    def __init__(self, context: SparkContext) -> None:
        """Read what holds for the whole application: where what is learned and answered is kept."""
        self._context: Final = context
        self._known = Latest[tuple[str, ...], SessionChoice](_SETS)
        self._told = Latest[str, bool](_SETS)
        settings = dict(context.getConf().getAll())
        if path := settings.get(LEARNED):
            keep_learned(registry_of(context).learned, Path(path))
        if folder := settings.get(KEEP):
            self._or(None, KEEP, folder, self._keep)

    def of(self, spark: SparkSession) -> SessionChoice:
        """Return what a session has chosen. What is no choice is said once, and not heeded."""
        settings = catalyst.settings_of(spark, KEYS)
        memory = self._or(
            task_memory(spark, None),
            MEMORY,
            settings.get(MEMORY),
            lambda text: task_memory(spark, text),
        )
        key = (*(settings.get(name, "") for name in KEYS), str(memory))
        known = self._known.get(key)
        if known is None:
            run = registry_of(self._context).next_run()
            known = SessionChoice(self._chosen(settings), memory, run)
            self._known.put(key, known)
        return known

    def _chosen(self, settings: Mapping[str, str]) -> Chosen:
        usual = chosen_options("adaptive", 0, "auto", None, remember=True)
        policy = self._or(usual.policy, POLICY, settings.get(POLICY), chosen_policy)
        joins = self._or(
            usual.joins, JOINS, settings.get(JOINS), lambda text: joins_named(text.lower())
        )
        remember = self._or(usual.remember, REMEMBER, settings.get(REMEMBER), _switch)
        return replace(usual, policy=policy, joins=joins, remember=remember)

    def _keep(self, folder: str) -> None:
        kept = keep_in(folder, None, None)
        if kept is not None:
            files_in(kept.folder)  # raises now what no query should
            lookup_tables_of(self._context).keep = kept

    def _or(self, usual: Found, name: str, text: str | None, read: Callable[[str], Found]) -> Found:
        """Return what a setting says; the usual where it says nothing of the kind."""
        if text is None or not text.strip():
            return usual
        try:
            return read(text.strip())
        except (EddylineError, ValueError, TypeError) as error:
            if self._told.get(f"{name} {text}") is None:
                self._told.put(f"{name} {text}", value=True)
                _log.warning("%s is not heeded: %s", name, error)
            return usual


def _switch(text: str) -> bool:
    """Return what a setting says that is on or off.

    >>> _switch("True"), _switch("false")
    (True, False)
    """
    if text.lower() not in {"true", "false"}:
        raise ValueError(f"it is true or false, not {text!r}")
    return text.lower() == "true"
