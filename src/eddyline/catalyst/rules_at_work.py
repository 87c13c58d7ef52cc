"""Which gateways have rules of ours in their optimizers, and how to keep these off."""

from __future__ import annotations

import functools
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.sql import SparkSession

from eddyline.catalyst.compiled_java import jar_in
from eddyline.catalyst.gateway import in_python, java_session, scala_seq
from eddyline.catalyst.pipeline import new_alone

RULE: Final = "AdaptingRule"
"""The class in Java."""

_gateways: set[int] = set()

_log: Final = logging.getLogger("eddyline")


def begin() -> None:
    """Take note that some session of this JVM has a rule of ours."""
    _gateways.add(id(SparkContext._jvm))


def any_rules() -> bool:
    """Whether some session of this JVM has, or had, a rule of ours, be it a plug-in's."""
    return id(SparkContext._jvm) in _gateways or jar_in(id(SparkContext._jvm)) is not None


@contextmanager
def plans_left_alone() -> Iterator[None]:
    """Have rules leave the plans alone that this thread asks for."""
    if not any_rules():
        yield
        return
    rule = new_alone(RULE)
    was = rule.keepOff(True)  # noqa: FBT003 - Java has no names
    try:
        yield
    finally:
        rule.keepOff(was)


def set_rule(session: Any, rule: Any | None) -> None:  # noqa: ANN401 - Py4J has no types
    """Let a session in the JVM have this rule of ours and no other, or none."""
    methods = session.experimental()
    rules = in_python(methods.extraOptimizations())
    kept = [other for other in rules if not str(other.getClass().getName()).endswith(f".{RULE}")]
    if rule is None and len(kept) == len(rules):
        return
    mine = [] if rule is None else [rule]
    getattr(methods, "extraOptimizations_$eq")(scala_seq([*kept, *mine]))


def open_gates(spark: SparkSession, named: str) -> None:
    """Have a session's optimizer leave nothing between a scan and the keys that it waits for.

    Functions that ask for these are ``named`` so, at the beginning. Without such a rule the scan
    waits for a job more (see ``OpenGates.java``).
    """
    gates = _gates(id(SparkContext._jvm))
    if gates is not None:
        gates.install(java_session(spark), named)


@functools.cache
def _gates(_gateway: int) -> Any | None:  # noqa: ANN401 - Py4J has no types
    try:
        return new_alone("OpenGates")
    except (Py4JError, TypeError) as error:  # TypeError: no such class
        _log.info("Tables that may be scanned are looked up with a job more: %s", error)
        return None
