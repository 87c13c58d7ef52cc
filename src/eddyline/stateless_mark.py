"""The mark by which users say that an iterator function carries nothing from batch to batch."""

from __future__ import annotations

from typing import Final

from eddyline.function_marks import FunctionT, is_marked, marked

_MARK: Final = "_eddyline_stateless"


def stateless(function: FunctionT) -> FunctionT:
    """Mark an iterator function that carries no state from batch to batch; return it.

    The mark promises that each batch's result is yielded before the next batch is requested, that
    it depends on nothing left behind by an earlier batch, and that at a ``yield`` the function
    holds nothing that others could notice, such as a decimal context. Nothing checks it. Functions
    of the plain form need no mark.

    Put it next to the function, below ``pandas_udf`` or ``arrow_udf``; for a method, above its
    ``def`` in the class. Raises ``TypeError`` for what these decorators return, since Spark may
    have pickled the function already, and for a class or anything else that takes no attributes,
    such as a method of an object.

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
