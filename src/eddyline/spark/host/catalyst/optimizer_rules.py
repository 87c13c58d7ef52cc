"""A rule of a session's optimizer that Python applies."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from py4j.clientserver import ClientServer
from pyspark import SparkContext
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import SparkSession

from eddyline.spark.host.catalyst.errors import raised_in_rule
from eddyline.spark.host.catalyst.gateway import (
    LOGICAL,
    fetched,
    in_python,
    java_class,
    java_session,
    scala_seq,
)
from eddyline.spark.host.catalyst.handles import Plan
from eddyline.spark.host.catalyst.pipeline import Later, maker, new_alone, of_its_own, put_off
from eddyline.spark.host.catalyst.plans import outputs

Rewrite = Callable[[Plan], Plan | None]
"""From an optimized plan to one with the same rows; None to leave it as it is."""


_started: set[int] = set()  # the gateways in which some rule was started


class OptimizerRule:
    """A rule that the optimizer of a session applies to each plan last of all.

    It is applied in the JVM, by whatever thread asks for the plan there, and asks Python only
    about plans that call Python functions, or about every one.
    """

    def __init__(self, spark: SparkSession, rewrite: Rewrite, *, every: bool) -> None:
        """Compile the rule; the session begins to apply it in :meth:`start`.

        Raises ``RuntimeError`` where Python's threads do not have their own in the JVM: what is
        asked there while a plan is rewritten would ask to have it rewritten again, for ever.
        """
        if not isinstance(SparkContext._gateway, ClientServer):
            raise RuntimeError("Eddyline cannot be enabled with PYSPARK_PIN_THREAD=false.")
        ensure_callback_server_started(SparkContext._gateway)  # type: ignore[no-untyped-call]
        self._asked = _Asked(spark, rewrite)  # Py4J keeps it while the JVM has its proxy
        self._spark = spark
        self._rule = new_alone("AdaptingRule")
        self._rule.be(self._asked, every)

    def start(self) -> None:
        """Apply the rule from now on."""
        _started.add(id(SparkContext._jvm))
        self._set([*self._others(), self._rule])

    def stop(self) -> None:
        """Apply it no more, nor in sessions that were cloned from this one."""
        self._rule.stop()
        self._set(self._others())

    def _others(self) -> list[Any]:
        methods = java_session(self._spark).experimental()
        return [rule for rule in in_python(methods.extraOptimizations()) if rule != self._rule]

    def _set(self, rules: list[Any]) -> None:
        methods = java_session(self._spark).experimental()
        getattr(methods, "extraOptimizations_$eq")(scala_seq(rules))


@contextmanager
def plans_left_alone() -> Iterator[None]:
    """Have rules leave the plans alone that this thread asks for."""
    if id(SparkContext._jvm) not in _started:
        yield
        return
    rule = new_alone("AdaptingRule")
    was = rule.keepOff(True)  # noqa: FBT003 - Java has no names
    try:
        yield
    finally:
        rule.keepOff(was)


class _Asked:
    """What the rule in the JVM asks."""

    def __init__(self, spark: SparkSession, rewrite: Rewrite) -> None:
        self._spark, self._rewrite = spark, rewrite

    def apply(self, java: Any) -> Any:  # noqa: ANN401 - Py4J has no types
        """Return what becomes of a plan."""
        with of_its_own():
            try:
                return self._rewritten(java)
            except Exception as error:
                raise raised_in_rule(error) from error

    def _rewritten(self, java: Any) -> Any:  # noqa: ANN401 - Py4J has no types
        plan = put_off(java)
        if isinstance(plan, Later):
            plan = maker(plan.pipeline).withoutPruning(plan)
        rewritten = self._rewrite(Plan(plan))
        if rewritten is None:
            return java
        # With the output of before, in its order: what is above in a command relies on it.
        given = scala_seq(fetched(column.java) for column in outputs(Plan(java)))
        made = java_class(LOGICAL + "Project")(given, rewritten.java)
        made.setAnalyzed()
        optimizer = java_session(self._spark).sessionState().optimizer()
        return optimizer.execute(fetched(made))

    class Java:
        """The interface of Java that this implements, as Py4J wants it told."""

        implements = ("java.util.function.Function",)
