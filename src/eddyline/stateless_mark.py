"""The mark by which users say that an iterator function carries nothing from batch to batch."""

from __future__ import annotations

from typing import Final

from eddyline.function_marks import FunctionT, is_marked, marked

_MARK: Final = "_eddyline_stateless"


def stateless(function: FunctionT) -> FunctionT:
    """Mark an iterator function as one that carries nothing from batch to batch; return it.

    The mark promises that each batch's result is yielded before the next batch is asked
    for and depends on nothing that an earlier one left, and that at a ``yield`` nothing is
    held that other functions could notice, as a decimal context is.

    Put it next to the function, below ``pandas_udf`` or ``arrow_udf``. Raises ``TypeError``
    for what these return, since Spark may have pickled the function already, and for what
    takes no attributes.

    >>> @stateless
    ... def positive(batches):
    ...     return (batch > 0 for batch in batches)
    >>> list(positive([1, -1]))
    [True, False]
    """
    return marked(
        function, _MARK, decorator="eddyline.stateless", below="@pandas_udf or @arrow_udf"
    )


def is_marked_stateless(function: object) -> bool:
    """Whether a function, or that of a method, was marked by :func:`stateless`."""
    return is_marked(function, _MARK)
