"""Standard error of the JVM, without what nobody asked for."""

from __future__ import annotations

import logging

from py4j.protocol import Py4JError

from eddyline.catalyst.gateway import jvm
from eddyline.catalyst.pipeline import new_alone

_CLASS = "QuietErr"


def leave_out_planning_steps() -> None:
    """Keep off standard error the steps that Python prints while it plans a query with state.

    PySpark has that process print each step it takes, for every such query that starts. Errors, and
    what functions print, go on to be seen. Done once in a JVM, for all that it writes from then on;
    where Spark has no compiler, the steps stay.
    """
    system = jvm().java.lang.System
    if str(system.err.getClass().getName()).endswith(f".{_CLASS}"):
        return
    try:
        system.setErr(new_alone(_CLASS))
    except (Py4JError, TypeError) as error:  # TypeError: no such class
        logging.getLogger("eddyline").info("Steps of planning are not left out: %s", error)
