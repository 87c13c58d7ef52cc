"""A rule of a session's optimizer that Python applies."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from py4j.clientserver import ClientServer
from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.sql import SparkSession

from eddyline.blocks.decline import LOST
from eddyline.catalyst.dropped import loses_filters, whole_plan
from eddyline.catalyst.foreign_functions import ForeignFunctionError
from eddyline.catalyst.gateway import fetched, java_session, static
from eddyline.catalyst.handles import Plan
from eddyline.catalyst.pipeline import Later, maker, new_alone, of_its_own, put_off
from eddyline.catalyst.python_side import python_side
from eddyline.catalyst.raised_errors import raised_in_rule
from eddyline.catalyst.rules_at_work import RULE, begin, set_rule
from eddyline.errors import EddylineError
from eddyline.latest import Latest
from eddyline.quirks.classic_frames import CLASSIC


class RewrittenPlan(NamedTuple):
    """What becomes of an optimized plan: one with the same rows, or None to leave it as it is.

    Where it ``lasts``, the same becomes of every equal plan that comes later, and nobody is asked
    about that: it follows from nothing but the plan and the settings of the session.
    """

    plan: Plan | None
    lasts: bool = False


Rewrite = Callable[[SparkSession, Plan], RewrittenPlan]
"""From an optimized plan of a session to what becomes of it."""

_log: Final = logging.getLogger("eddyline")

_SESSIONS: Final = 16
"""Sessions whose Python side a rule keeps; each stream has one of its own."""

_REASONS: Final = 100
"""Reasons that are remembered as told, so that one that comes again is told once."""


class OptimizerRule:
    """A rule that the optimizer of a session applies to each plan, after all of Spark's.

    It is applied in the JVM, by whatever thread asks for the plan there, and asks Python only
    about plans that call Python functions, or about every one. Where Python fails to rewrite a
    plan, this stays as it is; an ``EddylineError`` is raised where the plan was asked for.
    """

    def __init__(self, rewrite: Rewrite, *, every: bool, limited: str | None = None) -> None:
        """Compile the rule; a session begins to apply it in :meth:`start`.

        With ``limited`` only those plans with limits are rewritten that call Python functions whose
        names begin with it; what becomes of them is not optimized again.

        Raises ``RuntimeError`` where Python's threads do not have their own in the JVM: a question
        asked there during a rewrite would start another rewrite, and so on for ever; and where Java
        cannot be compiled.
        """
        if not isinstance(SparkContext._gateway, ClientServer):
            message = "Eddyline cannot be enabled with PYSPARK_PIN_THREAD=false."
            raise RuntimeError(message)  # noqa: TRY004 - no argument is of a wrong type
        try:
            side = python_side()
            self._rule = new_alone(RULE)
        except (Py4JError, TypeError) as error:  # TypeError: no such class
            message = "Eddyline cannot be enabled where Spark has no Janino to compile a rule."
            raise RuntimeError(message) from error
        self._rule.be(
            side, _Asked(rewrite, optimizes=limited is None), every, limited
        )  # Py4J keeps it as long as the JVM does

    def start(self, spark: SparkSession) -> None:
        """Apply the rule in a session from now on, and no other of this class."""
        begin()
        self._rule.turn(True)  # noqa: FBT003 - Java has no names
        set_rule(java_session(spark), self._rule)

    def stop(self, spark: SparkSession) -> None:
        """Apply it no more, nor in sessions that were cloned from this one."""
        self._rule.turn(False)  # noqa: FBT003 - Java has no names
        set_rule(java_session(spark), None)


def answering(rewrite: Rewrite) -> Any:  # noqa: ANN401 - Py4J has no types
    """Return what Java may ask about the plans of any session, without a rule made here.

    An ``EddylineError`` is told as a text: nobody who asks there would know it again.
    """
    return _Asked(rewrite, optimizes=True, tells=True)


def identity_of(spark: SparkSession) -> str:
    """Return what tells a session from others, whichever Python object stands for it."""
    return str(java_session(spark).sessionUUID())


class _Asked:
    def __init__(self, rewrite: Rewrite, *, optimizes: bool, tells: bool = False) -> None:
        self._rewrite = rewrite
        self._optimizes = optimizes
        self._tells = tells
        self._of_thread = threading.local()
        self._sessions = Latest[str, SparkSession](_SESSIONS)
        self._told = Latest[str, bool](_REASONS)  # why plans were left to Spark, and what else

    def apply(self, java: Any, session: str) -> Any:  # noqa: ANN401 - Py4J has no types
        """Return what becomes of a plan that a session is about to run."""
        with of_its_own():
            try:
                # Kept until the next, as Py4J lets go of what nobody holds before Java has it.
                self._of_thread.latest = self._rewritten(self._session(session), java)
            except ForeignFunctionError as error:
                self._tell(f"A query is left to Spark: {error}")
                return java
            except Exception as error:
                if isinstance(error, EddylineError):  # which says what the user is to do
                    if self._tells:
                        return str(error)
                    raise raised_in_rule(error) from error
                why = f"{type(error).__name__}: {error}"
                self._tell("A query is left to Spark, as it could not be adapted:", why, error)
                return java
            except BaseException as error:  # a Ctrl-C: else Java waits for an answer
                raise raised_in_rule(error) from error
            return self._of_thread.latest

    def _session(self, identity: str) -> SparkSession:
        """Return the session that asks. To make its Python side anew takes six calls."""
        known = self._sessions.get(identity)
        if known is None:
            running = static(CLASSIC + "SparkSession", "active")()
            known = SparkSession(SparkContext.getOrCreate(), running)
            self._sessions.put(identity, known)
        return known

    def _rewritten(self, spark: SparkSession, java: Any) -> Any:  # noqa: ANN401 - Py4J has no types
        if not self._optimizes:
            same_nodes = self._rewrite(spark, Plan(put_off(java))).plan
            return java if same_nodes is None else fetched(same_nodes.java)
        given = put_off(java)
        if not isinstance(given, Later):
            raise TypeError("a rule was compiled, but nothing to put off calls with")
        made = maker(given.pipeline)
        plan = Plan(made.withoutPruning(given))
        whole = whole_plan(java, java_session(spark)) if loses_filters(plan) else None
        if whole is not None:
            self._tell(f"{LOST} {', '.join(whole.dropped)}")
            plan = Plan(made.withoutPruning(whole.plan))
        rewritten, lasts = self._rewrite(spark, plan)
        lasts = lasts and whole is None  # what Spark dropped is no part of the plan
        if rewritten is None and whole is None:
            return fetched(made.lasting(given)) if lasts else java
        # With the former output, in its order: what stands above it in a command relies on it.
        like = made.optimizedLike(java_session(spark), given, (rewritten or plan).java)
        return fetched(made.lasting(like) if lasts else like)

    def _tell(self, what: str, why: str = "", error: Exception | None = None) -> None:
        if self._told.get(what + why) is None:
            self._told.put(what + why, value=True)
            _log.warning("%s", what, exc_info=error)

    class Java:
        """The interface of Java that this implements, as Py4J wants it told."""

        implements = ("java.util.function.BiFunction",)
