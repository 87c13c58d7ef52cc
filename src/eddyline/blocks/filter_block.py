"""A filter block as plain data: what travels from the plan rewrite to the workers.

A block is claimed by :mod:`eddyline.planner.rewrite.block_walk` on the driver, pickled into
one fused user-defined function, and executed by :mod:`eddyline.tasks.filter_task` in
the Python workers. Nothing here holds a handle into the JVM.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Final

from eddyline.asking.driver_channel import Address
from eddyline.engine.prior import Prior
from eddyline.expressions import Call, Case, Expression
from eddyline.reports.wording import one_line, shortened


class FunctionKind(IntEnum):
    """Spark's evaluation types of scalar user-defined functions, by their number in Spark."""

    PICKLED = 100  # a plain function, rows pickled
    ARROW_BATCHED = 101  # a plain function, rows carried by Arrow
    PANDAS = 200  # pandas Series in and out
    PANDAS_ITERATOR = 204  # an iterator over pandas Series
    ARROW = 250  # Arrow arrays in and out
    ARROW_ITERATOR = 251  # an iterator over Arrow arrays


CALLED_ONCE: Final = frozenset(
    {
        FunctionKind.PICKLED,
        FunctionKind.ARROW_BATCHED,
        FunctionKind.PANDAS,
        FunctionKind.ARROW,
    }
)
"""Kinds whose calls stand for themselves; an iterator has to be told when there is no more."""


@dataclass(frozen=True, slots=True)
class CalledByDriver:
    """Who calls a function that runs where the driver is, and how it may be called.

    ``method`` is what the server of lookups calls it with these arguments, ``number`` the
    function itself; ``width`` values are worked on at a time. ``price`` is for people,
    ``unit`` what it is paid in, ``values`` how many a call is for at the most. Where no task
    reaches the driver each worker process calls it ``here``, for its own tasks: then the function's
    command is how it was declared, pickled.
    """

    number: int
    method: str
    width: int
    unit: str = ""
    price: str = ""
    values: int = 1
    here: bool = False


@dataclass(frozen=True, slots=True)
class UserFunction:
    """One user function of a block, or a chain ``f(g(x))`` that Spark evaluates in one go.

    ``commands`` are the pickled functions as Spark stores them, innermost
    first; in a chain each hands its Python value to the next unconverted, as in
    Spark's own worker. ``keywords`` names the arguments that are passed by
    keyword and has None for a positional one. Types are Spark's, as JSON
    (``DataType.json()``); the return type is that of the outermost function.
    ``driver`` is None where the worker calls the function itself. ``shared`` says after how many
    functions, counted from the innermost, there is a value that other functions of the query are
    made of, too (:mod:`eddyline.blocks.nests`); it makes no difference to what the function is.
    """

    name: str
    kind: FunctionKind
    commands: tuple[bytes, ...]
    argument_types: tuple[str, ...]
    keywords: tuple[str | None, ...]
    return_type: str
    driver: CalledByDriver | None = None
    shared: tuple[int, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class JavaRuntime:
    """What the texts of values depend on in the JVM that unpickles them.

    Its version, its default time zone (the id, ``toString`` and ``hashCode``), and the first
    weekday (1 is Sunday) and the fewest days of a year's first week in its default locale.
    """

    version: int = 17
    zone: str = "UTC"
    zone_text: str = (
        'sun.util.calendar.ZoneInfo[id="UTC",offset=0,dstSavings=0,useDaylight=false,'
        "transitions=0,lastRule=null]"
    )
    zone_hash: int = 0
    first_day_of_week: int = 1
    days_in_first_week: int = 1


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """Session settings that change what a user function sees or returns.

    ``defaults`` are what Spark takes for keys that are not set; ``java`` is the JVM. ``profiled``
    says that a profiler of Spark's watches functions.
    """

    time_zone: str
    defaults: tuple[tuple[str, str], ...] = ()
    binary_as_bytes: bool = True
    legacy_pandas_conversion: bool = False
    assign_columns_by_name: bool = True
    int_to_decimal_coercion: bool = False
    safe_arrow_conversion: bool = False
    integer_extension_types: bool = False
    large_types: bool = False
    java: JavaRuntime = JavaRuntime()
    profiled: bool = False


@dataclass(frozen=True, slots=True)
class FilterBlock:
    """The claimed predicate of a chain of filters, and the call results needed above it.

    ``predicate`` is boolean over :class:`~eddyline.expressions.Argument` (columns handed in by
    Spark, by position) and calls of ``functions``. A row is kept where it is TRUE. ``outputs`` are
    computed for kept rows; one that is a CASE is a call that is made for some of these only (see
    :func:`~eddyline.expressions.called_where`). ``texts`` shows each top-level conjunct as the user
    would recognize it, and ``argument_names`` each argument. ``server`` makes the calls of
    functions that run where the driver is. ``waits`` says of each conjunct how many of the first
    ones Spark asks before it calls the functions of this one, which then gets none of the rows that
    they reject; empty where all are called on every row, as are calls that are not in ``after``,
    with the same number. Plain Spark calls functions of a ``spared`` block for more rows than come
    to it, as where a value is passed on for which it calls a function again. A block that
    ``hands_on_errors`` keeps the rows for which a predicate failed, with the error as text, for
    joins above it that may drop them. ``joined`` says in words what was done to its rows before,
    and what joins them after; ``reduced`` is whether joins have dropped rows before.
    ``measured_for`` names the inputs that are read when the rows left have been measured. ``limit``
    is how many of its rows a limit above keeps of each task's, or somebody between wants first; 0
    where there is none. A task that has given as many ``stops`` if nothing between drops any. The
    rows of a block that ``repeats`` come of a join below which plain Spark calls its function: it
    remembers, whatever that costs. ``priors`` are what is known of the conjuncts beforehand, and at
    ``learned_at`` tasks ask what others have learned since: whatever these are, it is the same
    block, and its text is the same.
    """

    identity: str
    predicate: Expression
    texts: tuple[str, ...]
    functions: tuple[UserFunction, ...]
    outputs: tuple[Call | Case, ...]
    settings: SessionSettings
    argument_names: tuple[str, ...] = ()
    server: Address | None = None
    hands_on_errors: bool = False
    joined: tuple[str, ...] = ()
    reduced: bool = False
    measured_for: tuple[str, ...] = ()
    waits: tuple[int, ...] = ()
    after: tuple[tuple[Call, int], ...] = ()
    spared: bool = False
    limit: int = 0
    stops: bool = False
    repeats: bool = False
    priors: tuple[Prior | None, ...] = field(default=(), repr=False)
    learned_at: Address | None = field(default=None, compare=False, repr=False)


def identified(block: FilterBlock) -> FilterBlock:
    """Return a block with the identity that only equal blocks have."""
    block = replace(block, identity="")
    # Frozen data all the way down, so equal blocks have equal texts.
    return replace(block, identity=hashlib.sha256(repr(block).encode()).hexdigest()[:16])


FUSED_NAME: Final = "eddy["  # no function of a user can be called like this

LONGEST_NAME: Final = 100
"""Letters of the name that a fused function has in Spark's plans and on its pages."""


def fused_name(inside: Iterable[str]) -> str:
    """Return the name of a fused function, with what runs in it.

    >>> fused_name(["is_fraud(text)", "(score(amount) > 0.7)", "is_fraud(text)"])
    'eddy[is_fraud(text), (score(amount) > 0.7)]'
    """
    text = ", ".join(dict.fromkeys(map(one_line, inside)))
    return f"{FUSED_NAME}{shortened(text, LONGEST_NAME)}]"
