"""Marks that users put on functions, which travel with them when they are pickled."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

FunctionT = TypeVar("FunctionT", bound=Callable[..., object])


def marked(function: FunctionT, mark: str, *, decorator: str, below: str) -> FunctionT:
    """Put a mark on a function and return it.

    ``mark`` is the attribute, ``decorator`` what users call it, ``below`` what it stands below.
    Raises ``TypeError`` for what ``udf`` and its like return, since Spark may have pickled the
    function already, for classes, and for what takes no attributes.
    """
    if isinstance(function, type) or hasattr(function, "evalType"):
        raise TypeError(
            f"{decorator} marks a function, not {function!r}: put @{decorator} "
            f"above its def, and below {below}"
        )
    try:
        # The function itself, since `functools.wraps` copies attributes to what wraps it.
        setattr(function, mark, function)
    except AttributeError:
        raise TypeError(f"{function!r} takes no attributes: put @{decorator} above a def") from None
    return function


def is_marked(function: object, mark: str) -> bool:
    """Whether a function, or that of a method, has a mark of its own."""
    function = getattr(function, "__func__", function)
    return getattr(function, "__dict__", {}).get(mark) is function
