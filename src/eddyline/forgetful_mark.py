"""The mark by which users say that results of a function are not to be remembered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

FunctionT = TypeVar("FunctionT", bound=Callable[..., object])

FORGETFUL: Final = "_eddyline_forgetful"
"""The attribute that is the mark."""


def forgetful(function: FunctionT) -> FunctionT:
    """Mark a function whose results are never remembered; return it.

    :func:`~eddyline.adapt` calls it for every row that it is asked about, even where another one
    had the same arguments. Good for a function that is to be counted or watched by what its calls
    do, or whose answers are too large to keep. One whose answers differ for the same arguments is
    not deterministic: say so to Spark, with ``asNondeterministic()``.

    Put it next to the function, below ``udf``, ``pandas_udf`` or ``arrow_udf``. Raises
    ``TypeError`` for what these return, since Spark may have pickled the function already, and
    for what takes no attributes.

    >>> @forgetful
    ... def length(text):
    ...     return len(text)
    >>> length("four")
    4
    """
    if isinstance(function, type) or hasattr(function, "evalType"):
        raise TypeError(
            f"eddyline.forgetful marks a function, not {function!r}: put @eddyline.forgetful "
            "above its def, and below @udf, @pandas_udf or @arrow_udf"
        )
    try:
        # The function itself, since `functools.wraps` copies attributes to what wraps it.
        setattr(function, FORGETFUL, function)
    except AttributeError:
        raise TypeError(
            f"{function!r} takes no attributes: put @eddyline.forgetful above a def"
        ) from None
    return function


def is_marked_forgetful(function: object) -> bool:
    """Whether a function, or that of a method, was marked by :func:`forgetful`."""
    function = getattr(function, "__func__", function)
    return getattr(function, "__dict__", {}).get(FORGETFUL) is function
