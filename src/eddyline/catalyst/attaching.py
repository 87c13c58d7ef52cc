"""A Python process that the driver's JVM has started, and that answers what it asks there.

Everywhere else Python has started the JVM, or both were started by ``spark-submit``, and the
context is Python's. Here it is somebody else's, perhaps another Python's: nothing of it may be
stopped, no session of it becomes this process's, and what functions record goes to this process and
not to the one that has made them (:mod:`eddyline.catalyst.foreign_functions`).

The other end is ``PythonProcess.java``, in the jar of the plug-in.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Final

from py4j.java_gateway import JavaClass
from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession
from pyspark.sql.conf import RuntimeConfig

from eddyline.catalyst import foreign_functions, python_side
from eddyline.catalyst.gateway import fetched, static
from eddyline.catalyst.handles import Plan
from eddyline.catalyst.optimizer_rules import Rewrite, answering
from eddyline.catalyst.pipeline import get_ready, of_its_own
from eddyline.catalyst.rules_at_work import begin
from eddyline.quirks.classic_frames import CLASSIC

PROCESS: Final = "eddyline.spark.PythonProcess"
"""The class in Java that has started this process."""

_FIRST_ACCUMULATOR: Final = 1 << 40
"""Workers know accumulators by number, and those of the application's own Python begin at 0."""


class AttachedContext(SparkContext):
    """The context of an application that is not this process's."""

    def stop(self) -> None:
        """Leave the application alone: PySpark calls this, too, where it cannot begin."""


Answer = tuple[str, str] | Plan | None
"""A text and JSON, the leaf of a plan, or None where something was only to be done."""

Answering = Callable[[SparkSession, str, str | None], Answer]
"""What a session gets, by the name of what is asked, mostly a table function, and its argument."""


class Application:
    """The application whose JVM has started this process."""

    def __init__(self) -> None:
        """Find it. KeyError where no JVM has started this process, ``GONE`` where it has ended."""
        os.environ["PYSPARK_PIN_THREAD"] = "true"
        gateway: Any = launch_gateway  # untyped; by the environment it is there
        self._gateway = gateway()
        self._java = self._gateway.jvm.eddyline.spark.PythonProcess
        if not isinstance(self._java, JavaClass):
            raise Py4JError(f"the JVM has no {PROCESS}")

    def versions(self) -> tuple[str, str]:
        """Return the versions of Spark, and of the jar."""
        jar = self._gateway.jvm.eddyline.spark.CompiledClasses
        return str(self._java.application().version()), str(jar.version())

    def refuse(self, why: str) -> None:
        """Say in the application's log, once, why it is not served; no other process is started."""
        self._java.refuse(why)

    def attach(self, probe: foreign_functions.Probe) -> SparkContext:
        """Return its context, which is this process's from now on.

        The ``probe`` is asked, once for each plan at most, about the Python of the workers.
        """
        java = self._java.application()
        SparkContext._next_accum_id = _FIRST_ACCUMULATOR
        # A copy of its settings: PySpark adds some of its own.
        context = AttachedContext(
            gateway=self._gateway, jsc=java, conf=SparkConf(_jconf=java.getConf())
        )
        SparkSession._instantiatedSession = SparkSession._activeSession = _Nobody(context)
        foreign_functions.belong_to_others(context, probe)
        os.environ.pop("PYSPARK_GATEWAY_SECRET")  # no process of this one's needs it
        python_side.serve_at(self._java)
        begin()
        get_ready()
        return context

    def serve(self, rewrite: Rewrite, answer: Answering) -> None:
        """Answer from now on, in threads that end with the process."""
        self._java.ready(answering(rewrite), _Answers(answer))
        python_side.python_side()


class _Nobody(SparkSession):
    """Whom PySpark takes for this process's session, so that it makes none the JVM's default one.

    It stands for the session that asks, which the JVM knows by the thread.
    """

    def __init__(self, context: SparkContext) -> None:
        self._sc = context
        self._jvm = context._jvm

    @property
    def _jsc(self) -> Any:  # noqa: ANN401 - Py4J has no types
        return self._sc._jsc

    @property
    def _jsparkSession(self) -> Any:  # noqa: ANN401, N802 - as PySpark calls it
        return static(CLASSIC + "SparkSession", "active")()

    @property
    def conf(self) -> RuntimeConfig:
        """Return the settings of the session that asks."""
        return RuntimeConfig(self._jsparkSession.conf())

    def newSession(self) -> SparkSession:  # noqa: N802 - as PySpark calls it
        """Return another session of the application, which is that of whoever made it."""
        return SparkSession(self._sc, self._jsparkSession.newSession())


class _Answers:
    def __init__(self, answer: Answering) -> None:
        self._answer = answer

    def apply(self, name: str, argument: str | None) -> Any:  # noqa: ANN401 - Py4J has no types
        """Return what was asked for, texts as one; what is the matter, where it fails."""
        with of_its_own():
            try:
                running = static(CLASSIC + "SparkSession", "active")()
                spark = SparkSession(SparkContext.getOrCreate(), running)
                given = self._answer(spark, name, argument)
                if isinstance(given, Plan):  # whoever has made it keeps it
                    return fetched(given.java)
            except Exception as error:  # noqa: BLE001 - Java is told, whatever it is
                return (str(error) or type(error).__name__).replace("\0", " ")
            return "" if given is None else "\0".join((given[0].replace("\0", " "), given[1]))

    class Java:
        """The interface of Java that this implements, as Py4J wants it told."""

        implements = ("java.util.function.BiFunction",)
