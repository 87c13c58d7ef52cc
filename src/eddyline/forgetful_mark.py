"""The mark by which users say that results of a function are not to be remembered."""

from __future__ import annotations

from typing import Final

from eddyline.function_marks import FunctionT, is_marked, marked

FORGETFUL: Final = "_eddyline_forgetful"
"""The attribute that is the mark."""


def forgetful(function: FunctionT) -> FunctionT:
    """Mark a function whose results are never cached; return it.

    :func:`~eddyline.adapt` then calls it for every row that reaches it, even where another row had
    the same arguments. Use it for a function whose calls are counted or observed by their effects,
    or whose results are too large to keep. A function whose results differ for the same arguments
    is not deterministic: declare that to Spark with ``asNondeterministic()``.

    Put it next to the function, below ``udf``, ``pandas_udf`` or ``arrow_udf``. Raises
    ``TypeError`` for what these decorators return, since Spark may have pickled the function
    already, and for a class or anything else that takes no attributes.

    >>> @forgetful
    ... def length(text):
    ...     return len(text)
    >>> length("four")
    4
    """
    return marked(
        function,
        FORGETFUL,
        decorator="eddyline.forgetful",
        below="@udf, @pandas_udf or @arrow_udf",
    )


def is_marked_forgetful(function: object) -> bool:
    """Whether a function, or that of a method, was marked by :func:`forgetful`."""
    return is_marked(function, FORGETFUL)
