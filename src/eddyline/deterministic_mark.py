"""The mark by which users say that a function is deterministic though it may not look like it."""

from __future__ import annotations

from typing import Final

from eddyline.function_marks import FunctionT, is_marked, marked

DETERMINISTIC: Final = "_eddyline_deterministic"
"""The attribute that is the mark."""


def deterministic(function: FunctionT) -> FunctionT:
    """Mark a function as one whose result depends on its arguments only; return it.

    A function whose code names a source of random values or of the time, such as ``uuid.uuid4`` or
    ``time.perf_counter``, looks non-deterministic: :func:`~eddyline.adapt` then calls it for every
    row, and :func:`~eddyline.explain` says so. The mark overrules this, for example for a function
    that only measures its own running time, so that its results may be cached. Nothing checks the
    mark. A function whose results do differ for the same arguments is not deterministic: declare
    that to Spark with ``asNondeterministic()``.

    Put it next to the function, below ``udf``, ``pandas_udf`` or ``arrow_udf``, or above a function
    that such a function calls. Raises ``TypeError`` for what these decorators return, since Spark
    may have pickled the function already, and for a class or anything else that takes no
    attributes.

    >>> import time
    >>> @deterministic
    ... def length(text):
    ...     began = time.perf_counter()
    ...     found = len(text)
    ...     print(time.perf_counter() > began)
    ...     return found
    >>> length("four")
    True
    4
    """
    return marked(
        function,
        DETERMINISTIC,
        decorator="eddyline.deterministic",
        below="@udf, @pandas_udf or @arrow_udf",
    )


def is_marked_deterministic(function: object) -> bool:
    """Whether a function, or that of a method, was marked by :func:`deterministic`."""
    return is_marked(function, DETERMINISTIC)
