"""Which gateways have rules of ours in their optimizers, and how to keep these off."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from pyspark import SparkContext

from eddyline.catalyst.compiled_java import jar_in
from eddyline.catalyst.gateway import in_python, scala_seq
from eddyline.catalyst.pipeline import new_alone

RULE: Final = "AdaptingRule"
"""The class in Java."""

_gateways: set[int] = set()


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
